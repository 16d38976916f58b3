"""The key-value cache: what was computed for a token is not computed again.

A token's keys and values depend on that token and on those before it, never on later
ones (the mask sees to it), so they stay right when the text grows. This file adds to
the rooms before it and changes none: it composes the same pieces, project, attend,
merge, with the stored keys and values put before the new ones.

Source: openai/gpt-2, `src/model.py` (`past`, `presents`).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from gpt2hw.attention import CausalSelfAttention, attend, merge_heads
from gpt2hw.block import TransformerBlock
from gpt2hw.embeddings import embed
from gpt2hw.errors import ContextError
from gpt2hw.model import Transformer, unembed


@dataclass(eq=False)
class LayerCache:
    """One block's keys and values, with room for n_ctx tokens.

    >>> layer = LayerCache(k=torch.zeros(1, 8, 2), v=torch.zeros(1, 8, 2))
    >>> k, v = layer.extend(3, torch.ones(1, 1, 2), torch.ones(1, 1, 2))
    >>> k.shape, k.sum().item()
    (torch.Size([1, 4, 2]), 2.0)
    """

    k: Float[Tensor, "*batch n_head n_ctx d_head"]
    v: Float[Tensor, "*batch n_head n_ctx d_head"]

    def extend(
        self,
        n_past: int,
        k: Float[Tensor, "*batch n_head n_seq d_head"],
        v: Float[Tensor, "*batch n_head n_seq d_head"],
    ) -> tuple[
        Float[Tensor, "*batch n_head n_kv d_head"],
        Float[Tensor, "*batch n_head n_kv d_head"],
    ]:
        """Writes n_seq tokens after the first n_past; gives all n_kv back, as views."""
        n_seq = k.shape[-2]
        self.k.narrow(-2, n_past, n_seq).copy_(k)  # narrow(axis, start, length): a view
        self.v.narrow(-2, n_past, n_seq).copy_(v)
        n_kv = n_past + n_seq
        return self.k.narrow(-2, 0, n_kv), self.v.narrow(-2, 0, n_kv)


class KVCache:
    """The keys and values of every block for the tokens seen so far.

    `model.new_cache()` makes one. `len(cache)` is the number of tokens in it. The
    first call fixes the batch shape; a call that raises leaves the cache as it was.
    Memory: 2 n_layer n_ctx n_embd numbers a sequence (75 MB for GPT-2 124M).

    >>> from gpt2hw import GPT2, GPT2Config
    >>> model = GPT2.random(
    ...     GPT2Config(n_vocab=7, n_ctx=8, n_embd=4, n_head=2, n_layer=1))
    >>> cache = model.new_cache()
    >>> model([3, 1, 4], cache).shape, model([1], cache).shape, len(cache)
    (torch.Size([3, 7]), torch.Size([1, 7]), 4)
    """

    def __init__(self, model: Transformer) -> None:
        self._model = model
        self._layers: list[LayerCache] = []  # made at the first use
        self._batch: torch.Size | None = None
        self._n_past = 0

    def __len__(self) -> int:
        """The number of tokens seen so far."""
        return self._n_past

    def __repr__(self) -> str:
        """How full it is, and of what batch shape."""
        n_ctx = self._model.wpe.shape[0]
        return f"KVCache({self._n_past} of {n_ctx} tokens, batch {self._batch})"

    def copy(self) -> "KVCache":
        """An independent cache with the same content: neither sees the other change."""
        twin = KVCache(self._model)
        with torch.inference_mode(False):  # it may be used outside of that mode
            twin._layers = [LayerCache(c.k.clone(), c.v.clone()) for c in self._layers]
        twin._batch, twin._n_past = self._batch, self._n_past
        return twin

    def check(self, model: Transformer, batch: torch.Size, n_seq: int) -> None:
        """Raises unless `n_seq` new tokens of this batch shape can be added.

        ContextError where they do not fit into n_ctx; ValueError where the model is
        another or the batch shape is not that of the first call.
        """
        if model is not self._model:
            raise ValueError(
                "cache: made by another model; use this model's new_cache()"
            )
        if self._batch is not None and batch != self._batch:
            raise ValueError(
                f"cache: holds a batch of shape {list(self._batch)}, "
                f"the ids have batch shape {list(batch)}"
            )
        n_ctx = model.wpe.shape[0]
        if self._n_past + n_seq > n_ctx:
            raise ContextError(
                f"{self._n_past} tokens in the cache and {n_seq} new ones are more "
                f"than the model's {n_ctx} positions (n_ctx)"
            )

    def layers(self, batch: torch.Size) -> list[LayerCache]:
        """The store of each block, made for this batch shape if not there yet."""
        if self._batch is None:  # also after a first call that raised half-way
            wpe, n_head = self._model.wpe, self._model.h[0].attn.n_head
            n_ctx, n_embd = wpe.shape
            shape = (*batch, n_head, n_ctx, n_embd // n_head)
            with torch.inference_mode(False):  # it may be used outside of that mode
                self._layers = [
                    LayerCache(wpe.new_empty(shape), wpe.new_empty(shape))
                    for _ in self._model.h
                ]
        return self._layers

    def advance(self, batch: torch.Size, n_seq: int) -> None:
        """Counts the tokens that every block has stored: the last act of a call."""
        self._batch = batch
        self._n_past += n_seq


def cached_attention(
    attn: CausalSelfAttention,
    x: Float[Tensor, "*batch n_seq n_embd"],
    layer: LayerCache,
    n_past: int,
) -> Float[Tensor, "*batch n_seq n_embd"]:
    """CausalSelfAttention with its past: new queries look at old and new keys.

    >>> from gpt2hw import GPT2, GPT2Config
    >>> model = GPT2.random(
    ...     GPT2Config(n_vocab=7, n_ctx=8, n_embd=4, n_head=2, n_layer=1))
    >>> layer = model.new_cache().layers(torch.Size([]))[0]
    >>> cached_attention(model.h[0].attn, torch.ones(2, 4), layer, n_past=0).shape
    torch.Size([2, 4])
    """
    q, k, v = attn.project(x)
    k, v = layer.extend(n_past, k, v)
    return attn.c_proj(merge_heads(attend(q, k, v)))


def cached_block(
    block: TransformerBlock,
    x: Float[Tensor, "*batch n_seq n_embd"],
    layer: LayerCache,
    n_past: int,
) -> Float[Tensor, "*batch n_seq n_embd"]:
    """TransformerBlock with its past; the MLP needs none.

    >>> from gpt2hw import GPT2, GPT2Config
    >>> model = GPT2.random(
    ...     GPT2Config(n_vocab=7, n_ctx=8, n_embd=4, n_head=2, n_layer=1))
    >>> layer = model.new_cache().layers(torch.Size([]))[0]
    >>> cached_block(model.h[0], torch.ones(2, 4), layer, n_past=0).shape
    torch.Size([2, 4])
    """
    x = x + cached_attention(block.attn, block.ln_1(x), layer, n_past)
    return x + block.mlp(block.ln_2(x))


def cached_forward(
    model: Transformer, ids: Int[Tensor, "*batch n_seq"], cache: KVCache
) -> Float[Tensor, "*batch n_seq n_vocab"]:
    """Transformer.forward for new ids alone: their positions follow the cache's.

    >>> from gpt2hw import GPT2, GPT2Config
    >>> model = GPT2.random(
    ...     GPT2Config(n_vocab=7, n_ctx=8, n_embd=4, n_head=2, n_layer=1))
    >>> cached_forward(model, torch.tensor([3, 1]), model.new_cache()).shape
    torch.Size([2, 7])
    """
    batch, n_seq, n_past = ids.shape[:-1], ids.shape[-1], len(cache)
    x = embed(ids, model.wte, model.wpe, n_past)
    for block, layer in zip(model.h, cache.layers(batch), strict=True):
        x = cached_block(block, x, layer, n_past)
    logits = unembed(model.ln_f(x), model.lm_head)
    cache.advance(batch, n_seq)
    return logits
