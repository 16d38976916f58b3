"""Masks, and what is there of a table: cells that are full, kept or empty."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool
from torch import Tensor

from gpt2hw.figures.checks import as_many, some
from gpt2hw.figures.colours import INK, axis_colour, figure_colour
from gpt2hw.figures.labels import label_table, left_margin, top_margin
from gpt2hw.figures.svg import FONT, WIDTH, Canvas, Figure, text_width

EMPTY, KEPT, FULL = range(3)


def mask_grid(
    mask: Bool[Tensor, "n_row n_column"],
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    *,
    kept: Bool[Tensor, "n_row n_column"] | None = None,
    key: Sequence[str] = (),
    axes: tuple[str, str] = ("n_seq", "n_kv"),
    alt: str = "",
    width: float = WIDTH,
) -> Figure:
    """Who may look at whom: a full cell where the mask is True, else an empty one.

    With `kept`, a cell that is there but not full is pale. `key` says below what the
    cells mean: full, kept (if there is such a state), empty.
    """
    n_row, n_column = mask.shape
    some("mask", mask.flatten())
    as_many("rows", rows, n_row)
    as_many("columns", columns, n_column)
    as_many("key", key, 2 if kept is None else 3)
    states = torch.where(mask, FULL, EMPTY)
    if kept is not None:
        states = torch.where(kept & ~mask, KEPT, states)
    canvas = Canvas(width)
    left = left_margin(rows, axes[0])
    cell = min((width - left - 2) / n_column, 40.0)
    top = top_margin(columns, axes[1], cell)
    table = (n_column * cell, n_row * cell)
    label_table(canvas, (left, top), table, (rows, columns), axes)
    colour = axis_colour(axes[1])
    colour = figure_colour(2) if colour == INK else colour
    for i, row in enumerate(states.tolist()):
        for j, state in enumerate(row):
            corner = (left + j * cell + 2, top + i * cell + 2)
            _draw_state(canvas, state, corner, cell - 4, colour)
    y = top + table[1] + 4
    if key:
        order = (FULL, EMPTY) if kept is None else (FULL, KEPT, EMPTY)
        y = _draw_key(canvas, list(zip(order, key, strict=True)), y + 12, colour)
    return canvas.figure(y, alt or _said(states))


def _draw_state(
    canvas: Canvas, state: int, at: tuple[float, float], side: float, colour: str
) -> None:
    """One cell: states differ by colour, by outline and by what is inside."""
    if state == FULL:
        canvas.rect(*at, side, side, fill=colour, opacity=0.75)
    elif state == KEPT:
        canvas.rect(*at, side, side, fill=colour, opacity=0.2, stroke=colour)
    else:
        canvas.rect(*at, side, side, stroke=INK, dashes="2 3", stroke_opacity=0.6)


def _draw_key(
    canvas: Canvas, entries: Sequence[tuple[int, str]], y: float, colour: str
) -> float:
    """The states and their words, in as many lines as they need; where they end."""
    x, side = 1.0, 18.0
    for state, words in entries:
        wide = side + 8 + text_width(words)
        if x > 1 and x + wide > canvas.width:
            x, y = 1.0, y + side + 8
        _draw_state(canvas, state, (x, y), side, colour)
        canvas.text(x + side + 8, y + FONT - 1, words)
        x += wide + 18
    return y + side + 2


def _said(states: Tensor) -> str:
    n_row, n_column = states.shape
    counts = ", ".join(str(n) for n in (states == FULL).sum(dim=-1).tolist())
    text = (
        f"Mask of {n_row} queries by {n_column} keys. Keys seen, row by row: {counts}"
    )
    if (states == KEPT).any():
        counts = ", ".join(str(n) for n in (states == KEPT).sum(dim=-1).tolist())
        text += f"; kept: {counts}"
    return f"{text}."
