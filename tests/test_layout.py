"""The names and shapes of a checkpoint, and what is said where they do not fit."""

from math import prod

import pytest

from checkpoints import SMALL
from gpt2hw import CheckpointError, GPT2Config
from gpt2hw.config import PUBLISHED
from gpt2hw.layout import (
    check_names_and_shapes,
    is_buffer,
    n_parameters,
    parameter_shapes,
    strip_prefix,
)
from gpt2hw.properties.layout import (
    gpt2_has_124439808_parameters,
    masks_alone_are_buffers,
)

COUNTS = {
    "distilgpt2": 81_912_576,
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
}


def test_every_published_size_has_a_count_here():
    assert COUNTS.keys() == PUBLISHED.keys()


@pytest.mark.parametrize("name", COUNTS)
def test_a_published_size_has_as_many_parameters_as_was_published(name):
    assert n_parameters(PUBLISHED[name]) == COUNTS[name]


def test_gpt2_has_148_parameters_of_these_shapes():
    shapes = parameter_shapes(GPT2Config())
    assert len(shapes) == 148
    assert shapes["wte.weight"] == (50257, 768)
    assert shapes["wpe.weight"] == (1024, 768)
    assert shapes["h.0.attn.c_attn.weight"] == (768, 2304)
    assert shapes["h.0.attn.c_attn.bias"] == (2304,)
    assert shapes["h.0.attn.c_proj.weight"] == (768, 768)
    assert shapes["h.11.mlp.c_fc.weight"] == (768, 3072)
    assert shapes["h.11.mlp.c_proj.weight"] == (3072, 768)
    assert shapes["ln_f.bias"] == (768,)


def test_a_tied_head_is_no_parameter_of_its_own_and_an_untied_one_is():
    untied = GPT2Config(tie_word_embeddings=False)
    assert "lm_head.weight" not in parameter_shapes(GPT2Config())
    assert parameter_shapes(untied)["lm_head.weight"] == (50257, 768)
    assert n_parameters(untied) - n_parameters(GPT2Config()) == 50257 * 768


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("h.0.attn.bias", True),
        ("h.11.attn.masked_bias", True),
        ("transformer.h.3.attn.bias", True),
        ("h.0.attn.c_attn.bias", False),
        ("h.0.attn.c_proj.bias", False),
        ("h.0.mlp.c_fc.bias", False),
        ("ln_f.bias", False),
        ("wte.weight", False),
    ],
)
def test_stored_masks_are_told_from_parameters(name, expected):
    assert is_buffer(name) is expected


def test_masks_alone_are_buffers_and_not_counted():
    masks_alone_are_buffers(is_buffer)
    gpt2_has_124439808_parameters(
        lambda shapes: sum(prod(s) for n, s in shapes.items() if not is_buffer(n))
    )


# --- the prefix ---


def test_names_with_and_without_the_prefix_mean_the_same():
    names = list(parameter_shapes(SMALL))
    assert strip_prefix(names) == {name: name for name in names}
    prefixed = [f"transformer.{name}" for name in names]
    assert strip_prefix(prefixed) == dict(zip(names, prefixed, strict=True))


def test_the_head_stands_beside_the_prefix():
    names = ["transformer.wte.weight", "lm_head.weight"]
    assert list(strip_prefix(names)) == ["wte.weight", "lm_head.weight"]


@pytest.mark.parametrize(
    "names",
    [
        ["transformer.wte.weight", "wte.weight"],  # one tensor twice
        ["transformer.wte.weight", "wpe.weight"],  # two tensors, two manners
        ["h.0.ln_1.bias", "transformer.h.1.ln_1.bias"],
        ["ln_f.weight", "transformer.h.0.attn.bias"],
    ],
)
def test_names_with_and_without_the_prefix_in_one_file_are_refused(names):
    with pytest.raises(CheckpointError, match="with the prefix") as refusal:
        strip_prefix(names)
    assert all(repr(name) in str(refusal.value) for name in names)


def test_a_head_under_both_names_is_refused():
    names = ["transformer.lm_head.weight", "lm_head.weight"]
    with pytest.raises(CheckpointError, match="holds both"):
        strip_prefix(names)


def test_the_prefix_is_taken_off_once():
    assert list(strip_prefix(["transformer.transformer.wte.weight"])) == [
        "transformer.wte.weight"
    ]


# --- what does not fit ---


def complaints(found, config=SMALL) -> str:
    with pytest.raises(CheckpointError) as refusal:
        check_names_and_shapes(found, config)
    return str(refusal.value)


def test_the_tensors_that_the_config_asks_for_are_accepted():
    check_names_and_shapes(parameter_shapes(SMALL), SMALL)


def test_masks_and_a_tied_head_may_be_there():
    extra = {
        "h.0.attn.bias": (1, 1, 16, 16),
        "h.0.attn.masked_bias": (),
        "lm_head.weight": (37, 12),
    }
    check_names_and_shapes(parameter_shapes(SMALL) | extra, SMALL)


@pytest.mark.parametrize("name", parameter_shapes(SMALL))
def test_a_missing_tensor_is_named_with_its_shape(name):
    found = parameter_shapes(SMALL)
    shape = list(found.pop(name))
    assert f"missing: {name} {shape}" in complaints(found)


def test_a_surplus_tensor_is_named_with_its_shape():
    found = parameter_shapes(SMALL) | {
        "h.2.ln_1.weight": (12,),
        "score.weight": (2, 12),
    }
    said = complaints(found)
    assert "surplus: h.2.ln_1.weight [12]" in said
    assert "surplus: score.weight [2, 12]" in said


@pytest.mark.parametrize("name", parameter_shapes(SMALL))
def test_a_wrong_shape_is_named_beside_the_right_one(name):
    found = parameter_shapes(SMALL)
    right = found[name]
    found[name] = (*right[:-1], right[-1] + 1)
    said = complaints(found)
    wrong = f"shape: {name} is {list(found[name])}, expected {list(right)}"
    assert said.splitlines()[1:] == [f"  {wrong}"]  # not as if it were transposed
    assert "missing" not in said
    assert "surplus" not in said


def test_a_tied_head_of_the_wrong_shape_is_named():
    found = parameter_shapes(SMALL) | {"lm_head.weight": (12, 37)}
    assert "shape: lm_head.weight is [12, 37], expected [37, 12]" in complaints(found)


def test_an_untied_head_that_is_missing_is_named():
    untied = GPT2Config(
        n_vocab=5, n_embd=4, n_head=1, n_layer=1, tie_word_embeddings=False
    )
    found = parameter_shapes(untied)
    del found["lm_head.weight"]
    assert "missing: lm_head.weight [5, 4]" in complaints(found, untied)


@pytest.mark.parametrize("part", ["attn.c_attn", "mlp.c_fc", "mlp.c_proj"])
def test_a_transposed_matrix_is_recognized(part):
    found = parameter_shapes(SMALL)
    name = f"h.1.{part}.weight"
    found[name] = found[name][::-1]
    said = complaints(found)
    assert said.endswith("] (transposed: GPT-2 stores its matrices [in, out])")


def test_the_config_of_another_size_is_suspected_and_every_kind_of_fault_is_shown():
    said = complaints(parameter_shapes(PUBLISHED["gpt2-medium"]), PUBLISHED["gpt2"])
    assert "config.json that of another size" in said
    assert "shape: wte.weight is [50257, 1024], expected [50257, 768]" in said
    assert "surplus: h.12.ln_1.weight [1024]" in said
    assert "... and 140 more" in said  # 148 of the wrong shape, eight of them shown
    said = complaints(parameter_shapes(PUBLISHED["distilgpt2"]), PUBLISHED["gpt2"])
    assert "missing: h.6.ln_1.weight [768]" in said
    assert len(said.splitlines()) < 30


@pytest.mark.parametrize(("n", "rest"), [(8, []), (9, ["  ... and 1 more"])])
def test_eight_faults_of_a_kind_are_shown_and_the_others_counted(n, rest):
    surplus = {f"x.{i}": (2,) for i in range(n)}
    shown = [f"  surplus: x.{i} [2]" for i in range(8)]
    said = complaints(parameter_shapes(SMALL) | surplus)
    assert said.splitlines()[1:] == shown + rest


@pytest.mark.parametrize(
    ("n_layer", "start"), [(1000, "the tensors"), (1001, "the con")]
)
def test_beyond_a_thousand_layers_no_tensor_is_counted(n_layer, start):
    said = complaints(parameter_shapes(SMALL), GPT2Config(n_layer=n_layer))
    assert said.startswith(start)


def test_a_config_that_asks_for_a_billion_layers_costs_nothing():
    config = GPT2Config(n_layer=10**9)
    assert "n_layer=1000000000" in complaints(parameter_shapes(SMALL), config)


def test_a_mask_of_a_layer_that_is_not_there_is_surplus():
    found = parameter_shapes(SMALL) | {"h.99.attn.bias": (1, 1, 16, 16)}
    with pytest.raises(CheckpointError, match=r"surplus: h\.99\.attn\.bias"):
        check_names_and_shapes(found, SMALL)
