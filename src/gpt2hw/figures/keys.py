"""What the colours of a heat map stand for: how strong for how much, and a key."""

import torch
from jaxtyping import Float
from torch import Tensor

from gpt2hw.figures.colours import INK, figure_colour
from gpt2hw.figures.pixels import opacity_png
from gpt2hw.figures.svg import FONT, Canvas

LONG, THICK = 140.0, 12.0  # of the key's strip, in units


def amounts(
    values: Float[Tensor, "n_row n_column"], most: float, root: bool = False
) -> Float[Tensor, "n_row n_column"]:
    """Values as shares of `most`, from -1 to 1; what is not finite has no colour.

    With `root`, the roots of the shares: a hundredth has a tenth of the colour.

    >>> amounts(torch.tensor([[1.0, -0.25]]), 1.0, root=True).tolist()
    [[1.0, -0.5]]
    """
    known = torch.where(values.isfinite(), values, 0.0)
    shares = (known / most).clamp(-1, 1)
    return shares.sign() * shares.abs().sqrt() if root else shares


def largest(values: Float[Tensor, "*axes"]) -> float:
    """The largest size that is finite; 1 where all is zero, or nothing is finite.

    >>> largest(torch.tensor([-3.0, 1.0, float("inf")]))
    3.0
    """
    return float(torch.where(values.isfinite(), values, 0.0).abs().max()) or 1.0


def colour_key(
    canvas: Canvas,
    at: tuple[float, float],
    values: Float[Tensor, "*axes"],
    most: float,
    *,
    root: bool = False,
) -> float:
    """A strip from no colour to the full one, its values below; where it ends.

    Where values are negative, it begins at the full colour of what is negative.
    """
    x, y = min(at[0], canvas.width - LONG - 2), at[1]
    negative = bool((values < 0).any())
    start = x + LONG / 2 if negative else x
    ramp = torch.linspace(0, 1, 64)[None]
    if negative:
        canvas.image(x, y, LONG / 2, THICK, opacity_png(ramp.flip(1)), figure_colour(1))
    canvas.image(start, y, x + LONG - start, THICK, opacity_png(ramp), figure_colour(0))
    canvas.rect(x, y, LONG, THICK, stroke=INK, stroke_opacity=0.35)
    middle = 0.0 if negative else most / 4 if root else most / 2
    ends = (_told(-most) if negative else "0", _told(most))
    if largest(values) > most * 1.001:
        ends = (ends[0].replace("−", "≤ −"), f"≥ {ends[1]}")
    base = y + THICK + FONT
    canvas.text(x, base, ends[0])
    canvas.text(x + LONG / 2, base, _told(middle), anchor="middle")
    canvas.text(x + LONG, base, ends[1], anchor="end")
    return base + 4


def _told(value: float) -> str:
    return f"{value:.2g}".replace("-", "−")
