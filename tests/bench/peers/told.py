"""What the rounds come to: medians and their spread, the machine, and the versions."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from bars import Table
from cache_time import processor
from measuring import report
from start import Rounds

PACKAGES = (
    *("gpt2hw", "torch", "transformers", "ctranslate2", "llama-cpp-python", "gguf"),
    *("tiktoken", "tokenizers"),
)
UNITS = {  # by the first word of a work
    "prompt": "ms",
    **dict.fromkeys(("limit", "at", "1", "8"), "tokens/s"),
    **dict.fromkeys(("seconds", "system"), "s"),
    "MiB": "MiB",
    **dict.fromkeys(("prose", "code"), "MB/s"),
}


def told(rounds: Rounds) -> Table:
    """work -> unit, and engine -> median, least, most, and each round's figure."""
    return {
        work: {
            "unit": UNITS[work.replace(",", "").split()[0]],
            "rows": {name: _row(figures) for name, figures in rows.items()},
        }
        for work, rows in rounds.items()
    }


def _row(figures: list[float]) -> dict[str, Any]:
    kept = [float(f"{figure:.4g}") for figure in figures]
    middle = float(f"{median(kept):.4g}")
    return {"median": middle, "least": min(kept), "most": max(kept), "rounds": kept}


def show(table: Table) -> None:
    """The medians and their spread, as text."""
    for work, told_of in table.items():
        print(f"{work}, {told_of['unit']}")
        for name, row in told_of["rows"].items():
            spread = f"{row['least']:g} to {row['most']:g}"
            print(f"      {name:<22} {row['median']:>9g}   {spread}")


def show_bars(found: list[dict[str, Any]]) -> None:
    """Met or missed, with the peer that was the best."""
    for one in found:
        unit = f"(target {one['target']:g}; {one['theirs'][1]})"
        report(one["what"], one["ratio"], one["floor"], unit, at_least=True)


def machine(threads: int) -> dict[str, Any]:
    """Where and when, and the versions of everything that was compared."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads": threads,
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": {name: version(name).split("+")[0] for name in PACKAGES},
    }


def busy_seconds() -> tuple[float, float]:
    """Processor seconds of the whole machine (Linux), and of this run so far."""
    path = Path("/proc/stat")
    if not path.exists():
        return float("nan"), 0.0
    words = path.read_text(encoding="utf-8").splitlines()[0].split()[1:]
    user, nice, system, *_ = (int(word) / os.sysconf("SC_CLK_TCK") for word in words)
    return user + nice + system, sum(os.times()[:4])
