"""One process at a time downloads into a folder; the others wait, and find it there.

The system's own lock on a small file: it is gone with the process that held it, also
after a kill. Where a file system has no locks, all go on, each with drafts of its own.

Source: Python's documentation of fcntl.flock and msvcrt.locking.
"""

import errno
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

POLL = 0.1  # seconds between two looks at a lock that another holds
_HELD = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK)


@contextmanager
def locked(path: Path, waits: Callable[[], None]) -> Iterator[bool]:
    """Holds the lock file at `path`; gives False where nothing can be locked.

    `waits` is called once if another holds it. The file stays, empty.
    """
    number = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        yield _hold(number, waits)
    finally:
        os.close(number)  # and the lock is free


def _hold(number: int, waits: Callable[[], None]) -> bool:
    told = False
    while True:
        try:
            _lock(number)
        except OSError as error:
            if error.errno not in _HELD:
                return False
        else:
            return True
        if not told:
            waits()
            told = True
        time.sleep(POLL)


if sys.platform == "win32":

    def _lock(number: int) -> None:
        """Locks the file's first byte, or raises at once."""
        import msvcrt

        msvcrt.locking(number, msvcrt.LK_NBLCK, 1)

else:

    def _lock(number: int) -> None:
        """Locks the file, or raises at once."""
        import fcntl

        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
