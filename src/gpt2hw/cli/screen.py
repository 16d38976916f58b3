"""Tables and colours: on a terminal as wide and as colourful as it is, else plain.

Into a pipe or a file everything goes without colour, and each line whole, however long.
"""

import sys
from contextlib import suppress
from types import TracebackType
from typing import NoReturn

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpt2hw.cli.text import neutral

UNWRAPPED = 1_000_000  # columns


class _Console(Console):
    def on_broken_pipe(self) -> NoReturn:
        """Leaves the error to `main`; rich would end the process with status 1."""
        raise  # it is called while the error is handled


def screen() -> Console:
    """Standard output as rich sees it; NO_COLOR, TERM and COLUMNS are heeded."""
    console = _Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = UNWRAPPED
    return console


def show(*parts: object) -> None:
    """Prints texts and tables, one under the other."""
    console = screen()
    if console.is_terminal:
        for part in parts:
            console.print(part)
        return
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    lines = captured.get().split("\n")
    sys.stdout.write("\n".join(line.rstrip() for line in lines))


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
            screen().print(Text(neutral(text), style), end="", soft_wrap=True)
        else:
            sys.stdout.write(neutral(text))
        sys.stdout.flush()
        self._line_is_open = not text.endswith("\n")

    def end_line(self) -> None:
        """Ends the line if one is begun."""
        if self._line_is_open:
            self.write("\n")


def table(*headings: str, right: tuple[str, ...] = ()) -> Table:
    """An empty table without lines; the columns in `right` are flush right."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading in headings:
        made.add_column(
            heading, justify="right" if heading in right else "left", overflow="fold"
        )
    return made
