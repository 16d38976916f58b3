"""Steps 4a and 4b: probabilities, averages of what came before, and heads."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpoints import random_tensors
from gpt2hw import GPT2Config
from gpt2hw.attention import (
    CausalSelfAttention,
    attend,
    attention_scores,
    attention_weights,
    causal_mask,
    merge_heads,
    softmax,
    split_heads,
)
from gpt2hw.linear import Linear
from gpt2hw.properties import attention as rules
from gpt2hw.properties.closeness import agree
from gpt2hw.properties.drawn import SEEDS, batch_shapes, rows
from gpt2hw.properties.seeded import normal

quickly = settings(deadline=None, max_examples=40)


# --- softmax ---


@given(rows(limit=1e30))
@quickly
def test_softmax_gives_probabilities_in_the_order_of_its_numbers(x):
    rules.rows_sum_to_one(softmax, x, within=1e-12)
    rules.keeps_the_order(softmax, x)


@given(rows(), st.floats(-1e3, 1e3))
@quickly
def test_softmax_is_unmoved_by_a_shift(x, shift):
    rules.is_unmoved_by_a_shift(softmax, x, shift, within=1e-11)


def by_the_logarithm(x):
    most = x.amax(dim=-1, keepdim=True)
    return torch.exp(x - most - torch.exp(x - most).sum(dim=-1, keepdim=True).log())


RIGHT = {
    "ours": softmax,
    "torch's": lambda x: torch.softmax(x, dim=-1),
    "by the logarithm": by_the_logarithm,
    "by logsumexp": lambda x: torch.exp(x - x.logsumexp(dim=-1, keepdim=True)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_the_rule_of_the_shift_lets_every_softmax_of_float32_pass(name):
    for seed in range(500):
        table = normal(4, 4, seed=seed, deviation=3.0)
        rules.is_unmoved_by_a_shift(RIGHT[name], table, shift=64.0)
        rules.is_unmoved_by_a_shift(RIGHT[name], table, shift=-1000.0)


def test_the_rule_of_the_shift_stops_what_looks_at_sizes():
    def shares_of_sizes(x):
        return x.abs() / x.abs().sum(dim=-1, keepdim=True)

    def hotter_where_numbers_are_large(x):
        return softmax(x * (1 + 1e-5 * x.mean(dim=-1, keepdim=True)))

    for shares in (shares_of_sizes, hotter_where_numbers_are_large):
        with pytest.raises(AssertionError, match="to every number moves a result"):
            rules.is_unmoved_by_a_shift(shares, normal(4, 4, deviation=3.0), 64.0)


def test_softmax_survives_huge_numbers():
    rules.survives_huge_numbers(softmax)


@given(batch_shapes(), st.integers(1, 50), SEEDS)
@quickly
def test_softmax_equals_torchs(batch, n, seed):
    x = normal(*batch, n, seed=seed, deviation=20)
    torch.testing.assert_close(softmax(x), F.softmax(x, dim=-1))


def test_softmax_works_row_by_row():
    x = normal(3, 4, 5)
    for i, j in torch.cartesian_prod(torch.arange(3), torch.arange(4)).tolist():
        torch.testing.assert_close(softmax(x)[i, j], softmax(x[i, j]))


def test_minus_infinity_has_no_probability_at_all():
    assert softmax(torch.tensor([1.0, -math.inf, 1.0])).tolist() == [0.5, 0.0, 0.5]


# --- scores, mask, weights ---


@pytest.mark.parametrize("d_head", [1, 3, 64, 100])
def test_scores_are_divided_by_the_root_of_the_heads_width(d_head):
    rules.scores_are_over_the_root_of_d_head(attention_scores, d_head)


def test_gpt2s_scores_are_an_eighth_of_the_dot_product():
    q, k = normal(5, 64, seed=1), normal(7, 64, seed=2)
    torch.testing.assert_close(attention_scores(q, k), 0.125 * (q @ k.T))


@pytest.mark.parametrize("n_seq", range(1, 7))
@pytest.mark.parametrize("n_past", range(6))
def test_the_mask_ends_in_the_lower_right_corner(n_seq, n_past):
    rules.mask_ends_in_the_lower_right_corner(causal_mask, n_seq, n_past + n_seq)


def test_two_queries_after_three_keys_see_four_and_five():
    assert causal_mask(2, 5).int().tolist() == [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]


@st.composite
def heads(draw):
    """q, k, v of [*batch, n_head, n_seq or n_kv, d_head], with and without a past."""
    batch, n_head = draw(batch_shapes()), draw(st.integers(1, 4))
    n_seq, n_past = draw(st.integers(1, 8)), draw(st.integers(0, 8))
    d_head, seed = draw(st.integers(1, 9)), draw(SEEDS)
    deviation = draw(st.sampled_from([0.1, 1.0, 10.0]))
    return [
        normal(*batch, n_head, n, d_head, seed=seed + i, deviation=deviation)
        for i, n in enumerate((n_seq, n_past + n_seq, n_past + n_seq))
    ]


@given(heads())
@quickly
def test_no_weight_lies_on_the_future(qkv):
    q, k, _ = qkv
    rules.no_weight_on_the_future(attention_weights, attention_scores(q, k))


def test_the_mask_lies_on_the_device_where_the_scores_lie():
    """torch's device "meta" is on every machine; it has shapes, and no numbers."""
    meta = torch.device("meta")
    assert causal_mask(2, 3, meta).device == meta
    assert attention_weights(torch.zeros(2, 3, device=meta)).device == meta


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_mask_holds_in_half_precision(dtype):
    scores = torch.full((4, 4), -60000.0).to(dtype)
    weights = attention_weights(scores)
    assert weights.dtype == dtype
    assert weights.triu(1).count_nonzero() == 0
    assert weights.isfinite().all()


# --- attend ---


@given(heads())
@quickly
def test_outputs_are_averages_of_the_values_that_a_query_sees(qkv):
    rules.outputs_lie_between_the_values(attend, *qkv)


@given(heads())
@quickly
def test_attend_equals_torchs_attention_under_the_same_mask(qkv):
    q, k, v = qkv
    mask = causal_mask(q.shape[-2], k.shape[-2])
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    agree(attend(q, k, v), expected, within=1e-5)


@given(heads(), st.randoms(use_true_random=False))
@quickly
def test_permuting_heads_permutes_their_outputs(qkv, random):
    order = random.sample(range(qkv[0].shape[-3]), qkv[0].shape[-3])
    rules.heads_work_apart(attend, *qkv, order)


def test_equal_scores_give_the_mean_of_what_came_before():
    v = normal(5, 3)
    found = attend(torch.zeros(5, 3), torch.zeros(5, 3), v)
    means = v.cumsum(0) / torch.arange(1, 6).view(5, 1)
    torch.testing.assert_close(found, means)


# --- heads ---


@given(batch_shapes(), st.integers(1, 5), st.integers(1, 6), st.integers(1, 6), SEEDS)
@quickly
def test_heads_are_pieces_of_whole_rows_and_merging_undoes_splitting(
    batch, n_head, d_head, n_seq, seed
):
    x = normal(*batch, n_seq, n_head * d_head, seed=seed)
    rules.split_heads_keeps_tokens_whole(split_heads, x, n_head)
    rules.merging_undoes_splitting(split_heads, merge_heads, x, n_head)


def test_queries_keys_and_values_are_thirds():
    numbers = Linear(weight=torch.zeros(4, 12), bias=torch.arange(12.0))
    same = Linear(weight=torch.eye(4), bias=torch.zeros(4))
    attention = CausalSelfAttention(c_attn=numbers, c_proj=same, n_head=2)
    q, k, v = attention.project(torch.zeros(1, 4))  # each [n_head, n_seq, d_head]
    assert q.flatten().tolist() == [0, 1, 2, 3]
    assert k.flatten().tolist() == [4, 5, 6, 7]
    assert v.flatten().tolist() == [8, 9, 10, 11]
    assert q.shape == (2, 1, 2)


# --- the whole of it ---


def random_attention(n_head: int, d_head: int, seed: int) -> CausalSelfAttention:
    n_embd = n_head * d_head
    shape = GPT2Config(n_vocab=2, n_ctx=1, n_embd=n_embd, n_head=n_head, n_layer=1)
    tensors = random_tensors(shape, seed)

    def linear(name: str) -> Linear:
        at = f"h.0.attn.{name}"
        return Linear(weight=tensors[f"{at}.weight"], bias=tensors[f"{at}.bias"])

    return CausalSelfAttention(linear("c_attn"), linear("c_proj"), n_head)


@st.composite
def attentions(draw):
    """An attention with random parameters, and input for it of at least two rows."""
    n_head, d_head, seed = draw(st.integers(1, 5)), draw(st.integers(1, 8)), draw(SEEDS)
    shape = (*draw(batch_shapes()), draw(st.integers(2, 9)), n_head * d_head)
    return random_attention(n_head, d_head, seed), normal(*shape, seed=seed)


@given(attentions(), st.data())
@quickly
def test_later_tokens_change_nothing_before_them(drawn, data):
    attention, x = drawn
    n_later = data.draw(st.integers(1, x.shape[-2] - 1))
    later = normal(*x.shape[:-2], n_later, x.shape[-1], seed=1, deviation=50)
    rules.later_rows_change_nothing(attention, x, later)


@given(attentions())
@quickly
def test_heads_project_through_their_own_columns(drawn):
    rules.projections_are_contiguous_thirds(*drawn)


@given(attentions(), st.randoms(use_true_random=False))
@quickly
def test_the_order_of_heads_is_free_if_all_matrices_agree_on_it(drawn, random):
    attention, x = drawn
    order = random.sample(range(attention.n_head), attention.n_head)
    rules.the_order_of_heads_is_free(attention, x, order)


def test_one_token_alone_gets_its_own_value():
    attention, x = random_attention(2, 3, seed=4), normal(1, 6)
    value = attention.c_attn(x).chunk(3, dim=-1)[2]
    torch.testing.assert_close(attention(x), attention.c_proj(value))
