"""Step 2: mistakes in the tokenizer."""

from collections.abc import Iterable

import regex

from gpt2hw import Tokenizer
from gpt2hw.tokenizer import SPLIT_PATTERN
from gpt2hw.vocabulary import END_OF_TEXT, spell


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


def merge_from_the_left(parts: list[str], ranks: dict[tuple[str, str], int]) -> list[str]:
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
