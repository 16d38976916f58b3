"""What stands beside a table of cells: the names of its lines and of its two axes."""

from collections.abc import Sequence

from gpt2hw.figures.colours import axis_colour
from gpt2hw.figures.svg import FONT, WIDTH, Canvas, fitting, text_width

Names = Sequence[str]
Pair = tuple[float, float]
MOST = 0.5 * WIDTH  # units for a name


def left_margin(rows: Names, axis: str) -> float:
    """The room that the rows' names and their axis need at the left, in units."""
    names = max([text_width(r, mono=True) for r in _cut(rows)], default=0)
    return names + 8 + (24 if axis else 0)


def top_margin(columns: Names, axis: str, cell: float) -> float:
    """The room above a table whose cells are `cell` units wide."""
    names = _cut(columns)
    tall = [
        text_width(name, mono=True) if on_its_side else FONT
        for name, on_its_side in zip(names, turned(names, cell), strict=True)
    ]
    return max(tall, default=0) + 8 + (24 if axis else 0)


def turned(names: Names, cell: float) -> list[bool]:
    """Which names must be turned to stand above cells `cell` units wide.

    Where one has no room, all are turned but single signs: a dash on its side is
    another sign.

    >>> turned(["a", "-"], 20), turned(["The", "king", "-"], 30)
    ([False, False], [True, True, False])
    """
    wide = [text_width(name, mono=True) > cell for name in names]
    return [w or (any(wide) and len(n) > 1) for w, n in zip(wide, names, strict=True)]


def _cut(names: Names) -> list[str]:
    return [fitting(name, MOST, mono=True) for name in names]


def label_table(
    canvas: Canvas,
    at: Pair,
    table: Pair,
    names: tuple[Names, Names],
    axes: tuple[str, str],
) -> None:
    """Names for a table whose corner is `at` and whose width and height are `table`.

    Rows at the left, columns above (turned where they are too wide), each in its
    axis's colour; the axes' own names outermost.
    """
    (left, top), (wide, high), (rows, columns) = at, table, names
    row_colour, column_colour = axis_colour(axes[0]), axis_colour(axes[1])
    _label_axes(canvas, at, table, axes)
    for i, name in enumerate(_cut(rows)):
        y = top + (i + 0.5) * high / len(rows) + 5
        canvas.text(left - 6, y, name, anchor="end", mono=True, colour=row_colour)
    cut, cell = _cut(columns), wide / max(len(columns), 1)
    for j, (name, on_its_side) in enumerate(zip(cut, turned(cut, cell), strict=True)):
        x, y, look = left + (j + 0.5) * cell, top - 6, column_colour
        if on_its_side:
            canvas.text(x + 5, y, name, mono=True, turn=-90, colour=look)
        else:
            canvas.text(x, y, name, mono=True, anchor="middle", colour=look)


def label_ends(
    canvas: Canvas, at: Pair, table: Pair, ends: tuple[str, str], axes: tuple[str, str]
) -> None:
    """The first and the last place of both axes, for a table with too many to name."""
    (left, top), (wide, high), (first, last) = at, table, ends
    _label_axes(canvas, at, table, axes)
    for y, name in ((top + 12, first), (top + high - 1, last)):
        colour = axis_colour(axes[0])
        canvas.text(left - 6, y, name, anchor="end", mono=True, colour=colour)
    for x, name, anchor in ((left, first, "start"), (left + wide, last, "end")):
        colour = axis_colour(axes[1])
        canvas.text(x, top - 6, name, anchor=anchor, mono=True, colour=colour)


def _label_axes(canvas: Canvas, at: Pair, table: Pair, axes: tuple[str, str]) -> None:
    across, down = at[0] + table[0] / 2, at[1] + table[1] / 2
    if axes[0]:
        colour = axis_colour(axes[0])
        canvas.text(FONT, down, axes[0], anchor="middle", turn=-90, colour=colour)
    if axes[1]:
        colour = axis_colour(axes[1])
        canvas.text(across, FONT, axes[1], anchor="middle", colour=colour)
