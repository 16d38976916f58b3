"""Matrices as heat maps: the stronger the colour, the larger the number."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from gpt2hw.figures.checks import as_many, finite, some
from gpt2hw.figures.colours import INK, figure_colour
from gpt2hw.figures.keys import amounts, colour_key, largest
from gpt2hw.figures.labels import (
    Names,
    Pair,
    label_ends,
    label_table,
    left_margin,
    top_margin,
)
from gpt2hw.figures.pixels import opacity_png
from gpt2hw.figures.svg import FONT, WIDTH, Canvas, Figure

MOST_CELLS = 400  # more are drawn as one image
PALE = 0.5  # the strongest colour under a number, so that the number can be read


def heat_map(
    values: Float[Tensor, "n_row n_column"],
    rows: Names = (),
    columns: Names = (),
    *,
    axes: tuple[str, str] = ("", ""),
    ends: tuple[str, str] = ("", ""),
    numbers: bool = False,
    most: float | None = None,
    root: bool = False,
    alt: str = "",
    width: float = WIDTH,
) -> Figure:
    """One matrix: `rows` and `columns` name its lines (tokens), `axes` its two axes.

    `axes` are names with one colour each, as ("n_seq", "n_kv"); `ends` names the first
    and the last place of both where there are too many to name. The full colour stands
    for `most` (the largest size unless given); what is negative has the second colour.
    `root` makes the colour grow as the root of the value, so that small ones are seen.
    Below stands a key of the colours, unless `numbers` writes each value into its cell.
    """
    values = values.detach().to(torch.float64).cpu()
    n_row, n_column = values.shape
    _check(values, most)
    as_many("rows", rows, n_row)
    as_many("columns", columns, n_column)
    full = most or largest(values)
    canvas = Canvas(width)
    left = left_margin(rows or [e for e in ends if e], axes[0])
    wide = min((width - left - 2) / n_column, 60.0)
    high = min(wide, 44.0)
    top = top_margin(columns or [e for e in ends[:1] if e], axes[1], wide)
    table = (n_column * wide, n_row * high)
    if any(ends):
        label_ends(canvas, (left, top), table, ends, axes)
    else:
        label_table(canvas, (left, top), table, (rows, columns), axes)
    shares = amounts(values, full, root)
    if values.numel() > MOST_CELLS:
        _draw_image(canvas, shares, (left, top), table)
    else:
        names = (rows, columns)
        _draw_cells(canvas, (values, shares), (left, top), (wide, high), names, numbers)
    end = top + table[1] + 2
    if not numbers:
        end = colour_key(canvas, (left, end + 10), values, full, root=root)
    return canvas.figure(end, alt or seen(values, rows, columns))


def heat_maps(
    values: Float[Tensor, "n_map n_row n_column"],
    names: Sequence[str],
    *,
    per_row: int = 3,
    most: float | None = None,
    root: bool = False,
    alt: str = "",
    width: float = WIDTH,
) -> Figure:
    """Small multiples: matrices side by side under their names, on one scale.

    For all heads of a block, each named with its score. A name may have two lines,
    parted by a line's end. `most` and `root` are those of `heat_map`.
    """
    values = values.detach().to(torch.float64).cpu()
    n_map, n_row, n_column = values.shape
    _check(values, most)
    some("names", names)
    as_many("names", names, n_map)
    full = most or largest(values)
    canvas = Canvas(width)
    gap = 14.0
    side = (width - gap * (per_row - 1)) / per_row - 1
    high = side * n_row / n_column
    head = 19.0 * max(name.count("\n") + 1 for name in names) + 2
    step = head + high + gap
    for i, (matrix, name) in enumerate(zip(values, names, strict=True)):
        x, y = (i % per_row) * (side + gap), (i // per_row) * step
        for n, line in enumerate(name.split("\n")):
            canvas.text(x, y + FONT + 19 * n, line, bold=n == 0)
        _draw_image(canvas, amounts(matrix, full, root), (x, y + head), (side, high))
    said = f"{len(names)} heat maps of {n_row} by {n_column}: "
    said += "; ".join(name.replace("\n", ", ") for name in names)
    end = -(-len(names) // per_row) * step
    end = colour_key(canvas, (0, end), values, full, root=root)
    return canvas.figure(end, alt or said)


def _draw_image(
    canvas: Canvas, shares: Float[Tensor, "n_row n_column"], at: Pair, table: Pair
) -> None:
    canvas.image(*at, *table, opacity_png(shares), figure_colour(0))
    if (shares < 0).any():
        canvas.image(*at, *table, opacity_png(-shares), figure_colour(1))
    canvas.rect(*at, *table, stroke=INK, stroke_opacity=0.35)


def _draw_cells(
    canvas: Canvas,
    values_and_shares: tuple[Tensor, Tensor],
    at: Pair,
    cell: Pair,
    names: tuple[Names, Names],
    numbers: bool,
) -> None:
    (x, y), (wide, high), (rows, columns) = at, cell, names
    values, shares = values_and_shares
    n_row, n_column = values.shape
    strength = PALE if numbers else 1.0
    for i in range(n_row):
        for j in range(n_column):
            value, amount = float(values[i, j]), float(shares[i, j]) * strength
            place = " → ".join([*rows[i : i + 1], *columns[j : j + 1]])
            left, top = x + j * wide, y + i * high
            canvas.rect(
                *(left + 0.5, top + 0.5, wide - 1, high - 1),
                fill=figure_colour(0 if amount >= 0 else 1),
                opacity=abs(amount),
                tip=f"{place}: {value:.3g}" if place else f"{value:.3g}",
            )
            if numbers:
                middle = (left + wide / 2, top + high / 2 + 5)
                canvas.text(*middle, short(value), anchor="middle")
    canvas.rect(x, y, n_column * wide, n_row * high, stroke=INK, stroke_opacity=0.35)


def _check(values: Float[Tensor, "*axes"], most: float | None) -> None:
    some("values", values.flatten())
    finite("most", [] if most is None else [most], least=0)


def short(value: float) -> str:
    """A number in few characters, as it fits into a cell.

    >>> short(0.25), short(1.0), short(float("-inf")), short(-12.34)
    ('.25', '1', '−∞', '−12')
    """
    if value != value or abs(value) == float("inf") or value == round(value):
        text = f"{value:.0f}".replace("inf", "∞")
    elif abs(value) < 0.995:
        text = f"{value:.2f}".replace("0.", ".", 1)
    else:
        text = f"{value:.1f}" if abs(value) < 9.95 else f"{value:.0f}"
    return text.replace("-", "−")


def seen(values: Float[Tensor, "n_row n_column"], rows: Names, columns: Names) -> str:
    """A heat map in words: its size, and for each named row where its largest is.

    >>> seen(torch.tensor([[0.2, 0.8]]), ["a"], ["b", "c"])
    'Heat map, 1 row by 2 columns. Largest in each row: a: c (0.8).'
    """
    n_row, n_column = values.shape
    text = f"Heat map, {n_row} row{'s' * (n_row > 1)} by {n_column} columns."
    if not rows or not columns:
        low, high = float(values.min()), float(values.max())
        return f"{text} Values from {low:.3g} to {high:.3g}."
    best = values.argmax(dim=-1).tolist()
    largest = [
        f"{row}: {columns[j]} ({float(values[i, j]):.2g})"
        for i, (row, j) in enumerate(zip(rows, best, strict=True))
    ]
    return f"{text} Largest in each row: {', '.join(largest)}."
