"""A block in fewer calls: every number as the taught pieces give it."""

from math import inf

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from checkpoints import SMALL, random_tensors
from gpt2hw import GPT2, fast_block
from gpt2hw.attention import attend, causal_mask, split_heads
from gpt2hw.bags import BagMatrix
from gpt2hw.block import MLP, LayerNorm, gelu
from gpt2hw.fast import MatrixLinear
from gpt2hw.fast_block import (
    fast_attention,
    fast_gelu,
    fast_inner,
    fast_norm,
    many_queries,
    one_query,
    three_thirds,
)
from gpt2hw.half import HalfMatrix
from gpt2hw.int8 import Int8Matrix
from gpt2hw.kv_cache import cached_block
from gpt2hw.linear import Linear
from gpt2hw.many_rows import gelu_by_plain_tensors
from gpt2hw.properties import attention as rules
from gpt2hw.properties.closeness import agree
from gpt2hw.properties.seeded import normal

SIZES = st.integers(1, 12)
quickly = settings(deadline=None, max_examples=60)


@given(SIZES, st.integers(1, 40), st.sampled_from([1e-5, 1e-3]), st.integers(0, 99))
@quickly
def test_the_norm_is_the_taught_norm(n_rows, n_embd, eps, seed):
    norm = LayerNorm(normal(n_embd, seed=seed), normal(n_embd, seed=seed + 1), eps)
    for size in (5, 1e-3):  # beside a small variance, eps counts
        x = size * normal(n_rows, n_embd, seed=seed + 2) + size
        agree(fast_norm(norm, x), norm(x), 1e-4)


def test_gelu_is_the_taught_gelu_far_out_too():
    x = torch.cat([torch.linspace(-12, 12, 4001), torch.tensor([-inf, inf, 1e30])])
    agree(fast_gelu(x)[:-3], gelu(x)[:-3], 1e-6)
    assert fast_gelu(x)[-2:].tolist() == [inf, float(torch.tensor(1e30))]
    out = torch.full_like(x, torch.nan)
    assert fast_gelu(x, out) is out
    assert torch.equal(out[:-3], fast_gelu(x)[:-3])


@pytest.mark.parametrize("n_rows", [1, 2, 5, 40])
def test_the_mlp_s_inner_state_is_the_taught_one_in_every_form(n_rows):
    weight, bias, x = normal(6, 9), normal(9), normal(2, n_rows, 6)
    taught = Linear(weight=weight, bias=bias)
    right = gelu(taught(x))
    lying = weight.T.contiguous()
    forms = (BagMatrix(weight.T), HalfMatrix.of(lying), Int8Matrix.of(lying))
    linears = (taught, *(MatrixLinear.of(form, bias) for form in forms))
    for linear, within in zip(linears, (1e-6, 1e-6, 1e-3, 2e-2), strict=True):
        agree(fast_inner(MLP(c_fc=linear, c_proj=taught), x), right, within)


def test_gelu_of_many_rows_is_taken_with_their_product(monkeypatch):
    seen = []

    def gelu_of_many():
        seen.append("asked")
        return gelu_by_plain_tensors

    monkeypatch.setattr(fast_block, "gelu_of_many", gelu_of_many)
    linear = MatrixLinear.of(BagMatrix(normal(6, 9).T), normal(9))
    mlp = MLP(c_fc=linear, c_proj=linear)
    for axes in ((), (1,), (1, 1)):
        fast_inner(mlp, normal(*axes, 6))
    assert seen == []
    for axes in ((2,), (1, 2)):
        fast_inner(mlp, normal(*axes, 6))
    assert seen == ["asked"] * 2


@given(SIZES, SIZES, st.integers(0, 30), st.sampled_from([1, 2, 5, 64]), st.data())
@settings(deadline=None, max_examples=100)
def test_attention_is_the_taught_attention_whatever_goes_at_once(
    n_seq, d_head, n_past, at_once, data
):
    seed = data.draw(st.integers(0, 99))
    n_kv = n_past + n_seq
    q, k, v = (
        normal(2, n, d_head, seed=seed + i) for i, n in enumerate((n_seq, n_kv, n_kv))
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fast_block, "AT_ONCE", at_once)
        found = many_queries(q, k, v, causal_mask(n_seq, n_kv))
    # exp makes a score's rounding, which grows with the score, a part of the weight.
    agree(found, attend(q, k, v), 1e-4)
    agree(one_query(q[:, -1:], k, v), attend(q, k, v)[:, -1:], 1e-4)


def test_no_query_sees_what_comes_later():
    def attention(x: Tensor) -> Tensor:
        return many_queries(x, x, x, causal_mask(len(x), len(x)))

    rules.later_rows_change_nothing(attention, normal(90, 4), normal(50, 4, seed=1))


def test_a_mask_for_each_text_of_a_batch_is_kept_to():
    q, k, v = (normal(2, 3, 5, 4, seed=i) for i in range(3))  # [batch, n_head, n, d]
    may_look = causal_mask(5, 5).expand(2, 1, 5, 5).clone()
    may_look[1, :, 2:, :2] = False  # the second text begins at 2
    found = many_queries(q, k, v, may_look)
    agree(found[0], attend(q[0], k[0], v[0]), 1e-5)
    agree(found[1, :, 2:], attend(*(t[1, :, 2:] for t in (q, k, v))), 1e-5)
    last = one_query(q[..., -1:, :], k, v, may_look[..., -1:, :])
    agree(last, found[..., -1:, :], 1e-5)


def weights_of(may_look: Tensor, seed: int) -> Tensor:
    """What many_queries gives each key: values that are 1 there and 0 elsewhere."""
    *heads, n_seq, n_kv = may_look.shape
    q, k = (normal(*heads, n, n_kv, seed=seed + n) for n in (n_seq, n_kv))
    return many_queries(q, k, torch.eye(n_kv).expand(*heads, n_kv, n_kv), may_look)


@given(st.integers(1, 9), st.integers(0, 9), st.sampled_from([1, 2, 5, 64]), st.data())
@quickly
def test_what_a_mask_hides_gets_no_weight_and_all_else_gets_some(
    n_seq, n_past, at_once, data
):
    n_kv, seed = n_past + n_seq, data.draw(st.integers(0, 99))
    causal = causal_mask(n_seq, n_kv)
    padded = (normal(3, 2, n_seq, n_kv, seed=seed) > 0) & causal  # anything before
    padded |= causal.triu(diagonal=n_past)  # and each token sees itself
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fast_block, "AT_ONCE", at_once)
        for may_look in (causal, padded):
            found = weights_of(may_look, seed)
            assert torch.equal(found > 0, may_look)
            agree(found.sum(dim=-1), torch.ones(may_look.shape[:-1]), 1e-5)


def test_scores_that_all_of_a_part_may_not_see_are_not_computed(monkeypatch):
    widths, softmax = [], torch.softmax

    def watched(scores: Tensor, dim: int) -> Tensor:
        widths.append(scores.shape[-1])
        return softmax(scores, dim=dim)

    monkeypatch.setattr(fast_block, "AT_ONCE", 2)
    monkeypatch.setattr(torch, "softmax", watched)
    many_queries(normal(5, 3), normal(9, 3), normal(9, 3), causal_mask(5, 9))
    assert widths == [6, 8, 9]


def test_one_query_without_a_mask_looks_at_all():
    model = GPT2.from_tensors(SMALL, random_tensors(SMALL))
    attn, x = model.h[0].attn, normal(5, SMALL.n_embd)
    layer = model.new_cache().layers(torch.Size([]))[0]
    fast_attention(attn, x[:4], layer, 0, causal_mask(4, 4))
    agree(fast_attention(attn, x[4:], layer, 4, None), attn(x)[4:], 1e-5)


def test_three_thirds_are_the_heads_that_split_heads_gives():
    qkv = normal(2, 5, 3 * 8)
    found = three_thirds(qkv, n_head=4)
    for part, third in zip(found, qkv.chunk(3, dim=-1), strict=True):
        assert torch.equal(part, split_heads(third, n_head=4))


@pytest.mark.parametrize("n_past", [0, 3])
def test_a_block_is_the_taught_block_with_the_same_cache(n_past):
    model = GPT2.from_tensors(SMALL, random_tensors(SMALL))
    x, block = normal(n_past + 4, SMALL.n_embd), model.h[0]
    layers = [model.new_cache().layers(torch.Size([]))[0] for _ in range(2)]
    for layer in layers if n_past else ():
        cached_block(block, x[:n_past], layer, 0)
    right = cached_block(block, x[n_past:], layers[0], n_past)
    mask = causal_mask(4, n_past + 4)
    found = fast_block.fast_cached_block(
        block, x[n_past:].clone(), layers[1], n_past, mask
    )
    agree(found, right, 1e-5)
    for name in ("k", "v"):
        one, other = (getattr(layer, name)[..., : n_past + 4, :] for layer in layers)
        agree(one, other, 1e-5)


@pytest.mark.parametrize("n_seq", [1, 2, 3])
def test_attention_looks_where_it_may_with_one_query_or_more(n_seq):
    model = GPT2.from_tensors(SMALL, random_tensors(SMALL))
    attn, n_past = model.h[0].attn, 4
    x = normal(2, n_past + n_seq, SMALL.n_embd)
    may_look = causal_mask(n_past + n_seq, n_past + n_seq).expand(2, 1, -1, -1).clone()
    may_look[1, :, 2:, :2] = False  # the second text begins at 2
    whole = fast_attention(attn, x, None, 0, may_look)
    layer = model.new_cache().layers(torch.Size([2]))[0]
    fast_attention(attn, x[:, :n_past], layer, 0, may_look[..., :n_past, :n_past])
    new = x[:, n_past:]
    found = fast_attention(attn, new, layer, n_past, may_look[..., n_past:, :])
    agree(found, whole[:, n_past:], 1e-5)
    alone = fast_attention(attn, x[1:, 2:], None, 0, may_look[1:, :, 2:, 2:])
    agree(whole[1:, 2:], alone, 1e-5)
