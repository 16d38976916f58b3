"""Step 2's cut: pieces as GPT-2 has them, whatever the text's length."""

from itertools import chain

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from gpt2hw import TokenizerError
from gpt2hw.properties.drawn_texts import nasty_texts
from gpt2hw.properties.tokenizer import (
    cut_loses_nothing,
    ids_equal,
    text_survives,
)
from gpt2hw.splitting import SPLIT_PATTERN, join_surrogates, split
from tokenizer_judges import GPT2, GPT2_PATTERN, ids_by_tiktoken


def test_the_pattern_is_the_published_one() -> None:
    assert SPLIT_PATTERN.pattern == GPT2_PATTERN


@given(text=nasty_texts(), stretch=st.integers(1, 12))
def test_a_text_cut_in_stretches_has_the_same_pieces(text: str, stretch: int) -> None:
    cut_loses_nothing(lambda text: split(text, stretch), text)
    assert [*chain.from_iterable(split(text, stretch))] == SPLIT_PATTERN.findall(text)


def test_a_text_is_cut_where_a_stretch_is_full_and_white_space_comes() -> None:
    assert [*split("ab cd e fgh i", 4)] == [["ab", " cd"], [" e", " fgh"], [" i"]]


def test_a_long_text_comes_in_lists_of_about_a_million_characters() -> None:
    """So that the memory is that of the ids, and not of a list of all pieces."""
    sizes = [sum(map(len, pieces)) for pieces in split("book " * 2**19)]
    assert all(2**20 <= size < 2**20 + 5 for size in sizes[:-1])
    assert 0 < sizes[-1] < 2**20


@pytest.mark.parametrize("wrong", [b"text", None, 7, ["text"]])
def test_what_is_no_str_is_refused_by_its_kind(wrong: object) -> None:
    kind = type(wrong).__name__
    with pytest.raises(ValueError, match=f"^text: must be a str, not {kind}$"):
        join_surrogates(wrong)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (regex.compile(GPT2_PATTERN, regex.IGNORECASE), "'Sam"),
        (regex.compile(GPT2_PATTERN, regex.ASCII), "ça"),
        (regex.compile(GPT2_PATTERN.replace(r"|\s+(?!\S)", "")), "a   b"),
        (regex.compile(r"\S+|\s+"), "Hello world"),
    ],
    ids=["any case", "ASCII", "no look-ahead", "words and spaces"],
)
def test_the_ids_tell_a_wrong_pattern_though_the_text_comes_back(wrong, text) -> None:
    def encode(text: str) -> list[int]:
        return [i for piece in wrong.findall(text) for i in GPT2._encode_piece(piece)]

    text_survives(encode, GPT2.decode, text)
    with pytest.raises(AssertionError, match="the reference has"):
        ids_equal(encode, ids_by_tiktoken, text)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        *(("\udbc0", 0), ("a\ud83d b", 1), ("ab\udc80", 2), ("\udc4d\ud83d", 0)),
        *(("👍\ud83d\ud83d\udc4d", 1), ("\ud83d\udc4d\udc4d", 2)),
        ("<|endoftext|>" * 2 + "\ud83d", 26),
    ],
)
@pytest.mark.parametrize("allow_special", [False, True])
def test_a_lone_surrogate_is_refused_with_its_position(
    text: str, position: int, allow_special: bool
) -> None:
    with pytest.raises(TokenizerError, match=rf"position {position} .*lone surrogate"):
        GPT2.encode(text, allow_special=allow_special)
    with pytest.raises(TokenizerError, match=rf"position {position} "):
        GPT2.explain(text)


@given(text=nasty_texts(max_size=8))
def test_surrogate_pairs_are_the_characters_they_stand_for(text: str) -> None:
    units = text.encode("utf-16-le")
    pairs = (units[i : i + 2] for i in range(0, len(units), 2))
    halves = "".join(u.decode("utf-16-le", "surrogatepass") for u in pairs)
    assert GPT2.encode(halves) == GPT2.encode(text)
