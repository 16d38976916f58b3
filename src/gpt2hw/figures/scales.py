"""Axes of a plot: which numbers stand at them, and where each value lies."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, pairwise
from math import floor, inf, log10

from gpt2hw.figures.svg import text_width

# Numbers of one decade that make good ticks, from many to few.
NARROW, USUAL, DECADES = (1, 1.5, 2, 3, 4, 6, 8), (1, 2, 5), (1,)
NEAR = 0.1  # a tick that is nearer to the end of the data, as a share, ends the axis


@dataclass(frozen=True)
class Axis:
    """What an axis covers, and the numbers that stand at it."""

    low: float
    high: float
    ticks: list[float]
    log: bool = False

    def share(self, value: float) -> float:
        """Where a value lies, 0 at the low end and 1 at the high one.

        On a scale of equal factors, equal factors are equal steps.

        >>> Axis(1, 100, [], log=True).share(10)
        0.5
        """
        if self.log:
            low, high, value = log10(self.low), log10(self.high), log10(value)
        else:
            low, high = self.low, self.high
        return (value - low) / ((high - low) or 1.0)


def axis(
    low: float,
    high: float,
    *,
    log: bool = False,
    snug: bool = False,
    fits: Callable[[Axis], bool] = lambda axis: len(axis.ticks) <= 10,
) -> Axis:
    """The axis for values from low to high: a tick at both of its ends, or beyond.

    With `snug`, a straight axis ends with the values, unless a tick is near. Of the
    axes from many ticks to few, it is the first that `fits`.

    >>> axis(0.45, 14.8, log=True).ticks
    [0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0]
    >>> axis(0, 7.8).ticks, axis(0, 255, snug=True).ticks
    ([0, 2, 4, 6, 8], [0, 100, 200])
    """
    for found in _rows(low, high) if log else _steps(low, high):
        if snug and not log:
            near = NEAR * (high - low)
            start = found[0] if low - found[0] < near else low
            end = found[-1] if found[-1] - high < near else high
            found = [t for t in found if start <= t <= end]
        else:
            start, end = min(low, found[0]), max(high, found[-1])
        made = Axis(start, end, found, log)
        if len(found) < 3 or fits(made):
            break
    return made


def ticks(low: float, high: float, log: bool = False) -> list[float]:
    """Round numbers from low to high; 1, 2, 5 of each decade, or powers, if `log`.

    >>> ticks(0, 23), ticks(1, 1000, log=True), ticks(2, 64, log=True)
    ([0, 5, 10, 15, 20], [1.0, 10.0, 100.0, 1000.0], [2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
    """
    least, most = low - 1e-9 * abs(low), high + 1e-9 * abs(high)
    found = axis(low, high, log=log, fits=lambda axis: len(axis.ticks) <= 9).ticks
    return [t for t in found if least <= t <= most] or [low, high]


def tick_text(value: float) -> str:
    """A tick's number: 0.5, 20, 1,000, 1e-5.

    >>> tick_text(0.5), tick_text(1000), tick_text(2e-5)
    ('0.5', '1,000', '2e-5')
    """
    if value and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.0e}".replace("e+0", "e").replace("e-0", "e-")
    return f"{round(value, 10):,.10g}"


def apart(height: float) -> Callable[[Axis], bool]:
    """Whether the numbers of a y axis stand well apart from each other."""
    return lambda axis: all(
        (axis.share(b) - axis.share(a)) * height >= 24 for a, b in pairwise(axis.ticks)
    )


def across(axis: Axis, start: float, width: float) -> Callable[[float], float]:
    """The map from values to units; the last tick's number has room on its right."""
    last = axis.ticks[-1] if axis.ticks else 0.0
    end = width - text_width(tick_text(last)) / 2 - 2
    return lambda value: start + axis.share(value) * (end - start)


def beside(start: float, width: float) -> Callable[[Axis], bool]:
    """Whether the numbers of an x axis leave a gap between each other."""

    def fits(axis: Axis) -> bool:
        at = across(axis, start, width)
        return all(
            at(b) - at(a)
            >= (text_width(tick_text(a)) + text_width(tick_text(b))) / 2 + 8
            for a, b in pairwise(axis.ticks)
        )

    return fits


def _steps(low: float, high: float) -> Iterator[list[float]]:
    """Multiples of a round step around low to high: about five, then fewer."""
    rough = (high - low) / 5 or 1.0
    decade = floor(log10(rough))
    sizes = (m * 10.0**n for n in count(decade) for m in (1, 2, 2.5, 5))
    for step in sizes:
        if step < rough * 0.999:
            continue
        first = floor(low / step + 1e-6)
        last = max(-floor(-high / step + 1e-6), first + 1)
        found = [n * step for n in range(first, last + 1)]
        yield [int(t) if t == int(t) else t for t in found]


def _rows(low: float, high: float) -> Iterator[list[float]]:
    """Ticks around low to high for a scale of equal factors, from many to few."""
    twos = [2.0**n for n in range(60)]
    if low in twos and high in twos and low < high:
        yield [t for t in twos if low <= t <= high]
    if high < 4 * low:
        yield _around(low, high, NARROW, 1)
    yield _around(low, high, USUAL, 1)
    for each in (1, 2, 3, 5, 10, 20, 50, 100, 200, 500):
        yield _around(low, high, DECADES, each)


def _around(
    low: float, high: float, family: tuple[float, ...], each: int
) -> list[float]:
    """The family times powers of ten, of every `each`th, around low to high."""
    start = floor(log10(low) / each) * each
    powers = range(start, floor(log10(high)) + 2 * each + 1, each)
    every = [float(f"{m}e{n}") for n in powers for m in family]
    row = [t for t in every if 0 < t < inf] or [low]
    first = max((i for i, t in enumerate(row) if t <= low * (1 + 1e-9)), default=0)
    past = (i for i, t in enumerate(row) if t >= high * (1 - 1e-9) and i > first)
    return row[first : next(past, len(row) - 1) + 1]
