"""What could make a page tell something untrue ends the build, or is found after it.

Each test plants one fault in a little book that builds without one.
"""

import re
from html import unescape
from pathlib import Path

import fences
import little_book
import pytest
from check_build import page_of
from little_book import Book


@pytest.fixture
def book(tmp_path: Path) -> Book:
    return little_book.write(tmp_path)


def refused(book: Book) -> str:
    """What the build says when it fails."""
    done = book.build()
    assert done.returncode, "the build went through"
    return done.stdout + done.stderr


def found_after(book: Book) -> str:
    """What the checks say after a build that thinks it went well."""
    done = book.build()
    assert not done.returncode, done.stderr
    return "\n".join(book.faults())


def text_of(html: str) -> str:
    """What a page shows, without the tags that colour it."""
    return unescape(re.sub(r"<[^>]+>", "", html))


def test_a_page_changes_with_the_function_that_it_shows_and_runs(book: Book) -> None:
    assert not found_after(book)
    before = text_of(book.page)
    assert "return min(ranked, default=None)" in before
    assert "(7, 0)" in before
    assert "in the reference alone" not in before
    book.edit(book.room, "return min(ranked, default=None)", "return max(ranked)")
    assert not found_after(book)
    after = text_of(book.page)
    assert "return max(ranked)" in after
    assert "(7, 2)" in after
    assert "(7, 0)" not in after


def test_sys_exit_in_a_block_is_noticed_though_the_build_ends_well(book: Book) -> None:
    book.edit(book.chapter, "print(", "import sys\n\nsys.exit(0)\nprint(")
    assert f"{page_of(little_book.CHAPTER)} was not built" in found_after(book)


def test_a_block_that_raises_ends_the_build(book: Book) -> None:
    book.edit(book.chapter, "print(", "print(1 / 0, ")
    assert "ZeroDivisionError" in refused(book)


def test_a_symbol_that_was_renamed_ends_the_build(book: Book) -> None:
    book.edit(book.room, "def find_lowest(", "def find_least(")
    assert "gpt2hw.pairs.find_lowest could not be found" in refused(book)


def test_a_symbol_with_nothing_in_it_ends_the_build(book: Book) -> None:
    book.edit(book.chapter, "::: gpt2hw.pairs.find_lowest", "::: gpt2hw.pairs.later")
    assert "gpt2hw.pairs.later is empty" in refused(book)


def test_a_page_of_the_navigation_that_is_not_there_ends_the_build(book: Book) -> None:
    book.edit(book.root / "mkdocs.yml", little_book.CHAPTER, "steps/step9_more.md")
    assert "step9_more.md" in refused(book)


def test_a_link_to_an_anchor_that_is_not_there_ends_the_build(book: Book) -> None:
    book.edit(book.chapter, "[The entry][gpt2hw.pairs.find_lowest]", "[it](#nowhere)")
    assert "nowhere" in refused(book)


def test_a_mistyped_fence_is_noticed_after_the_build(book: Book) -> None:
    book.edit(book.chapter, '```python exec="on" source', "```python exec=on source")
    told = found_after(book)
    assert "look like code that runs" in told
    assert "Markdown is left as it was" in told


GOOD = '```python exec="on" session="page"\nprint(1)\n```\n'


@pytest.mark.parametrize(
    "wrong",
    [
        GOOD.replace("exec", "exce"),
        GOOD.replace('"on"', "on"),
        GOOD.replace('"on"', '"off"'),
        GOOD.replace("python", "pyhton"),
        GOOD.replace("python", "py"),
        GOOD.replace("python", "sh"),
        GOOD.replace("```python", "``python"),
        GOOD.replace("```python", "```pythonexec"),
        GOOD.replace(' session="page"', ""),
        GOOD.replace('session="page"', 'session="another"'),
        "```python\nprint(1)\n```\n",
        "```bash\nls\n```\n",
        "``` {.pycon}\n>>> 1\n```\n",
        "```console\n$ ls\n```\n",
    ],
)
@pytest.mark.parametrize("around", ["{}", "!!! note\n\n    {}", '=== "A"\n\n    {}'])
def test_a_block_that_neither_runs_nor_says_so_is_found(
    wrong: str, around: str
) -> None:
    indented = wrong.replace("\n", "\n    ") if "    " in around else wrong
    assert list(fences.faults_of(around.format(indented), "page"))


@pytest.mark.parametrize(
    "right",
    [
        GOOD,
        "```python {.python .not-run}\nprint(1)\n```\n",
        "``` {.bash .not-run}\nls\n```\n",
        "```text\nls\n```\n",
        '??? question "Predict"\n\n    ' + GOOD.replace("\n", "\n    "),
    ],
)
def test_a_block_that_runs_or_says_that_it_does_not_is_no_fault(right: str) -> None:
    assert not list(fences.faults_of(right, "page"))


def test_an_included_block_has_no_session_that_pages_would_share() -> None:
    assert list(fences.faults_of(GOOD, None))
    assert not list(fences.faults_of(GOOD.replace(' session="page"', ""), None))


def test_two_pages_never_share_a_session(tmp_path: Path) -> None:
    for place in ("a/page.md", "b/page.md"):
        path = tmp_path / place
        path.parent.mkdir()
        path.write_text(GOOD, encoding="utf-8")
    assert [fault for fault in fences.faults(tmp_path) if "share" in fault]
    assert fences.session_of(Path("reference/api/index.md")) == "api"
    assert fences.session_of(Path("index.md")) == "index"
