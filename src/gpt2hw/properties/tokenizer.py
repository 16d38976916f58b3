"""The rules of step 2: nothing is lost, all is merged, and no character is split.

`Tokenizer` is not imported here: whatever has `encode`, `decode` and the like will do.
"""

# ruff: noqa: S101

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, pairwise
from typing import Protocol

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
