"""Several prompts go on at once: one forward pass a step, a row for each text.

Each text ends by itself. One that has ended leaves the batch, and the others go on as
if it had never been there: what a row gets does not depend on the rows beside it, but
for rounding.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from gpt2hw.batches import PaddedCache, left_padded
from gpt2hw.continuing import Row
from gpt2hw.pretrained import GPT2


class Batch:
    """The logits that come next for some rows, with a cache that is filled once.

    The cache begins anew where the rows that are left need its room: it has n_ctx
    places, and padding takes some of them.
    """

    def __init__(self, model: GPT2) -> None:
        self._model = model
        self._cache: PaddedCache | None = None
        self._rows: list[Row] = []  # those in the cache

    def next_logits(self, rows: Sequence[Row]) -> Float[Tensor, "n_rows n_vocab"]:
        """A row of logits for each text; `rows` are those of the last time, or fewer.

        Each has one id more than the last time. Of a text longer than n_ctx the last
        n_ctx ids are computed anew, as `generation.next_logits` does.
        """
        n_ctx = self._model.config.n_ctx
        if any(len(row.ids) > n_ctx for row in rows):
            self._cache = None  # it is full; its memory is free from here on
            ids, mask = left_padded([row.ids[-n_ctx:] for row in rows])
            return self._model.last_logits(ids, mask=mask)
        if self._cache is None or len(self._cache) == n_ctx:
            self._cache, self._rows = self._model.new_cache(), list(rows)
            ids, mask = left_padded([row.ids for row in rows])
            return self._model.last_logits(ids, self._cache, mask=mask)
        if len(rows) < len(self._rows):
            self._cache.keep([self._rows.index(row) for row in rows])
            self._rows = list(rows)
        newest = torch.tensor([row.ids[-1:] for row in rows], device="cpu")
        return self._model.last_logits(newest, self._cache)


def write_together(model: GPT2, rows: Sequence[Row]) -> None:
    """Lets every row write until it is done.

    >>> from gpt2hw import GPT2Config, Tokenizer
    >>> from gpt2hw.writing import Writing
    >>> model = GPT2.random(
    ...     GPT2Config(n_vocab=257, n_ctx=8, n_embd=4, n_head=2, n_layer=1))
    >>> rows = [
    ...     Row("", ids, lambda logits: 76, Writing(Tokenizer([]), n, "length", ()))
    ...     for n, ids in ((1, [39]), (2, [39, 76]))]
    >>> write_together(model, rows)
    >>> [row.writing.text for row in rows]
    ['m', 'mm']
    """
    batch, live = Batch(model), [row for row in rows if not row.writing.is_done]
    with torch.inference_mode():
        while live:
            for row, logits in zip(live, batch.next_logits(live), strict=True):
                row.go_on(logits)
            live = [row for row in live if not row.writing.is_done]
    for row in rows:
        row.writing.finish()
