"""From text to ids and back, exactly as GPT-2 does it.

    text -> pieces (a regular expression) -> bytes -> merged parts (BPE) -> ids

Source: Radford et al. 2019, section 2.2; OpenAI's gpt-2, `src/encoder.py`.
"""

import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from gpt2hw import bpe
from gpt2hw.errors import TokenizerError
from gpt2hw.splitting import SPLIT_PATTERN, join_surrogates, split
from gpt2hw.stream_decoder import StreamDecoder
from gpt2hw.tokenizer_files import find_files, tokens_are_gpt2s
from gpt2hw.vocabulary import (
    BYTE_TO_CHAR,
    END_OF_TEXT,
    Pair,
    check_vocabulary,
    derive_vocabulary,
    read_merges,
    read_vocabulary,
    spell,
    unspell,
)

__all__ = ["BYTE_TO_CHAR", "END_OF_TEXT", "SPLIT_PATTERN", "Step", "Tokenizer"]

CACHED_PIECES = 2**16  # more distinct pieces than a long book has
LONGEST_CACHED = 64  # characters: a longer piece hardly comes twice
LONGEST_EXPLAINED = 1000  # bytes of a piece: its steps hold half the square of them


_ERRORS = ("replace", "strict", "ignore", "backslashreplace", "surrogateescape")


@dataclass(frozen=True, slots=True)
class Step:
    """One step on a piece's way from bytes to tokens.

    `parts` is the piece after the step, `merged` the token that the step made, `rank`
    the place of that merge in merges.txt, from 0. A piece's first step has its single
    bytes as parts, and None for the two others.
    """

    parts: tuple[bytes, ...]
    merged: bytes | None = None
    rank: int | None = None


class Tokenizer:
    """GPT-2's byte-level BPE: `encode` goes from text to ids, `decode` back.

    `merges` are pairs of tokens spelt in the byte alphabet, the first to be merged
    first. `vocab` gives each token its id; left out, it follows from the merges.
    `look_up_first` promises that the bytes of each token merge to that token, as those
    of GPT-2's do: a piece that is a token then needs no merging. Raises TokenizerError
    where merges and vocabulary do not fit together.

    `n_vocab` is the number of tokens; `eot_id` is the id of <|endoftext|>, None in a
    vocabulary without it.

    >>> tokenizer = Tokenizer([("t", "h"), ("th", "e")])
    >>> tokenizer.encode("the hat")
    [257, 220, 71, 64, 83]
    >>> tokenizer.decode([257, 220, 71, 64, 83])
    'the hat'
    """

    def __init__(
        self,
        merges: Sequence[Pair],
        vocab: Mapping[str, int] | None = None,
        *,
        look_up_first: bool = False,
    ) -> None:
        if vocab is None:
            vocab = derive_vocabulary(merges)
        else:
            check_vocabulary(vocab, () if look_up_first else merges)  # it promised more
            vocab = dict(vocab)
        self._vocab = vocab
        self._tokens = sorted(vocab, key=vocab.__getitem__)
        self._ranks = {pair: rank for rank, pair in enumerate(merges)}
        self._whole = vocab if look_up_first else {}
        self._ids_of = _PieceCache(self._encode_piece)
        self._bytes_of: dict[int, bytes] = {}
        self.n_vocab = len(vocab)
        self.eot_id = vocab.get(END_OF_TEXT)

    def __repr__(self) -> str:
        """Its size."""
        return f"Tokenizer({self.n_vocab} tokens, {len(self._ranks)} merges)"

    @classmethod
    def from_pretrained(
        cls, name_or_folder: str | os.PathLike[str] = "tiny"
    ) -> "Tokenizer":
        """The tokenizer of a model: "tiny", "gpt2" and its sizes, or a folder.

        >>> Tokenizer.from_pretrained("gpt2").encode("Hello world")
        [15496, 995]
        """
        return cls.from_files(*find_files(name_or_folder))

    @classmethod
    def from_files(
        cls,
        merges_path: str | os.PathLike[str],
        vocab_path: str | os.PathLike[str] | None = None,
    ) -> "Tokenizer":
        """The tokenizer of a merges.txt and, if there is one, its vocab.json.

        Raises TokenizerError that names the file, and the line or the token.
        """
        merges = read_merges(merges_path)
        vocab = None if vocab_path is None else read_vocabulary(vocab_path)
        whole = tokens_are_gpt2s(merges_path, merges, vocab)
        try:
            return cls(merges, vocab, look_up_first=whole)
        except TokenizerError as error:
            raise TokenizerError(f"{vocab_path or merges_path}: {error}") from None

    def encode(self, text: str, *, allow_special: bool = False) -> list[int]:
        """The ids of a text, [] for an empty one.

        "<|endoftext|>" in a text is plain text like any other, unless `allow_special`
        is true. A lone surrogate is a TokenizerError that names its position.
        """
        text = join_surrogates(text)
        if not allow_special or self.eot_id is None:
            return self._encode_plain(text)
        first, *others = map(self._encode_plain, text.split(END_OF_TEXT))
        for ids in others:
            first += [self.eot_id, *ids]
        return first

    def _encode_plain(self, text: str) -> list[int]:
        ids: list[int] = []
        for pieces in split(text):
            ids.extend(chain.from_iterable(map(self._ids_of.__getitem__, pieces)))
        return ids

    def _encode_piece(self, piece: str) -> tuple[int, ...]:
        token = spell(piece.encode("utf-8"))
        if token in self._whole:
            return (self._whole[token],)
        return tuple([self._vocab[part] for part in bpe.merge(token, self._ranks)])

    def decode(self, ids: Iterable[int], errors: str = "replace") -> str:
        """The text of these ids; bytes that are no UTF-8 become U+FFFD.

        `errors` is as in bytes.decode. Raises TokenizerError for an id that is not in
        the vocabulary.
        """
        if errors not in _ERRORS:
            raise ValueError(f"errors: must be one of {_ERRORS}, not {errors!r}")
        return self.decode_bytes(ids).decode("utf-8", errors)

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The bytes of these ids, joined."""
        if not isinstance(ids, Iterable) or isinstance(ids, (str, bytes)):
            kind = type(ids).__name__
            raise TokenizerError(f"ids: must be a list of ids, not {kind}")
        return b"".join(map(self.token_bytes, ids))

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes of one id; a TokenizerError if no token has it."""
        if type(token_id) is not int or token_id not in self._bytes_of:
            token_id = self._checked(token_id)
            self._bytes_of[token_id] = unspell(self._tokens[token_id])
        return self._bytes_of[token_id]

    def _checked(self, token_id: int) -> int:
        try:
            index = operator.index(token_id)
        except TypeError:
            index = -1
        if not 0 <= index < self.n_vocab or isinstance(token_id, bool):
            raise TokenizerError(
                f"{token_id!r} is not an id of this vocabulary: they are the integers"
                f" from 0 to {self.n_vocab - 1}"
            )
        return index

    def stream_decoder(self) -> StreamDecoder:
        """A new decoder for ids that come one by one: push(id), flush() -> str."""
        return StreamDecoder(self.token_bytes)

    def explain(self, text: str) -> list[Step]:
        """The merges of a text, as data: for each piece its bytes, then each merge.

        Raises TokenizerError where a piece is too long to write out its steps.

        >>> Tokenizer([("t", "h"), ("th", "e")]).explain("the")[-1]
        Step(parts=(b'the',), merged=b'the', rank=1)
        """
        steps = []
        for piece in chain.from_iterable(split(join_surrogates(text))):
            chars = spell(piece.encode("utf-8"))
            if len(chars) > LONGEST_EXPLAINED:
                raise TokenizerError(
                    f"a piece of {len(chars)} bytes is too long to explain"
                    f" (the longest: {LONGEST_EXPLAINED})"
                )
            steps.append(Step(tuple(map(unspell, chars))))
            for rank, merged, parts in bpe.merge_steps(chars, self._ranks):
                steps.append(Step(tuple(map(unspell, parts)), unspell(merged), rank))
        return steps


class _PieceCache(dict[str, tuple[int, ...]]):
    """Piece -> ids: computes what it lacks, and starts afresh when it is full."""

    def __init__(self, encode_piece: Callable[[str], tuple[int, ...]]) -> None:
        super().__init__()
        self._encode_piece = encode_piece

    def __missing__(self, piece: str) -> tuple[int, ...]:
        ids = self._encode_piece(piece)
        if len(piece) <= LONGEST_CACHED:
            if len(self) >= CACHED_PIECES:
                self.clear()
            self[piece] = ids
        return ids
