"""The rules of step 2: nothing is lost, all is merged, and no character is split.

`Tokenizer` is not imported here: whatever has `encode`, `decode` and the like will do.
"""

# ruff: noqa: S101

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain, pairwise
from typing import Protocol

from hypothesis import strategies as st

Encode = Callable[[str], list[int]]
Decode = Callable[[list[int]], str]
Pair = tuple[str, str]
Merge = Callable[[Sequence[str], Mapping[Pair, int]], list[str]]


class Decoder(Protocol):
    """What turns ids that come one by one into text."""

    def push(self, token_id: int, /) -> str:
        """The characters that this id completes."""

    def flush(self) -> str:
        """What is left at the end."""


def text_survives(encode: Encode, decode: Decode, text: str) -> None:
    """Decoding the ids of a text gives that text, every space and mark of it.

    >>> text_survives(lambda t: list(t.encode()), lambda i: bytes(i).decode(), "y is ?")
    """
    back = decode(encode(text))
    assert back == text, f"{text!r} came back as {back!r}"


def ids_equal(encode: Encode, reference: Encode, text: str) -> None:
    """The ids are those of a reference: a wrong cut can still decode perfectly.

    >>> ids_equal(lambda text: [1], lambda text: [2], "a")
    Traceback (most recent call last):
    AssertionError: 'a' became [1], but the reference has [2]
    """
    ids, right = encode(text), reference(text)
    assert ids == right, f"{text!r} became {ids}, but the reference has {right}"


def cut_loses_nothing(split: Callable[[str], Iterable[list[str]]], text: str) -> None:
    """The pieces joined are the text, and none is empty."""
    pieces = list(chain.from_iterable(split(text)))
    assert "".join(pieces) == text, f"{text!r} was cut into {pieces}"
    assert all(pieces), f"{text!r} has an empty piece: {pieces}"


def nothing_is_left_to_merge(
    merge: Merge, parts: Sequence[str], ranks: Mapping[Pair, int]
) -> None:
    """No two neighbours that merge remain, and the parts joined are what they were.

    >>> nothing_is_left_to_merge(lambda parts, ranks: [*parts], "aa", {("a", "a"): 0})
    Traceback (most recent call last):
    AssertionError: ['a', 'a'] still has a pair that merges: ('a', 'a')
    """
    merged = merge(parts, ranks)
    for pair in pairwise(merged):
        assert pair not in ranks, f"{merged} still has a pair that merges: {pair}"
    assert "".join(merged) == "".join(parts), f"{list(parts)} became {merged}"


def merges_agree(
    merge: Merge, taught: Merge, parts: Sequence[str], ranks: Mapping[Pair, int]
) -> None:
    """A faster way to merge gives what the plain one gives."""
    merged, right = merge(parts, ranks), taught(parts, ranks)
    assert merged == right, f"{list(parts)} became {merged}, not {right}"


def token_is_whole(merge: Merge, token: str, ranks: Mapping[Pair, int]) -> None:
    """The bytes of a token merge to that one token, so that it may be looked up.

    It does not follow from the merges having made it: here "bc" comes first.

    >>> from gpt2hw.bpe import merge
    >>> token_is_whole(merge, "abc", {("b", "c"): 0, ("a", "b"): 1, ("ab", "c"): 2})
    Traceback (most recent call last):
    AssertionError: the bytes of 'abc' merge to ['a', 'bc']
    """
    merged = merge(token, ranks)
    assert merged == [token], f"the bytes of {token!r} merge to {merged}"


def stream_equals_decode(
    new_decoder: Callable[[], Decoder], decode: Decode, ids: list[int]
) -> None:
    """The pieces of a stream, joined, are the text of all ids together."""
    decoder = new_decoder()
    pieces = [*map(decoder.push, ids), decoder.flush()]
    text = decode(ids)
    assert "".join(pieces) == text, f"{ids} streamed as {pieces}, decoded as {text!r}"


def stream_never_splits_a_character(
    new_decoder: Callable[[], Decoder], encode: Encode, text: str
) -> None:
    """No U+FFFD comes out of a text that has none, and no piece waits for the end."""
    decoder = new_decoder()
    pieces = [decoder.push(token_id) for token_id in encode(text)]
    assert "".join(pieces) == text, f"{text!r} streamed as {pieces}"
    rest = decoder.flush()
    assert not rest, f"{rest!r} was held back though every character was whole"


# What tokenizers are known to treat unlike one another.
ENGLISH = ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "’s", "don't", "a", "Zz")
SPACES = (" ", "  ", "\n", "\r\n", "\t", "\x0b", "\x1c", "\x1f", "\x85", "\xa0")
WIDE_SPACES = ("\u1680", "\u180e", "\u2003", "\u200b", "\u2028", "\u202f", "\u3000")
NUMBERS = ("1", "42", "²", "½", "Ⅷ", "٣", "四", "𝟙")
MARKS = ("e\u0301", "\u0301", "नमस्ते", "ก็", "\u200d", "\ufe0f", "\ufeff", "\xad")
EMOJI = ("👍", "👩\u200d👩\u200d👧", "🇫🇷", "👍🏽")
REST = ("地", "ß", "ǅ", "_", "#", "^", "<|endoftext|>", "\x00", "\x7f", "�", "\ue000")
NASTY = (*ENGLISH, *SPACES, *WIDE_SPACES, *NUMBERS, *MARKS, *EMOJI, *REST)

# Blocks younger than Unicode 3.2 that have been full since Unicode 13 at the latest:
# ideographs (extension B), emoticons, mathematical digits, the letters of Adlam.
_FULL_BLOCKS = (
    range(0x20000, 0x2A6DE),
    range(0x1F600, 0x1F650),
    range(0x1D7CE, 0x1D800),
    range(0x1E900, 0x1E944),
)


@cache
def settled_characters() -> str:
    """The characters that every library knows, whatever version of Unicode it follows.

    A letter that is new in one version is no letter to a library of the version before.
    """
    chars = {chr(code) for block in _FULL_BLOCKS for code in block}
    chars |= {c for c in map(chr, range(0x30000)) if _is_old(c)}
    return "".join(sorted(chars))


def _is_old(char: str) -> bool:
    """Whether Unicode 3.2 had it: no surrogate, and not for private use."""
    return unicodedata.ucd_3_2_0.category(char) not in {"Cn", "Cs", "Co"}


def nasty_texts(max_size: int = 30) -> st.SearchStrategy[str]:
    """Texts made of what tokenizers stumble over, without surrogates."""
    part = st.one_of(st.sampled_from(NASTY), st.sampled_from(settled_characters()))
    return st.lists(part, max_size=max_size).map("".join)


@st.composite
def merge_tables(
    draw: st.DrawFn, letters: str = "abc", max_size: int = 12
) -> dict[Pair, int]:
    """Ranks of merges in any order, as no training gives them.

    A merge may stand before those that make its halves, and two may make one token.
    """
    tokens, pairs = dict.fromkeys(letters), dict[Pair, None]()
    for _ in range(draw(st.integers(0, max_size))):
        halves = st.sampled_from(list(tokens))
        pair = draw(halves), draw(halves)
        pairs[pair] = tokens[pair[0] + pair[1]] = None
    shuffled = draw(st.permutations(list(pairs)))
    return {pair: rank for rank, pair in enumerate(shuffled)}
