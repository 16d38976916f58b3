"""Step 8: mistakes in the cache."""

from torch import Tensor

from gpt2hw import GPT2, KVCache
from gpt2hw.attention import attention_scores, merge_heads, softmax
from gpt2hw.embeddings import embed
from gpt2hw.kv_cache import cached_block
from gpt2hw.model import unembed
from wrong.attention import mask_from_the_upper_left


def cached_at_position_zero(model: GPT2, ids: Tensor, cache: KVCache) -> Tensor:
    """Every call begins at position 0 again."""
    x = embed(ids, model.wte, model.wpe)
    n_past, batch = len(cache), ids.shape[:-1]
    for block, layer in zip(model.h, cache.layers(batch), strict=True):
        x = cached_block(block, x, layer, n_past)
    cache.advance(batch, ids.shape[-1])
    return unembed(model.ln_f(x), model.lm_head)


def cached_with_the_wrong_corner(model: GPT2, ids: Tensor, cache: KVCache) -> Tensor:
    """Cuts the mask from the upper left: a chunk of new tokens loses its past."""
    return _cached(model, ids, cache, mask_from_the_upper_left)


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
