"""The real GPT-2: downloaded, and held against what others have published about it.

    nox -s gpt2                              gpt2, and what of the other sizes is here
    nox -s gpt2 -- gpt2 gpt2-medium          these two are downloaded, if need be

It prints a table of expected and found. The status is 0 where all that is asserted
holds, 1 where something does not, and 2 where a model cannot be had.
"""

import argparse
import json
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "golden"))

from precision_facts import precision_checks
from published_facts import FACTS, Check, Fact, checks

from gpt2hw import CheckpointError, GPT2HWError
from gpt2hw.cli.text import one_line
from gpt2hw.config import PUBLISHED
from gpt2hw.hub import download, find
from gpt2hw.hub.places import is_path

OK, WRONG, REPORTED = "OK", "NOT OK", "reported"
ABSENT, UNCHECKED = "not here", "not checked"


@dataclass(frozen=True)
class Row:
    """One line of the table; `detail` is printed below it where something is wrong."""

    verdict: str
    model: str
    what: str
    expected: str
    found: str
    detail: str = ""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="nox -s gpt2 --")
    parser.add_argument("names", nargs="*", metavar="NAME", help="models or folders")
    parser.add_argument("--facts", type=Path, help="another file of published facts")
    given = parser.parse_args(arguments)
    facts = FACTS
    if given.facts:
        facts = json.loads(given.facts.read_text(encoding="utf-8"))
    try:
        folders = {name: folder_of(name) for name in given.names or ["gpt2"]}
    except (GPT2HWError, OSError) as error:
        print(f"gpt2 cannot be checked: {one_line(str(error))}", file=sys.stderr)
        return 2
    for name, folder in (folders | others_here(folders)).items():
        print(f"{name}: {folder}")
        folders[name] = folder
    rows = list(rows_of(facts, folders))
    print_table(rows)
    return 1 if any(row.verdict == WRONG for row in rows) else 0


def folder_of(name: str) -> Path:
    """The folder of a model, downloaded unless it is here; or the folder itself."""
    return find(name) if is_path(name) else download(name)


def others_here(given: Iterable[str]) -> dict[str, Path]:
    """The published sizes that are on this machine, though nobody asked for them."""
    here = {}
    for name in set(PUBLISHED) - set(given):
        try:
            folder = find(name)
        except CheckpointError:
            continue
        if (folder / "model.safetensors").is_file():
            here[name] = folder
    return dict(sorted(here.items()))


def rows_of(facts: Fact, folders: dict[str, Path]) -> Iterator[Row]:
    """A row for each fact about these models, and for each that is not checked."""
    for check in (*checks(facts), *precision_checks(facts)):
        if check.model in folders:
            yield row_of(check, folders[check.model])
    absent = {check.model for check in checks(facts)} - set(folders)
    for name in sorted(absent):
        yield Row(ABSENT, name, "its facts", "", f"nox -s gpt2 -- {name}")
    for fact in facts.get("not_checked", []):
        yield Row(UNCHECKED, fact["model"], fact["what"], "", "", fact["why"])


def row_of(check: Check, folder: Path) -> Row:
    """What a look finds; where it fails, the error is what is found."""
    try:
        outcome = check.look(folder)
    except (GPT2HWError, ValueError, OSError) as error:
        return Row(WRONG, check.model, check.what, "", one_line(str(error)))
    if outcome is None:
        return Row(ABSENT, check.model, check.what, "", "")
    verdict = (OK if outcome.is_ok else WRONG) if check.is_asserted else REPORTED
    detail = outcome.detail if verdict == WRONG else ""
    return Row(
        verdict, check.model, check.what, outcome.expected, outcome.found, detail
    )


def print_table(rows: Sequence[Row]) -> None:
    """The rows in columns; what is not checked below them, with the reason why not."""
    shown = [row for row in rows if row.verdict != UNCHECKED]
    cells = [("", "model", "fact", "expected", "found")]
    cells += [(r.verdict, r.model, r.what, r.expected, r.found) for r in shown]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for cell, row in zip(cells, [None, *shown], strict=True):
        pairs = zip(cell, widths, strict=True)
        print("  ".join(text.ljust(width) for text, width in pairs).rstrip())
        if row and row.detail:
            print(textwrap.indent(row.detail, " " * 8))
    for row in rows:
        if row.verdict == UNCHECKED:
            print(f"{UNCHECKED}: {row.model}: {row.what}; why: {row.detail}")
    counts = {v: sum(row.verdict == v for row in rows) for v in (OK, WRONG)}
    print(f"{counts[OK]} OK, {counts[WRONG]} NOT OK")


if __name__ == "__main__":
    sys.exit(main())
