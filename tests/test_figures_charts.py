"""Plots and bars: what stands at their axes, and which colours they have."""

from itertools import pairwise
from xml.etree import ElementTree

import pytest

from gpt2hw.figures import Figure, bar_chart, line_plot
from gpt2hw.figures.colours import figure_colour
from gpt2hw.figures.scales import axis
from gpt2hw.figures.svg import text_width

LOG_ENDS = [(0.45, 14.8), (69, 700), (0.004, 0.9), (3, 3.4), (1, 512), (5, 5),
            (1e-4, 1), (6e-5, 65504), (1e-300, 1e300), (1e40, 1e40)]  # fmt: skip
ENDS = [(0, 7.8), (-0.17, 4), (0, 0), (3.03, 5.98), (-5, -2), (0.1, 0.3), (1e6, 9e6)]


def elements(figure: Figure, tag: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(str(figure)).iter(tag))


def numbers_left(figure: Figure) -> dict[str, float]:
    """The numbers of the y axis, each with its height."""
    texts = [e for e in elements(figure, "text") if e.get("text-anchor") == "end"]
    return {e.text or "": float(e.get("y", 0)) - 5 for e in texts}


def lines_across(figure: Figure) -> dict[float, str | None]:
    """The height of each level line behind the curves, with its opacity."""
    found = {}
    for line in elements(figure, "polyline"):
        ends = [p.split(",") for p in line.get("points", "").split()]
        if line.get("stroke-opacity") and ends[0][1] == ends[1][1]:
            found[float(ends[0][1])] = line.get("stroke-opacity")
    return found


@pytest.mark.parametrize(("low", "high"), LOG_ENDS)
def test_a_number_stands_at_or_beyond_both_ends_of_a_logarithmic_axis(low, high):
    made = axis(low, high, log=True)
    if low >= 1e-100:  # where the numbers of a float end, so do the powers of ten
        assert made.low == made.ticks[0] <= low
    assert high <= made.high or high > 1e200
    assert 2 <= len(made.ticks) <= 10
    assert all(a < b for a, b in pairwise(made.ticks))


@pytest.mark.parametrize(("low", "high"), ENDS)
def test_a_number_stands_at_or_beyond_both_ends_of_a_straight_axis(low, high):
    made = axis(low, high)
    slack = 1e-9 * (abs(low) + abs(high))
    assert made.low == made.ticks[0] <= low + slack
    assert made.high == made.ticks[-1] >= high - slack
    assert 2 <= len(made.ticks) <= 8


def test_powers_of_two_stand_only_where_both_ends_are_powers_of_two():
    assert axis(1, 8, log=True).ticks == [1, 2, 4, 8]
    assert axis(69, 700, log=True).ticks == [50, 100, 200, 500, 1000]
    assert axis(2**-9, 1, log=True).ticks[:3] == [0.001, 0.002, 0.005]


@pytest.mark.parametrize(("low", "high"), LOG_ENDS)
def test_numbers_of_a_logarithmic_axis_are_round(low, high):
    for tick in axis(low, high, log=True).ticks:
        if tick < 1:  # above 1 they may be powers of two
            assert float(f"{tick:.1g}") == tick


def test_a_curve_stays_between_the_first_number_and_the_last():
    figure = line_plot({"a": ([0, 1], [0.0, 7.8])}, markers=True)
    heights = numbers_left(figure)
    assert heights.keys() == {"0", "2", "4", "6", "8"}
    ys = [float(e.get("cy", 0)) for e in elements(figure, "circle")]
    assert heights["8"] < min(ys)
    assert max(ys) == heights["0"]


def test_a_logarithmic_plot_has_a_number_at_its_lowest_line():
    figure = line_plot({"a": ([1, 2], [0.45, 14.8])}, log_y=True)
    heights = numbers_left(figure)
    assert heights["0.2"] == max(lines_across(figure)) == max(heights.values())


@pytest.mark.parametrize("ys", [(-0.17, 4.0), (1.0, 4.0), (-5.0, 2.0)])
def test_the_strong_line_of_a_straight_axis_is_at_0(ys):
    figure = line_plot({"a": ([0, 1], ys)})
    levels = lines_across(figure)
    assert [y for y, opacity in levels.items() if opacity == "0.6"] == [
        numbers_left(figure)["0"]
    ]


def test_the_strong_line_is_the_lowest_where_there_is_no_0():
    for given in ({"y_from": 3}, {"log_y": True}):
        levels = lines_across(line_plot({"a": ([0, 1], [3.1, 5.9])}, **given))
        assert [y for y, o in levels.items() if o == "0.6"] == [max(levels)]


def test_an_axis_says_that_it_is_logarithmic_and_so_do_the_words():
    lines = {"a": ([1, 10], [1, 10])}
    for log_x, log_y, said in (
        (False, False, ""),
        (True, False, "one scale logarithmic"),
        (True, True, "both scales logarithmic"),
    ):
        figure = line_plot(lines, x_title="x", y_title="y", log_x=log_x, log_y=log_y)
        titles = {e.text for e in elements(figure, "text")}
        assert ("x (logarithmic)" in titles) is log_x
        assert ("y (logarithmic)" in titles) is log_y
        assert said in figure.alt
        assert ("logarithmic" in figure.alt) is (log_x or log_y)


def test_the_name_of_one_line_stands_at_the_y_axis_unless_that_has_a_title():
    for given, title in (({}, "bits"), ({"y_title": "loss"}, "loss")):
        figure = line_plot({"bits": ([0, 1], [0, 1])}, **given)
        titles = {e.text for e in elements(figure, "text") if not e.get("text-anchor")}
        assert titles == {title}


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(
    ("low", "high"), [(1, 512), (0.001, 1), (1e3, 1e6), (1, 1e9), (3e-5, 0.7), (1, 300)]
)
@pytest.mark.parametrize("width", [240, 480])
def test_no_number_of_an_axis_runs_into_the_next(low, high, width, log):
    figure = line_plot(
        {"a": ([low, high], [low, high])}, log_x=log, log_y=log, width=width
    )
    below = [
        (float(e.get("x", 0)), text_width(e.text or "") / 2)
        for e in elements(figure, "text")
        if e.get("text-anchor") == "middle" and "(" not in (e.text or "")
    ]
    assert below
    for (x, half), (next_x, next_half) in pairwise(below):
        assert x + half < next_x - next_half
    heights = sorted(numbers_left(figure).values())
    assert all(b - a >= 20 for a, b in pairwise(heights))
    assert max(x + half for x, half in below) <= width


def test_what_is_nothing_may_have_a_word_and_no_bar():
    bars = {"a": 0.5, "b": 0.0, "c": 1e-9}
    figure = bar_chart(bars, form="{:.1%}", zero="cut")
    words = [e.text for e in elements(figure, "text")]
    assert words == ["a", "50.0%", "b", "cut", "c", "0.0%"]
    assert len(elements(figure, "rect")) == 2
    assert "b cut" in figure.alt
    assert len(elements(bar_chart(bars), "rect")) == 3


def test_bars_have_the_accent_a_second_colour_or_grey():
    figure = bar_chart({"a": 1, "b": 2, "c": 3}, marked=["b"], quiet=["c"])
    fills = [e.get("style", "") for e in elements(figure, "rect")]
    for fill, index in zip(fills, (0, 1, 5), strict=True):
        assert f"fill:{figure_colour(index)};" in fill
