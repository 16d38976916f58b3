"""Figures: words for whoever sees none, and colours that a page can change."""

import re
import struct
import zlib
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

from gpt2hw import GPT2Config, Tokenizer, figures
from gpt2hw.attention import causal_mask
from gpt2hw.figures import (
    AXIS_COLOURS,
    FIGURE_COLOURS,
    Box,
    Figure,
    axis_sizes,
    bar_chart,
    bar_charts,
    byte_strip,
    cell_grids,
    float_bits,
    heat_map,
    heat_maps,
    ledger,
    line_plot,
    mask_grid,
    merge_rows,
    residual_stream,
    roofline,
    running,
    shape_flow,
    slide,
    token_labels,
    token_strip,
)
from gpt2hw.figures.pixels import opacity_png
from gpt2hw.figures.scales import ticks
from gpt2hw.tokenizer import Step

CSS = Path(__file__).parent.parent / "docs" / "assets" / "css" / "tokens.css"
WORDS = ["The", "·king", "·&", "<b>"]  # two of them would break a page unescaped
TABLE = torch.tensor(
    [[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0.2, 0.5, 0.3, 0], [0, 0, 0, -1]]
)
SIZES = [("tiny", axis_sizes(running().model.config, n_seq=6, n_kv=6))]
STEPS = Tokenizer.from_pretrained("gpt2").explain("tokenization")

EVERY: dict[str, Callable[..., Figure]] = {
    "heat_map": lambda **kw: heat_map(
        TABLE, WORDS, WORDS, axes=("n_seq", "n_kv"), **kw),
    "heat_map of numbers": lambda **kw: heat_map(TABLE, numbers=True, **kw),
    "heat_map as image": lambda **kw: heat_map(torch.eye(30) - 0.1, **kw),
    "heat_maps": lambda **kw: heat_maps(TABLE.expand(4, 4, 4), ["a\n.1", *"bcd"], **kw),
    "bar_chart": lambda **kw: bar_chart({"·a": 0.5, "<b>": 0.2}, marked=["<b>"], **kw),
    "bar_charts": lambda **kw: bar_charts([("all", [("a", 0.5)]), ("x", [])], **kw),
    "line_plot": lambda **kw: line_plot(
        {"one & only": ([1, 2, 4], [1, 2, 4]), "flat": ([1, 2, 4], [1, 1, 1])},
        x_title="d_head", y_title="variance", log_x=True, markers=True, **kw,
    ),
    "shape_flow": lambda **kw: shape_flow(
        [Box("x", "n_seq", "n_embd"), "@", Box("W", "n_embd", "3 n_embd"), "",
         Box("q", "n_head", "n_seq", "d_head"), "→", Box("b", "n_embd")],
        sizes=SIZES, **kw,
    ),
    "byte_strip": lambda **kw: byte_strip(
        [("length", 8), ("rest", 9000)], details=["a", ""], **kw),
    "token_strip": lambda **kw: token_strip(WORDS * 6, list(range(24)), **kw),
    "ledger": lambda **kw: ledger({"wte": 900, "wpe": 100}, unit="parameters", **kw),
    "cell_grids": lambda **kw: cell_grids(
        [("right", [["00", "01"]]), ("<wrong>", [["00", "10"]])],
        colours=[[[0, 0]], [[0, 1]]], axes=("n_seq", "d_head"), **kw,
    ),
    "float_bits": lambda **kw: float_bits(-0.1, **kw),
    "mask_grid": lambda **kw: mask_grid(causal_mask(2, 4), WORDS[:2], WORDS, **kw),
    "merge_rows": lambda **kw: merge_rows(STEPS, **kw),
    "residual_stream": lambda **kw: residual_stream([("embed", 1.0), ("mlp", 2)], **kw),
    "roofline": lambda **kw: roofline(
        30e9, 100e9, {"one <row>": (0.5, 14e9), "512 rows": (200.0, 90e9)}, **kw),
}  # fmt: skip
every_figure = pytest.mark.parametrize("draw", EVERY.values(), ids=EVERY)


def parsed(figure: Figure) -> ElementTree.Element:
    return ElementTree.fromstring(str(figure))


def texts(figure: Figure) -> list[str]:
    return [element.text or "" for element in parsed(figure).iter("text")]


def test_every_public_function_that_draws_is_tested_here():
    drawing = {
        name
        for name in figures.__all__
        if getattr(figures, name).__class__.__name__ == "function"
    } - {"running", "token_labels", "axis_sizes", "slide"}  # see test_sliders.py
    assert drawing == {name.split()[0] for name in EVERY}


@every_figure
def test_a_figure_says_in_words_what_it_shows(draw):
    figure = draw()
    svg = parsed(figure).find("svg")
    assert svg is not None
    assert svg.get("role") == "img"
    assert svg.get("aria-label") == figure.alt
    assert svg[0].tag == "title"
    assert svg[0].text == figure.alt
    assert len(figure.alt.split()) >= 4


@every_figure
def test_words_given_for_a_figure_replace_its_own(draw):
    figure = draw(alt="one & all")
    assert figure.alt == "one & all"
    assert parsed(figure)[0].get("aria-label") == "one & all"


@every_figure
def test_a_figure_is_drawn_alike_each_time(draw):
    assert str(draw()) == str(draw())


@every_figure
def test_a_figure_asks_nothing_of_another_host(draw):
    html = str(draw())
    assert "http" not in html
    links = re.findall(r'(?:href="|url\()([^")]*)', html)
    assert all(link.startswith(("#", "data:image/png;base64,")) for link in links)


@every_figure
def test_ink_is_the_pages_and_every_colour_can_be_changed_by_it(draw):
    for element in parsed(draw()).iter():
        assert "fill" not in element.attrib
        assert "stroke" not in element.attrib
        if element.tag in {"rect", "text", "polyline", "circle"}:
            style = element.get("style", "")
            colours = re.findall(r"(?:fill|stroke):([^;]+)", style)
            assert colours, f"{element.tag} would be black"
            for colour in colours:
                assert re.fullmatch(
                    r"none|currentColor|var\(--[\w-]+, #[0-9a-f]{6}\)", colour
                )


@every_figure
def test_a_letter_is_10_pixels_high_on_a_phone(draw):
    svg = parsed(draw()).find("svg")
    assert svg is not None
    width = float(svg.get("viewBox", "").split()[2])
    assert float(svg.get("font-size", "")) / width * 328 >= 10  # 360, less its edges
    assert not [e for e in svg.iter("text") if e.get("font-size")]


@every_figure
def test_what_is_drawn_stays_inside_the_figure(draw):
    svg = parsed(draw()).find("svg")
    assert svg is not None
    _, _, width, height = map(float, svg.get("viewBox", "").split())
    for element in svg.iter():
        x, y = float(element.get("x", 0)), float(element.get("y", 0))
        if element.tag in {"rect", "image"}:
            x, y = (
                x + float(element.get("width", 0)),
                y + float(element.get("height", 0)),
            )
        assert -0.01 <= x <= width + 0.01
        assert -0.01 <= y <= height + 0.01


def test_text_is_text_and_a_page_can_find_it():
    assert texts(bar_chart({"·king": 0.5})) == ["·king", "0.500"]
    assert set(WORDS) <= set(texts(heat_map(TABLE, WORDS, WORDS)))


def test_two_figures_on_a_page_do_not_share_an_id_unless_they_are_one():
    ids = [
        re.findall(
            r'id="([^"]+)"', str(heat_map(torch.eye(n), axes=("n_ctx", "n_ctx")))
        )
        for n in (21, 22)
    ]
    assert ids[0]
    assert set(ids[0]).isdisjoint(ids[1])


def test_a_masks_name_is_the_one_that_its_picture_uses():
    html = str(heat_map(torch.eye(30) - 0.1))
    assert set(re.findall(r'id="([^"]+)"', html)) == set(
        re.findall(r"url\(#([^)]+)\)", html)
    )


def test_a_caption_stands_below_its_figure():
    figure = ledger({"a": 1}).captioned("a < b")
    assert parsed(figure)[-1].text == "a < b"
    assert figure._repr_html_() == str(figure)


def test_the_strongest_cell_has_the_full_colour_and_a_zero_none():
    cells = list(parsed(heat_map(torch.tensor([[4.0, 2.0, 0.0]]))).iter("rect"))
    cells = cells[:3]
    assert [e.get("fill-opacity") for e in cells] == [None, "0.5", "0"]


def test_a_negative_cell_has_another_colour():
    cells = list(parsed(heat_map(torch.tensor([[1.0, -1.0]]))).iter("rect"))
    assert cells[0].get("style") != cells[1].get("style")


def test_a_cell_that_is_minus_infinity_has_no_colour_and_says_so():
    figure = heat_map(torch.tensor([[1.0, float("-inf")]]), numbers=True)
    assert "−∞" in texts(figure)
    assert 'fill-opacity="nan"' not in str(figure)


def test_the_picture_holds_the_amounts_as_opacity():
    data = b64decode(opacity_png(torch.tensor([[0.0, 1.0, 0.2]])).partition(",")[2])
    assert struct.unpack(">II", data[16:24]) == (3, 1)
    length = struct.unpack(">I", data[33:37])[0]
    pixels = zlib.decompress(data[41 : 41 + length])
    assert pixels == b"\0" + b"\xff\0" + b"\xff\xff" + b"\xff\x33"


def test_a_larger_amount_has_the_longer_bar():
    bars = [
        float(e.get("width", 0))
        for e in parsed(bar_chart({"a": 1, "b": 4})).iter("rect")
    ]
    assert bars[1] == pytest.approx(4 * bars[0], abs=0.02)


def test_what_is_not_a_number_has_no_bar_and_is_named():
    figure = bar_chart({"a": float("nan"), "b": 4.0}, form="{:.1f}")
    first, second = (float(e.get("width", 0)) for e in parsed(figure).iter("rect"))
    assert first < 1 < second
    assert "nan" in texts(figure)


def test_a_line_rises_where_its_numbers_do():
    svg = parsed(line_plot({"up": ([0, 1], [1.0, 2.0])}, markers=True))
    low, high = (float(e.get("cy", 0)) for e in svg.iter("circle"))
    assert high < low


def test_a_roof_rises_to_where_arithmetic_binds_and_points_lie_where_they_are():
    """A point that is as fast as memory allows is on the slope, above its foot."""
    points = {"on the slope": (1.0, 30e9), "under it": (1.0, 15e9)}
    svg = parsed(roofline(30e9, 120e9, points))
    thick = [e for e in svg.iter("polyline") if e.get("stroke-width") == "2.5"]
    roof = [tuple(map(float, p.split(","))) for p in thick[0].get("points", "").split()]
    (x0, y0), (x1, y1), (_, y2) = roof
    assert y1 == y2 < y0
    at = [(float(e.get("cx", 0)), float(e.get("cy", 0))) for e in svg.iter("circle")]
    on_it, below = at
    along = (on_it[0] - x0) / (x1 - x0)
    assert on_it[1] == pytest.approx(y0 + along * (y1 - y0), abs=0.1)
    assert below[0] == on_it[0]
    assert below[1] > on_it[1]


@pytest.mark.parametrize("low", [0.0, -3.0, 1e-3])
@pytest.mark.parametrize("high", [0.02, 1.0, 7.3, 1e6])
def test_ticks_are_a_handful_and_lie_within(low, high):
    found = ticks(low, high)
    assert 3 <= len(found) <= 12
    assert all(low - 1e-9 <= t <= high + 1e-9 for t in found)


def test_a_shape_stands_in_both_models():
    sizes = [
        ("tiny", axis_sizes(GPT2Config(n_embd=192, n_head=6), n_seq=6)),
        ("GPT-2", axis_sizes(GPT2Config(), n_seq=6)),
    ]
    figure = shape_flow([Box("qkv", "n_seq", "3 n_embd")], sizes=sizes)
    assert {"[6, 576]", "[6, 2304]"} <= set(texts(figure))


def test_a_ledger_adds_up():
    parts = {"wte": 38597376, "wpe": 786432, "12 blocks": 85054464, "ln_f": 1536}
    assert "124,439,808" in texts(ledger(parts))


@pytest.mark.parametrize("value", [1.0, -0.1, 3e-5, 65504.0, 1e-7, 0.0, 1e9])
def test_bits_are_those_of_the_number_that_is_kept(value):
    """Read as the standard says: sign, exponent with its offset, fraction."""
    drawn = list(parsed(float_bits(value)).iter("text"))
    at = [element.get("text-anchor") for element in drawn]
    words = [element.text or "" for element in drawn]
    bits = "".join(w for w, a in zip(words, at, strict=True) if a == "middle")
    kept = [float(w) for w, a in zip(words, at, strict=True) if a == "end"]
    lengths = {"float32": (8, 23), "float16": (5, 10), "bfloat16": (8, 7)}
    for (n, m), told in zip(lengths.values(), kept, strict=True):
        word, bits = bits[: 1 + n + m], bits[1 + n + m :]
        sign, exponent, fraction = word[0], int(word[1 : 1 + n], 2), word[1 + n :]
        share, offset = int(fraction, 2) / 2**m, 2 ** (n - 1) - 1
        size = (
            share * 2.0 ** (1 - offset)
            if exponent == 0
            else (1 + share) * 2.0 ** (exponent - offset)
        )
        if exponent == 2**n - 1:
            size = float("inf")
        assert (-size if sign == "1" else size) == pytest.approx(told, rel=1e-8)
    assert not bits


def test_a_label_shows_its_space_and_its_line_end():
    tokenizer = running().tokenizer
    assert token_labels(tokenizer, tokenizer.encode("a\n"))[-1] == "↵"
    assert "·" in "".join(token_labels(tokenizer, tokenizer.encode("a king")))


ODD = ["\0", "\x1b[31m", "\x85", "\ud800", "\uffff", "\n", '"><script>', "&amp;", "]]>",
       "mask-0-ID", "\u202e\u05d0", "👩\u200d👧", ""]  # fmt: skip
LABELLED: dict[str, Callable[[str], Figure]] = {
    "heat_map": lambda w: heat_map(TABLE[:1, :1], [w], [w], axes=(w, w), alt=w),
    "heat_map as image": lambda w: heat_map(torch.eye(30), axes=(w, w)),
    "heat_maps": lambda w: heat_maps(TABLE[None], [w]),
    "bar_charts": lambda w: bar_charts([(w, [(w, 1.0)])], marked=[w]),
    "line_plot": lambda w: line_plot(
        {w: ([1], [1]), f"{w}2": ([2], [2])}, x_title=w, y_title=w),
    "shape_flow": lambda w: shape_flow([Box(w, "n_seq"), w]),
    "byte_strip": lambda w: byte_strip([(w, 1)], details=[w]),
    "token_strip": lambda w: token_strip([w], [1]),
    "ledger": lambda w: ledger({w: 1}, unit=w),
    "cell_grids": lambda w: cell_grids([(w, [[w]])], axes=(w, w)),
    "mask_grid": lambda w: mask_grid(torch.ones(1, 1, dtype=torch.bool), [w], [w]),
    "merge_rows": lambda w: merge_rows(
        [Step((w.encode("utf-8", "surrogatepass") + b"<",))]),
    "residual_stream": lambda w: residual_stream([(w, 1.0)], unit=w),
    "roofline": lambda w: roofline(1e9, 1e9, {w: (1.0, 1e9)}),
}  # fmt: skip


@pytest.mark.parametrize("word", ODD, ids=ascii)
@pytest.mark.parametrize("draw", LABELLED.values(), ids=LABELLED)
def test_no_word_can_break_a_figure_or_put_an_element_into_it(draw, word):
    figure = draw(word).captioned(word)
    page = parsed(figure)
    str(figure).encode()
    assert "script" not in [element.tag for element in page.iter()]
    assert page[0].get("aria-label") == figure.alt
    usual = {e.tag for e in parsed(draw("plain")).iter()} | {"figcaption"}
    assert {element.tag for element in page.iter()} <= usual


@pytest.mark.parametrize("text", ["tokenization", " émigré", "a", "s" * 90])
def test_a_part_lies_where_its_bytes_lie_and_a_merge_is_marked(text):
    steps = Tokenizer.from_pretrained("gpt2").explain(text)
    rects = list(parsed(merge_rows(steps)).iter("rect"))
    assert len(rects) == sum(len(step.parts) for step in steps)
    sides = [[float(rect.get(of, 0)) for of in ("x", "width")] for rect in rects]
    cell = (sides[0][1] + 2) / len(steps[0].parts[0])
    marked, boxes = [], iter(zip(rects, sides, strict=True))
    for step in steps:
        start = 0
        for part in step.parts:
            rect, (x, wide) = next(boxes)
            assert x == pytest.approx(start * cell + 1, abs=0.5)
            assert wide == pytest.approx(len(part) * cell - 2, abs=0.5)
            if rect.get("fill-opacity"):
                marked.append(part)
            start += len(part)
    assert marked == [step.merged for step in steps if step.merged]


def test_a_word_like_a_masks_name_stays_as_it_is():
    words = ["TOKEN-ID", '<rect mask="url(#mask-0-ID)']
    figure = heat_map(torch.eye(30), axes=(words[0], words[1]))
    assert set(words) <= set(texts(figure))


def test_a_slider_of_odd_values_is_well_formed():
    page = f"<p>{slide(lambda word: word, word=ODD)}</p>"
    assert "script" not in [e.tag for e in ElementTree.fromstring(page).iter()]


def test_every_token_of_gpt2_can_be_shown():
    tokenizer = Tokenizer.from_pretrained("gpt2")
    ids = list(range(tokenizer.n_vocab))
    labels = token_labels(tokenizer, ids)
    assert parsed(token_strip(labels, ids)) is not None
    assert labels[188] == "␀"


def test_a_long_name_leaves_room_for_the_table():
    names = ["-" * 128, "深" * 128]
    for figure in (
        heat_map(torch.eye(2), names, names),
        bar_chart(dict.fromkeys(names, 1)),
    ):
        rects = list(parsed(figure).iter("rect"))
        assert min(float(rect.get("width", 0)) for rect in rects) > 20
        assert max(float(rect.get("x", 0)) for rect in rects) < 480


@pytest.mark.parametrize("token", ["-" * 128, "深" * 128])
def test_a_token_longer_than_a_line_stays_inside_the_figure(token):
    for rect in parsed(token_strip([token, "a"], [1, 2])).iter("rect"):
        assert float(rect.get("x", 0)) + float(rect.get("width", 0)) <= 480


def test_scores_behind_a_mask_do_not_hide_the_others():
    scores = TABLE.masked_fill(TABLE == 0, -torch.inf)
    pictures = (heat_maps(m[None], ["head"]) for m in (scores, TABLE))
    uris = [next(parsed(f).iter("image")).get("href") for f in pictures]
    assert uris[0] == uris[1]


NOTHING = torch.zeros(0, 2)


@pytest.mark.parametrize(
    ("draw", "argument"),
    [
        (lambda: heat_map(NOTHING), "values"), (lambda: heat_map(NOTHING.T), "values"),
        (lambda: heat_map(TABLE, ["a"]), "rows"),
        (lambda: heat_map(TABLE, (), ["a"] * 5), "columns"),
        (lambda: heat_map(TABLE, most=float("nan")), "most"),
        (lambda: heat_maps(NOTHING[None], ["a"]), "values"),
        (lambda: heat_maps(TABLE[None], ["a", "b"]), "names"),
        (lambda: heat_maps(TABLE[None], []), "names"),
        (lambda: bar_chart({}), "bars"), (lambda: bar_charts([("a", [])]), "charts"),
        (lambda: line_plot({}), "lines"), (lambda: line_plot({"a": ([], [])}), "lines"),
        (lambda: line_plot({"a": ([1, 2], [1])}), "lines"),
        (lambda: line_plot({"a": ([1], [float("nan")])}), "lines"),
        (lambda: line_plot({"a": ([float("inf")], [1])}), "lines"),
        (lambda: line_plot({"a": ([0], [1])}, log_x=True), "lines"),
        (lambda: line_plot({"a": ([1], [-1])}, log_y=True), "lines"),
        (lambda: Box("x"), "axes"), (lambda: Box("x", ""), "axes"),
        (lambda: Box("x", "a b"), "axes"),
        (lambda: shape_flow([Box("x", "n_sec")], sizes=SIZES), "sizes"),
        (lambda: token_strip(["a", "b"], [1]), "ids"),
        (lambda: byte_strip([]), "parts"), (lambda: byte_strip([("a", -1)]), "parts"),
        (lambda: ledger({}), "parts"), (lambda: ledger({"a": 2, "b": -1}), "parts"),
        (lambda: cell_grids([]), "grids"), (lambda: cell_grids([("a", [])]), "grids"),
        (lambda: float_bits(1.0, ["float8"]), "formats"),
        (lambda: float_bits(1.0, []), "formats"),
        (lambda: float_bits(float("nan")), "value"),
        (lambda: mask_grid(NOTHING.bool()), "mask"),
        (lambda: mask_grid(TABLE.bool(), ["a"]), "rows"),
        (lambda: merge_rows([]), "steps"), (lambda: residual_stream([]), "parts"),
        (lambda: roofline(1e9, 1, {}), "points"),
        (lambda: roofline(0, 1, {"a": (1, 1)}), "bandwidth"),
        (lambda: roofline(1, 0, {"a": (1, 1)}), "arithmetic"),
        (lambda: roofline(1, 1, {"a": (1, 0)}), "points"),
        (lambda: residual_stream([("a", float("nan"))]), "parts"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_refused_by_the_arguments_name(draw, argument):
    with pytest.raises(ValueError, match=rf"^{argument}: "):
        draw()


@pytest.mark.parametrize(
    "draw",
    [
        lambda: byte_strip([("empty", 0)]), lambda: ledger({"none": 0}),
        lambda: residual_stream([("still", 0.0)]), lambda: heat_map(TABLE[:1, :1] * 0),
        lambda: line_plot({"a": ([1e40], [1e40])}, log_x=True, log_y=True),
        lambda: line_plot({"a": ([0, 0], [0, 0])}), lambda: bar_chart({"a": 0.0}),
        lambda: heat_map(torch.full((2, 2), torch.nan), numbers=True),
    ],
)  # fmt: skip
def test_the_least_there_can_be_is_drawn_without_a_coordinate_that_is_none(draw):
    page = parsed(draw())
    for element in page.iter():
        places = [v for k, v in element.items() if k not in ("aria-label", "href")]
        assert not re.search(r"\b(nan|inf)\b", " ".join(places)), places


def test_the_running_model_is_the_one_that_is_asked_for(monkeypatch, tmp_path):
    assert running().name == "tiny"
    monkeypatch.setenv("GPT2HW_MODEL", str(tmp_path))
    with pytest.raises(ValueError, match=re.escape(str(tmp_path))):
        running()


def variables_of(css: str, scheme: str) -> dict[str, str]:
    """The colours that a palette gives, by name."""
    block = css.split(f'[data-md-color-scheme="{scheme}"] {{', 1)[1].split("}", 1)[0]
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))


@pytest.mark.parametrize("name", [*AXIS_COLOURS, *FIGURE_COLOURS])
def test_the_site_has_the_same_colours_in_both_palettes(name):
    css = CSS.read_text(encoding="utf-8")
    pair = AXIS_COLOURS.get(name) or FIGURE_COLOURS[name]
    variable = f"axis-{name}" if name in AXIS_COLOURS else name
    assert variables_of(css, "default")[variable] == pair.light
    assert variables_of(css, "slate")[variable] == pair.dark
