"""What was measured of the tiny model, on file: `measured.json`, one entry a command.

Each entry says of which weights it is true (their sha256), when it was measured, and
with what. A test holds the card and the shipped model against it.
"""

import hashlib
import json
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from gpt2hw.hub import SHIPPED

HERE = Path(__file__).parent
FILE = HERE / "measured.json"
TINY = SHIPPED / "tiny"


def read() -> dict[str, Any]:
    """All entries; none where nothing has been measured."""
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


def record(name: str, found: dict[str, Any], folder: Path = TINY) -> None:
    """Puts an entry on file, in the place of an older one of this name."""
    about = {
        "weights": sha256(folder / "model.safetensors"),
        "date": datetime.now(UTC).date().isoformat(),
        "with": f"torch {torch.__version__}, {platform.machine()}",
    }
    everything = read() | {name: found | about}
    text = json.dumps(everything, indent=1, sort_keys=True, ensure_ascii=False)
    FILE.write_text(text + "\n", encoding="utf-8", newline="\n")


def sha256(path: Path) -> str:
    """The hash of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
