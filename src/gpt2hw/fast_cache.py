"""The cache of the fast forms: a KVCache in one piece, which knows a way of its own.

The keys and values of all blocks lie in one piece of memory. With it stands the way of
one token through all blocks (`one_token`), which is made for that memory, once.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from gpt2hw.fast import FastTransformer
from gpt2hw.fast_block import fast_norm
from gpt2hw.kv_cache import KVCache, LayerCache
from gpt2hw.one_token import OneToken


def _usable(tensor: Tensor) -> Tensor:
    """The tensor, or where it was made in inference mode, a copy without that mark."""
    return tensor.clone() if tensor.is_inference() else tensor


class FastCache(KVCache):
    """A KVCache that goes on by one token in fewer calls.

    The keys and values of all blocks lie in one piece of memory, which is taken as it
    is filled. (deepcopy and pickle take the model along, `copy` does not.)
    """

    _store: Tensor | None = None
    _one_token: OneToken | None = None

    def copy(self) -> "FastCache":
        """As KVCache.copy."""
        twin = FastCache(self._model)
        twin._batch, twin._n_past = self._batch, self._n_past
        if self._store is None:
            twin._layers = super().copy()._layers
            return twin
        with torch.inference_mode(False):  # it may be used outside of that mode
            store, n_past = torch.empty_like(self._store), len(self)
            store.narrow(-2, 0, n_past).copy_(self._store.narrow(-2, 0, n_past))
            twin._keep(store)
        return twin

    def __copy__(self) -> "FastCache":
        """As copy: two caches that share memory would write over one another."""
        return self.copy()

    def __getstate__(self) -> dict[str, Any]:
        """What pickle and deepcopy keep: not the way, which leads to this memory."""
        layers = self._layers if self._store is None else []
        return self.__dict__ | {"_one_token": None, "_layers": layers}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The layers are views of the store again; all may be written to anywhere."""
        self.__dict__ |= state
        with torch.inference_mode(False):
            if self._store is not None:
                self._keep(_usable(self._store))
                return
            layers = self._layers
            self._layers = [LayerCache(_usable(c.k), _usable(c.v)) for c in layers]

    def layers(self, batch: torch.Size) -> list[LayerCache]:
        """As KVCache.layers."""
        if self._batch is not None:
            return self._layers
        wpe, n_head = self._model.wpe, self._model.h[0].attn.n_head
        n_ctx, n_embd = wpe.shape
        shape = (len(self._model.h), 2, *batch, n_head, n_ctx, n_embd // n_head)
        with torch.inference_mode(False):  # it may be used outside of that mode
            self._keep(wpe.new_empty(shape))
        return self._layers

    def _keep(
        self, store: Float[Tensor, "n_layer 2 *batch n_head n_ctx d_head"]
    ) -> None:
        self._store, self._one_token = store, None
        self._layers = [LayerCache(*layer.unbind()) for layer in store]

    def one_token(self, model: FastTransformer) -> OneToken:
        """The way of one token through all blocks, made at its first."""
        if self._one_token is None:
            self.layers(torch.Size([]))
            assert self._store is not None  # noqa: S101 -- layers made it
            with torch.inference_mode(False):
                self._one_token = OneToken(model, self._store)
        return self._one_token


def state_after_one_token(
    model: FastTransformer, new_id: Int[Tensor, "1"], cache: FastCache
) -> Float[Tensor, "1 n_embd"]:
    """What the head is given for one id more, as FastTransformer.final_state has it.

    The cache does not count it yet.
    """
    one_token, n_past = cache.one_token(model), len(cache)
    x = one_token((model.vectors(new_id) + model.wpe[n_past])[0], n_past)
    return fast_norm(model.ln_f, x)[None]
