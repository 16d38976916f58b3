"""Byte-pair encoding: merge the lowest-ranked pair, again and again.

`parts` are tokens spelt in the byte alphabet, at first one for each byte of a piece;
`ranks` gives each pair that merges its line in merges.txt, counted from 0.

Source: Sennrich, Haddow and Birch 2016, section 3.2 (algorithm 1); OpenAI's gpt-2,
`src/encoder.py` (Encoder.bpe).
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from gpt2hw.vocabulary import Pair

Ranks = Mapping[Pair, int]
NEVER = 2**62  # the rank of a pair that does not merge
LONG = 64  # parts from which the heap is faster than the scan


def find_lowest(parts: Sequence[str], ranks: Ranks) -> tuple[int, int] | None:
    """Rank and position of the pair to merge next, the leftmost of equals.

    >>> find_lowest(["a", "b", "a", "b"], {("a", "b"): 7})
    (7, 0)
    """
    ranked = [(ranks[p], i) for i, p in enumerate(pairwise(parts)) if p in ranks]
    return min(ranked, default=None)


def merge_steps(
    parts: Sequence[str], ranks: Ranks
) -> Iterator[tuple[int, str, list[str]]]:
    """Each merge in turn: its rank, the token it makes, and the parts after it.

    >>> ranks = {("t", "h"): 0, ("th", "e"): 1}
    >>> list(merge_steps(["t", "h", "e"], ranks))
    [(0, 'th', ['th', 'e']), (1, 'the', ['the'])]
    """
    while (lowest := find_lowest(parts, ranks)) is not None:
        rank, i = lowest
        merged = parts[i] + parts[i + 1]
        parts = [*parts[:i], merged, *parts[i + 2 :]]
        yield rank, merged, parts


def merge(parts: Sequence[str], ranks: Ranks) -> list[str]:
    """The parts when no pair is left that merges.

    >>> merge(["t", "h", "e", "n"], {("t", "h"): 0, ("th", "e"): 1})
    ['the', 'n']
    """
    return merge_long(parts, ranks) if len(parts) >= LONG else merge_short(parts, ranks)


# The same result faster: `merge_steps` looks at every pair before every merge, though a
# merge changes only the pairs on its two sides.


def merge_short(parts: Sequence[str], ranks: Ranks) -> list[str]:
    """`merge` with the rank of each pair kept from one merge to the next."""
    parts = list(parts)
    rank_at = [ranks.get(pair, NEVER) for pair in pairwise(parts)]
    while rank_at and (rank := min(rank_at)) != NEVER:
        i = rank_at.index(rank)
        parts[i] += parts.pop(i + 1)
        del rank_at[i]
        if i < len(rank_at):
            rank_at[i] = ranks.get((parts[i], parts[i + 1]), NEVER)
        if i > 0:
            rank_at[i - 1] = ranks.get((parts[i - 1], parts[i]), NEVER)
    return parts


def merge_long(parts: Sequence[str], ranks: Ranks) -> list[str]:
    """`merge` in n log n steps: a linked list of parts, and their pairs in order.

    A pair waits as one integer, rank * n + position. It is stale, and passed over, when
    the pair at its position has another rank by then.
    """
    parts, n = list(parts), len(parts)
    before, after = list(range(-1, n - 1)), list(range(1, n + 1))
    rank_at = [ranks.get(pair, NEVER) for pair in pairwise(parts)] + [NEVER]
    first = [rank * n + i for i, rank in enumerate(rank_at) if rank != NEVER]
    first.sort(reverse=True)  # the pairs of the start, the next one last
    later: list[int] = []  # a heap of the pairs that merges bring

    def look_at(i: int, k: int) -> None:
        rank_at[i] = rank = ranks.get((parts[i], parts[k]), NEVER)
        if rank != NEVER:
            heapq.heappush(later, rank * n + i)

    while first or later:
        in_first = first and (not later or first[-1] < later[0])
        rank, i = divmod(first.pop() if in_first else heapq.heappop(later), n)
        if rank_at[i] != rank:
            continue
        j = after[i]
        k = after[i] = after[j]
        parts[i] += parts[j]
        parts[j] = ""
        rank_at[i] = rank_at[j] = NEVER
        if k < n:
            before[k] = i
            look_at(i, k)
        if (h := before[i]) >= 0:
            look_at(h, i)
    return [part for part in parts if part]
