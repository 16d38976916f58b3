"""How GPT-2 cuts a text into pieces, before any merge.

Source: OpenAI's gpt-2, `src/encoder.py` (Encoder.pat); Radford et al. 2019, section
2.2, on why: without the cut, "dog", "dog!" and "dog?" would each become a token.
"""

import re
from collections.abc import Iterator

import regex

from gpt2hw.errors import TokenizerError

# No merge crosses from one piece to the next. At each place the first alternative that
# matches wins, and there is one for every character, so that no text is lost.
SPLIT_PATTERN = regex.compile(
    # English endings after an apostrophe: "it's" is cut it + 's. Lower case alone:
    # "IT'S" is cut IT + ' + S. The typographic apostrophe U+2019 is not meant.
    r"'s|'t|'re|'ve|'m|'ll|'d"
    # A word, with one space before it if there is one: letters of any script. Combining
    # marks are no letters, so that "e" followed by U+0301 is two pieces.
    r"| ?\p{L}+"
    # A number likewise: digits of any script, and "²" and "Ⅷ" too.
    r"| ?\p{N}+"
    # A run of what is none of these, likewise: punctuation, emoji, marks, controls.
    r"| ?[^\s\p{L}\p{N}]+"
    # White space at the end of the text, or all but the last character of it elsewhere:
    # "a   b" is cut a + two spaces + " b", as the last space belongs to the word.
    r"|\s+(?!\S)"
    # That last character, where it is no space that the next piece takes: a line feed.
    r"|\s+"
)

STRETCH = 2**20  # characters split at a time, so that the list of pieces stays small

_SAFE_CUT = regex.compile(r"(?<=\S)(?=\s)")
_LONE_SURROGATE = re.compile(
    r"[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]"
)


def split(text: str, stretch: int = STRETCH) -> Iterator[list[str]]:
    """The pieces of a text, in lists of at least `stretch` characters but for the last.

    A text may be cut before white space that follows something else: no alternative of
    the pattern goes over that place, and none looks back.

    >>> list(split("It's  2 o'clock!"))
    [['It', "'s", ' ', ' 2', ' o', "'", 'clock', '!']]
    """
    start = 0
    while cut := _SAFE_CUT.search(text, start + stretch):
        yield SPLIT_PATTERN.findall(text, start, cut.start())
        start = cut.start()
    yield SPLIT_PATTERN.findall(text, start)


def join_surrogates(text: str) -> str:
    """The text with each surrogate pair made the one character that it stands for.

    Raises TokenizerError, naming its position, where half of a pair stands alone, and
    ValueError where `text` is no str.

    >>> join_surrogates("\\ud83d\\udc4d") == "👍"
    True
    """
    if not isinstance(text, str):
        raise ValueError(f"text: must be a str, not {type(text).__name__}")  # noqa: TRY004
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        if lone := _LONE_SURROGATE.search(text):
            raise TokenizerError(
                f"position {lone.start()} of the text is {lone[0]!r}, a lone surrogate:"
                " half of a character, or a byte that was not UTF-8 when it was read"
            ) from None
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    return text
