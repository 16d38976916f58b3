"""Bars and lines: amounts by name, and amounts over a number."""

from collections.abc import Callable, Mapping, Sequence
from math import floor, isfinite, log10

from gpt2hw.figures.checks import finite, some
from gpt2hw.figures.colours import figure_colour
from gpt2hw.figures.svg import FONT, WIDTH, Canvas, Figure, fitting, text_width

DASHES = (None, "7 4", "2 3", "9 3 2 3", "4 4", "12 4")


def bar_chart(
    bars: Mapping[str, float] | Sequence[tuple[str, float]],
    *,
    form: str = "{:.3f}",
    mono: bool = True,
    marked: Sequence[str] = (),
    alt: str = "",
    width: float = WIDTH,
) -> Figure:
    """Bars on their side, each with its name and its number: probabilities of tokens.

    `form` writes the number ("{:.1%}", "{:,.0f}"); `marked` names get the second
    colour. Names are in code font unless `mono` is False.
    """
    pairs = list(bars.items()) if isinstance(bars, Mapping) else list(bars)
    some("bars", pairs)
    return bar_charts(
        [("", pairs)], form=form, mono=mono, marked=marked, alt=alt, width=width
    )


def bar_charts(
    charts: Sequence[tuple[str, Sequence[tuple[str, float]]]],
    *,
    form: str = "{:.3f}",
    mono: bool = True,
    marked: Sequence[str] = (),
    alt: str = "",
    width: float = WIDTH,
) -> Figure:
    """Bar charts one below the other on one scale, each under its title.

    For a distribution before and after each filter.
    """
    everything = [pair for _, pairs in charts for pair in pairs]
    some("charts", everything)
    most = max((abs(v) for _, v in everything if isfinite(v)), default=1) or 1
    names = {name: fitting(name, 0.6 * width, mono) for name, _ in everything}
    left = max(text_width(name, mono) for name in names.values()) + 8
    right = max(text_width(form.format(v)) for _, v in everything) + 8
    canvas, y = Canvas(width), 0.0
    for title, pairs in charts:
        if title:
            canvas.text(0, y + FONT, title, bold=True)
            y += 26
        for name, value in pairs:
            colour = figure_colour(1 if name in marked else 0)
            share = abs(value) / most if isfinite(value) else 0.0  # NaN has no bar
            long = max(share * (width - left - right), 0.5)
            canvas.text(left - 8, y + 16, names[name], anchor="end", mono=mono)
            canvas.rect(left, y + 3, long, 17, fill=colour, opacity=0.75)
            canvas.text(left + long + 6, y + 16, form.format(value))
            y += 23
        y += 14
    said = "; ".join(
        (f"{title}: " if title else "")
        + ", ".join(f"{name} {form.format(value)}" for name, value in pairs)
        for title, pairs in charts
    )
    return canvas.figure(y - 10, alt or f"Bar chart. {said}.")


def line_plot(
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    x_title: str = "",
    y_title: str = "",
    log_x: bool = False,
    log_y: bool = False,
    y_from: float | None = None,
    y_to: float | None = None,
    markers: bool = False,
    height: float = 280,
    alt: str = "",
    width: float = WIDTH,
) -> Figure:
    """Lines through points: name -> (xs, ys). The y axis starts at 0 unless `log_y`.

    Lines differ in colour and in dashes; their names stand above the plot.
    """
    xs = [x for points in lines.values() for x in points[0]]
    ys = [y for points in lines.values() for y in points[1]]
    _check_points(lines, log_x, log_y)
    y_low = y_from if y_from is not None else min(ys) if log_y else min(0.0, *ys)
    y_high = y_to if y_to is not None else max(ys)
    canvas = Canvas(width)
    top = _legend(canvas, list(lines)) if len(lines) > 1 else 4.0
    if y_title:
        canvas.text(0, top + FONT, y_title)
        top += 26
    y_ticks, x_ticks = ticks(y_low, y_high, log_y), ticks(min(xs), max(xs), log_x)
    left = max(text_width(tick_text(t)) for t in y_ticks) + 10
    bottom, right = top + height, width - text_width(tick_text(x_ticks[-1])) / 2 - 2
    across = _scale(min(xs), max(xs), left + 6, right, log_x)
    up = _scale(y_low, y_high, bottom, top + 6, log_y)
    for t in y_ticks:
        canvas.line([(left, up(t)), (width, up(t))], opacity=0.2)
        canvas.text(left - 6, up(t) + 5, tick_text(t), anchor="end")
    for t in x_ticks:
        canvas.line([(across(t), bottom), (across(t), bottom + 5)], opacity=0.6)
        canvas.text(across(t), bottom + 21, tick_text(t), anchor="middle")
    canvas.line([(left, bottom), (width, bottom)], opacity=0.6)
    canvas.text((left + width) / 2, bottom + 43, x_title, anchor="middle")
    for i, (x_values, y_values) in enumerate(lines.values()):
        points = [(across(x), up(y)) for x, y in zip(x_values, y_values, strict=True)]
        colour = figure_colour(i)
        canvas.line(points, colour=colour, width=2.5, dashes=DASHES[i % len(DASHES)])
        for x, y in points if markers else []:
            canvas.add("circle", style=f"fill:{colour}", cx=x, cy=y, r=4)
    return canvas.figure(bottom + (50 if x_title else 28), alt or _said(lines, x_title))


def _check_points(
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    log_x: bool,
    log_y: bool,
) -> None:
    some("lines", lines)
    for name, (xs, ys) in lines.items():
        some(f"lines: {name}", xs)
        if len(xs) != len(ys):
            raise ValueError(f"lines: {name} has {len(xs)} xs and {len(ys)} ys")
        for numbers, is_log in ((xs, log_x), (ys, log_y)):
            finite(f"lines: {name}", numbers)
            if is_log and min(numbers) <= 0:
                raise ValueError(f"lines: {name} has {min(numbers)} on a log scale")


def _legend(canvas: Canvas, names: list[str]) -> float:
    x, y = 0.0, FONT
    for i, name in enumerate(names):
        wide = 40 + text_width(name) + 16
        if x and x + wide > canvas.width:
            x, y = 0.0, y + 22
        canvas.line(
            [(x, y - 5), (x + 34, y - 5)],
            colour=figure_colour(i),
            width=2.5,
            dashes=DASHES[i % len(DASHES)],
        )
        canvas.text(x + 40, y, name)
        x += wide
    return y + 14


def _scale(
    low: float, high: float, start: float, end: float, log: bool
) -> Callable[[float], float]:
    """The map from values to units; on a log scale, equal factors are equal steps."""
    if log:
        low, high = log10(low), log10(high)
    span = (high - low) or 1.0
    return lambda v: start + ((log10(v) if log else v) - low) / span * (end - start)


def ticks(low: float, high: float, log: bool = False) -> list[float]:
    """Round numbers from low to high, about five; powers of ten (or of 2) if `log`.

    >>> ticks(0, 23), ticks(1, 1000, log=True), ticks(2, 64, log=True)
    ([0, 5, 10, 15, 20], [1.0, 10.0, 100.0, 1000.0], [2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
    """
    if log:
        few = log10(high / low) < 2.5
        base = 2.0 if few else 10.0
        powers = [base**n for n in range(-60, 60)]
        found = [p for p in powers if low * 0.999 <= p <= high * 1.001]
        return found[:: max(-(-len(found) // 7), 1)] or [low, high]
    rough = (high - low) / 5 or 1.0
    size = 10.0 ** floor(log10(rough))
    step = next(m * size for m in (1, 2, 2.5, 5, 10) if m * size >= rough * 0.999)
    first = -(-low // step)
    found = [(first + n) * step for n in range(12)]
    return [int(t) if t == int(t) else t for t in found if t <= high + step * 1e-6]


def tick_text(value: float) -> str:
    """A tick's number: 0.5, 20, 1,000, 1e-05.

    >>> tick_text(0.5), tick_text(1000)
    ('0.5', '1,000')
    """
    if value and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.0e}".replace("e+0", "e").replace("e-0", "e-")
    return f"{round(value, 10):,.10g}"


def _said(
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]], x_title: str
) -> str:
    parts = [
        f"{name} goes from {ys[0]:.3g} at {xs[0]:.4g} to {ys[-1]:.3g} at {xs[-1]:.4g}"
        for name, (xs, ys) in lines.items()
    ]
    over = f" over {x_title}" if x_title else ""
    return f"Line plot{over}: {'; '.join(parts)}."
