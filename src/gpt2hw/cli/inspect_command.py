"""`gpt2hw inspect`: what a model's weight file holds, from its header alone."""

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpt2hw.cli import console
from gpt2hw.cli.text import cell, counted, in_a_line
from gpt2hw.cli.usage import WrongUse
from gpt2hw.hub.progress import readable

if TYPE_CHECKING:
    from rich.text import Text

    from gpt2hw.config import GPT2Config
    from gpt2hw.inspection import Report, TensorRow


def inspect(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|FOLDER|FILE",
            help="a model, or a .safetensors file [default: tiny]",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            metavar="NAME|FOLDER|FILE",
            help="the same, as other commands have it",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="print the same, and more, as JSON")
    ] = False,
) -> None:
    """List what a model's weight file holds.

    Parameters are what training found; buffers, such as the causal masks in GPT-2's
    file, are stored beside them and do not count.
    """
    from gpt2hw.inspection import inspect_checkpoint

    given = [name for name in (what, model) if name is not None]
    if len(given) == 2:
        raise WrongUse(f"the model is named twice: {what} and --model {model}")
    report = inspect_checkpoint(place_of(given[0] if given else "tiny"))
    config, fault = config_beside(report.path)
    if as_json:
        console.print_json({"config": config and asdict(config)} | report.to_json())
        if fault:
            console.say(f"gpt2hw: {fault}")
        return
    print_report(report, config, fault)


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


def config_beside(file: Path) -> tuple["GPT2Config | None", str]:
    """The config.json in the same folder, or why there is none ("" if it is not there).

    >>> config_beside(place_of("tiny") / "model.safetensors")[0].n_layer
    4
    """
    from gpt2hw.errors import CheckpointError
    from gpt2hw.folder import read_config

    try:
        return read_config(file.parent), ""
    except CheckpointError as error:
        is_there = os.path.lexists(file.parent / "config.json")
        return None, f"the model's shape is not shown: {error}" * is_there


def print_report(
    report: "Report", config: "GPT2Config | None", fault: str = ""
) -> None:
    """Prints a summary, the file, its model's shape, the tensors, the totals, notes."""
    from gpt2hw.cli.screen import dim, filled, rich_console, shortened, show

    shape = asdict(config) if config else {}
    numbers = "  ".join(f"{name} {shape[name]}" for name in SHAPE if name in shape)
    file = shortened(in_a_line(str(report.path)), rich_console().width)
    above: list[str | Text] = [filled(summary(report)), file]
    above += [filled(numbers)] * bool(numbers) + [dim(fault)] * bool(fault) + [""]
    notes = [part for note in report.notes for part in ("", filled(in_a_line(note)))]
    files: list[str | Text] = ["", _files(report)] if len(report.files) > 1 else []
    show(*above, _tensors(report), "", _totals(report), *files, *notes)


def summary(report: "Report") -> str:
    """What the file holds, in one line."""
    everything, heads = report.total(), report.total("tied head")
    parts = [
        counted(report.total("parameter").n_elements, "parameter"),
        counted(report.total("buffer").n_tensors, "buffer"),
        *(["a tied head"] if heads.n_tensors else []),
    ]
    dtypes = " and ".join(sorted({row.dtype for row in report.rows}))
    size = readable(everything.n_bytes)
    n_files = len(report.files)
    return (
        f"{counted(everything.n_tensors, 'tensor')}: {', '.join(parts)};"
        f" {dtypes + ', ' if dtypes else ''}{size}"
        + f" in {n_files} shards"
        * (n_files > 1)
    )


SHAPE = ("n_vocab", "n_ctx", "n_embd", "n_head", "n_layer", "n_inner")
MANY = 2000  # rows; GPT-2 XL has 580


def _tensors(report: "Report") -> "str | Text":
    """A line for each tensor; what does not count is dim, and says what it is."""
    from rich.text import Text

    from gpt2hw.cli.screen import plain_table, table

    headings = ("tensor", "dtype", "shape", "numbers", "")
    rows = [_cells(row) for row in report.rows]
    if len(rows) > MANY:
        return plain_table(headings, rows, right=("numbers",))
    styled = [[Text(c, "dim" if row[-1] else "") for c in row] for row in rows]
    return table(headings, styled, right=("numbers",))


def _cells(row: "TensorRow") -> tuple[str, ...]:
    name = cell(row.name, sys.stdout.encoding or "ascii")
    kind = "" if row.kind == "parameter" else row.kind
    return name, row.dtype, str(list(row.shape)), f"{row.n_elements:,}", kind


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


def _files(report: "Report") -> "str | Text":
    """A line for each shard: how much of the whole it holds."""
    from gpt2hw.cli.screen import plain_table, table

    encoding = sys.stdout.encoding or "ascii"
    rows = [
        (cell(file.name, encoding), f"{file.n_tensors:,}", f"{file.n_bytes:,}")
        for file in report.files
    ]
    headings, right = ("shard", "tensors", "bytes"), ("tensors", "bytes")
    lay_out = table if len(rows) <= MANY else plain_table
    return lay_out(headings, rows, right=right)
