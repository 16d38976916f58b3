"""What every chapter keeps: its exercises can be done, its checks are fair.

The pages are read as text here, but for the checks that wait for the reader's function:
those run behind the page's own solution.
"""

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from alone import run_alone

ROOT = Path(__file__).parent.parent
STEPS = sorted((ROOT / "docs" / "steps").glob("step*.md"))
LABS = sorted((ROOT / "docs" / "notebooks").glob("step*.ipynb"))
each_step = pytest.mark.parametrize("page", STEPS, ids=lambda page: page.stem)
FENCE = re.compile(r"^( *)```(\w+)([^\n]*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
DRAWS = re.compile(
    r"torch\.(?:rand|randn|randint|randperm|multinomial|bernoulli|normal)\("
    r"|\brandom\.(?!Random\()\w+\("
)


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(page: Path) -> list[tuple[bool, str]]:
    """Each block of Python: whether the page runs it, and its code."""
    return [
        ("exec=" in head, re.sub(f"^{indent}", "", code, flags=re.MULTILINE))
        for indent, language, head, code in FENCE.findall(text_of(page))
        if language == "python"
    ]


@each_step
def test_every_exercise_has_a_hint_or_an_answer(page: Path) -> None:
    part = text_of(page).split("\n## Exercises\n")[1].split("\n## ")[0]
    starts = [m.start() for m in re.finditer(r"^\*\*\d+\. ", part, re.MULTILINE)]
    assert len(starts) >= 3
    for start, end in pairwise([*starts, len(part)]):
        exercise = part[start:end]
        assert "\n??? " in exercise, f"no answer: {exercise.splitlines()[0]}"


def calls(code: str) -> list[str]:
    """Each call that draws, from its name to the bracket that ends it."""
    found = []
    for match in DRAWS.finditer(code):
        depth, end = 1, match.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(code[end], 0)
            end += 1
        found.append(code[match.start() : end])
    return found


@each_step
def test_what_is_drawn_on_a_page_is_drawn_from_a_seed(page: Path) -> None:
    """A check that a right answer fails now and then is no check."""
    for _, code in blocks(page):
        for call in calls(code):
            assert "generator" in call, call


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.stem)
def test_what_a_check_of_a_lab_draws_is_drawn_from_a_seed(lab: Path) -> None:
    """Elsewhere in a lab, numbers that only take time may be any."""
    cells = json.loads(text_of(lab))["cells"]
    checks = [cell for cell in cells if cell["id"].startswith("exercise-check")]
    assert checks
    for cell in checks:
        for call in calls("".join(cell["source"])):
            assert "generator" in call, call


def test_the_search_for_draws_finds_them() -> None:
    code = "x = torch.randn(2, len(ids)) + random.choice([1])\nrandom.Random(0)"
    assert calls(code) == ["torch.randn(2, len(ids))", "random.choice([1])"]


def test_the_first_page_and_the_first_step_say_how_to_type_along() -> None:
    for page in (ROOT / "docs" / "index.md", STEPS[1]):
        assert '--8<-- "type_along.md"' in text_of(page), page.name


@each_step
def test_a_page_that_needs_the_mistakes_says_how_python_finds_them(page: Path) -> None:
    if any("from wrong import" in code for _, code in blocks(page)):
        assert re.search(
            r"\]\((step1_download_model\.md)?#to-type-along\)", text_of(page)
        )


WAITING = [page for page in STEPS if any(not is_run for is_run, _ in blocks(page))]


def script(page: Path) -> str:
    """The page's blocks in order, each waiting check behind the next that runs."""
    found, waiting = list[str](), list[str]()
    for is_run, code in blocks(page):
        if is_run:
            found += [code, *waiting]
            waiting = []
        elif "# breaks" not in code:
            waiting.append(code)
    assert not waiting
    return "\n".join(found)


@pytest.mark.parametrize("page", WAITING, ids=lambda page: page.stem)
def test_the_solution_of_a_page_passes_its_check(page: Path) -> None:
    done = run_alone(script(page))
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_reader_can_divide_the_numbers_of_step_10_again() -> None:
    (page,) = (page for page in STEPS if page.stem.startswith("step10"))
    printed = run_alone(script(page)).stdout
    table = printed.split("| GPT-2 124M's shape |")[1].split("\n\n")[0]
    words = {name.split(",")[0]: cells for name, *cells in rows_of(table)}
    tokens, times, limit, share = (
        words[name]
        for name in (
            "tokens a second",
            "times as fast as float32",
            "the limit of its bytes",
            "share of that limit",
        )
    )
    for n, most, found, part in zip(tokens, limit, times, share, strict=True):
        assert f"{float(n) / float(tokens[0]):.2f}" == found
        assert f"{float(n) / float(most):.0%}" == part


def rows_of(table: str) -> list[list[str]]:
    """The rows of a Markdown table below its head, cell by cell."""
    lines = table.split("\n")[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@each_step
def test_a_step_has_one_name(page):
    title = re.search(r"^# (.+)$", text_of(page), re.MULTILINE)[1]
    number = re.match(r"step(\d+[ab]?)", page.stem)[1]
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for at in (f"steps/{page.name}", f"notebooks/{page.stem}.ipynb"):
        assert f'- "{number}. {title}": {at}\n' in config
    home = (ROOT / "docs" / "home.py").read_text(encoding="utf-8")
    assert f'"{number}": ("{page.stem}", "{title}"' in home
