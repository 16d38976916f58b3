"""The body of an answer: which bytes of the file it holds, and how they come in.

Source: RFC 9110, section 14.4 (Content-Range); RFC 9112, section 6 (the body's length).
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gpt2hw.hub.draft import START
from gpt2hw.hub.patience import Patience
from gpt2hw.hub.refusals import TryAgain
from gpt2hw.hub.statement import content_range, whole_number


@dataclass(frozen=True)
class Part:
    """The bytes of a file from `start` up to `stop`, None where that is not known.

    `is_framed` says whether a body that is cut off can be told from a whole one.
    """

    start: int
    stop: int | None
    is_framed: bool


def part_of(
    status: int, headers: Mapping[str, str], reached: int, size: int | None
) -> Part:
    """What an answer of status 200 or 206 brings, where `reached` bytes are here.

    Raises TryAgain for what cannot be part of a file of that size, or does not begin
    where it should.

    >>> part_of(206, {"Content-Range": "bytes 5-8/9"}, reached=5, size=None)
    Part(start=5, stop=9, is_framed=True)
    >>> part_of(200, {"Content-Length": "9"}, reached=5, size=None)
    Part(start=0, stop=9, is_framed=True)
    >>> part_of(206, {"Content-Range": "bytes 0-8/9"}, reached=5, size=9)
    Traceback (most recent call last):
    gpt2hw.hub.refusals.TryAgain: the server sent another part than the one asked for
    """
    encoding = headers.get("Content-Encoding", "").strip().lower()
    if encoding not in ("", "identity"):
        raise TryAgain("the server sends it compressed, which it was asked not to")
    if status == 206:
        return _asked_part(headers, reached, size)
    length = whole_number(headers.get("Content-Length"))
    if size is not None and length not in (None, size):
        raise TryAgain(f"{length:,} bytes are announced, not {size:,}")
    is_chunked = "chunked" in headers.get("Transfer-Encoding", "").lower()
    return Part(0, length if size is None else size, length is not None or is_chunked)


def _asked_part(headers: Mapping[str, str], reached: int, size: int | None) -> Part:
    found = content_range(headers.get("Content-Range"))
    if found is None or found[0] != reached or size not in (None, found[2] or size):
        raise TryAgain("the server sent another part than the one asked for")
    stop = found[1] + 1
    return Part(reached, stop if size is None else min(stop, size), is_framed=True)


def gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces, of which the first is long enough to tell what they are from.

    Where they break off before that, what has come is given before the error.

    >>> [len(piece) for piece in gathered([b"a" * 400] * 4)]
    [800, 400, 400]
    """
    pieces, first = iter(pieces), b""
    try:
        while len(first) < START:
            first += next(pieces)
    except StopIteration:
        pieces = iter(())
    except TryAgain:
        yield first
        raise
    yield first
    yield from pieces


class Pace:
    """Watches that bytes come at some speed: a trickle counts as silence."""

    def __init__(self, patience: Patience) -> None:
        self._seconds = 2 * patience.stalled
        self._least = patience.slowest * self._seconds
        self._since, self._n_bytes = time.monotonic(), 0

    def count(self, n_bytes: int) -> None:
        """Counts bytes that have come; TryAgain where they were too few for long."""
        self._n_bytes += n_bytes
        if time.monotonic() - self._since < self._seconds:
            return
        if self._n_bytes < self._least:
            raise TryAgain("hardly anything came for a long time")
        self._since, self._n_bytes = time.monotonic(), 0
