"""Tables and colours: on a terminal as wide and as colourful as it is, else plain.

Into a pipe or a file everything goes without colour, and each line whole, however long.
"""

import re
import sys
import textwrap
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import NoReturn, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from gpt2hw.cli.text import NARROWEST, in_a_line, neutral
from gpt2hw.hub.progress import without_odd_sizes

UNWRAPPED = 1_000_000  # columns
GAP = "  "


class _Console(Console):
    def on_broken_pipe(self) -> NoReturn:
        """Leaves the error to `main`; rich would end the process with status 1."""
        raise  # it is called while the error is handled


def rich_console(stream: TextIO | None = None) -> Console:
    """A stream (None: standard output) to rich; NO_COLOR, TERM and COLUMNS are heeded.

    COLUMNS and LINES that are no size are not.
    """
    console = _Console(
        file=stream,
        highlight=False,
        markup=False,
        emoji=False,
        _environ=without_odd_sizes(),
    )
    is_wide = not console.is_terminal
    console.width = UNWRAPPED if is_wide else max(console.width, NARROWEST)
    return console


def show(*parts: str | Text) -> None:
    """Prints texts one under the other; a line that is too long is left to wrap."""
    console = rich_console()
    for part in parts:
        if isinstance(part, str):
            print(part)
        else:
            console.print(part, soft_wrap=True)


def filled(text: str) -> str:
    """A text in lines no longer than the terminal, broken between words alone.

    >>> filled("into a pipe it is one line")
    'into a pipe it is one line'
    """
    width = rich_console().width
    return textwrap.fill(
        text, width, break_long_words=False, break_on_hyphens=False, tabsize=1
    )


def aside(text: str) -> None:
    """A dim line for a person who looks on; into a pipe or a file, nothing."""
    if sys.stdout.isatty():
        show(dim(text))


def dim(text: str) -> Text:
    """A line that stands back behind the others."""
    return Text(filled(in_a_line(text)), "dim")


def shortened(path: str, width: int) -> str:
    """A path without its first folders, or letters, where it is too wide.

    >>> shortened("/a/long/way/to/model.safetensors", 24)
    '.../to/model.safetensors'
    """
    if cell_len(path) <= width:
        return path
    parts = re.split(r"(?=[/\\])", path)
    while len(parts) > 1 and cell_len("..." + "".join(parts)) > width:
        parts.pop(0)
    rest = "".join(parts)
    while rest and cell_len("..." + rest) > width:
        rest = rest[1:]
    return "..." + rest


class Output:
    """Standard output for a text that comes in pieces: each is shown at once.

    On a terminal control characters are spelt out and `style` is heeded; a pipe gets
    the text as it is. At the end of a `with` the last line is ended.
    """

    def __init__(self) -> None:
        self._is_terminal = sys.stdout.isatty()
        self._line_is_open = False

    def __enter__(self) -> "Output":
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Ends the line, unless Ctrl-C did."""
        if kind is None:
            self.end_line()
        elif issubclass(kind, Exception):
            with suppress(OSError):
                self.end_line()

    def write(self, text: str, style: str = "") -> None:
        """Writes a piece of text."""
        if not text:
            return
        if not self._is_terminal:
            sys.stdout.write(text)
        elif style:
            rich_console().print(Text(neutral(text), style), end="", soft_wrap=True)
        else:
            sys.stdout.write(neutral(text))
        sys.stdout.flush()
        self._line_is_open = not text.endswith("\n")

    def end_line(self) -> None:
        """Ends the line if one is begun."""
        if self._line_is_open:
            self.write("\n")


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    right: Collection[str] = (),
) -> Text:
    """Rows in aligned columns; those whose headings are in `right` are flush right.

    Where they are wider than the terminal, the first cell of each row stands alone and
    the others below it.
    """
    lines = [[Text(heading, "dim") for heading in headings]]
    lines += [[Text() + cell for cell in row] for row in rows]
    widths = [
        max(cell.cell_len for cell in column) for column in zip(*lines, strict=True)
    ]
    is_narrow = sum(widths) + len(GAP) * (len(widths) - 1) > rich_console().width
    for line in lines:
        for cell, width, heading in zip(line, widths, headings, strict=True):
            cell.align("right" if heading in right else "left", width)
    return Text("\n").join(_joined(line, is_narrow) for line in lines)


def _joined(cells: Sequence[Text], is_narrow: bool) -> Text:
    parts = [Text(GAP).join(cells)]
    if is_narrow:
        first = cells[:1] if cells[0].plain.strip() else []
        parts = [*first, Text(GAP) + Text(GAP).join(cells[1:])]
    for part in parts:
        part.rstrip()
    return Text("\n").join(parts)


def plain_table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], right: Collection[str] = ()
) -> str:
    """As `table`, without colours: for more rows than rich lays out in a short time.

    >>> print(plain_table(("name", "n"), [("a", "1"), ("b", "10")], right=("n",)))
    name   n
    a      1
    b     10
    """
    lines = [headings, *rows]
    columns = [
        _aligned(column, heading in right)
        for heading, column in zip(headings, zip(*lines, strict=True), strict=True)
    ]
    heading_line = GAP.join(column[0] for column in columns)  # as wide as any other
    is_narrow = len(heading_line) > rich_console().width
    between = f"\n{GAP}" if is_narrow else GAP
    return "\n".join(
        f"{first.rstrip() if is_narrow else first}{between}{GAP.join(others)}".rstrip()
        for first, *others in zip(*columns, strict=True)
    )


def _aligned(column: Sequence[str], is_right: bool) -> list[str]:
    """The cells of a column, filled up with spaces to the width of the widest."""
    lengths = [len(c) if c.isascii() else cell_len(c) for c in column]
    widest = max(lengths)
    gaps = [" " * (widest - length) for length in lengths]
    pairs = zip(column, gaps, strict=True)
    return [gap + cell if is_right else cell + gap for cell, gap in pairs]
