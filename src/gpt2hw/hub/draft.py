"""A file that is not whole yet: what has arrived of it, and the hash of that.

It lies in a folder `.gpt2hw` beside the file that it will be, and gets that name by one
step when its size and its hash are right. So a file with the final name is whole,
whatever happened before: Ctrl-C, a kill, a full disk, a power cut.
"""

import hashlib
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gpt2hw.files import NOT_THERE, not_a_file
from gpt2hw.hub.statement import PIECE, Statement

START = 512  # bytes at the beginning that tell what kind of file it is
REPLACING_TRIES = 10  # on Windows, while something else holds the file


class Draft:
    """The beginning of a file, open for more.

    `length` is how much of it is there, `start` are its first bytes. What was there
    before is read once, for its hash; more than `limit` bytes are not believed.
    """

    def __init__(self, path: Path, limit: int | None = None) -> None:
        self.path = path
        self._file = path.open("a+b", buffering=0)
        self._begin()
        if limit is not None and os.fstat(self._file.fileno()).st_size > limit:
            self.reset()
        self._file.seek(0)
        while piece := self._file.read(PIECE):
            self._count(piece)

    def _begin(self) -> None:
        self.length, self.start, self._sha256 = 0, b"", hashlib.sha256()

    def _count(self, piece: bytes) -> None:
        self.length += len(piece)
        self.start += piece[: START - len(self.start)]
        self._sha256.update(piece)

    def append(self, piece: bytes) -> None:
        """Adds bytes; they are with the system at once, and outlive a kill."""
        rest = memoryview(piece)
        while rest:
            rest = rest[self._file.write(rest) :]
        self._count(piece)

    def reset(self) -> None:
        """Forgets all that has arrived."""
        self._file.truncate(0)
        self._begin()

    @property
    def sha256(self) -> str:
        """The SHA-256 of what is there, in hex."""
        return self._sha256.hexdigest()

    def install(self, path: Path) -> None:
        """Gives the file its name, once its bytes are on the disk."""
        os.fsync(self._file.fileno())
        self._file.close()
        replace(self.path, path)
        sync_folder(path.parent)

    def close(self) -> None:
        """Leaves what is there for another time."""
        self._file.close()


@dataclass(frozen=True)
class Desk:
    """Where drafts lie, and whether no other process uses them."""

    folder: Path
    is_ours: bool = True

    def drafts_of(self, file: str) -> Iterator[Path]:
        """The drafts of a file that are here."""
        name = re.compile(re.escape(file) + r"(\.[0-9a-f]+)*\.part")
        yield from (p for p in self.folder.glob("*.part") if name.fullmatch(p.name))

    def open(self, file: str, known: Statement) -> Draft:
        """The draft of a file of which this is known; those of its others are removed.

        What is there already is kept where the hash will tell whether it belongs.
        """
        own = "" if self.is_ours else secrets.token_hex(4)
        parts = (file, known.label, own, "part")
        path = self.folder / ".".join(part for part in parts if part)
        if self.is_ours:
            for other in {*self.drafts_of(file)} - {path}:
                remove(other)
        # A link that came with the folder would lead the bytes out of it.
        if path.is_symlink() or not_a_file(path) not in (None, NOT_THERE):
            remove(path)
        return Draft(path, known.size if known.has_hash else 0)

    def clear(self) -> None:
        """Removes what is left once all files are in place."""
        if self.is_ours:
            for left in self.folder.glob("*.part"):
                remove(left)


def remove(path: Path) -> None:
    """Removes a file, if it can be."""
    with suppress(OSError):
        path.unlink()


def replace(path: Path, target: Path) -> None:
    """Moves a file over another; on Windows it waits for who is reading that."""
    for n_left in reversed(range(REPLACING_TRIES)):
        try:
            path.replace(target)
        except PermissionError:
            if os.name != "nt" or not n_left:
                raise
            time.sleep(0.1)
        else:
            return


def sync_folder(folder: Path) -> None:
    """Makes a new name in a folder outlast a power cut, where the system can."""
    with suppress(OSError):  # Windows opens no folder
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
