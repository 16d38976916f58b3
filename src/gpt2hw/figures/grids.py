"""Grids small enough to count: a reshape cell by cell, a mask, a matrix of names."""

from collections.abc import Sequence

from jaxtyping import Bool
from torch import Tensor

from gpt2hw.figures.checks import as_many, some
from gpt2hw.figures.colours import INK, axis_colour, figure_colour
from gpt2hw.figures.labels import label_table, margins
from gpt2hw.figures.svg import FONT, WIDTH, Canvas, Figure, text_width


def cell_grids(
    grids: Sequence[tuple[str, Sequence[Sequence[str]]]],
    *,
    colours: Sequence[Sequence[Sequence[int]]] = (),
    axes: tuple[str, str] = ("", ""),
    per_row: int = 2,
    alt: str = "",
    width: float = WIDTH,
) -> Figure:
    """Tables of cells with a word in each, side by side under their titles.

    `grids`: (title, rows of words); `colours`: for each grid a number per cell, equal
    numbers share a colour. The axes' names stand at the first grid of a line.
    """
    some("grids", grids)
    for title, rows in grids:
        some(f"grids: {title}", [word for row in rows for word in row])
    canvas = Canvas(width)
    side = 22.0 if axes[0] else 0.0
    room = (width - side - 16 * (per_row - 1)) / per_row
    cells = [len(rows[0]) for _, rows in grids]
    longest = max(text_width(w, mono=True) for _, g in grids for r in g for w in r)
    wide = min(room / max(cells), max(longest + 10, 34.0))
    y, high = 0.0, 30.0
    for start in range(0, len(grids), per_row):
        line = grids[start : start + per_row]
        top = y + (48 if axes[1] else 26)
        for n, (title, rows) in enumerate(line):
            x = side + n * (room + 16)
            canvas.text(x, y + FONT, title, bold=True)
            shades = colours[start + n] if colours else ()
            _draw_table(canvas, rows, shades, (x, top), (wide, high))
            if axes[1]:
                middle = x + len(rows[0]) * wide / 2
                canvas.text(
                    middle,
                    top - 7,
                    axes[1],
                    anchor="middle",
                    colour=axis_colour(axes[1]),
                )
        tall = max(len(rows) for _, rows in line) * high
        if axes[0]:
            first = len(line[0][1]) * high
            canvas.text(
                FONT,
                top + first / 2,
                axes[0],
                anchor="middle",
                turn=-90,
                colour=axis_colour(axes[0]),
            )
        y = top + tall + 16
    said = "; ".join(
        f"{title}: {' / '.join(' '.join(row) for row in rows)}" for title, rows in grids
    )
    return canvas.figure(y - 12, alt or f"Tables. {said}.")


def _draw_table(
    canvas: Canvas,
    rows: Sequence[Sequence[str]],
    shades: Sequence[Sequence[int]],
    at: tuple[float, float],
    size: tuple[float, float],
) -> None:
    (x, y), (wide, high) = at, size
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


def mask_grid(
    mask: Bool[Tensor, "n_row n_column"],
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    *,
    axes: tuple[str, str] = ("n_seq", "n_kv"),
    alt: str = "",
    width: float = WIDTH,
) -> Figure:
    """Who may look at whom: a full cell where the mask is True, else an empty one."""
    n_row, n_column = mask.shape
    some("mask", mask.flatten())
    as_many("rows", rows, n_row)
    as_many("columns", columns, n_column)
    canvas = Canvas(width)
    left, top = margins(rows, columns, axes)
    cell = min((width - left - 2) / n_column, 40.0)
    table = (n_column * cell, n_row * cell)
    label_table(canvas, (left, top), table, (rows, columns), axes)
    for i, row in enumerate(mask.tolist()):
        for j, allowed in enumerate(row):
            corner = (left + j * cell + 2, top + i * cell + 2)
            if allowed:
                colour = axis_colour(axes[1])
                canvas.rect(*corner, cell - 4, cell - 4, fill=colour, opacity=0.75)
            else:
                canvas.rect(*corner, cell - 4, cell - 4, stroke=INK, dashes="2 3")
    counts = ", ".join(str(n) for n in mask.sum(dim=-1).tolist())
    said = f"Mask of {n_row} queries by {n_column} keys. Keys seen, row by row: "
    return canvas.figure(top + table[1] + 4, alt or f"{said}{counts}.")
