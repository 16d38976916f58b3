"""A picture with a knob: a slider in a notebook, a row of stills where none can be."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from gpt2hw.figures.svg import Figure, escaped

STILL = "GPT2HW_STILL"  # set where pages are made: a slider there would be dead
N_STILLS = 4


@dataclass(frozen=True)
class Stills:
    """What a slider would show, a few of its places one below the other."""

    shown: tuple[tuple[str, object], ...]

    def __str__(self) -> str:
        """The HTML of all of them."""
        return "".join(_still(name, thing) for name, thing in self.shown)

    def _repr_html_(self) -> str:
        return str(self)


def _still(name: str, thing: object) -> str:
    if isinstance(thing, Figure):
        return str(thing.captioned(". ".join(filter(None, (name, thing.caption)))))
    return f"<p>{escaped(name)}</p><pre>{escaped(str(thing))}</pre>"


def slide(draw: Callable[..., object], **knobs: Sequence[Any]) -> Stills | None:
    """Calls `draw` with one value of each knob, and again when a slider is moved.

    `draw` returns a `Figure` or a text. Outside a notebook, without ipywidgets, or
    where the variable GPT2HW_STILL is set, the first knob's values are shown side by
    side instead (four at most, evenly taken), the other knobs at their first. Raises
    ValueError where there is no knob, or one without values.

    >>> print(slide(lambda size: "#" * size, size=[1, 2]))
    <p>size = 1</p><pre>#</pre><p>size = 2</p><pre>##</pre>
    """
    if not knobs:
        raise ValueError("slide: a knob is needed, such as size=[1, 2, 3]")
    for name, values in knobs.items():
        if not len(values):
            raise ValueError(f"{name}: no values to slide through")
    if _has_sliders():
        _show_sliders(draw, knobs)
        return None
    (first, values), *others = knobs.items()
    rest = {name: choices[0] for name, choices in others}
    return Stills(
        tuple(
            (f"{first} = {value}", draw(**{first: value}, **rest))
            for value in _evenly(values)
        )
    )


def _evenly(values: Sequence[Any]) -> list[Any]:
    """At most N_STILLS of the values, the first and the last among them."""
    if len(values) <= N_STILLS:
        return list(values)
    last = len(values) - 1
    return [values[round(i * last / (N_STILLS - 1))] for i in range(N_STILLS)]


def _has_sliders() -> bool:
    """Whether this is a notebook's kernel with ipywidgets, and nobody wants stills."""
    if os.environ.get(STILL) or not find_spec("ipywidgets"):
        return False
    return getattr(import_module("IPython").get_ipython(), "kernel", None) is not None


def _show_sliders(draw: Callable[..., object], knobs: dict[str, Sequence[Any]]) -> None:
    widgets = import_module("ipywidgets")
    sliders = {
        name: widgets.SelectionSlider(
            options=list(values), description=name, continuous_update=False
        )
        for name, values in knobs.items()
    }

    def show(**chosen: Any) -> None:
        thing = draw(**chosen)
        if isinstance(thing, Figure):
            import_module("IPython.display").display(thing)
        else:
            print(thing)

    widgets.interact(show, **sliders)
