"""A slider where a notebook has one; elsewhere, stills of its places."""

import pytest

from gpt2hw.figures import Figure, bar_chart, slide
from gpt2hw.figures.sliders import N_STILLS


def bar(size: float, scale: float = 1) -> Figure:
    return bar_chart({"a": size * scale}).captioned(f"times {scale}")


def test_stills_show_each_place_under_its_name() -> None:
    shown = str(slide(bar, size=[1, 2]))
    assert shown.count("<svg") == 2
    assert "<figcaption>size = 1. times 1</figcaption>" in shown
    assert "<figcaption>size = 2. times 1</figcaption>" in shown
    assert str(slide(lambda n: "<b>" * n, n=[1])) == "<p>n = 1</p><pre>&lt;b&gt;</pre>"


def test_a_figure_without_a_caption_is_named_by_its_place() -> None:
    shown = str(slide(lambda n: bar_chart({"a": n}), n=[3]))
    assert "<figcaption>n = 3</figcaption>" in shown


def test_of_many_places_a_few_are_shown_the_ends_among_them() -> None:
    shown = slide(lambda n: f"[{n}]", n=range(100))
    assert shown is not None
    assert [name for name, _ in shown.shown] == [f"n = {n}" for n in (0, 33, 66, 99)]
    assert len(shown.shown) == N_STILLS


def test_the_other_knobs_stay_at_their_first_place() -> None:
    shown = str(slide(bar, size=[1, 2], scale=[5, 6]))
    assert shown.count("times 5") == 2
    assert "times 6" not in shown


def test_a_notebook_shows_what_a_terminal_prints() -> None:
    shown = slide(bar, size=[1])
    assert shown is not None
    assert shown._repr_html_() == str(shown)


@pytest.mark.parametrize("values", [[], ()])
def test_a_knob_without_a_place_is_refused(values: list[int]) -> None:
    with pytest.raises(ValueError, match="size: no values"):
        slide(bar, size=values)


def test_a_slider_without_a_knob_is_refused() -> None:
    with pytest.raises(ValueError, match="knob"):
        slide(bar)
