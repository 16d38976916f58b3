"""What a figure can be made of: something, and numbers that have a place on paper."""

from collections.abc import Iterable, Sized
from math import inf


def some(name: str, things: Sized) -> None:
    """Refuses, with a ValueError that names the argument, what is empty.

    >>> some("bars", [])
    Traceback (most recent call last):
    ValueError: bars: is empty, so there is nothing to draw
    """
    if len(things) == 0:
        raise ValueError(f"{name}: is empty, so there is nothing to draw")


def finite(name: str, numbers: Iterable[float], least: float = -inf) -> None:
    """Refuses what has no place on paper: NaN, infinities, and less than `least`.

    >>> finite("parts", [1.0, -1.0], least=0)
    Traceback (most recent call last):
    ValueError: parts: must be finite numbers from 0 up, not -1.0
    """
    rule = "finite numbers" + (f" from {least:g} up" if least > -inf else "")
    for number in numbers:
        if not (number >= least and -inf < number < inf):
            raise ValueError(f"{name}: must be {rule}, not {number!r}")


def as_many(name: str, names: Sized, n: int) -> None:
    """Refuses names that are neither none nor one for each of `n` things.

    >>> as_many("rows", ["a"], 2)
    Traceback (most recent call last):
    ValueError: rows: 1 given for 2 to be named
    """
    if len(names) not in (0, n):
        raise ValueError(f"{name}: {len(names)} given for {n} to be named")
