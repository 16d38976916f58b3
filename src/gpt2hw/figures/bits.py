"""A number as a computer keeps it: its bits, in several formats."""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from gpt2hw.figures.checks import finite, some
from gpt2hw.figures.colours import INK, figure_colour
from gpt2hw.figures.svg import FONT, WIDTH, Canvas, Figure


class Format(NamedTuple):
    """A format of floating point: how many bits its two parts have."""

    dtype: torch.dtype
    whole: torch.dtype  # of as many bits, to look at them
    n_exponent: int
    n_fraction: int

    def bits(self, value: float) -> str:
        """The bits of the number nearest to the value: sign, exponent, fraction.

        >>> FORMATS["float16"].bits(-1.5)
        '1011111000000000'
        """
        n_bits = 1 + self.n_exponent + self.n_fraction
        kept = torch.tensor(value, dtype=self.dtype).view(self.whole)
        return f"{int(kept) % 2**n_bits:0{n_bits}b}"

    def nearest(self, value: float) -> float:
        """What the format has in the value's place."""
        return float(torch.tensor(value, dtype=self.dtype))


FORMATS = {
    "float32": Format(torch.float32, torch.int32, 8, 23),
    "float16": Format(torch.float16, torch.int16, 5, 10),
    "bfloat16": Format(torch.bfloat16, torch.int16, 8, 7),
}
PARTS = ("sign", "exponent", "fraction")
HIGH = 22.0  # of a cell, in units


def float_bits(
    value: float,
    formats: Sequence[str] = tuple(FORMATS),
    *,
    alt: str = "",
    width: float = WIDTH,
) -> Figure:
    """A number in each format: a cell for each bit, sign and exponent and fraction.

    The fractions begin in one column; a dashed cell is a bit that float32 has and this
    format has not. Behind its name stands the number that the format keeps.
    """
    some("formats", formats)
    if unknown := set(formats) - set(FORMATS):
        raise ValueError(f"formats: {sorted(unknown)} is none of {list(FORMATS)}")
    finite("value", [value])
    canvas, cell = Canvas(width), width / 32
    _legend(canvas)
    y = 30.0
    for name in formats:
        kept = FORMATS[name]
        canvas.text(0, y + FONT, name, bold=True)
        canvas.text(width, y + FONT, f"{kept.nearest(value):.9g}", anchor="end")
        _row(canvas, kept, kept.bits(value), y + 22, cell)
        y += 58
    said = "; ".join(
        f"{name} {' '.join(_parts(FORMATS[name], value))}, "
        f"which is {FORMATS[name].nearest(value):.9g}"
        for name in formats
    )
    text = f"The bits (sign, exponent, fraction) of {value:.9g}: {said}."
    return canvas.figure(y - 10, alt or text)


def _parts(kept: Format, value: float) -> tuple[str, str, str]:
    bits, n = kept.bits(value), 1 + kept.n_exponent
    return bits[0], bits[1:n], bits[n:]


def _legend(canvas: Canvas) -> None:
    for i, (part, x) in enumerate(zip(PARTS, (0.0, 80.0, 190.0), strict=True)):
        canvas.rect(x, 3, 14, 14, fill=figure_colour(i), opacity=0.3)
        canvas.text(x + 20, FONT, part)


def _row(canvas: Canvas, kept: Format, bits: str, y: float, cell: float) -> None:
    """The bits in float32's columns: sign in 0, exponent up to 8, fraction from 9."""
    n_before = 8 - kept.n_exponent  # columns of the exponent that stay free
    columns = [0, *range(1 + n_before, 9 + kept.n_fraction)]
    for column in sorted(set(range(32)) - set(columns)):
        at = (column * cell + 1.5, y + 1)
        canvas.rect(*at, cell - 3, HIGH - 2, stroke=INK, dashes="2 3")
    for column, bit in zip(columns, bits, strict=True):
        colour = figure_colour(0 if column == 0 else 1 if column < 9 else 2)
        canvas.rect(column * cell + 0.5, y, cell - 1, HIGH, fill=colour, opacity=0.3)
        canvas.text((column + 0.5) * cell, y + 16, bit, anchor="middle", mono=True)
