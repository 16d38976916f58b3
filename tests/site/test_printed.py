"""What a block printed: text is folded at the edge, a table keeps its columns."""

import re
from html import escape
from pathlib import Path

import pytest
from jinja2 import Environment, FileSystemLoader

OVERRIDES = Path(__file__).parents[2] / "docs" / "overrides"
PARTIAL = Environment(loader=FileSystemLoader(OVERRIDES)).get_template(
    "partials/printed.html"
)
BLOCK = '<div class="language-text highlight">'
CELL = '<div class="jp-RenderedText jp-OutputArea-output"'

TABLE = """\
embed           length of the last row    4.6
h.0.resid_post  length of the last row   12.4
h.1.resid_post  length of the last row   16.9
"""
TENSOR = """\
tensor([[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
        [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
        [0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
        [0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1]])
"""
SAID = """\
right   3.6427 bits a token
wrong   7.2485 bits a token

agree: off by 0.14 of the range (allowed: 1e-05)
  found:    [-0.55, 0.71, 0.75, 0.20, 0.87] (row 0)
  expected: [-0.85, 0.94, 0.72, 0.20, 0.79]
"""


def block(text: str) -> str:
    return f"{BLOCK}<pre><span></span><code>{escape(text)}</code></pre></div>"


def classes(text: str, opening: str = BLOCK) -> list[set[str]]:
    """The classes of each printed block, in order."""
    marked = PARTIAL.module.marked(text, opening)
    found = re.findall(r'class="(printed[^"]*)"', marked)
    return [set(names.split()) for names in found]


@pytest.mark.parametrize("text", [TABLE, TENSOR, "a title\n\n" + TABLE])
def test_a_table_keeps_its_columns(text: str) -> None:
    (names,) = classes(block(text))
    assert names >= {"printed", "aligned", "no-copy", "language-text", "highlight"}


@pytest.mark.parametrize(
    "text",
    [
        SAID,
        "narrow  1\n" * 4,
        "one line " * 30,
        "".join(f"{n}  a word before {'a long line ' * 9}\n" for n in range(4)),
        "a  1\nb  2\nc  3\nand a sentence below that is wider than a phone's screen",
    ],
)
def test_text_is_folded(text: str) -> None:
    (names,) = classes(block(text))
    assert "printed" in names
    assert "aligned" not in names


def test_each_block_is_told_by_its_own_lines_and_code_is_left_alone() -> None:
    code = '<div class="language-python highlight"><pre><code>x</code></pre></div>'
    page = code + block(SAID) + code + block(TABLE) + code
    assert ["aligned" in names for names in classes(page)] == [False, True]
    marked = PARTIAL.module.marked(page, BLOCK)
    assert marked.count(code) == 3
    assert re.sub(r"printed (?:aligned )?no-copy ", "", marked) == page


def test_the_outputs_of_a_lab_are_told_in_the_same_way() -> None:
    cells = f'{CELL} data="">\n<pre>{TABLE}</pre></div>{CELL}>\n<pre>{SAID}</pre></div>'
    assert ["aligned" in names for names in classes(cells, CELL)] == [True, False]


def test_a_shape_or_a_word_in_a_table_is_not_broken() -> None:
    row = f"<tr><td>[n_in, n_out]</td><td><code>x @ W</code></td><td>{'a ' * 9}</td>"
    marked = PARTIAL.module.short_cells(row)
    assert [('class="short"' in cell) for cell in marked.split("<td")[1:]] == [
        True,
        True,
        False,
    ]
