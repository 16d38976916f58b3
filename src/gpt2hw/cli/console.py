"""The process's own streams: text in, text out, on any system and in any encoding.

Sources: Python's documentation of `signal` (note on SIGPIPE), of `sys.stdout`, and
PEP 383 (bytes in arguments that the system's encoding cannot read).
"""

import codecs
import errno
import gc
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

from gpt2hw.cli.text import json_text, one_line
from gpt2hw.errors import GPT2HWError

_process_is_ours = False  # as `prepare` is told


def prepare(*, process_is_ours: bool) -> None:
    """Makes standard output and error take any text.

    `process_is_ours`: whether it ends with the command.

    A character that the console's encoding lacks is written as an escape (\\u2019). A
    pipe or a file gets line ends as they are, on Windows too.
    """
    global _process_is_ours
    _process_is_ours = process_is_ours
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller, as with `>&-`
            nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, nowhere)
        stream = getattr(sys, name)
        if hasattr(stream, "reconfigure"):
            plain = None if stream.isatty() else "\n"
            stream.reconfigure(errors="backslashreplace", newline=plain)


def say(message: str) -> None:
    """One line on standard error; if nobody can read it, so be it."""
    say_as_it_is(one_line(message))


def say_as_it_is(text: str) -> None:
    """A text on standard error; if nobody can read it, so be it."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)
    except ValueError:  # it is closed
        pass


def say_apart(lines: Iterable[str]) -> None:
    """Lines on standard error; on a terminal an empty one sets them off."""
    for line in [""] * sys.stderr.isatty() + list(lines):
        say(line)


def print_json(found: Any) -> None:
    """JSON on standard output: a terminal gets the characters that it has.

    So does a pipe in UTF-8, as JSON between programs has to be; another gets ASCII.
    """
    encoding = sys.stdout.encoding or "ascii"
    can_show = sys.stdout.isatty() or codecs.lookup(encoding).name == "utf-8"
    print(json_text(found, encoding if can_show else "ascii"))


def decoded(word: str, what: str) -> str:
    """An argument as text: bytes that the system could not decode are UTF-8.

    For texts alone: a path that is decoded no longer names its file. `what` is how the
    argument is called in the GPT2HWError of one that is no text.

    >>> decoded("caf\\udcc3\\udca9", "TEXT")
    'café'
    """
    try:
        word.encode("utf-8")
    except UnicodeEncodeError as error:
        return utf8(_bytes_of(word, what, error.start), what)
    return word


def _bytes_of(word: str, what: str, position: int) -> bytes:
    try:
        return os.fsencode(word)
    except UnicodeEncodeError:
        raise GPT2HWError(
            f"{what} has half of a surrogate pair at position {position}"
        ) from None


def read_input() -> str:
    """Standard input to its end, as UTF-8, with its line ends as they are.

    Raises GPT2HWError that names the position of a byte that is not UTF-8.
    """
    if sys.stdin is None:
        raise GPT2HWError(
            "standard input is closed, so there is no text to read from -"
        )
    if sys.stdin.isatty():
        keys = "Ctrl-Z and Enter" if os.name == "nt" else "Ctrl-D"
        say(f"gpt2hw: reading the text from this terminal; end it with {keys}")
    return utf8(sys.stdin.buffer.read(), "standard input")


def utf8(raw: bytes, what: str) -> str:
    """The text in UTF-8 bytes; a GPT2HWError says where in `what` they are none."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise GPT2HWError(
            f"{what} is not UTF-8: byte 0x{raw[error.start]:02x} at position"
            f" {error.start}"
        ) from None


def is_closed_pipe(error: BaseException) -> bool:
    """Whether an error means that the reader of standard output has gone.

    Windows says EINVAL; so it does of a bad file name, but then it gives the name.
    """
    if not isinstance(error, OSError) or error.filename is not None:
        return False
    return error.errno == errno.EPIPE or (
        os.name == "nt" and error.errno == errno.EINVAL
    )


def cannot_write(error: OSError) -> bool:
    """Whether an error means that there is no room, or that writing is not allowed."""
    names = ("ENOSPC", "EFBIG", "EDQUOT", "EBADF")  # Windows has no quotas
    return error.errno in {getattr(errno, name, errno.ENOSPC) for name in names}


def flush_or_discard_output() -> OSError | None:
    """Writes out what is buffered; where that fails, the flush at exit shall not.

    Returns the error of a failure.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        discard_output()
        return error
    return None


def discard_output() -> None:
    """Sends standard output nowhere, so that its flush at exit cannot fail."""
    discard(sys.stdout)


def discard(stream: TextIO) -> None:
    """Sends a standard stream nowhere, so that its flush at exit cannot fail."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


@contextmanager
def importing() -> Iterator[None]:
    """For imports that take a while: they take less, and Ctrl-C ends the process.

    A KeyboardInterrupt inside an import may be swallowed, or come out as another error.
    """
    with _leaving_at_once(), _no_collecting():
        yield


@contextmanager
def _leaving_at_once() -> Iterator[None]:
    """Ctrl-C ends the process on the spot.

    Where Ctrl-C has another meaning already (none, in a job that a shell runs in the
    background), or outside the main thread, nothing changes.
    """
    usual = signal.default_int_handler
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not usual:
        yield
        return
    signal.signal(signal.SIGINT, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


@contextmanager
def _no_collecting() -> Iterator[None]:
    """No search for garbage: what is imported stays, and torch makes 170,000 objects.

    Searching through them again and again takes a fifth of a second; they are left out
    of later searches, too. In a process that goes on after the command, nothing
    changes: what of its own is there now would be left out as well.
    """
    if not _process_is_ours or "torch" in sys.modules or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _leave(signum: int, _frame: FrameType | None) -> None:
    if sys.stderr.isatty():
        say("")
    os._exit(128 + signum)


@contextmanager
def warnings_in_one_line() -> Iterator[None]:
    """This package's warnings as one line on standard error; torch's are left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.filterwarnings("ignore", module=r"torch(\.|$)")
        warnings.simplefilter("ignore", ResourceWarning)  # Ctrl-C leaves files open
        warnings.showwarning = _show_warning  # type: ignore[assignment]
        yield


def _show_warning(message: Warning | str, *_: object) -> None:
    say(f"gpt2hw: warning: {message}")
