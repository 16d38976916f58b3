"""Reading and replacing plain files, and saying what stands there instead.

A path may name anything: a pipe, which keeps its reader waiting for ever, a device that
never ends, a link to nothing, a folder. All of these are refused here before they are
opened, and a file is read only up to a limit.
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from io import BufferedWriter
from pathlib import Path

NOT_THERE = "not there"
DANGLING = "a link to nothing"


def file_path(path: object) -> Path:
    """The argument `path` of a door as a Path; a ValueError where it can be none.

    >>> file_path("tiny/config.json").name
    'config.json'
    >>> file_path(None)
    Traceback (most recent call last):
    ValueError: path: must be the path of a file, not None
    """
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else path
    if not isinstance(text, str) or not text or "\0" in text or not _encodable(text):
        raise ValueError(f"path: must be the path of a file, not {path!r:.80}")
    return Path(text)


def _encodable(text: str) -> bool:
    """Whether the system can have this name; half a surrogate pair can be none."""
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


def not_a_file(path: str | os.PathLike[str]) -> str | None:
    """What stands at a path instead of a plain file; None where there is one.

    A link stands for what it leads to. Never raises, and never waits.

    >>> not_a_file("/"), not_a_file("no/such.file")
    ('a folder', 'not there')
    """
    try:
        return _kind(os.stat(path).st_mode)  # noqa: PTH116 -- for any path, also a str
    except FileNotFoundError:
        return DANGLING if os.path.lexists(path) else NOT_THERE
    except OSError as error:
        return f"out of reach ({error.strerror})"
    except ValueError:  # a NUL, or half a surrogate pair
        return NOT_THERE


def _kind(mode: int) -> str | None:
    """What a file's mode says that it is; None for a plain file."""
    if stat.S_ISREG(mode):
        return None
    if stat.S_ISDIR(mode):
        return "a folder"
    if stat.S_ISFIFO(mode):
        return "a pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"


def read_plain(path: str | os.PathLike[str], max_bytes: int) -> bytes:
    """The bytes of a plain file.

    Raises FileNotFoundError where nothing is there, and a ValueError that says what the
    path leads to where that is no plain file, or one of more than `max_bytes`.

    >>> read_plain("/", max_bytes=10)
    Traceback (most recent call last):
    ValueError: a folder, not a file
    """
    instead = not_a_file(path)
    if instead == NOT_THERE:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    if instead:
        raise ValueError(f"{instead}, not a file")
    with Path(path).open("rb") as file:
        raw = file.read(max_bytes + 1)
    if len(raw) > max_bytes:
        raise ValueError(f"larger than {max_bytes} bytes")
    return raw


def why_not_writable(path: str | os.PathLike[str]) -> str | None:
    """Why no file can be written at a path, in a few words; None where one can be.

    Only a plain file is replaced, also at the end of a link. A new one needs a folder
    that is there.

    >>> why_not_writable("/"), why_not_writable("no/such.file")
    ('it is a folder', 'its folder is not there')
    """
    try:
        plain = file_path(path)
    except ValueError as error:
        return str(error).removeprefix("path: ")
    in_the_way = _in_the_way(path)
    if in_the_way:
        return f"it is {in_the_way}"
    target = _end_of_links(plain)
    if not os.path.isdir(target.parent):  # noqa: PTH112 -- never raises
        return "its folder is not there"
    allowed = os.access(target.parent, os.W_OK | os.X_OK)
    return None if allowed else "its folder cannot be written to"


def _in_the_way(path: str | os.PathLike[str]) -> str | None:
    """What no file is written over, None where nothing but a plain file may stand."""
    if os.fspath(path).endswith(("/", os.sep)):
        return "a folder"
    instead = not_a_file(path)
    return None if instead in (NOT_THERE, DANGLING) else instead


def _end_of_links(path: Path) -> Path:
    """Where a file written to `path` will lie."""
    return Path(os.path.realpath(path))


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BufferedWriter]:
    """A new file that takes the place of `path` once it is whole, or leaves nothing.

    What a link leads to is replaced, not the link. A file that was there hands its
    permissions on. Raises ValueError for what is no plain file, and OSError; both name
    `path`, not the draft that lies beside it until it is whole.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "one.bin")
    >>> with replacing(path) as file:
    ...     (file.write(b"1"), path.exists())
    (1, False)
    >>> path.read_bytes()
    b'1'
    >>> folder.cleanup()
    """
    plain, in_the_way = file_path(path), _in_the_way(path)
    if in_the_way:
        raise ValueError(f"path: {plain} cannot be written: it is {in_the_way}")
    target = _end_of_links(plain)
    draft = target.with_name(f".{secrets.token_hex(8)}.part")  # no longer than any name
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    opener = partial(os.open, mode=0o666 if mode is None else mode)
    try:
        with open(draft, "xb", opener=opener) as file:
            yield file
        if mode is not None:
            draft.chmod(mode)  # the umask may have taken some of it
        draft.replace(target)
    except OSError as error:
        _remove(draft)
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None
    except BaseException:
        _remove(draft)
        raise


def _remove(draft: Path) -> None:
    """Removes what is left, if it can be: the error that came before is told."""
    with suppress(OSError):
        draft.unlink()
