"""What a figure's parts tell: a state, a key, a name upright, a way out."""

import re
from xml.etree import ElementTree

import pytest
import torch

from gpt2hw import GPT2Config
from gpt2hw.figures import (
    Box,
    Figure,
    axis_sizes,
    cell_grids,
    heat_map,
    heat_maps,
    mask_grid,
    shape_flow,
    token_strip,
)
from gpt2hw.figures.architecture import architecture

Elements = list[ElementTree.Element]


def all_of(figure: Figure, tag: str) -> Elements:
    return list(ElementTree.fromstring(str(figure)).iter(tag))


def words_of(figure: Figure) -> list[str]:
    return [element.text or "" for element in all_of(figure, "text")]


def look(element: ElementTree.Element) -> tuple[str | None, ...]:
    return tuple(map(element.get, ("style", "fill-opacity", "stroke-dasharray")))


NOW = torch.tensor([[True, False, False], [False, True, False]])
KEPT = torch.tensor([[False, False, False], [True, False, False]])


def test_what_is_kept_looks_like_neither_what_is_computed_nor_what_is_absent():
    figure = mask_grid(NOW, kept=KEPT, axes=("", "position"))
    looks = [look(rect) for rect in all_of(figure, "rect")]
    full, empty, kept = looks[0], looks[1], looks[3]
    assert len({full, empty, kept}) == 3
    assert looks == [full, empty, empty, kept, full, empty]
    outlines = [
        re.findall(r"stroke:([^;]+)", x[0] or "")[0] for x in (full, kept, empty)
    ]
    assert len(set(outlines)) == 3  # so not by the strength of a colour alone
    assert full[2] is kept[2] is None is not empty[2]
    assert "kept: 0, 1" in figure.alt


def test_a_keys_swatches_are_the_cells_that_they_explain():
    words = ["computed now", "kept in the cache", "not there yet"]
    figure = mask_grid(NOW, kept=KEPT, key=words)
    looks = [look(rect) for rect in all_of(figure, "rect")]
    assert looks[6:] == [looks[0], looks[3], looks[1]]
    assert words_of(figure)[-3:] == words


@pytest.mark.parametrize(("kept", "key"), [(None, "abc"), (KEPT, "ab")])
def test_a_key_has_a_word_for_each_state(kept, key):
    with pytest.raises(ValueError, match=r"^key: "):
        mask_grid(NOW, kept=kept, key=list(key))


def turned(figure: Figure) -> set[str]:
    drawn = all_of(figure, "text")
    return {t.text or "" for t in drawn if "rotate" in t.get("transform", "")}


def test_a_name_is_turned_only_where_its_cell_is_too_narrow():
    names = ["a", "b", "–"]
    assert not turned(mask_grid(NOW, columns=names, axes=("", "n_kv")))
    wide = ["·queen", "The", "–"]
    assert turned(mask_grid(NOW, columns=wide, axes=("", "n_kv"))) == {"·queen", "The"}
    many = heat_map(torch.eye(80), [], [str(i) for i in range(80)])
    assert turned(many) == {str(i) for i in range(80)}


def keys_words(figure: Figure) -> list[str]:
    return words_of(figure)[-3:]


def test_a_heat_map_says_what_its_colours_stand_for():
    values = torch.tensor([[0.0, 0.4]])
    assert keys_words(heat_map(values)) == ["0", "0.2", "0.4"]
    assert keys_words(heat_map(values, root=True)) == ["0", "0.1", "0.4"]
    assert keys_words(heat_map(values, most=0.2)) == ["0", "0.1", "≥ 0.2"]
    assert keys_words(heat_map(-values)) == ["−0.4", "0", "0.4"]
    assert keys_words(heat_map(-values, most=0.2)) == ["≤ −0.2", "0", "≥ 0.2"]
    assert keys_words(heat_maps(values[None], ["a"], most=1.0)) == ["0", "0.5", "1"]
    assert "0.2" not in words_of(heat_map(values, numbers=True))


def test_the_root_makes_small_values_visible_and_keeps_their_sign():
    cells = all_of(heat_map(torch.tensor([[1.0, 0.04, -0.25]]), root=True), "rect")
    assert [c.get("fill-opacity") for c in cells[:3]] == [None, "0.2", "0.5"]
    assert cells[1].get("style") != cells[2].get("style")


def test_a_table_with_too_many_places_to_name_has_numbers_at_its_ends():
    figure = heat_map(torch.eye(30), axes=("n_ctx", "n_ctx"), ends=("0", "29"))
    assert words_of(figure).count("0") == 2 + 1  # both axes, and the key
    assert words_of(figure).count("29") == 2


def test_signs_stand_between_the_grids_of_a_line():
    row = [["1", "2"]]
    grids = [("x", row), ("W", row * 2), ("x @ W", row)] * 2
    figure = cell_grids(grids, signs=("@", "="), per_row=3)
    drawn = all_of(figure, "text")
    at = {t.text: float(t.get("x", 0)) for t in drawn}
    assert at["x"] < at["@"] < at["W"] < at["="] < at["x @ W"]
    assert [t.text for t in drawn].count("=") == 2
    with pytest.raises(ValueError, match=r"^signs: "):
        cell_grids(grids, signs=("@", "="))


def lines_of(n_letters: int, n: int) -> list[int]:
    """How many tokens stand on each line."""
    rects = all_of(token_strip(["a" * n_letters] * n), "rect")
    heights = [rect.get("y") for rect in rects]
    return [heights.count(y) for y in dict.fromkeys(heights)]


def test_no_token_is_left_alone_on_the_last_line():
    assert lines_of(4, 10) == [10]
    assert lines_of(4, 11) == [11]  # closer, so that all find room
    assert lines_of(4, 13) == [7, 6]


def test_a_sign_between_boxes_has_room_on_both_sides():
    sizes = [("GPT-2", axis_sizes(GPT2Config(), n_seq=11))]
    x, w, y = (
        Box("x", "n_seq", "n_embd"),
        Box("c_attn.weight", "n_embd", "3 n_embd"),
        Box("q, k, v", "n_seq", "3 n_embd"),
    )
    figure = shape_flow([x, "@", w, "=", y], sizes=sizes)
    (sign,) = (t for t in all_of(figure, "text") if t.text == "@")
    left, right = (r for r in all_of(figure, "rect")[:2])
    middle = float(sign.get("x", 0))
    ends = float(left.get("x", 0)) + float(left.get("width", 0))
    name = float(right.get("x", 0)) - 20  # of its vertical axis
    assert middle - 7.5 - ends >= 10
    assert name - (middle + 7.5) >= 10


def test_boxes_say_below_the_caption_that_they_are_not_to_scale():
    sizes = [("GPT-2", axis_sizes(GPT2Config(), n_seq=11))]
    boxes = [Box("x", "n_seq", "n_embd")]
    words = "One. Below each box: its shape in GPT-2. Boxes are not to scale."
    (caption,) = all_of(shape_flow(boxes, sizes=sizes).captioned("One."), "figcaption")
    assert caption.text == words
    (caption,) = all_of(shape_flow(boxes), "figcaption")
    assert caption.text == "Boxes are not to scale."


@pytest.mark.parametrize("narrow", [False, True])
def test_the_way_out_begins_at_sampling_and_passes_the_cache(narrow):
    models = [("GPT-2", GPT2Config())]
    figure = architecture(models, {}, prompt="Once", answer="there", narrow=narrow)
    grounds = [r for r in all_of(figure, "rect") if "ground" in (r.get("class") or "")]
    x, y, wide, high = (
        [float(box.get(side, 0)) for box in grounds[-2:]]
        for side in ("x", "y", "width", "height")
    )
    paths = [
        [tuple(map(float, p.split(","))) for p in (line.get("points") or "").split()]
        for line in all_of(figure, "polyline")
    ]
    out = [path for path in paths if len(path) == 2 and path[0][0] == path[1][0]]
    (start_x, start_y), (_, end_y) = max(out, key=lambda path: path[1][1])
    assert 0 < start_y - (y[0] + high[0]) < 4
    assert not (x[1] <= start_x <= x[1] + wide[1])
    assert end_y > y[1] + high[1]
    (link,) = (e for e in all_of(figure, "polyline") if e.get("stroke-dasharray"))
    a, b = (tuple(map(float, p.split(","))) for p in (link.get("points") or "").split())
    for n, point in enumerate((a, b)):  # from Sampling's edge to the cache's
        assert x[n] <= point[0] <= x[n] + wide[n]
        assert y[n] <= point[1] <= y[n] + high[n]
