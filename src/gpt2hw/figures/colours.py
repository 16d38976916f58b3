"""One colour for each axis, in light and dark; everything else is ink or accent.

A colour in a figure is a CSS variable with the light value as its fallback, so that a
page can turn dark without drawing anything anew.
"""

from typing import NamedTuple


class Pair(NamedTuple):
    """A colour on light paper, and its sister on dark paper."""

    light: str
    dark: str


AXIS_COLOURS: dict[str, Pair] = {
    "n_seq": Pair("#0b6e99", "#6cc5ee"),
    "n_past": Pair("#5b6b7a", "#a9b8c6"),
    "n_kv": Pair("#2f6f4f", "#7fcf9f"),
    "n_embd": Pair("#b3541e", "#f4a26b"),
    "n_head": Pair("#7a3fa0", "#cfa0f0"),
    "d_head": Pair("#a3294f", "#f58fb0"),
    "n_vocab": Pair("#2c4fae", "#94b4ff"),
    "n_ctx": Pair("#6b6300", "#d8cf5a"),
    "n_inner": Pair("#8a4b00", "#e8b04b"),
}

# What is no axis: amounts (positive, negative), and the lines of a plot, one by one.
FIGURE_COLOURS: dict[str, Pair] = {
    "figure-1": Pair("#8c2f39", "#f0a3a9"),
    "figure-2": Pair("#2c4fae", "#94b4ff"),
    "figure-3": Pair("#2f6f4f", "#7fcf9f"),
    "figure-4": Pair("#6b6300", "#d8cf5a"),
    "figure-5": Pair("#7a3fa0", "#cfa0f0"),
    "figure-6": Pair("#5b6b7a", "#a9b8c6"),
}
INK = "currentColor"


def axis_colour(axis: str) -> str:
    """The CSS colour of an axis; ink for what is no axis (a constant like 3).

    >>> axis_colour("n_seq"), axis_colour("3")
    ('var(--axis-n_seq, #0b6e99)', 'currentColor')
    """
    # "3 n_embd" and "n_embd / n_head" bear the colour of the axis that they measure.
    name = next((word for word in axis.split() if word in AXIS_COLOURS), None)
    return f"var(--axis-{name}, {AXIS_COLOURS[name].light})" if name else INK


def figure_colour(index: int) -> str:
    """The CSS colour of the index-th thing that is no axis, in turn.

    >>> figure_colour(0)
    'var(--figure-1, #8c2f39)'
    """
    name = f"figure-{index % len(FIGURE_COLOURS) + 1}"
    return f"var(--{name}, {FIGURE_COLOURS[name].light})"
