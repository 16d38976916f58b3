"""`gpt2hw inspect`: what a model's weight file holds, from its header alone."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpt2hw.cli.text import json_text, neutral

if TYPE_CHECKING:
    from rich.text import Text

    from gpt2hw.config import GPT2Config
    from gpt2hw.inspection import Report


def inspect(
    what: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FOLDER|FILE", help="a model, or a .safetensors file [tiny]"
        ),
    ] = "tiny",
    as_json: Annotated[
        bool, typer.Option("--json", help="print the same, and more, as JSON")
    ] = False,
) -> None:
    """List what a model's weight file holds.

    Parameters are what training found; buffers, such as the causal masks in GPT-2's
    file, are stored beside them and do not count.
    """
    from gpt2hw.inspection import inspect_checkpoint

    report = inspect_checkpoint(place_of(what))
    config = config_beside(report.path)
    if as_json:
        found = {"config": config and asdict(config)} | report.to_json()
        print(json_text(found))
        return
    print_report(report, config)


def place_of(what: str) -> Path:
    """The file or the folder that is meant.

    >>> place_of("tiny").name
    'tiny'
    """
    from gpt2hw.config import PUBLISHED
    from gpt2hw.hub import find

    is_name = what == "tiny" or what in PUBLISHED
    if not is_name and (what.endswith(".safetensors") or Path(what).is_file()):
        return Path(what).expanduser()
    return find(what)


def config_beside(file: Path) -> "GPT2Config | None":
    """The config.json in the same folder, None where there is none that fits GPT-2."""
    from gpt2hw.config import GPT2Config
    from gpt2hw.strict_json import parse_object

    try:
        return GPT2Config.from_dict(
            parse_object((file.parent / "config.json").read_bytes())
        )
    except (OSError, ValueError):
        return None


def print_report(report: "Report", config: "GPT2Config | None") -> None:
    """Prints where the file lies, its model's shape, the tensors, the totals, notes."""
    from gpt2hw.cli.screen import show

    shape = asdict(config) if config else {}
    numbers = "  ".join(f"{name} {shape[name]}" for name in SHAPE if name in shape)
    above = [neutral(str(report.path)), *([numbers] if numbers else []), ""]
    notes = [part for note in report.notes for part in ("", neutral(note))]
    show(*above, _tensors(report), "", _totals(report), *notes)


SHAPE = ("n_vocab", "n_ctx", "n_embd", "n_head", "n_layer", "n_inner")


def _tensors(report: "Report") -> "Text":
    """A line for each tensor; what does not count is dim, and says what it is."""
    from rich.text import Text

    from gpt2hw.cli.screen import table

    rows = []
    for row in report.rows:
        counts = row.kind == "parameter"
        cells = (
            neutral(row.name),
            row.dtype,
            str(list(row.shape)),
            f"{row.n_elements:,}",
        )
        kind = "" if counts else row.kind
        rows.append([Text(c, "" if counts else "dim") for c in (*cells, kind)])
    return table(("tensor", "dtype", "shape", "numbers", ""), rows, right=("numbers",))


def _totals(report: "Report") -> "Text":
    from gpt2hw.cli.screen import table

    totals = {
        "parameters": report.total("parameter"),
        "buffers": report.total("buffer"),
        "tied head": report.total("tied head"),
    }
    rows = [
        (title, f"{t.n_tensors:,}", f"{t.n_elements:,}", f"{t.n_bytes:,}")
        for title, t in totals.items()
        if t.n_tensors or title != "tied head"
    ]
    columns = ("tensors", "numbers", "bytes")
    return table(("", *columns), rows, right=columns)
