"""The picture of the first page: every step has a door, and the shapes are true."""

import re
from xml.etree import ElementTree

import pytest

from gpt2hw import GPT2Config
from gpt2hw.figures.architecture import architecture
from gpt2hw.layout import parameter_shapes

STEPS = ("1", "2", "3", "4a", "4b", "5", "6", "7", "8")
SMALL = GPT2Config(n_vocab=65, n_ctx=12, n_embd=10, n_head=5, n_layer=3, n_inner=14)
MODELS = [("small", SMALL), ("GPT-2", GPT2Config())]
DOORS = {step: f"steps/{step}.html" for step in STEPS}
either_width = pytest.mark.parametrize("narrow", [False, True])


def drawn(narrow, models=MODELS, doors=DOORS):
    return architecture(models, doors, prompt="Once <upon>", answer="a", narrow=narrow)


def svg(figure):
    return ElementTree.fromstring(figure.svg)


def texts(element):
    return ["".join(text.itertext()) for text in element.iter("text")]


@either_width
def test_each_step_has_a_door_with_its_own_address(narrow):
    found = svg(drawn(narrow)).iter("a")
    there = {(a.get("href"), texts(a)[-1]) for a in found}
    assert there == {(f"steps/{step}.html", f"step {step}") for step in STEPS}


@either_width
def test_a_step_without_an_address_is_no_link(narrow):
    found = svg(drawn(narrow, doors={"2": "steps/2.html"})).iter("a")
    assert [a.get("href") for a in found] == ["steps/2.html"]


@either_width
def test_the_shapes_are_those_of_each_checkpoint(narrow):
    shown = {
        tuple(map(int, numbers.split(", ")))
        for text in texts(svg(drawn(narrow)))
        for numbers in re.findall(r"\[(\d+(?:, \d+)*)\]", text)
    }
    there = set()
    for _, config in MODELS:
        shapes = parameter_shapes(config)
        block = ("ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj")
        names = ["wte", "wpe", "ln_f", *(f"h.0.{name}" for name in block)]
        there |= {shapes[f"{name}.weight"] for name in names}
        there.add(shapes["wte.weight"][::-1])  # wte.T, the head
    assert shown == there


@either_width
def test_the_parameters_and_blocks_of_each_model_are_counted(narrow):
    found = " ".join(texts(svg(drawn(narrow))))
    assert "124,439,808" in found
    assert "× 3" in found
    assert "× 12" in found


def test_one_model_has_one_column():
    found = texts(svg(drawn(narrow=False, models=MODELS[1:])))
    assert found.count("[768, 2304]") == 1
    assert "× 12" in found


@either_width
def test_the_picture_is_a_group_with_a_name_so_that_its_links_are_found(narrow):
    figure = drawn(narrow)
    assert svg(figure).get("role") == "group"
    assert svg(figure).get("aria-label") == figure.alt
    assert "124,439,808 parameters" in figure.alt


@either_width
def test_text_from_outside_stays_text(narrow):
    assert "“Once <upon>”" in texts(svg(drawn(narrow)))
