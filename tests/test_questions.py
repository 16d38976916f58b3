"""The questions to a chapter's fresh readers: ten each, with the place that answers."""

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
STEPS = ROOT / "docs" / "steps"
SHEETS = sorted((ROOT / "tests" / "site" / "questions").glob("*.md"))
FENCE = re.compile(r"^```+ *(\S*.*?)\n(.*?)^```+$", re.MULTILINE | re.DOTALL)


def chapter_of(sheet: Path) -> str:
    """The page that a sheet of questions is about, by the step in its name."""
    pages = list(STEPS.glob(f"{sheet.stem}_*.md"))
    assert len(pages) == 1, f"{sheet.name} is about {len(pages)} pages"
    return pages[0].read_text(encoding="utf-8")


def headings(page: str) -> set[str]:
    return set(re.findall(r"^#+ (.+)$", FENCE.sub("", page), re.MULTILINE))


def questions(sheet: Path) -> list[tuple[str, str, str]]:
    """(question, answer, heading) of each."""
    text = sheet.read_text(encoding="utf-8")
    form = r"^## \d+\. (.+\?.*)\n\nAnswer: (.+)\nHeading: (.+)$"
    return re.findall(form, text, re.MULTILINE)


def test_there_are_questions() -> None:
    assert SHEETS


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: sheet.stem)
def test_a_sheet_has_ten_questions_in_the_form(sheet: Path) -> None:
    found = questions(sheet)
    n_headings = len(
        re.findall("^## ", sheet.read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert len(found) == n_headings == 10
    assert len({question for question, _, _ in found}) == 10


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: sheet.stem)
def test_the_place_that_answers_a_question_is_on_the_page(sheet: Path) -> None:
    missing = {heading for *_, heading in questions(sheet)} - headings(
        chapter_of(sheet)
    )
    assert not missing


def shown_only(page: str) -> list[str]:
    """The Python that a page shows and does not run."""
    return [
        code
        for info, code in FENCE.findall(page)
        if "python" in info and ".not-run" in info
    ]


@pytest.mark.parametrize("page", sorted(STEPS.glob("*.md")), ids=lambda page: page.stem)
def test_what_a_check_that_is_shown_imports_is_there(page: Path) -> None:
    for code in shown_only(page.read_text(encoding="utf-8")):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and node.module:
                module = importlib.import_module(node.module)
                for alias in node.names:
                    assert hasattr(module, alias.name), f"{node.module}.{alias.name}"


def test_a_check_that_is_shown_and_not_run_is_seen() -> None:
    page = "```python { .python .not-run }\nfrom gpt2hw import GPT2\n```\n"
    assert shown_only(page) == ["from gpt2hw import GPT2\n"]
