"""A tokenizer's two files: merges.txt, and the vocabulary that follows from it.

A token is a string of bytes, but the files are text, so GPT-2 writes each byte as one
visible character: the space 0x20 is "Ġ", so that " the" is spelt "Ġthe". This room
reads such spellings; the rooms above give bytes and text back.

Source: OpenAI's gpt-2, `src/encoder.py` (bytes_to_unicode, get_encoder) and its files
`vocab.bpe` and `encoder.json`, which Hugging Face names merges.txt and vocab.json.
"""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import cast

from gpt2hw.errors import TokenizerError
from gpt2hw.files import file_path, read_plain
from gpt2hw.strict_json import parse_object

END_OF_TEXT = "<|endoftext|>"
Pair = tuple[str, str]

# The bytes whose Latin-1 character is visible stand for themselves; the 68 others take
# the characters from 256 on, in order. The order of this dict is the order of the ids.
_VISIBLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
_OTHERS = [byte for byte in range(256) if byte not in _VISIBLE]
BYTE_TO_CHAR = {byte: chr(byte) for byte in _VISIBLE} | {
    byte: chr(256 + n) for n, byte in enumerate(_OTHERS)
}
CHAR_TO_BYTE = {char: byte for byte, char in BYTE_TO_CHAR.items()}

MAX_FILE_BYTES = 64 * 2**20  # sixty times GPT-2's larger file
MAX_VERSION_CHARS = 200  # Hugging Face's tokenizers write 51

# What a failed download leaves under the right name: first bytes, and what they mean.
_NOT_A_TOKENIZER = {
    b"<!doctype": "is an HTML page: the download was answered by a web page",
    b"<html": "is an HTML page: the download was answered by a web page",
    b"version https://git-lfs": "is a Git LFS pointer: fetch the file, git lfs pull",
}


def spell(data: bytes) -> str:
    """Bytes in the byte alphabet, one character each.

    >>> spell(b" the\\n")
    'ĠtheĊ'
    """
    return data.decode("latin-1").translate(BYTE_TO_CHAR)


def unspell(token: str) -> bytes:
    """The bytes of a token.

    A token that someone added by hand may hold characters outside the byte alphabet;
    it stands for its own text then (as in Hugging Face's tokenizers).

    >>> unspell("Ġthe"), unspell("<a b>")
    (b' the', b'<a b>')
    """
    try:
        return bytes([CHAR_TO_BYTE[char] for char in token])
    except KeyError:
        return token.encode("utf-8")


def read_merges(path: str | os.PathLike[str]) -> list[Pair]:
    """The merges of a merges.txt, the first to be merged first.

    A first line that begins with "#version" is passed over, and no other line is: "# #"
    is a merge. Lines may end in CR LF. Raises TokenizerError that names file and line.
    """
    lines = _read(path).rstrip("\n").split("\n")
    _check_line_ends(path, lines)
    first = 2 if lines[0].startswith("#version") else 1
    pairs = [tuple(line.split(" ")) for line in lines[first - 1 :]]
    if _are_merges(pairs):
        return cast(list[Pair], pairs)
    raise _wrong_merge(path, lines, first)


def _are_merges(pairs: Sequence[tuple[str, ...]]) -> bool:
    """Whether each is two tokens, and none stands twice."""
    return (
        set(map(len, pairs)) <= {2}
        and all(chain.from_iterable(pairs))
        and len(set(pairs)) == len(pairs)
    )


def _wrong_merge(path: object, lines: Sequence[str], first: int) -> TokenizerError:
    """What is wrong with the first line that is no merge."""
    line_of: dict[tuple[str, ...], int] = {}
    for number, line in enumerate(lines[first - 1 :], first):
        pair = tuple(line.split(" "))
        if len(pair) != 2 or not all(pair):
            return TokenizerError(
                f"{path}, line {number}: a merge is two tokens with one space between"
                f" them, not {line[:80]!r}"
            )
        if line_of.setdefault(pair, number) != number:
            break
    return TokenizerError(
        f"{path}, line {number}: the merge {line[:80]!r} stands in line"
        f" {line_of[pair]} already"
    )


def _check_line_ends(path: object, lines: Sequence[str]) -> None:
    """Refuses a file whose lines have run together, so that merges would be lost."""
    for number, line in enumerate(lines, 1):
        if "\r" in line:
            raise TokenizerError(
                f"{path}, line {number}: a CR without LF: lines must end in LF or CR LF"
            )
    if lines[0].startswith("#version") and len(lines[0]) > MAX_VERSION_CHARS:
        raise TokenizerError(
            f"{path}, line 1: the version takes {len(lines[0])} characters: have the"
            " line ends been lost?"
        )


def read_vocabulary(path: str | os.PathLike[str]) -> dict[str, int]:
    """Token -> id from a vocab.json. Raises TokenizerError that names the file."""
    text = _read(path)
    try:
        return parse_object(text.encode("utf-8"))
    except ValueError as error:
        raise TokenizerError(f"{path}: {error}") from None


def made_tokens(merges: Iterable[Pair]) -> list[str]:
    """What merging can make: the 256 bytes, then the token of each merge, in order."""
    return [*BYTE_TO_CHAR.values(), *(left + right for left, right in merges)]


def derive_vocabulary(merges: Sequence[Pair]) -> dict[str, int]:
    """Token (spelt in the byte alphabet) -> id, as GPT-2 numbers them.

    First the 256 bytes, then one token a merge, in order, then the end of text. Raises
    TokenizerError where two merges make one token, or a merge joins what none makes.

    >>> vocab = derive_vocabulary([("t", "h"), ("th", "e")])
    >>> vocab["!"], vocab["th"], vocab["the"], vocab["<|endoftext|>"]
    (0, 256, 257, 258)
    """
    tokens = [*made_tokens(merges), END_OF_TEXT]
    vocab = {token: index for index, token in enumerate(tokens)}
    if len(vocab) < len(tokens):
        token = next(token for i, token in enumerate(tokens) if vocab[token] != i)
        raise TokenizerError(
            f"two merges make the token {token!r}, so that its id does not follow from"
            " the merges: a vocab.json must give it"
        )
    _check_tokens(vocab, [*chain.from_iterable(merges)])
    return vocab


def check_vocabulary(vocab: Mapping[str, int], merges: Sequence[Pair]) -> None:
    """Refuses, by a TokenizerError that names the token, what does not fit together.

    The ids must be 0, 1, 2, ..., each given once. The 256 bytes must have one, and so
    must each token that a merge makes or joins.
    """
    if not _are_counted(vocab.values()):
        _refuse_ids(vocab)
    _check_tokens(vocab, [*made_tokens(merges), *chain.from_iterable(merges)])


def _check_tokens(vocab: Mapping[str, int], needed: Sequence[str]) -> None:
    if all(map(vocab.__contains__, needed)):
        return
    token = next(token for token in needed if token not in vocab)
    what = "byte" if len(token) == 1 else "token of the merges"
    raise TokenizerError(f"the {what} {token!r} is not in the vocabulary")


def _are_counted(ids: Collection[int]) -> bool:
    """Whether they are 0, 1, 2, ..., in any order."""
    return set(map(type, ids)) <= {int} and sorted(ids) == list(range(len(ids)))


def _refuse_ids(vocab: Mapping[str, int]) -> None:
    for token, index in vocab.items():
        if type(index) is not int or index < 0:
            raise TokenizerError(
                f"the id of {token!r} must be an integer from 0 on, not"
                f" {repr(index)[:40]}"
            )
    tokens = sorted(vocab, key=vocab.__getitem__)
    for expected, token in enumerate(tokens):
        if vocab[token] > expected:
            raise TokenizerError(f"no token has the id {expected}")
        if vocab[token] < expected:
            raise TokenizerError(
                f"the tokens {tokens[expected - 1]!r} and {token!r} have one id,"
                f" {vocab[token]}"
            )


def _read(path: str | os.PathLike[str]) -> str:
    """The text of a file, without byte order mark and with LF line ends."""
    try:
        raw = read_plain(file_path(path), MAX_FILE_BYTES)
    except FileNotFoundError:
        raise TokenizerError(f"{path} is not there") from None
    except OSError as error:
        raise TokenizerError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        reason = str(error) if str(error).startswith("path: ") else f"{path} is {error}"
        raise TokenizerError(f"{reason}: it is no tokenizer's file") from None
    if not raw:
        raise TokenizerError(f"{path} is empty: it is no tokenizer's file")
    for sign, meaning in _NOT_A_TOKENIZER.items():
        if raw[:64].lstrip().lower().startswith(sign):
            raise TokenizerError(f"{path} {meaning}")
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise TokenizerError(f"{path} is not UTF-8 at byte {error.start}") from None
