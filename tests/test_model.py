"""Step 6: logits, judged by transformers' GPT-2 on models of every shape."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpoints import SMALL, random_ids, random_model, random_tensors
from gpt2hw import GPT2, GPT2Config
from gpt2hw.model import unembed
from gpt2hw.properties import model as rules
from gpt2hw.properties.closeness import agree
from gpt2hw.properties.drawn import SEEDS, batch_shapes, configs, ids_for
from gpt2hw.properties.seeded import normal
from reference import reference_logits, reference_model

# The largest difference of logits, as a share of their range (max - min).
TOLERANCE = 1e-4

quickly = settings(deadline=None, max_examples=30)
MODEL = random_model()


# --- equality with transformers ---


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@given(configs(), batch_shapes(), SEEDS, st.data())
@settings(deadline=None, max_examples=40)
def test_logits_equal_transformers_on_models_of_any_shape(
    attention, config, batch, seed, data
):
    tensors = random_tensors(config, seed)
    ids = data.draw(ids_for(config, *batch))
    expected = reference_logits(reference_model(config, tensors, attention), ids)
    agree(GPT2.from_tensors(config, tensors)(ids), expected, TOLERANCE, "logits")


def test_logits_equal_transformers_at_the_full_shape_of_gpt2_124m():
    config = GPT2Config()
    tensors = random_tensors(config, deviation=0.05)
    ids = random_ids(config, 24)
    expected = reference_logits(reference_model(config, tensors), ids)
    agree(GPT2.from_tensors(config, tensors)(ids), expected, TOLERANCE, "logits")


def test_an_untied_head_gives_transformers_logits():
    config = GPT2Config(
        n_vocab=9, n_ctx=8, n_embd=6, n_head=2, n_layer=2, tie_word_embeddings=False
    )
    tensors = random_tensors(config)
    ids = random_ids(config, 2, 8)
    expected = reference_logits(reference_model(config, tensors), ids)
    agree(GPT2.from_tensors(config, tensors)(ids), expected, TOLERANCE, "logits")
    as_if_tied = tensors | {"lm_head.weight": tensors["wte.weight"]}
    assert not torch.allclose(GPT2.from_tensors(config, as_if_tied)(ids), expected)


def test_reordered_attention_is_the_same_mathematics():
    """Why a config that sets reorder_and_upcast_attn need not be refused."""
    tensors, ids = random_tensors(SMALL), random_ids(SMALL, 2, 16)
    judge = reference_model(SMALL, tensors)
    for block in judge.transformer.h:
        block.attn.reorder_and_upcast_attn = True
    agree(MODEL(ids), reference_logits(judge, ids), TOLERANCE)


@pytest.mark.parametrize(
    "fault",
    ["c_attn.bias", "ln_f.bias", "ln_f.weight", "wpe.weight", "mlp.c_proj.bias"],
)
def test_the_tolerance_is_fine_enough_to_see_one_number_of_one_parameter(fault):
    tensors, ids = random_tensors(SMALL), random_ids(SMALL, 16)
    expected = reference_logits(reference_model(SMALL, tensors), ids)
    name = next(name for name in tensors if name.endswith(fault))
    tensors[name] = tensors[name].clone()
    tensors[name].view(-1)[0] += 0.01
    with pytest.raises(AssertionError, match="of the range"):
        agree(GPT2.from_tensors(SMALL, tensors)(ids), expected, TOLERANCE)


# --- rules ---


@given(configs(), batch_shapes(), SEEDS, st.data())
@quickly
def test_each_id_gets_a_row_of_float32_logits(config, batch, seed, data):
    ids = data.draw(ids_for(config, *batch))
    rules.each_id_gets_a_row_of_logits(random_model(config, seed), ids, config.n_vocab)


@given(ids_for(SMALL, 2, min_n_seq=2), st.data())
@quickly
def test_later_ids_change_no_earlier_logit(ids, data):
    at = data.draw(st.integers(1, ids.shape[-1] - 1))
    other = data.draw(st.integers(0, SMALL.n_vocab - 1))
    rules.later_ids_change_nothing(MODEL, ids, at, other)


@given(ids_for(SMALL), st.data())
@quickly
def test_a_prefix_gives_the_first_rows_of_the_whole(ids, data):
    n = data.draw(st.integers(1, ids.shape[-1]))
    rules.a_prefix_gives_the_first_rows(MODEL, ids, n)


@given(st.data())
@quickly
def test_the_sequences_of_a_batch_do_not_see_each_other(data):
    batch = data.draw(st.sampled_from([(1,), (4,), (2, 3)]))
    rules.sequences_of_a_batch_are_apart(MODEL, data.draw(ids_for(SMALL, *batch)))


def test_the_head_is_a_dot_product_with_each_tokens_vector():
    x, head = normal(2, 3, 4, seed=1), normal(7, 4, seed=2)
    expected = torch.einsum("...e,ve->...v", x, head)
    torch.testing.assert_close(unembed(x, head), expected)


def test_a_tied_head_is_the_embedding_itself():
    assert MODEL.lm_head is MODEL.wte


@pytest.mark.parametrize("n_seq", [1, 5, 16])
def test_one_thread_and_two_give_the_same_logits(n_seq):
    config = GPT2Config(n_vocab=500, n_ctx=16, n_embd=192, n_head=6, n_layer=2)
    model, ids = random_model(config), random_ids(config, 4, n_seq)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = model(ids)
        torch.set_num_threads(2)
        two = model(ids)
    finally:
        torch.set_num_threads(before)
    agree(two, one, 1e-5, "logits on two threads")
    assert torch.equal(one.argmax(-1), two.argmax(-1))
