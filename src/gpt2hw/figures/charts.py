"""Bars and lines: amounts by name, and amounts over a number."""

from collections.abc import Mapping, Sequence
from math import isfinite

from gpt2hw.figures.checks import finite, some
from gpt2hw.figures.colours import figure_colour
from gpt2hw.figures.scales import Axis, across, apart, axis, beside, tick_text
from gpt2hw.figures.svg import FONT, WIDTH, Canvas, Figure, fitting, text_width

Lines = Mapping[str, tuple[Sequence[float], Sequence[float]]]

DASHES = (None, "7 4", "2 3", "9 3 2 3", "4 4", "12 4")
QUIET = 5  # the index of the grey among the colours


def bar_chart(
    bars: Mapping[str, float] | Sequence[tuple[str, float]],
    *,
    form: str = "{:.3f}",
    zero: str = "",
    mono: bool = True,
    marked: Sequence[str] = (),
    quiet: Sequence[str] = (),
    alt: str = "",
    width: float = WIDTH,
) -> Figure:
    """Bars on their side, each with its name and its number: probabilities of tokens.

    `form` writes the number ("{:.1%}", "{:,.0f}"); what is 0 has `zero` in its place,
    if that is given, and no bar. `marked` names get the second colour, `quiet` ones a
    grey. Names are in code font unless `mono` is False.
    """
    pairs = list(bars.items()) if isinstance(bars, Mapping) else list(bars)
    some("bars", pairs)
    return bar_charts(
        [("", pairs)],
        form=form,
        zero=zero,
        mono=mono,
        marked=marked,
        quiet=quiet,
        alt=alt,
        width=width,
    )


def bar_charts(
    charts: Sequence[tuple[str, Sequence[tuple[str, float]]]],
    *,
    form: str = "{:.3f}",
    zero: str = "",
    mono: bool = True,
    marked: Sequence[str] = (),
    quiet: Sequence[str] = (),
    alt: str = "",
    width: float = WIDTH,
) -> Figure:
    """Bar charts one below the other on one scale, each under its title.

    For a distribution before and after each filter.
    """
    everything = [pair for _, pairs in charts for pair in pairs]
    some("charts", everything)

    def written(value: float) -> str:
        return zero if zero and value == 0 else form.format(value)

    most = max((abs(v) for _, v in everything if isfinite(v)), default=1) or 1
    names = {name: fitting(name, 0.6 * width, mono) for name, _ in everything}
    left = max(text_width(name, mono) for name in names.values()) + 8
    right = max(text_width(written(v)) for _, v in everything) + 8
    canvas, y = Canvas(width), 0.0
    for title, pairs in charts:
        if title:
            canvas.text(0, y + FONT, title, bold=True)
            y += 26
        for name, value in pairs:
            colour = figure_colour(QUIET if name in quiet else int(name in marked))
            share = abs(value) / most if isfinite(value) else 0.0  # NaN has no bar
            long = max(share * (width - left - right), 0.5)
            canvas.text(left - 8, y + 16, names[name], anchor="end", mono=mono)
            if value != 0 or not zero:
                canvas.rect(left, y + 3, long, 17, fill=colour, opacity=0.75)
            canvas.text(left + long + 6, y + 16, written(value))
            y += 23
        y += 14
    said = "; ".join(
        (f"{title}: " if title else "")
        + ", ".join(f"{name} {written(value)}" for name, value in pairs)
        for title, pairs in charts
    )
    return canvas.figure(y - 10, alt or f"Bar chart. {said}.")


def line_plot(
    lines: Lines,
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

    A number stands at both ends of the y axis; a logarithmic axis says so in its
    title. Lines differ in colour and in dashes; their names stand above the plot. One
    line's name is the title of the y axis, unless that has one.
    """
    xs = [x for points in lines.values() for x in points[0]]
    ys = [y for points in lines.values() for y in points[1]]
    _check_points(lines, log_x, log_y)
    y_low = y_from if y_from is not None else min(ys) if log_y else min(0.0, *ys)
    y_high = y_to if y_to is not None else max(ys)
    canvas = Canvas(width)
    top = _legend(canvas, list(lines)) if len(lines) > 1 else 4.0
    only = "" if len(lines) > 1 else next(iter(lines))
    if title := _title(y_title or only, log_y):
        canvas.text(0, top + FONT, title)
        top += 26
    bottom = top + height
    y_axis = axis(y_low, y_high, log=log_y, fits=apart(height - 6))
    left = max(text_width(tick_text(t)) for t in y_axis.ticks) + 10
    room = (left + 6, width)
    x_axis = axis(min(xs), max(xs), log=log_x, snug=True, fits=beside(*room))
    along = across(x_axis, *room)
    _rungs(canvas, y_axis, left, bottom, height - 6)
    for t in x_axis.ticks:
        canvas.line([(along(t), bottom), (along(t), bottom + 5)], opacity=0.6)
        canvas.text(along(t), bottom + 23, tick_text(t), anchor="middle")
    if title := _title(x_title, log_x):
        half = text_width(title) / 2
        middle = max(min((left + width) / 2, width - half), half)
        canvas.text(middle, bottom + 45, title, anchor="middle")
    for i, (x_values, y_values) in enumerate(lines.values()):
        points = [
            (along(x), bottom - y_axis.share(y) * (height - 6))
            for x, y in zip(x_values, y_values, strict=True)
        ]
        colour = figure_colour(i)
        canvas.line(points, colour=colour, width=2.5, dashes=DASHES[i % len(DASHES)])
        for x, y in points if markers else []:
            canvas.add("circle", style=f"fill:{colour}", cx=x, cy=y, r=4)
    said = alt or _said(lines, x_title, log_x, log_y)
    return canvas.figure(bottom + (52 if title else 30), said)


def _title(title: str, log: bool) -> str:
    return f"{title} (logarithmic)".strip() if log else title


def _rungs(
    canvas: Canvas, axis: Axis, left: float, bottom: float, height: float
) -> None:
    """A line and a number for each tick of the y axis; the strong one is at 0.

    Where there is no 0, the lowest is.
    """
    strong = 0 if not axis.log and axis.low <= 0 <= axis.high else axis.low
    for t in axis.ticks:
        y = bottom - axis.share(t) * height
        opacity = 0.6 if t == strong else 0.2
        canvas.line([(left, y), (canvas.width, y)], opacity=opacity)
        canvas.text(left - 6, y + 5, tick_text(t), anchor="end")


def _check_points(lines: Lines, log_x: bool, log_y: bool) -> None:
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


def _said(lines: Lines, x_title: str, log_x: bool, log_y: bool) -> str:
    parts = [
        f"{name} goes from {ys[0]:.3g} at {xs[0]:.4g} to {ys[-1]:.3g} at {xs[-1]:.4g}"
        for name, (xs, ys) in lines.items()
    ]
    over = f" over {x_title}" if x_title else ""
    both = {0: "", 1: ", one scale logarithmic", 2: ", both scales logarithmic"}
    return f"Line plot{over}{both[log_x + log_y]}: {'; '.join(parts)}."
