"""What `::: symbol` shows: the source as it is, without the docstring's longer part."""

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
    return n * 2


@dataclass(frozen=True)
class Pair:
    """Two numbers.

    They have an order.
    """

    left: int
    right: int

    def total(self) -> int:
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

::: gpt2hw.pairs.Pair.total

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
        "    left: int\n    right: int\n\n    def total(self) -> int:\n"
        '        """The sum."""\n        return self.left + self.right',
    ),
    (
        "Pair.total",
        'def total(self) -> int:\n    """The sum."""\n'
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
    for name in ("half", "twice", "Pair", "Pair.total", "WIDE"):
        assert f'id="gpt2hw.pairs.{name}"' in page
    whole = page[page.index('id="gpt2hw.pairs-file"') :]
    code = re.findall(r"<pre>.*?</pre>", whole, re.DOTALL)[0]
    assert text_of(code).strip("\n") == ROOM.strip("\n")
    assert ">>> twice(2)" in text_of(page)


def test_no_snippet_shows_line_numbers(built: Page) -> None:
    assert "linenos" not in built("steps/step2_pairs.html")
