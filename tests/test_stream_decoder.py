"""Step 2's stream: whole characters only, and together the text of all ids."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpt2hw import Tokenizer
from gpt2hw.properties.drawn_texts import nasty_texts
from gpt2hw.properties.tokenizer import (
    stream_equals_decode,
    stream_never_splits_a_character,
)
from tokenizer_judges import GPT2, TINY

gpt2_ids = st.lists(st.integers(0, GPT2.n_vocab - 1), max_size=30)


def test_a_character_is_given_out_when_it_is_whole() -> None:
    decoder = GPT2.stream_decoder()
    pieces = [decoder.push(i) for i in (41840, 235, 28839, 108)]
    assert pieces == ["", "👍", "", "地"]
    assert decoder.flush() == ""


def test_a_character_unfinished_at_the_end_is_one_replacement() -> None:
    decoder = GPT2.stream_decoder()
    assert decoder.push(41840) == ""
    assert decoder.flush() == "\ufffd"
    assert decoder.flush() == ""
    assert decoder.push(64) == "a"


@settings(max_examples=300)
@given(ids=gpt2_ids)
def test_streamed_pieces_joined_are_the_decoded_text(ids: list[int]) -> None:
    stream_equals_decode(GPT2.stream_decoder, GPT2.decode, ids)


@settings(max_examples=300)
@given(ids=st.lists(st.integers(0, 255), max_size=30))
def test_streamed_single_bytes_joined_are_the_decoded_text(ids: list[int]) -> None:
    stream_equals_decode(GPT2.stream_decoder, GPT2.decode, ids)


@pytest.mark.parametrize("tokenizer", [GPT2, TINY], ids=["gpt2", "tiny"])
@given(text=nasty_texts())
def test_a_stream_never_splits_a_character(tokenizer: Tokenizer, text: str) -> None:
    stream_never_splits_a_character(tokenizer.stream_decoder, tokenizer.encode, text)


def test_two_streams_do_not_disturb_each_other() -> None:
    one, other = GPT2.stream_decoder(), GPT2.stream_decoder()
    assert (one.push(28839), other.push(41840)) == ("", "")
    assert (one.push(108), other.push(235)) == ("地", "👍")
