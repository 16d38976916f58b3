"""Step 2's merging: the plain algorithm, the two faster ones, and what they share."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpt2hw.bpe import LONG, merge, merge_long, merge_short, merge_steps
from gpt2hw.properties.drawn_texts import merge_tables
from gpt2hw.properties.tokenizer import (
    merges_agree,
    nothing_is_left_to_merge,
    token_is_whole,
)
from gpt2hw.tokenizer_files import GPT2_MERGES
from gpt2hw.vocabulary import BYTE_TO_CHAR, made_tokens, read_merges
from tokenizer_judges import byte_level_bpe

Ranks = dict[tuple[str, str], int]


def merge_plainly(parts: str, ranks: Ranks) -> list[str]:
    """The parts after the last of the taught steps."""
    return [list(parts), *(after for _, _, after in merge_steps(parts, ranks))][-1]


@pytest.fixture(scope="module")
def gpt2_ranks() -> Ranks:
    return {pair: rank for rank, pair in enumerate(read_merges(GPT2_MERGES))}


@pytest.mark.parametrize("ours", [merge, merge_short, merge_long, merge_plainly])
@given(parts=st.text("abc", max_size=60), ranks=merge_tables())
def test_nothing_is_left_to_merge(ours, parts: str, ranks: Ranks) -> None:
    nothing_is_left_to_merge(ours, parts, ranks)


@pytest.mark.parametrize("faster", [merge_short, merge_long])
@given(parts=st.text("abc", max_size=60), ranks=merge_tables())
def test_the_faster_ways_give_what_the_taught_one_gives(
    faster, parts: str, ranks: Ranks
) -> None:
    merges_agree(faster, merge_plainly, parts, ranks)


@given(text=st.text("ab \n'sé地", min_size=LONG - 2, max_size=LONG + 60))
def test_the_change_from_short_to_long_does_not_show(gpt2_ranks, text: str) -> None:
    token = "".join(BYTE_TO_CHAR[byte] for byte in text.encode())
    merges_agree(merge_long, merge_short, token, gpt2_ranks)
    merges_agree(merge, merge_short, token, gpt2_ranks)


@given(text=st.text("abc", max_size=40), table=merge_tables())
def test_odd_merges_are_applied_as_hugging_face_applies_them(text, table) -> None:
    """One pair at a time, the leftmost of the lowest, whatever order the file has."""
    tokens = dict.fromkeys(made_tokens(table))
    vocab = {token: index for index, token in enumerate(tokens)}
    right = byte_level_bpe(list(table), vocab).encode(text).tokens
    assert merge_short(text, table) == right
    assert merge_long(text, table) == right


def test_equal_ranks_merge_from_the_left() -> None:
    assert merge("aaa", {("a", "a"): 0}) == ["aa", "a"]


def test_a_lower_rank_that_a_merge_brings_comes_next() -> None:
    ranks = {("ab", "a"): 0, ("a", "b"): 1}
    assert merge_plainly("abab", ranks) == ["aba", "b"]
    merges_agree(merge_long, merge_plainly, "abab", ranks)


def test_the_bytes_of_every_gpt2_token_merge_to_that_token(gpt2_ranks) -> None:
    """What allows a piece that is a token to be looked up without merging."""
    for token in made_tokens(list(gpt2_ranks)):
        token_is_whole(merge, token, gpt2_ranks)


class Work:
    """Counts what a way to merge does with ranks: looks one up, or compares two."""

    def __init__(self) -> None:
        self.done = 0

    def counted(self, plain: Callable) -> Callable:
        def counting(*args):
            self.done += 1
            return plain(*args)

        return counting

    def ranks_of(self, ranks: Ranks) -> Ranks:
        class Rank(int):
            __lt__, __le__ = self.counted(int.__lt__), self.counted(int.__le__)
            __gt__, __ge__ = self.counted(int.__gt__), self.counted(int.__ge__)
            __eq__, __ne__ = self.counted(int.__eq__), self.counted(int.__ne__)
            __hash__ = int.__hash__

            def __mul__(self, other: int) -> "Rank":  # rank * n + i is a rank too
                return Rank(int(self) * other)

            def __add__(self, other: int) -> "Rank":
                return Rank(int(self) + other)

        class Table(dict):
            get = self.counted(dict.get)
            __getitem__ = self.counted(dict.__getitem__)
            __contains__ = self.counted(dict.__contains__)

        return Table({pair: Rank(rank) for pair, rank in ranks.items()})


def growth_of_work(ours, ranks: Ranks, letter: str, n: int) -> float:
    """How many times the work grows when a run of n becomes one of 10 n."""
    amounts = []
    for length in (n, 10 * n):
        work = Work()
        ours(letter * length, work.ranks_of(ranks))
        amounts.append(work.done)
    return amounts[1] / amounts[0]


@pytest.mark.parametrize("letter", ["a", "^"])
def test_ten_times_the_length_is_about_ten_times_the_work(gpt2_ranks, letter) -> None:
    """n log n is 12.5 times as much here; what grows as n squared is 100 times."""
    assert growth_of_work(merge, gpt2_ranks, letter, 10_000) < 15


@pytest.mark.parametrize(("quadratic", "n"), [(merge_short, 300), (merge_plainly, 60)])
def test_the_way_of_counting_tells_a_quadratic_way(gpt2_ranks, quadratic, n) -> None:
    assert growth_of_work(quadratic, gpt2_ranks, "^", n) > 40
