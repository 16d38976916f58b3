"""Every file of the package and of docs/wrong has its entry in the API reference."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "docs"))
import api_pages  # noqa: E402 -- it lies in docs/

FORGOTTEN = "a room came or went: run `python docs/api_pages.py`"


def modules(folder: Path) -> list[str]:
    """The dotted names of the modules of a package."""
    found = []
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        found.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return [name for name in found if name not in {"gpt2hw", "gpt2hw.__main__"}]


ENTRIES = [
    name
    for path in sorted(api_pages.PAGES.glob("*.md"))
    for name in re.findall(r"^::: ([\w.]+)$", path.read_text("utf-8"), re.MULTILINE)
]


@pytest.mark.parametrize("folder", [api_pages.SOURCE, ROOT / "docs" / "wrong"])
def test_every_module_has_one_entry_in_the_reference(folder: Path) -> None:
    bad = [name for name in modules(folder) if ENTRIES.count(name) != 1]
    assert not bad, FORGOTTEN


def test_the_pages_are_those_that_the_program_writes() -> None:
    there = {p.name: p.read_text(encoding="utf-8") for p in api_pages.PAGES.iterdir()}
    assert there == api_pages.pages(), FORGOTTEN


def test_the_navigation_is_the_one_that_the_program_writes() -> None:
    config = api_pages.CONFIG.read_text(encoding="utf-8")
    assert api_pages.with_navigation(config) == config, FORGOTTEN
