"""Step 2's merging: the plain algorithm, the two faster ones, and what they share."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpt2hw.bpe import LONG, merge, merge_long, merge_short, merge_steps
from gpt2hw.properties.tokenizer import (
    merge_tables,
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


@pytest.mark.parametrize("letter", ["a", "^"])
def test_ten_times_the_length_takes_about_ten_times_as_long(gpt2_ranks, letter) -> None:
    """A quadratic way takes a hundred times; the pause of a busy machine is allowed."""

    def best_of_three(n: int) -> float:
        times = []
        for _ in range(3):
            start = time.process_time()
            merge(letter * n, gpt2_ranks)
            times.append(time.process_time() - start)
        return min(times)

    assert best_of_three(100_000) < 40 * best_of_three(10_000)
