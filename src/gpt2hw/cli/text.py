"""Text made fit to be shown: in one line, or with what is invisible spelt out.

What a model writes is not to be trusted on a terminal: the characters below U+0020 and
those from U+007F to U+009F can move its cursor, change its title, or clear it.
"""

import json
import re
import unicodedata
from typing import Any

DOT = "·"
NARROWEST = 20  # columns; a terminal that claims fewer gets lines of this width
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# What ends a line or turns it around: in a table or a message it would forge another.
_LINE_BREAKERS = re.compile("[\n\t\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# Compiled here, not when an error is told: that one may be of too little memory.
_SPACES = re.compile("[\t\u2028\u2029]")
_SURROGATES = re.compile("[\ud800-\udfff]+")
_SHORT = {"\n": r"\n", "\t": r"\t", "\r": r"\r", "\\": r"\\"}
_UNDECODED = range(0xDC80, 0xDD00)  # surrogateescape's stand-ins for bytes


def neutral(text: str) -> str:
    r"""The text with its control characters spelt out, but for line feed and tab.

    >>> print(neutral("red: \x1b[31m"))
    red: \x1b[31m
    """
    text = legible(text).replace("\r\n", "\n")
    return _CONTROLS.sub(lambda m: _escaped(m[0]), text)


def legible(text: str) -> str:
    r"""The text with the bytes that the system could not decode, as in a path, read.

    They are UTF-8; what is not becomes an escape.

    >>> print(legible("caf\udcc3\udca9 \udcff"))
    café \xff
    """
    return _SURROGATES.sub(lambda m: _read_anew(m[0]), text)


def _read_anew(surrogates: str) -> str:
    try:
        raw = surrogates.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half of a pair
        return surrogates.encode("ascii", "backslashreplace").decode("ascii")
    return raw.decode("utf-8", "backslashreplace")


def in_a_line(text: str) -> str:
    r"""As `neutral`, with line feeds, tabs and what turns a line around spelt out too.

    >>> print(in_a_line("two\nlines, \u202edesrever"))
    two\nlines, \u202edesrever
    """
    text = neutral(text)
    return _LINE_BREAKERS.sub(lambda m: _SHORT.get(m[0]) or _escaped(m[0]), text)


def cell(name: str, encoding: str) -> str:
    r"""A name as a table shows it: no two names look the same, and none is two rows.

    >>> print(cell("wte\nwpe", "utf-8"), cell(r"wte\nwpe", "utf-8"))
    wte\nwpe wte\\nwpe
    """
    if name.isascii() and name.isprintable() and "\\" not in name:
        return name
    return spelled(name.encode("utf-8", "surrogatepass"), encoding)


def one_line(message: str) -> str:
    r"""A message of several lines in one; those that are indented are a list.

    >>> one_line("not here; looked in\n  models/gpt2\n  cache/gpt2\nGive a folder.")
    'not here; looked in models/gpt2; cache/gpt2. Give a folder.'
    """
    first, *others = message.strip().split("\n")
    joined, was_indented = first.rstrip(), False
    for line in filter(str.strip, others):
        is_indented = line.startswith(" ")
        ended = joined.endswith((":", ".", ";", ","))
        if is_indented and was_indented:
            joined += ";"
        elif not is_indented and not ended:
            joined += "."
        joined += f" {line.strip()}"
        was_indented = is_indented
    joined = _SPACES.sub(" ", joined)
    return in_a_line(joined.replace("\n", " "))


def counted(n: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "value"), counted(2048, "token")
    ('1 value', '2,048 tokens')
    """
    return f"{n:,} {what}" + "s" * (n != 1)


def json_text(found: Any, encoding: str = "ascii") -> str:
    """JSON with a line for each entry and for each row of a list of objects.

    What cannot be seen, or lacks in the encoding, is an escape.

    >>> print(json_text({"n": 2, "rows": [{"id": 1}, {"id": 2}]}))
    {
      "n": 2,
      "rows": [
        {"id": 1},
        {"id": 2}
      ]
    }
    """
    if isinstance(found, dict):
        lines = [
            f"{_json(key, encoding)}: {json_text(found[key], encoding)}"
            for key in found
        ]
        opening, closing = "{}"
    elif isinstance(found, list) and found and isinstance(found[0], dict):
        lines = [_json(row, encoding) for row in found]
        opening, closing = "[]"
    else:
        return _json(found, encoding)
    inside = ",\n".join(lines).replace("\n", "\n  ")
    return f"{opening}\n  {inside}\n{closing}" if lines else opening + closing


def _json(found: Any, encoding: str) -> str:
    text = json.dumps(found, allow_nan=False, ensure_ascii=False)

    def shown(match: re.Match[str]) -> str:
        char = match[0]
        if char.isprintable() and _fits(char, encoding):
            return char
        return r"\u007f" if char == "\x7f" else json.dumps(char)[1:-1]

    return re.sub(r"[^\x00-\x7e]", shown, text)


def spelled(data: bytes, encoding: str = "utf-8", also: str = "") -> str:
    r"""Bytes as text, with escapes for what cannot be seen or is no character.

    \xNN is a byte that is no part of a character (or one below 0x80), \uNNNN a
    character that is invisible, combines with the one before it, lacks in the
    `encoding`, or is in `also`; \n, \t, \r and \\ are as in Python.

    >>> print(spelled("naïve\n".encode()), spelled(b"\xf0\x9f"))
    naïve\n \xf0\x9f
    """
    text = data.decode("utf-8", errors="surrogateescape")
    shown = [_spelled_char(char, encoding, also) for char in text]
    if text and unicodedata.category(text[0]).startswith("M"):
        shown[0] = _escaped(text[0])
    return "".join(shown)


def quoted(data: bytes, encoding: str) -> str:
    r"""Bytes spelt out between quotation marks.

    >>> print(quoted(b' "ok"\n', "ascii"))
    " \"ok\"\n"
    """
    return '"' + spelled(data, encoding).replace('"', r"\"") + '"'


def dotted(data: bytes, encoding: str) -> str:
    r"""Bytes spelt out with a dot for each space, where the encoding has one.

    >>> dotted(b" world", "utf-8"), dotted(b" world", "ascii")
    ('·world', ' world')
    """
    if not _fits(DOT, encoding):
        return spelled(data, encoding)
    return spelled(data, encoding, also=DOT).replace(" ", DOT)


def _spelled_char(char: str, encoding: str, also: str) -> str:
    if char in _SHORT:
        return _SHORT[char]
    if not char.isprintable() or char in also or not _fits(char, encoding):
        return _escaped(char)
    return char


def _escaped(char: str) -> str:
    point = ord(char)
    if point in _UNDECODED:
        return f"\\x{point - 0xDC00:02x}"
    if point < 0x80:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"


def _fits(char: str, encoding: str) -> bool:
    try:
        char.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True
