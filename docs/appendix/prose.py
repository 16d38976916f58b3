"""What a word and a sentence are, where the samples are measured by them.

A word is a run of letters with single apostrophes inside it, in small letters; anything
else parts words, a hyphen too: `King's-son` is `king's` and `son`. A sentence ends with
`.`, `!` or `?`, with the quotes and brackets that close after it, before white space
and a capital, with the quote that opens before it; or at the end of its paragraph. So
`"Yes!" said the fox.` is one.
"""

import re
from collections import Counter

WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
END = re.compile(r"(?<=[.!?])([\"')\]]*)\s+(?=[\"'(]?[A-Z])")
WHOLE = re.compile(r"[.!?][\"')\]]*$")


def words(text: str) -> list[str]:
    """The words of a text, in order.

    >>> words('"Don\\'t," said the King\\'s-son.')
    ["don't", 'said', 'the', "king's", 'son']
    """
    return WORD.findall(text.lower().replace("’", "'"))


def whole_words(text: str, *, is_cut: bool) -> list[str]:
    """The words; of a text that was cut off, without a last one that may be half.

    >>> whole_words("He ate a fi", is_cut=True), whole_words("He ate.", is_cut=True)
    (['he', 'ate', 'a'], ['he', 'ate'])
    """
    found = words(text)
    is_half = is_cut and text[-1:].isalpha()
    return found[:-1] if is_half else found


def sentences(text: str) -> list[str]:
    """The whole sentences of a text; what is cut off at the end of it is left out.

    >>> sentences('"Yes!" said he. "Go." He went.' + chr(10) * 2 + "And th")
    ['"Yes!" said he.', '"Go."', 'He went.']
    """
    parts = [
        part.strip()
        for paragraph in text.split("\n\n")
        for part in END.sub(r"\1\0", paragraph).split("\0")
    ]
    return [part for part in parts if WHOLE.search(part)]


def repeated(text: str) -> list[str]:
    """The sentences that a text says twice: the same words in the same order.

    >>> repeated("He went. She came! He WENT.")
    ['he went']
    """
    counts = Counter(" ".join(words(sentence)) for sentence in sentences(text))
    return [said for said, n in counts.items() if n > 1 and said]
