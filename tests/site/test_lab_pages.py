"""Labs on the site: run when it is built, in the markup of the other pages."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import check_build
import little_book
import pytest
from little_book import ROOT, Book
from pages import all_pages

LAB = "notebooks/step2_pairs.ipynb"
PAGE = "notebooks/step2_pairs.html"
INSTALL = "import sys\n\nprint('in', sys.executable)"
BROKEN_ON_PURPOSE = (
    "<details><summary>Explain</summary>\n\nIt *is* the lowest.\n\n</details>"
)
CELLS = [
    ("markdown", "title", "# Lab 2\n\nRead [step 2](../steps/step2_pairs.md) first."),
    ("code", "install", INSTALL),
    ("markdown", "one-predict", "## 1. Lowest\n\n**Predict.** Which pair?"),
    (
        "code",
        "one-run",
        "from gpt2hw.pairs import find_lowest\n\n"
        "print(find_lowest(['a', 'b'], {('a', 'b'): 41 + 1}), '<div>')",
    ),
    ("markdown", "one-explain", BROKEN_ON_PURPOSE),
    ("markdown", "next", "## Next\n\n[This lab](step2_pairs.ipynb) again."),
]


def write_lab(book: Book, last: str = "") -> None:
    """A lab among the book's pages; `last` is the source of one more cell."""
    cells = [*CELLS, *([("code", "last", last)] if last else [])]
    runs = {"execution_count": None, "outputs": []}
    notebook = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {
            "kernelspec": {
                "display_name": "Python 3",
                "language": "python",
                "name": "python3",
            }
        },
        "cells": [
            {"cell_type": kind, "id": name, "metadata": {}, "source": source}
            | (runs if kind == "code" else {})
            for kind, name, source in cells
        ],
    }
    path = book.root / "docs" / LAB
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(notebook), encoding="utf-8")


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Book:
    """The little book with a lab, built."""
    book = little_book.write(tmp_path_factory.mktemp("labs"))
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    frame, _, _ = config.partition("\nnav:\n")
    text = f"{frame}{little_book.NAVIGATION}  - {LAB}\n"
    (book.root / "mkdocs.yml").write_text(text, encoding="utf-8")
    docs = Path("docs")
    shutil.rmtree(book.root / docs / "overrides")
    shutil.copytree(ROOT / docs / "overrides", book.root / docs / "overrides")
    write_lab(book)
    done = book.build()
    assert done.returncode == 0, done.stderr
    return book


@pytest.fixture(scope="module")
def page(book: Book) -> str:
    """The lab as a page."""
    return (book.root / "site" / PAGE).read_text(encoding="utf-8")


def test_a_lab_becomes_a_page_with_its_outputs_and_no_fault(
    book: Book, page: str
) -> None:
    assert not list(book.faults())
    (made,) = (p for p in all_pages(book.root / "site") if p.place == PAGE)
    assert len(made.code) >= sum(kind == "code" for kind, *_ in CELLS)
    assert "<pre>(42, 0) &lt;div&gt;\n</pre>" in page


def test_code_of_a_lab_has_the_markup_of_the_chapters_code(page: str) -> None:
    article = page[page.index("<article") : page.index("</article>")]
    n_code = sum(kind == "code" for kind, *_ in CELLS)
    assert article.count('<div class="language-python highlight"><pre><code>') == n_code
    assert article.count("<div") == article.count("</div>")
    assert "highlight-ipynb" not in article
    assert "clipboard-copy" not in article
    assert '<details class="explain"><summary>' in article


def test_a_lab_brings_no_style_sheet_and_no_script_of_its_own(
    book: Book, page: str
) -> None:
    chapter = book.page
    for tag in ("<style", "<script"):
        assert page.count(tag) == chapter.count(tag)
    assert len(page) < len(chapter) + 20_000
    assert "cdnjs" not in page


def test_a_lab_shows_no_path_of_the_machine_that_ran_it(book: Book) -> None:
    made = all_pages(book.root / "site")
    assert not list(check_build.of_this_machine(made))


def test_a_lab_can_be_downloaded_as_it_is_stored(book: Book, page: str) -> None:
    name = Path(LAB).name
    assert f'<a href="{name}" download>' in page
    copy = (book.root / "site" / LAB).read_text(encoding="utf-8")
    assert copy == (book.root / "docs" / LAB).read_text(encoding="utf-8")


def test_links_of_a_lab_lead_to_pages(page: str) -> None:
    assert '<a href="../steps/step2_pairs.html">step 2</a>' in page
    assert '<a href="step2_pairs.html">This lab</a>' in page


def test_the_search_finds_the_prose_of_a_lab_and_not_its_code(book: Book) -> None:
    site, tool = book.root / "site", ROOT / "docs" / "labs_in_search.py"
    subprocess.run([sys.executable, tool, site], check=True)
    index = site / "search" / "search_index.json"
    entries = json.loads(index.read_text(encoding="utf-8"))["docs"]
    found = {e["title"]: e["text"] for e in entries if e["location"].startswith(PAGE)}
    assert found.keys() == {"Lab 2", "1. Lowest", "Next"}
    assert "Which pair?" in found["1. Lowest"]
    assert not re.search("find_lowest|executable", "".join(found.values()))


def test_a_cell_that_fails_ends_the_build(book: Book) -> None:
    write_lab(book, last="1 / 0")
    done = book.build()
    assert done.returncode != 0
    assert "ZeroDivisionError" in done.stderr
    assert not (book.root / "site" / PAGE).exists()
