"""Several texts at once: each weight that is read then serves all of them.

Texts of different lengths make no rectangle, so the shorter ones are filled up on the
left, where the new token does not come. A mask says which tokens are real. Two things
follow from it, and nothing else changes: a token's position counts the real tokens
before it, and no token looks at padding.

    mask       0 0 1 1 1        positions  0 0 0 1 2
               1 1 1 1 1                   0 1 2 3 4

What stands in the ids under a 0 has no say; and no id is taken for padding by itself:
end-of-text among the ids is a real token.
"""

from collections.abc import Sequence
from operator import index
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gpt2hw.attention import causal_mask
from gpt2hw.doors import is_dense, no_type_check
from gpt2hw.fast import FastTransformer
from gpt2hw.fast_cache import FastCache
from gpt2hw.kv_cache import KVCache, LayerCache


class PaddedCache(FastCache):
    """A cache that remembers which of its tokens are real; None where all are.

    >>> from gpt2hw import GPT2, GPT2Config
    >>> model = GPT2.random(
    ...     GPT2Config(n_vocab=7, n_ctx=8, n_embd=4, n_head=2, n_layer=1))
    >>> cache = model.new_cache()
    >>> ids, mask = left_padded([[3, 1, 4], [5]])
    >>> _ = model(ids, cache, mask=mask)
    >>> cache.mask.int()
    tensor([[1, 1, 1],
            [0, 0, 1]], dtype=torch.int32)
    """

    mask: Bool[Tensor, "*batch n_past"] | None = None

    def copy(self) -> "PaddedCache":
        """As KVCache.copy, with the mask."""
        twin = PaddedCache(self._model)
        twin.__dict__ |= super().copy().__dict__
        twin.mask = self.mask  # it is replaced when it grows, never written to
        return twin

    def advance(
        self,
        batch: torch.Size,
        n_seq: int,
        mask: Bool[Tensor, "*batch n_kv"] | None = None,
    ) -> None:
        """As KVCache.advance, with what is real of all tokens; None where all are.

        At once: an interrupt finds all of it changed, or nothing.
        """
        self.mask, self._batch, self._n_past = mask, batch, self._n_past + n_seq

    @no_type_check
    def keep(self, rows: Sequence[int]) -> None:
        """Only these sequences of a batch [n] stay, in this order.

        Raises ValueError where the cache holds no batch, or one of several axes, and
        where a row is no integer from 0 to n - 1, or there is none; it then stays as it
        was.
        """
        if self._batch is None or len(self._batch) != 1:
            raise ValueError(f"keep: needs the cache of a batch [n], not {self}")
        (n,), numbers = self._batch, _integers(rows)
        if not numbers or not all(0 <= row < n for row in numbers):
            raise ValueError(f"keep: rows of 0 to {n - 1} are needed, not {rows!r:.80}")
        mask = self.mask
        with torch.inference_mode(False):  # they may be written to outside of it
            chosen = torch.tensor(numbers, device=self._model.wpe.device)
            layers = [
                LayerCache(
                    *(_rows(store, chosen, self._n_past) for store in (c.k, c.v))
                )
                for c in self._layers
            ]
            mask = None if mask is None else mask.index_select(0, chosen)
        self.__dict__ |= {  # at once: an interrupt finds the old rows or the new ones
            "_layers": layers,
            "_store": None,
            "_batch": torch.Size([len(numbers)]),
            "mask": mask,
        }


def _rows(
    store: Float[Tensor, "n n_head n_ctx d_head"],
    chosen: Int[Tensor, " n_kept"],
    n: int,
) -> Float[Tensor, "n_kept n_head n_ctx d_head"]:
    """A store for these rows, with their first n tokens: no more memory is filled."""
    kept = store.new_empty(len(chosen), *store.shape[1:])
    kept.narrow(-2, 0, n).copy_(store.narrow(-2, 0, n).index_select(0, chosen))
    return kept


@no_type_check
def _integers(rows: Any) -> list[int]:
    """The rows as ints; none where one of them is no integer."""
    try:
        numbers = list(rows)
        if any(isinstance(number, bool) for number in numbers):
            return []
        return [index(number) for number in numbers]
    except TypeError:
        return []


def remember(
    cache: KVCache | None,
    ids: Int[Tensor, "*batch n_seq"],
    mask: Bool[Tensor, "*batch n_kv"] | None,
) -> None:
    """The last act of a call: the cache counts its tokens, and knows the real ones."""
    if cache is None:
        return
    batch, n_seq = ids.shape[:-1], ids.shape[-1]
    if isinstance(cache, PaddedCache):
        cache.advance(batch, n_seq, mask)
    else:
        cache.advance(batch, n_seq)


def left_padded(
    texts: Sequence[Sequence[int]],
) -> tuple[Int[Tensor, "n_texts n_seq"], Bool[Tensor, "n_texts n_seq"]]:
    """Ids of texts of any length as a rectangle, and the mask of what is real.

    >>> left_padded([[3, 1, 4], [5]])[0]
    tensor([[3, 1, 4],
            [0, 0, 5]])
    """
    n_seq = max(map(len, texts))
    ids = torch.zeros(len(texts), n_seq, dtype=torch.int64, device="cpu")
    mask = torch.zeros(len(texts), n_seq, dtype=torch.bool, device="cpu")
    for row, text in enumerate(texts):
        ids[row, n_seq - len(text) :] = torch.tensor(
            text, dtype=torch.int64, device="cpu"
        )
        mask[row, n_seq - len(text) :] = True
    return ids, mask


def positions(mask: Bool[Tensor, "*batch n_kv"]) -> Int[Tensor, "*batch n_kv"]:
    """The number of real tokens before each; padding has 0, which no one sees.

    >>> positions(torch.tensor([[False, False, True, True, True]]))
    tensor([[0, 0, 0, 1, 2]])
    """
    return (mask.cumsum(-1) - 1).clamp(min=0)


def allowed(
    mask: Bool[Tensor, "*batch n_kv"], n_seq: int
) -> Bool[Tensor, "*batch 1 n_seq n_kv"]:
    """Where each of the last n_seq tokens may look: at what is real up to itself.

    Padding looks at itself alone: a row of weights without any would be 0 / 0, and a
    NaN spoils whatever it is multiplied with, even with 0.

    >>> allowed(torch.tensor([False, True, True]), 2).int()
    tensor([[[0, 1, 0],
             [0, 1, 1]]], dtype=torch.int32)
    """
    n_kv = mask.shape[-1]
    causal = causal_mask(n_seq, n_kv, mask.device)
    itself = causal.triu(diagonal=n_kv - n_seq)
    return ((causal & mask[..., None, :]) | itself).unsqueeze(-3)  # for every head


def padded_state(
    model: FastTransformer,
    ids: Int[Tensor, "*batch n_seq"],
    mask: Bool[Tensor, "*batch n_kv"],
    cache: KVCache | None = None,
    *,
    last_only: bool = False,
) -> Float[Tensor, "*batch n_out n_embd"]:
    """What the head is given, for tokens of which the mask says what is real.

    For all of them, or for the last of each text. The mask speaks of the tokens in the
    cache, too. They are written into it, but it does not count them yet (see
    `remember`).
    """
    n_seq = ids.shape[-1]
    x = model.vectors(ids) + model.wpe[positions(mask)[..., -n_seq:]]
    return model.after_blocks(x, allowed(mask, n_seq), cache, last_only=last_only)


@no_type_check
def checked_mask(
    mask: object, ids: Int[Tensor, "*batch n_seq"], cache: KVCache | None
) -> Bool[Tensor, "*batch n_kv"] | None:
    """The mask of all tokens, those in the cache first; None where all are real.

    `mask` has the ids' shape, or, as transformers has it, that of the cache's tokens
    and the ids together; of zeros and ones. Raises ValueError, naming it, where it has
    another, or tells of the cache's tokens something else than was said of them.
    """
    past = getattr(cache, "mask", None)
    if mask is None and past is None:
        return None
    batch, n_seq = ids.shape[:-1], ids.shape[-1]
    n_past = 0 if cache is None else len(cache)
    if past is None:
        past = ids.new_ones((*batch, n_past), dtype=torch.bool)
    if mask is None:
        return torch.cat([past, torch.ones_like(ids, dtype=torch.bool)], dim=-1)
    if cache is not None and not isinstance(cache, PaddedCache):
        raise ValueError("mask: needs a cache that was made by model.new_cache()")
    found = _zeros_and_ones(mask).to(ids.device)
    if found.shape == ids.shape:
        return torch.cat([past, found], dim=-1)
    if found.shape != (*batch, n_past + n_seq):
        of_all = f", or {[*batch, n_past + n_seq]} with the cache's" * bool(n_past)
        raise ValueError(
            f"mask: must have the ids' shape, {[*ids.shape]}{of_all}, "
            f"not {[*found.shape]}"
        )
    if not torch.equal(found[..., :n_past], past):
        raise ValueError("mask: differs from what the cache holds of its tokens")
    return found


@no_type_check
def _zeros_and_ones(mask: object) -> Bool[Tensor, "..."]:
    try:
        found = mask if isinstance(mask, Tensor) else torch.tensor(mask, device="cpu")
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"mask: must be of zeros and ones, not {mask!r:.80}") from None
    if found.is_meta or not is_dense(found):
        raise ValueError("mask: must be a plain tensor with numbers in it")
    if not ((found == 0) | (found == 1)).all():
        raise ValueError("mask: must be of zeros (padding) and ones (real tokens)")
    return found == 1
