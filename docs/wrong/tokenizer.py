"""Step 2: mistakes in the tokenizer."""

from collections.abc import Iterable

import regex

from gpt2hw import Tokenizer, bpe
from gpt2hw.hub import SHIPPED
from gpt2hw.properties import tokenizer as rules
from gpt2hw.tokenizer import SPLIT_PATTERN
from gpt2hw.vocabulary import END_OF_TEXT, spell
from wrong.entry import Entry, Piece


def merges_without_comments(lines: list[str]) -> list[tuple[str, ...]]:
    """Skips every line that starts with '#': "# #" and seven others are merges."""
    return [tuple(line.split(" ")) for line in lines if not line.startswith("#")]


def split_ignoring_case(text: str) -> list[str]:
    """The same pattern with IGNORECASE: 'S becomes an ending, as 's is."""
    return regex.findall(SPLIT_PATTERN.pattern, text, flags=regex.IGNORECASE)


def split_at_spaces(text: str) -> list[str]:
    """str.split throws the white space away: nothing can bring it back."""
    return text.split()


def split_with_ascii_classes(text: str) -> list[str]:
    r"""[A-Za-z] for \p{L}, [0-9] for \p{N}: right for English alone."""
    return regex.findall(
        r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+",
        text,
    )


def merge_from_the_left(
    parts: list[str], ranks: dict[tuple[str, str], int]
) -> list[str]:
    """Merges the leftmost pair that can be merged, not the lowest-ranked one."""
    parts = list(parts)
    i = 0
    while i + 1 < len(parts):
        if (parts[i], parts[i + 1]) in ranks:
            parts[i : i + 2] = [parts[i] + parts[i + 1]]
            i = 0
        else:
            i += 1
    return parts


def decode_token_by_token(tokenizer: Tokenizer, ids: Iterable[int]) -> str:
    """Decodes each token alone: a character that lies in two tokens is lost."""
    return "".join(tokenizer.token_bytes(i).decode(errors="replace") for i in ids)


def decode_to_the_byte_alphabet(tokenizer: Tokenizer, ids: Iterable[int]) -> str:
    """Puts a space for the stand-in of the space, and forgets the other 67."""
    data = b"".join(map(tokenizer.token_bytes, ids))
    return spell(data).replace("Ġ", " ")


def decode_and_tidy(tokenizer: Tokenizer, ids: Iterable[int]) -> str:
    """Removes the space before punctuation, which was in the text."""
    text = tokenizer.decode(ids)
    return text.replace(" ?", "?").replace(" .", ".").replace(" ,", ",")


def encode_specials_anywhere(tokenizer: Tokenizer, text: str) -> list[int]:
    """Reads the end-of-text marker in a user's text as the end of the text."""
    ids: list[int] = []
    for i, part in enumerate(text.split(END_OF_TEXT)):
        ids += [tokenizer.eot_id] * (i > 0) + tokenizer.encode(part)
    return ids


# What catches them

TEXTS = ("don't", "IT'S it's", "a    b", "Straße 42²", "def f(x):\n    pass\n")
GPT2_TOKENIZER = Tokenizer.from_pretrained("gpt2")


def _cuts_are_gpt2s(split: Piece) -> None:
    for text in TEXTS:
        rules.ids_equal(split, SPLIT_PATTERN.findall, text)


def _cuts_lose_nothing(split: Piece) -> None:
    for text in TEXTS:
        rules.cut_loses_nothing(lambda t: [split(t)], text)


def _merges_by_rank(merge: Piece) -> None:
    ranks = {("b", "c"): 0, ("a", "b"): 1}
    rules.merges_agree(merge, bpe.merge, "abc", ranks)


def _every_line_is_a_merge(parse: Piece) -> None:
    path = SHIPPED / "gpt2" / "merges.txt"
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    ranks = {tuple(pair): rank for rank, pair in enumerate(parse(lines))}
    for token in ("##", "########"):
        rules.token_is_whole(bpe.merge, token, ranks)


def _right_merges(lines: list[str]) -> list[tuple[str, ...]]:
    return [tuple(line.split(" ")) for line in lines]


def _decodes(decode: Piece) -> None:
    for text in ("y is ?", "naïve 地 👍", "two\nlines"):
        rules.text_survives(
            GPT2_TOKENIZER.encode, lambda ids: decode(GPT2_TOKENIZER, ids), text
        )


def _markers_are_text(encode: Piece) -> None:
    rules.ids_equal(
        lambda text: encode(GPT2_TOKENIZER, text),
        lambda _: [27, 91, 437, 1659, 5239, 91, 29],
        "<|endoftext|>",
    )


ENTRIES = [
    Entry(
        merges_without_comments,
        _right_merges,
        rules.token_is_whole,
        _every_line_is_a_merge,
    ),
    *(
        Entry(wrong, SPLIT_PATTERN.findall, rules.ids_equal, _cuts_are_gpt2s)
        for wrong in (
            split_ignoring_case,
            split_with_ascii_classes,
        )
    ),
    Entry(
        split_at_spaces,
        SPLIT_PATTERN.findall,
        rules.cut_loses_nothing,
        _cuts_lose_nothing,
    ),
    Entry(
        merge_from_the_left,
        bpe.merge,
        rules.merges_agree,
        _merges_by_rank,
    ),
    *(
        Entry(wrong, Tokenizer.decode, rules.text_survives, _decodes)
        for wrong in (
            decode_token_by_token,
            decode_to_the_byte_alphabet,
            decode_and_tidy,
        )
    ),
    Entry(
        encode_specials_anywhere,
        Tokenizer.encode,
        rules.ids_equal,
        _markers_are_text,
    ),
]
