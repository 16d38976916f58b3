"""Grids small enough to count: a reshape cell by cell, a product, names in cells."""

from collections.abc import Sequence

from gpt2hw.figures.checks import as_many, some
from gpt2hw.figures.colours import INK, axis_colour, figure_colour
from gpt2hw.figures.svg import FONT, WIDTH, Canvas, Figure, text_width

HIGH = 30.0  # of a cell, in units


def cell_grids(
    grids: Sequence[tuple[str, Sequence[Sequence[str]]]],
    *,
    colours: Sequence[Sequence[Sequence[int]]] = (),
    axes: tuple[str, str] = ("", ""),
    signs: Sequence[str] = (),
    per_row: int = 2,
    alt: str = "",
    width: float = WIDTH,
) -> Figure:
    """Tables of cells with a word in each, side by side under their titles.

    `grids`: (title, rows of words); `colours`: for each grid a number per cell, equal
    numbers share a colour. The axes' names stand at the first grid of a line. `signs`
    stand between the grids of a line, as ("@", "="), which makes the line a sum.
    """
    some("grids", grids)
    for title, rows in grids:
        some(f"grids: {title}", [word for row in rows for word in row])
    as_many("signs", signs, per_row - 1)
    canvas = Canvas(width)
    side = 22.0 if axes[0] else 0.0
    room = (width - side - 16 * (per_row - 1)) / per_row
    wide = _cell_width(grids, room)
    y = 0.0
    for start in range(0, len(grids), per_row):
        line = grids[start : start + per_row]
        top = y + (48 if axes[1] else 26)
        tall = max(len(rows) for _, rows in line) * HIGH
        ends = []
        for n, (title, rows) in enumerate(line):
            lower = (tall - len(rows) * HIGH) / 2 if signs else 0.0
            x, across = side + n * (room + 16), len(rows[0]) * wide
            canvas.text(x, y + lower + FONT, title, bold=True)
            shades = colours[start + n] if colours else ()
            _draw_table(canvas, rows, shades, (x, top + lower), wide)
            if axes[1]:
                _name_axis(canvas, axes[1], (x + across / 2, top - 7), 0)
            ends.append((x, x + across))
        for sign, (_, left), (right, _) in zip(signs, ends, ends[1:], strict=False):
            middle = ((left + right) / 2, top + tall / 2 + 5)
            canvas.text(*middle, sign, anchor="middle")
        if axes[0]:
            _name_axis(canvas, axes[0], (FONT, top + len(line[0][1]) * HIGH / 2), -90)
        y = top + tall + 16
    return canvas.figure(y - 12, alt or _said(grids))


def _said(grids: Sequence[tuple[str, Sequence[Sequence[str]]]]) -> str:
    said = "; ".join(
        f"{title}: {' / '.join(' '.join(row) for row in rows)}" for title, rows in grids
    )
    return f"Tables. {said}."


def _cell_width(
    grids: Sequence[tuple[str, Sequence[Sequence[str]]]], room: float
) -> float:
    longest = max(text_width(w, mono=True) for _, g in grids for r in g for w in r)
    return min(room / max(len(rows[0]) for _, rows in grids), max(longest + 10, 34.0))


def _name_axis(canvas: Canvas, axis: str, at: tuple[float, float], turn: float) -> None:
    canvas.text(*at, axis, anchor="middle", turn=turn, colour=axis_colour(axis))


def _draw_table(
    canvas: Canvas,
    rows: Sequence[Sequence[str]],
    shades: Sequence[Sequence[int]],
    at: tuple[float, float],
    wide: float,
) -> None:
    (x, y), high = at, HIGH
    for i, row in enumerate(rows):
        for j, word in enumerate(row):
            left, top = x + j * wide, y + i * high
            if shades:
                fill = figure_colour(shades[i][j])
                canvas.rect(
                    left + 1, top + 1, wide - 2, high - 2, fill=fill, opacity=0.25
                )
            else:
                canvas.rect(left + 1, top + 1, wide - 2, high - 2, stroke=INK)
            canvas.text(
                left + wide / 2, top + high / 2 + 5, word, anchor="middle", mono=True
            )
