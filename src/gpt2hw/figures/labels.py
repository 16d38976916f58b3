"""What stands beside a table of cells: the names of its lines and of its two axes."""

from collections.abc import Sequence

from gpt2hw.figures.colours import axis_colour
from gpt2hw.figures.svg import FONT, WIDTH, Canvas, fitting, text_width

Names = Sequence[str]
MOST = 0.5 * WIDTH  # units for a name


def margins(rows: Names, columns: Names, axes: tuple[str, str]) -> tuple[float, float]:
    """The room that the names need at the left and above, in units."""
    left = max([text_width(r, mono=True) for r in _cut(rows)], default=0) + 8
    top = max([text_width(c, mono=True) for c in _cut(columns)], default=0) + 8
    return left + (24 if axes[0] else 0), top + (24 if axes[1] else 0)


def _cut(names: Names) -> list[str]:
    return [fitting(name, MOST, mono=True) for name in names]


def label_table(
    canvas: Canvas,
    at: tuple[float, float],
    table: tuple[float, float],
    names: tuple[Names, Names],
    axes: tuple[str, str],
) -> None:
    """Names for a table whose corner is `at` and whose width and height are `table`.

    Rows at the left, columns above and turned, each in its axis's colour; the axes'
    own names outermost.
    """
    (left, top), (wide, high), (rows, columns) = at, table, names
    row_colour, column_colour = axis_colour(axes[0]), axis_colour(axes[1])
    middle = (left + wide / 2, top + high / 2)
    if axes[0]:
        canvas.text(
            FONT, middle[1], axes[0], anchor="middle", turn=-90, colour=row_colour
        )
    if axes[1]:
        canvas.text(middle[0], FONT, axes[1], anchor="middle", colour=column_colour)
    for i, name in enumerate(_cut(rows)):
        y = top + (i + 0.5) * high / len(rows) + 5
        canvas.text(left - 6, y, name, anchor="end", mono=True, colour=row_colour)
    for j, name in enumerate(_cut(columns)):
        x = left + (j + 0.5) * wide / len(columns) + 5
        canvas.text(x, top - 6, name, mono=True, turn=-90, colour=column_colour)
