"""A roofline: what memory and arithmetic allow, and where some works lie under it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import hypot

from gpt2hw.figures.checks import finite, some
from gpt2hw.figures.colours import figure_colour
from gpt2hw.figures.scales import Axis, axis, tick_text, ticks
from gpt2hw.figures.svg import FONT, WIDTH, Canvas, Figure, fitting, text_width

BILLION = 1e9


@dataclass(frozen=True)
class _Plane:
    """Where things stand: both axes, and the rectangle that they have."""

    x_axis: Axis
    y_axis: Axis  # billions
    left: float
    right: float
    top: float
    base: float

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The place of x and y, on scales where equal factors are equal steps."""
        along, up = self.x_axis.share(x), self.y_axis.share(y)
        return (
            self.left + along * (self.right - self.left),
            self.base - up * (self.base - self.top),
        )


def roofline(
    bandwidth: float,
    arithmetic: float,
    points: Mapping[str, tuple[float, float]],
    *,
    height: float = 300,
    alt: str = "",
    width: float = WIDTH,
) -> Figure:
    """Operations a second over operations a byte, both on scales of equal factors.

    `bandwidth` in bytes a second, `arithmetic` in operations a second: the roof is the
    smaller of bandwidth times operations a byte, and arithmetic. `points`: name ->
    (operations a byte, operations a second).

    The form is that of Williams, Waterman and Patterson 2009, "Roofline".
    """
    some("points", points)
    finite("bandwidth", [bandwidth], least=1)
    finite("arithmetic", [arithmetic], least=1)
    for name, point in points.items():
        finite(f"points: {name}", point, least=1e-12)
    ridge, flat = arithmetic / bandwidth, arithmetic / BILLION
    xs = [ridge, *(x for x, _ in points.values())]
    low, high = min(xs) / 2, max(xs) * 2
    ys = [low * bandwidth / BILLION, flat, *(y / BILLION for _, y in points.values())]
    x_axis = Axis(low, high, ticks(low, high, log=True), log=True)
    y_axis = axis(min(ys), max(ys) * 1.05, log=True)
    left = max(text_width(tick_text(t)) for t in y_axis.ticks) + 10
    top = FONT + 26.0
    plane = _Plane(x_axis, y_axis, left, width, top, top + height)
    canvas = Canvas(width)
    _axes(canvas, plane)
    roof = [(low, low * bandwidth / BILLION), (ridge, flat), (high, flat)]
    canvas.line([plane.at(*point) for point in roof], width=2.5)
    foot = [plane.at(ridge, flat), plane.at(ridge, y_axis.low)]
    canvas.line(foot, opacity=0.4, dashes="4 4")
    _marks(canvas, {n: plane.at(x, y / BILLION) for n, (x, y) in points.items()})
    return canvas.figure(plane.base + 50, alt or _said(bandwidth, arithmetic, points))


def _axes(canvas: Canvas, plane: _Plane) -> None:
    """Lines across for operations a second, ticks below for operations a byte."""
    canvas.text(0, FONT, "billion operations a second (logarithmic)")
    base, right = plane.base, plane.right
    for t in plane.y_axis.ticks:
        _, y = plane.at(plane.x_axis.low, t)
        canvas.line([(plane.left, y), (right, y)], opacity=0.2)
        canvas.text(plane.left - 6, y + 5, tick_text(t), anchor="end")
    for t in plane.x_axis.ticks:
        x, _ = plane.at(t, plane.y_axis.low)
        canvas.line([(x, base), (x, base + 5)], opacity=0.6)
        inside = min(x, right - text_width(tick_text(t)) / 2)
        canvas.text(inside, base + 21, tick_text(t), anchor="middle")
    canvas.line([(plane.left, base), (right, base)], opacity=0.6)
    middle = (plane.left + right) / 2
    what = "operations a byte (logarithmic)"
    canvas.text(middle, base + 43, what, anchor="middle")


def _marks(canvas: Canvas, places: Mapping[str, tuple[float, float]]) -> None:
    """A dot for each, and its name beside it, where no dot and no other name is.

    And where no other dot is nearer, if there is such a place.
    """
    taken = [(x - 6, x + 6, y - 6, y + 6) for x, y in places.values()]
    for name, (x, y) in places.items():
        canvas.add("circle", style=f"fill:{figure_colour(0)}", cx=x, cy=y, r=5)
        name = fitting(name, max(x, canvas.width - x) - 8)
        wide = text_width(name)
        # At its right, at its left, in the middle; above, the middle comes first.
        starts = (x + 8, x - 8 - wide, min(x - wide / 2, canvas.width - wide))
        boxes = [
            (start, start + wide, y + down, y + down + 16)
            for down in (7, 14, 21, -23, *range(28, 200, 6))  # below, above, far below
            for start in (starts if down > 0 else starts[::-1])
            if start >= 0 and start + wide <= canvas.width
        ]
        free = [b for b in boxes if not any(_meet(b, taken))] or boxes[:1]
        dots = places.values()
        own = (b for b in free if min(_far(b, d) for d in dots) == _far(b, (x, y)))
        box = next(own, free[0])
        taken.append(box)
        canvas.text(box[0], box[2] + 12, name)


def _far(box: tuple[float, float, float, float], dot: tuple[float, float]) -> float:
    """How far a dot lies from a box (left, right, top, bottom)."""
    left, right, top, bottom = box
    x, y = dot
    return hypot(max(left - x, 0, x - right), max(top - y, 0, y - bottom))


def _meet(
    box: tuple[float, float, float, float],
    others: list[tuple[float, float, float, float]],
) -> Iterator[bool]:
    """Whether a box (left, right, top, bottom) shares a place with each of others."""
    left, right, top, bottom = box
    for x0, x1, y0, y1 in others:
        yield left < x1 and x0 < right and top < y1 and y0 < bottom


def _said(
    bandwidth: float, arithmetic: float, points: Mapping[str, tuple[float, float]]
) -> str:
    ridge = arithmetic / bandwidth
    parts = [
        f"{name} at {x:.3g} operations a byte reaches {y / BILLION:.3g}"
        for name, (x, y) in points.items()
    ]
    return (
        f"Roofline: a line rises with {bandwidth / BILLION:.3g} GB a second up to "
        f"{ridge:.3g} operations a byte and is level at {arithmetic / BILLION:.3g} "
        f"billion operations a second from there. Under it: {'; '.join(parts)}."
    )
