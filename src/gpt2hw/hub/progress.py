"""What a person sees of a download: a bar on a terminal, plain lines elsewhere.

It goes to standard error. The rooms that download are given a Watch and know nothing
of terminals. A message shows no more of an address than its file.
"""

import os
import re
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from rich.progress import TaskID

BETWEEN = 0.1  # seconds between two updates of the bar


class Watch(Protocol):
    """What is told of a download while it runs."""

    def begins(self, path: Path, n_here: int, size: int | None) -> None:
        """A file comes in, of which so many bytes are here; None: size not known."""

    def reached(self, n_here: int) -> None:
        """So many bytes of it are here now."""

    def waits(self, why: str) -> None:
        """Nothing comes for a while."""


class Unwatched:
    """A Watch that shows nothing."""

    def begins(self, path: Path, n_here: int, size: int | None) -> None:
        """Shows nothing."""

    def reached(self, n_here: int) -> None:
        """Shows nothing."""

    def waits(self, why: str) -> None:
        """Shows nothing."""


class Lines(Unwatched):
    """One line for each file, when it begins, and one for each wait."""

    def __init__(self) -> None:
        self._told: set[Path] = set()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Has nothing to tidy."""

    def begins(self, path: Path, n_here: int, size: int | None) -> None:
        """Tells of the file, its size, and its folder."""
        if path in self._told:
            return
        self._told.add(path)
        amount = "" if size is None else f", {readable(size)}"
        amount += f" ({readable(n_here)} are here)" if n_here else ""
        _say(f"downloading {path.name}{amount}, into {printable(path.parent)}")

    def waits(self, why: str) -> None:
        """Tells why nothing comes, so that a job's log does not look dead."""
        _say(why)


def _say(text: str) -> None:
    """One line on standard error, if there is one."""
    if sys.stderr is not None:  # print would take None for standard output
        with suppress(OSError, ValueError):  # if nobody can read it, so be it
            print(f"gpt2hw: {text}", file=sys.stderr, flush=True)


class Bar:
    """A bar with the rate and the remaining time, one for each file."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        self._progress: Progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=Console(
                stderr=True,
                highlight=False,
                markup=False,
                emoji=False,
                _environ=without_odd_sizes(),
            ),
        )
        self._tasks: dict[Path, TaskID] = {}
        self._task: TaskID | None = None
        self._next = 0.0
        self._total: int | None = None

    def __enter__(self) -> Self:
        """Starts to draw."""
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Leaves the bars as they are, and the cursor below them."""
        self._progress.stop()

    def begins(self, path: Path, n_here: int, size: int | None) -> None:
        """Shows a bar for the file."""
        if path not in self._tasks:
            self._tasks[path] = self._progress.add_task(
                path.name, total=size, completed=n_here
            )
        self._task, self._total = self._tasks[path], size
        self._progress.update(self._task, total=size, completed=n_here)

    def reached(self, n_here: int) -> None:
        """Moves the bar, though not more often than an eye can follow."""
        now = time.monotonic()
        if self._task is not None and (now >= self._next or n_here == self._total):
            self._next = now + BETWEEN
            self._progress.update(self._task, completed=n_here)

    def waits(self, why: str) -> None:
        """Tells above the bars why they stand still."""
        self._progress.console.print(f"gpt2hw: {why}", soft_wrap=True)


def shown() -> Lines | Bar:
    """A bar where standard error is a terminal, lines where it is not.

    >>> with shown() as watch:
    ...     watch.waits("for a test")
    """
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    return Bar() if is_terminal else Lines()


def without_odd_sizes() -> dict[str, str]:
    """The environment, less a COLUMNS or LINES that is no size.

    rich takes 0 for one, and fails at "²".
    """
    sizes = {name: os.environ.get(name, "") for name in ("COLUMNS", "LINES")}
    odd = {name for name, n in sizes.items() if not re.fullmatch("0*[1-9][0-9]{,5}", n)}
    return {name: value for name, value in os.environ.items() if name not in odd}


def readable(n_bytes: int) -> str:
    """A number of bytes in the unit that fits.

    >>> readable(92), readable(4_444_416), readable(999_960)
    ('92 B', '4.4 MB', '1.0 MB')
    """
    size, units = float(n_bytes), ["B", "kB", "MB", "GB", "TB"]
    while len(units) > 1 and round(size, 1) >= 1000:
        size, units = size / 1000, units[1:]
    return f"{size:.0f} B" if units[0] == "B" else f"{size:.1f} {units[0]}"


def printable(path: Path) -> str:
    """A path for a line of text: control characters are spelt out."""
    text = str(path)
    return text if text.isprintable() else repr(text)
