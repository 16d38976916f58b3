"""Matrices as heat maps: the stronger the colour, the larger the number."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from gpt2hw.figures.checks import as_many, finite, some
from gpt2hw.figures.colours import INK, figure_colour
from gpt2hw.figures.labels import Names, label_table, margins
from gpt2hw.figures.pixels import opacity_png
from gpt2hw.figures.svg import FONT, WIDTH, Canvas, Figure

MOST_CELLS = 400  # more are drawn as one image
PALE = 0.5  # the strongest colour under a number, so that the number can be read
Pair = tuple[float, float]


def heat_map(
    values: Float[Tensor, "n_row n_column"],
    rows: Names = (),
    columns: Names = (),
    *,
    axes: tuple[str, str] = ("", ""),
    numbers: bool = False,
    most: float | None = None,
    alt: str = "",
    width: float = WIDTH,
) -> Figure:
    """One matrix: `rows` and `columns` name its lines (tokens), `axes` its two axes.

    The full colour stands for `most` (the largest size unless given); what is negative
    has the second colour. `numbers` writes each value into its cell. `axes` are names
    with one colour each, as ("n_seq", "n_kv").
    """
    values = values.detach().to(torch.float64).cpu()
    n_row, n_column = values.shape
    _check(values, most)
    as_many("rows", rows, n_row)
    as_many("columns", columns, n_column)
    canvas = Canvas(width)
    left, top = margins(rows, columns, axes)
    wide = min((width - left - 2) / n_column, 60.0)
    high = min(wide, 44.0)
    table = (n_column * wide, n_row * high)
    label_table(canvas, (left, top), table, (rows, columns), axes)
    if values.numel() > MOST_CELLS:
        _draw_image(canvas, values, (left, top), table, most)
    else:
        tips = (rows, columns)
        _draw_cells(canvas, values, (left, top), (wide, high), tips, numbers, most)
    return canvas.figure(top + table[1] + 2, alt or seen(values, rows, columns))


def heat_maps(
    values: Float[Tensor, "n_map n_row n_column"],
    names: Sequence[str],
    *,
    per_row: int = 3,
    most: float | None = None,
    alt: str = "",
    width: float = WIDTH,
) -> Figure:
    """Small multiples: matrices side by side under their names, on one scale.

    For all heads of a block, each named with its score. A name may have two lines,
    parted by a line's end.
    """
    values = values.detach().to(torch.float64).cpu()
    n_map, n_row, n_column = values.shape
    _check(values, most)
    some("names", names)
    as_many("names", names, n_map)
    most = _largest(values) if most is None else most
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
        _draw_image(canvas, matrix, (x, y + head), (side, high), most)
    said = f"{len(names)} heat maps of {n_row} by {n_column}: "
    said += "; ".join(name.replace("\n", ", ") for name in names)
    return canvas.figure(-(-len(names) // per_row) * step, alt or said)


def _draw_image(
    canvas: Canvas,
    values: Float[Tensor, "n_row n_column"],
    at: Pair,
    table: Pair,
    most: float | None,
) -> None:
    amounts = _amounts(values, most)
    canvas.image(*at, *table, opacity_png(amounts), figure_colour(0))
    if (amounts < 0).any():
        canvas.image(*at, *table, opacity_png(-amounts), figure_colour(1))
    canvas.rect(*at, *table, stroke=INK, stroke_opacity=0.35)


def _draw_cells(
    canvas: Canvas,
    values: Float[Tensor, "n_row n_column"],
    at: Pair,
    cell: Pair,
    names: tuple[Names, Names],
    numbers: bool,
    most: float | None,
) -> None:
    (x, y), (wide, high), (rows, columns) = at, cell, names
    n_row, n_column = values.shape
    amounts = _amounts(values, most) * (PALE if numbers else 1)
    for i in range(n_row):
        for j in range(n_column):
            value, amount = float(values[i, j]), float(amounts[i, j])
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


def _amounts(
    values: Float[Tensor, "n_row n_column"], most: float | None
) -> Float[Tensor, "n_row n_column"]:
    """Values as shares of `most`, from -1 to 1; what is not finite has no colour."""
    known = torch.where(values.isfinite(), values, 0.0)
    return (known / (most or _largest(values))).clamp(-1, 1)


def _largest(values: Float[Tensor, "*axes"]) -> float:
    """The largest size that is finite; 1 where all is zero, or nothing is finite."""
    return float(torch.where(values.isfinite(), values, 0.0).abs().max()) or 1.0


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
