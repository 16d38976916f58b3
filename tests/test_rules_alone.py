"""The rules, the classic mistakes, the pages and the labs do without hypothesis.

Whoever installs the package and nothing else can put a function of their own to the
rules. Only what draws cases needs hypothesis, and says so.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import gpt2hw.properties

DOCS = Path(__file__).parent.parent / "docs"
PROPERTIES = Path(gpt2hw.properties.__file__).parent
DRAWING = {"strategies", "drawn", "drawn_files", "drawn_texts"}
WITHOUT = """
import importlib, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "hypothesis":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""


def run_without_hypothesis(code: str) -> subprocess.CompletedProcess[str]:
    """A fresh Python that has no hypothesis, and finds docs/wrong."""
    start = f"import sys; sys.path.insert(0, {str(DOCS)!r})\n"
    return subprocess.run(
        [sys.executable, "-c", WITHOUT + start + code],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def test_every_rule_and_every_mistake_is_there_without_hypothesis() -> None:
    rules = {path.stem for path in PROPERTIES.glob("*.py")} - DRAWING - {"__init__"}
    names = [f"gpt2hw.properties.{name}" for name in sorted(rules)]
    code = (
        f"for name in {[*names, 'wrong.catalogue']}:\n    importlib.import_module(name)"
    )
    done = run_without_hypothesis(code)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", sorted(DRAWING))
def test_what_draws_cases_says_what_to_type_where_hypothesis_is_missing(
    name: str,
) -> None:
    done = run_without_hypothesis(f"import gpt2hw.properties.{name}")
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ModuleNotFoundError: "), done.stderr
    assert 'pip install ".[labs]"' in last


def sources() -> dict[str, str]:
    """The text of each chapter, and the code of each lab."""
    found = {p.name: p.read_text(encoding="utf-8") for p in DOCS.glob("steps/*.md")}
    for path in DOCS.glob("notebooks/*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
        found[path.name] = "\n".join(code)
    return found


@pytest.mark.parametrize("name", sorted(sources()))
def test_a_page_and_a_lab_draw_no_cases(name: str) -> None:
    needing = {f"gpt2hw.properties.{room}" for room in DRAWING} | {"hypothesis"}
    for line in sources()[name].splitlines():
        words = line.split()
        if words[:1] in (["from"], ["import"]):
            assert words[1] not in needing, line
            if words[1] == "gpt2hw.properties":
                assert not DRAWING & set(" ".join(words[3:]).split(", ")), line
