"""Tokens made visible: in rows on a terminal, one a line in a pipe, as JSON, as merges.

A token is a string of bytes and need not be whole characters, so each is spelt out
(`text.spelled`): what is no character or cannot be seen is shown as an escape.
"""

import sys
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.text import Text

from gpt2hw.cli.screen import aside, rich_console, show, table
from gpt2hw.cli.text import dotted, quoted, spelled

if TYPE_CHECKING:
    from gpt2hw.tokenizer import Step

Token = tuple[int, bytes]
# Dark letters on two light grounds can be read on a dark terminal and on a light one.
GROUNDS = ("#1a1a1a on #a8d8f0", "#1a1a1a on #f5d9a6")
LETTERS = ("cyan", "magenta")  # where a terminal has few colours


def as_rows(tokens: Sequence[Token]) -> list[dict[str, Any]]:
    """Objects for JSON; `text` is None where a token is no whole text.

    >>> as_rows([(15496, b"Hello")])[0]
    {'id': 15496, 'bytes': '48656c6c6f', 'text': 'Hello'}
    """
    return [
        {"id": token_id, "bytes": data.hex(), "text": _text_of(data)}
        for token_id, data in tokens
    ]


def _text_of(data: bytes) -> str | None:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def print_tokens(tokens: Sequence[Token]) -> None:
    """Prints pieces above their ids on a terminal, else a line `id  "piece"` each."""
    console = rich_console()
    if not console.is_terminal:
        width = max((len(str(token_id)) for token_id, _ in tokens), default=0)
        for token_id, data in tokens:
            print(f"{token_id:>{width}}  {quoted(data, sys.stdout.encoding)}")
        return
    styles = GROUNDS if console.color_system in ("256", "truecolor") else LETTERS
    for row in _rows(tokens, console.width, styles):
        console.print(row, soft_wrap=True)
    if (split := first_split(tokens)) is not None:
        aside(f"{split}: one character in {_IN_WORDS[split.count(' ') + 1]} tokens")


_IN_WORDS = {2: "two", 3: "three", 4: "four"}  # UTF-8 takes four bytes at most


def first_split(tokens: Sequence[Token]) -> str | None:
    r"""The first character that several tokens share, its bytes spelt out by token.

    >>> print(first_split([(447, b"\xe2\x80"), (247, b"\x99"), (82, b"s")]))
    \xe2\x80 \x99
    """
    bounds = set(accumulate(len(data) for _, data in tokens))
    start = 0
    for char in b"".join(data for _, data in tokens).decode("utf-8", "surrogateescape"):
        raw = char.encode("utf-8", "surrogateescape")
        cuts = [n for n in range(1, len(raw)) if start + n in bounds]
        if cuts:
            parts = pairwise([0, *cuts, len(raw)])
            return " ".join(spelled(raw[a:b]) for a, b in parts)
        start += len(raw)
    return None


def _rows(
    tokens: Sequence[Token], width: int, styles: tuple[str, str]
) -> Iterator[Text]:
    """Two lines for as many tokens as fit beside each other: pieces, and their ids."""
    pieces, ids = Text(), Text(style="dim")
    for n, (token_id, data) in enumerate(tokens):
        piece, number = dotted(data, sys.stdout.encoding), str(token_id)
        room = max(cell_len(piece), len(number))
        if pieces and cell_len(ids.plain) + room > width:
            yield _pair(pieces, ids)
            pieces, ids = Text(), Text(style="dim")
        pieces.append(piece, styles[n % 2])
        pieces.append(" " * (room - cell_len(piece) + 1))
        ids.append(f"{number:{room}} ")
        if data.endswith(b"\n") and n + 1 < len(tokens):
            yield _pair(pieces, ids)
            pieces, ids = Text(), Text(style="dim")
    if pieces:
        pieces.rstrip()
        ids.rstrip()
        yield Text("\n").join([pieces, ids])


def _pair(pieces: Text, ids: Text) -> Text:
    """Both lines, and an empty one."""
    pieces.rstrip()
    ids.rstrip()
    return Text("\n").join([pieces, ids, Text()])


def print_merges(steps: Sequence["Step"]) -> None:
    """Prints a table of the merges: rank, the token it makes, the parts after it."""
    rows: list[tuple[str, str, Text]] = []
    for n, step in enumerate(steps):
        if step.merged is None or step.rank is None:
            rows += [("", "", Text())] * bool(n)
            rows.append(("", "", _parts(step, ())))
        else:
            made = dotted(step.merged, sys.stdout.encoding)
            rows.append((str(step.rank), made, _parts(step, steps[n - 1].parts)))
    show(table(("rank", "makes", "parts"), rows, right=("rank",)), "")


def _parts(step: "Step", before: tuple[bytes, ...]) -> Text:
    """The parts with spaces between them; that which `before` did not have in bold."""
    parts = [Text(dotted(part, sys.stdout.encoding)) for part in step.parts]
    pairs = enumerate(zip(step.parts, before, strict=False))
    place = next((i for i, (part, old) in pairs if part != old), None)
    if place is not None:
        parts[place].stylize("bold green")
    return Text(" ").join(parts)
