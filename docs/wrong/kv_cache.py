"""Step 8: mistakes in the cache."""

from typing import Any

import torch
from torch import Tensor

from gpt2hw import GPT2, KVCache
from gpt2hw.attention import attention_scores, merge_heads, softmax
from gpt2hw.embeddings import embed
from gpt2hw.kv_cache import cached_block, cached_forward
from gpt2hw.model import unembed
from gpt2hw.properties import kv_cache as rules
from gpt2hw.properties.tracing import loud_model
from wrong.attention import mask_from_the_upper_left
from wrong.entry import Entry, Piece


def cached_at_position_zero(model: GPT2, ids: Tensor, cache: KVCache) -> Tensor:
    """Every call begins at position 0 again."""
    x = embed(ids, model.wte, model.wpe)
    n_past, batch = len(cache), ids.shape[:-1]
    for block, layer in zip(model.h, cache.layers(batch), strict=True):
        x = cached_block(block, x, layer, n_past)
    cache.advance(batch, ids.shape[-1])
    return unembed(model.ln_f(x), model.lm_head)


def cached_with_the_wrong_corner(model: GPT2, ids: Tensor, cache: KVCache) -> Tensor:
    """Cuts the mask from the upper left: one new token sees the first key alone."""
    return _cached(model, ids, cache, mask_from_the_upper_left)


def cached_with_a_mask_for_chunks_alone(
    model: GPT2, ids: Tensor, cache: KVCache
) -> Tensor:
    """Leaves the mask out for one new token, and cuts it wrongly for more."""
    make_mask = None if ids.shape[-1] == 1 else mask_from_the_upper_left
    return _cached(model, ids, cache, make_mask)


def cached_without_a_mask(model: GPT2, ids: Tensor, cache: KVCache) -> Tensor:
    """No mask at all: right for one new token, wrong for a prompt."""
    return _cached(model, ids, cache, None)


def _cached(model: GPT2, ids: Tensor, cache: KVCache, make_mask) -> Tensor:
    n_past, batch = len(cache), ids.shape[:-1]
    x = embed(ids, model.wte, model.wpe, n_past)
    for block, layer in zip(model.h, cache.layers(batch), strict=True):
        q, k, v = block.attn.project(block.ln_1(x))
        k, v = layer.extend(n_past, k, v)
        scores = attention_scores(q, k)
        if make_mask is not None:
            allowed = make_mask(*scores.shape[-2:])
            scores = scores.masked_fill(~allowed, float("-inf"))
        x = x + block.attn.c_proj(merge_heads(softmax(scores) @ v))
        x = x + block.mlp(block.ln_2(x))
    cache.advance(batch, ids.shape[-1])
    return unembed(model.ln_f(x), model.lm_head)


# What catches them

LOUD = loud_model(n_layer=2)
IDS = torch.tensor([3, 1, 4, 1, 5, 9, 2, 6])


def _same_as_without(forward: Piece, chunks: list[int]) -> None:
    def call(model: GPT2, ids: torch.Tensor, cache: Any = None) -> torch.Tensor:
        return model.forward(ids) if cache is None else forward(model, ids, cache)

    kind = type("Cached", (GPT2,), {"__call__": call})
    model = kind(**{name: getattr(LOUD, name) for name in GPT2.__dataclass_fields__})
    rules.cache_equals_no_cache(model, IDS, chunks)


ENTRIES = [
    Entry(
        wrong,
        cached_forward,
        rules.cache_equals_no_cache,
        lambda forward, chunks=chunks: _same_as_without(forward, chunks),
    )
    for wrong, chunks in (
        (cached_at_position_zero, [7, 1]),
        (cached_with_the_wrong_corner, [7, 1]),
        (cached_with_a_mask_for_chunks_alone, [5, 3]),
        (cached_without_a_mask, [8]),
    )
]
