"""How long a download waits, and how often it tries again.

Source of Retry-After: RFC 9110, section 10.2.3.
"""

import os
import random
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


@dataclass(frozen=True)
class Patience:
    """Tries and waiting times, in seconds.

    `tries` in a row may bring nothing. Between them it waits `first_delay`, and twice
    as long each time, up to `longest_delay`; a server that asks for another time gets
    it, up to `longest_retry_after`. `connect` is the time for a connection to stand,
    `stalled` the longest silence in an answer, and `slowest` the bytes a second below
    which an answer counts as silent, over twice that time.
    """

    tries: int = 5
    first_delay: float = 1.0
    longest_delay: float = 30.0
    longest_retry_after: float = 300.0
    connect: float = 10.0
    stalled: float = 30.0
    slowest: float = 1000.0

    def delay(self, n_failed: int, chance: float | None = None) -> float:
        """The wait after so many failures, less up to a half by chance (0 to 1).

        By chance, so that many who were cut off at once do not all come back at once.

        >>> Patience().delay(1, chance=1.0), Patience().delay(3, chance=0.0)
        (1.0, 2.0)
        >>> Patience().delay(1000, chance=1.0)
        30.0
        """
        chance = random.random() if chance is None else chance  # noqa: S311
        doubled = self.first_delay * 2.0 ** min(n_failed - 1, 60)
        return min(doubled, self.longest_delay) * (0.5 + chance / 2)


PATIENCE = Patience()


def usual() -> Patience:
    """PATIENCE, with the seconds of HF_HUB_DOWNLOAD_TIMEOUT and HF_HUB_ETAG_TIMEOUT.

    The first is the longest silence, the second the time for a connection; as in
    huggingface_hub, `constants.py`.
    """
    stalled = _seconds("HF_HUB_DOWNLOAD_TIMEOUT") or PATIENCE.stalled
    connect = _seconds("HF_HUB_ETAG_TIMEOUT") or PATIENCE.connect
    return replace(PATIENCE, stalled=stalled, connect=connect)


def _seconds(variable: str) -> float | None:
    said = os.environ.get(variable, "")
    return float(said) if re.fullmatch("0*[1-9][0-9]{,5}", said) else None


def step_of(size: int | None) -> int:
    """How many new bytes count as progress: a hundredth of the file, at most 1 MiB.

    >>> step_of(548_105_171), step_of(665), step_of(50), step_of(None)
    (1048576, 6, 1, 65536)
    """
    return 2**16 if size is None else min(max(size // 100, 1), 2**20)


class Tries:
    """Counts the tries that brought nothing, and says how long to wait for the next."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._mark = 0
        self.n_failed = 0

    def next_delay(
        self, reached: int, size: int | None, asked: float | None = None
    ) -> float | None:
        """The wait after a try that ended at byte `reached`; None: no more tries.

        `asked` is the wait that the server asks for.

        >>> tries = Tries(Patience(tries=2, first_delay=0))
        >>> [tries.next_delay(n, 1000, asked=7.0) for n in (10, 15, 15)]
        [7.0, 7.0, None]
        """
        if reached - self._mark >= step_of(size):
            self._mark, self.n_failed = reached, 0
        else:
            self.n_failed += 1
        if self.n_failed >= self._patience.tries:
            return None
        if asked is not None:
            return asked
        return self._patience.delay(max(self.n_failed, 1))


def retry_after(said: str | None, now: datetime | None = None) -> float | None:
    """The seconds that a Retry-After asks for; None where it says nothing readable.

    >>> retry_after("120"), retry_after("soon"), retry_after(None)
    (120.0, None, None)
    >>> retry_after("Fri, 31 Dec 1999 23:59:59 GMT")
    0.0
    """
    said = (said or "").strip()
    if said.isascii() and said.isdigit():
        return float(said[:9])
    try:
        then = parsedate_to_datetime(said)
    except (ValueError, OverflowError):  # a year of twenty digits, say
        return None
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return max((then - (now or datetime.now(UTC))).total_seconds(), 0.0)
