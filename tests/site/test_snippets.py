"""What `::: symbol` shows: the source without the docstring's longer part.

What the source says to a linter or a type checker is not shown either.
"""

import re
from collections.abc import Callable
from html import unescape

import little_book
import pytest

ROOM = '''\
"""A room.

Where it comes from.
"""

from dataclasses import dataclass
from functools import cache

WIDE = 7  # as wide as that


@cache
def half(n: int) -> int:
    """Half of n, told in a sentence that goes on until it has about eighty letters."""
    # The remainder is lost.
    return n // 2


def twice(
    n: int,
) -> int:
    """Two times n.

    >>> twice(2)
    4
    """
    return n * 2  # type: ignore[no-any-return]  # noqa: RET504 -- as it is taught


@dataclass(frozen=True)
class Pair:  # noqa: PLW1641
    """Two numbers.

    They have an order.
    """

    left: int
    right: int  # noqa: E501

    def total_of_the_two(self) -> int:  # type: ignore[misc]
        """The sum.

        It has no order.
        """
        return self.left + self.right
'''
PAGE = """\
---
description: Snippets.
---

# Snippets

::: gpt2hw.pairs.half

::: gpt2hw.pairs.twice

::: gpt2hw.pairs.twice
    options:
      extra: {docstring: none}

::: gpt2hw.pairs.twice
    options:
      extra: {docstring: whole}

::: gpt2hw.pairs.Pair

::: gpt2hw.pairs.Pair.total_of_the_two

::: gpt2hw.pairs.WIDE

??? question "Folded"

    ::: gpt2hw.pairs.half
"""
TWICE = "def twice(\n    n: int,\n) -> int:\n"
DOCSTRING = '    """Two times n.\n\n    >>> twice(2)\n    4\n    """\n'
HALF = ROOM[ROOM.index("@cache") : ROOM.index("\n\ndef twice")].rstrip()
SHOWN = [
    ("half", HALF),
    ("twice", TWICE + '    """Two times n."""\n    return n * 2'),
    ("twice", TWICE + "    return n * 2"),
    ("twice", TWICE + DOCSTRING + "    return n * 2"),
    (
        "Pair",
        '@dataclass(frozen=True)\nclass Pair:\n    """Two numbers."""\n\n'
        "    left: int\n    right: int\n\n    def total_of_the_two(self) -> int:\n"
        '        """The sum."""\n        return self.left + self.right',
    ),
    (
        "Pair.total_of_the_two",
        'def total_of_the_two(self) -> int:\n    """The sum."""\n'
        "    return self.left + self.right",
    ),
    ("WIDE", "WIDE = 7  # as wide as that"),
    ("half", HALF),
]

Page = Callable[[str], str]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The text of a built page, by its place."""
    book = little_book.write(tmp_path_factory.mktemp("book"))
    book.room.write_text(ROOM, encoding="utf-8")
    book.chapter.write_text(PAGE, encoding="utf-8")
    done = book.build()
    assert not done.returncode, done.stderr
    return lambda place: (book.root / "site" / place).read_text(encoding="utf-8")


def text_of(html: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", html))


def test_a_snippet_is_the_source_of_its_symbol(built: Page) -> None:
    page = built("steps/step2_pairs.html")
    figures = re.findall(r'<figure class="snippet".*?</figure>', page, re.DOTALL)
    assert len(figures) == len(SHOWN)
    for figure, (name, source) in zip(figures, SHOWN, strict=True):
        caption, _, code = figure.partition("</figcaption>")
        assert text_of(code).strip("\n") == source
        assert text_of(caption).split() == [name, "src/gpt2hw/pairs.py"]


def test_its_caption_leads_to_the_entry_and_to_the_whole_file(built: Page) -> None:
    page = built("steps/step2_pairs.html")
    entry, file = re.findall(r'<a class="[^"]* snippet__.*?href="([^"]+)"', page)[:2]
    assert entry.endswith("reference/api/pairs.html#gpt2hw.pairs.half")
    assert file.endswith("reference/api/pairs.html#gpt2hw.pairs-file")


def test_the_reference_tells_each_symbol_and_ends_with_the_whole_file(
    built: Page,
) -> None:
    page = built("reference/api/pairs.html")
    for name in ("half", "twice", "Pair", "Pair.total_of_the_two", "WIDE"):
        assert f'id="gpt2hw.pairs.{name}"' in page
    whole = page[page.index('id="gpt2hw.pairs-file"') :]
    code = re.findall(r"<pre>.*?</pre>", whole, re.DOTALL)[0]
    assert text_of(code).strip("\n") == ROOM.strip("\n")
    assert ">>> twice(2)" in text_of(page)


def test_what_a_linter_is_told_stands_in_the_whole_file_alone(built: Page) -> None:
    page, entry = built("steps/step2_pairs.html"), built("reference/api/pairs.html")
    before, whole = entry.split('id="gpt2hw.pairs-file"')
    for mark in ("noqa", "type: ignore"):
        assert mark not in page
        assert mark not in before
        assert mark in whole
    assert "right: int\n" in text_of(before)
    assert "class Pair:\n" in text_of(before)


def test_a_long_name_is_broken_after_an_underscore_but_its_anchor_is_not(
    built: Page,
) -> None:
    page = built("reference/api/pairs.html")
    (heading,) = re.findall(r"<h\d id=[^>]*two_?[^>]*>.*?</h\d>", page)
    assert 'id="gpt2hw.pairs.Pair.total_of_the_two"' in heading
    assert "<code>total_<wbr>of_<wbr>the_<wbr>two</code>" in heading


def test_no_snippet_shows_line_numbers(built: Page) -> None:
    assert "linenos" not in built("steps/step2_pairs.html")
