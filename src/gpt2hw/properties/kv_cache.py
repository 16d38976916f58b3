"""The rules of step 8: the cache saves work, and nothing else."""

# ruff: noqa: S101

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, pairwise

import torch
from torch import Tensor

from gpt2hw.kv_cache import KVCache
from gpt2hw.pretrained import GPT2
from gpt2hw.properties.closeness import agree


def every_split(n: int) -> Iterator[list[int]]:
    """Each way to cut n tokens into chunks, as lengths: 2 ** (n - 1) of them.

    >>> list(every_split(3))
    [[3], [1, 2], [2, 1], [1, 1, 1]]
    """
    for n_cuts in range(n):
        for cuts in combinations(range(1, n), n_cuts):
            yield [end - start for start, end in pairwise((0, *cuts, n))]


def in_chunks(
    model: GPT2, ids: Tensor, chunks: Sequence[int], cache: KVCache | None = None
) -> Tensor:
    """The logits of ids that go through a cache chunk by chunk, joined again."""
    cache = model.new_cache() if cache is None else cache
    parts = torch.split(ids, list(chunks), dim=-1)
    return torch.cat([model(part, cache) for part in parts], dim=-2)


def cache_equals_no_cache(
    model: GPT2, ids: Tensor, chunks: Sequence[int], within: float = 1e-5
) -> None:
    """However the ids are cut, the logits are those of one pass without a cache.

    Not to the bit: sums of another length are rounded otherwise.
    """
    found = in_chunks(model, ids, chunks)
    agree(found, model(ids), within, f"logits of chunks {list(chunks)}")


def cache_counts_its_tokens(model: GPT2, ids: Tensor, chunks: Sequence[int]) -> None:
    """After each call, len(cache) is the number of ids that went in."""
    cache, n_seen = model.new_cache(), 0
    for part in torch.split(ids, list(chunks), dim=-1):
        model(part, cache)
        n_seen += part.shape[-1]
        assert len(cache) == n_seen, f"{n_seen} ids went in, len(cache) is {len(cache)}"


def a_failed_call_leaves_no_trace(
    model: GPT2, seen: Tensor, fails: Callable[[KVCache], None], rest: Tensor
) -> None:
    """After a call that raised, the cache goes on as if it had never been made.

    `fails` must raise when it is given the cache, which holds `seen` (none, if its
    length is 0); then `rest` is put in.
    """
    cache = model.new_cache()
    if seen.shape[-1]:
        model(seen, cache)
    try:
        fails(cache)
    except Exception:  # noqa: S110 -- which one is another test's business
        pass
    else:
        raise AssertionError("the call that should fail did not")
    assert len(cache) == seen.shape[-1], f"len is {len(cache)} after a failed call"
    whole = model(torch.cat([seen, rest], dim=-1))
    right = whole[..., seen.shape[-1] :, :]
    agree(model(rest, cache), right, 1e-5, "logits after a failed call")


def copies_are_independent(
    model: GPT2, seen: Tensor, one: Tensor, other: Tensor
) -> None:
    """A cache and its copy go on with different ids, and neither sees the other's."""
    cache = model.new_cache()
    model(seen, cache)
    twin = cache.copy()
    model(one, cache)
    model(other, twin)  # where they share their memory, over what the cache has stored
    for holder, new, whose in ((cache, one, "cache"), (twin, other, "copy")):
        last = new[..., -1:]
        whole = model(torch.cat([seen, new, last], dim=-1))
        right = whole[..., -1:, :]
        agree(model(last, holder), right, 1e-5, f"logits of the {whose}, later")
