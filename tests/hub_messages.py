"""What goes between the local hub and a client: files, requests, answers."""

import hashlib
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

LARGE = (".safetensors", ".bin", ".h5")  # what the hub keeps in LFS
PIECE = 1 << 18


@dataclass(frozen=True)
class File:
    """A file of a repository: its bytes, or where they lie."""

    content: bytes | Path
    is_large: bool = False

    @cached_property
    def size(self) -> int:
        held = self.content
        return len(held) if isinstance(held, bytes) else held.stat().st_size

    @cached_property
    def etag(self) -> str:
        """SHA-256 of a large file; of a small one, the SHA-1 by which git names it."""
        digest = hashlib.sha256() if self.is_large else hashlib.sha1()
        if not self.is_large:
            digest.update(b"blob %d\0" % self.size)
        for piece in self.pieces(0, self.size):
            digest.update(piece)
        return digest.hexdigest()

    @property
    def cdn_etag(self) -> str:
        """What the store behind the CDN calls the file: another hash, of its own."""
        return hashlib.md5(self.etag.encode()).hexdigest() + "-8"

    def pieces(self, start: int, stop: int) -> Iterator[bytes]:
        if isinstance(self.content, bytes):
            for at in range(start, min(stop, self.size), PIECE):
                yield self.content[at : min(stop, at + PIECE)]
            return
        with self.content.open("rb") as file:
            file.seek(start)
            while start < stop and (piece := file.read(min(PIECE, stop - start))):
                start += len(piece)
                yield piece


@dataclass
class Seen:
    """A request as it came in, and what went out on it."""

    host: str  # "hub", "cdn"
    method: str
    url: str
    headers: dict[str, str]  # names in lower case
    status: int = 0
    sent: int = 0  # bytes of the body

    @property
    def path(self) -> str:
        return unquote(urlsplit(self.url).path)

    @property
    def query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.url).query)

    @property
    def file(self) -> str:
        """The name of the file that is asked for; where it is none, the path."""
        if "file" in self.query:
            return self.query["file"][0]
        return re.sub(r".*/resolve/[^/]+/", "", self.path)

    @property
    def authorization(self) -> str | None:
        return self.headers.get("authorization")


@dataclass
class Pause:
    """A stop at a byte of the body: sets `reached`, goes on at `go` or in the end."""

    at: int
    seconds: float = 30
    reached: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)


@dataclass
class Answer:
    """What is sent: as the hub makes it, until a fault changes it."""

    status: int
    headers: dict[str, str]
    file: File
    start: int = 0
    stop: int = 0
    cut_at: int | None = None  # the connection ends after so many bytes of the body
    is_reset: bool = False  # not by an end, but by a reset
    pause: Pause | None = None
    rate: float | None = None  # bytes a second
    grain: int | None = None  # in steps of so many bytes
    is_chunked: bool = False  # no length beforehand, but an end mark
    tail: bytes = b""  # what follows the body
    raw: bytes | None = None  # instead of all of this

    def pieces(self) -> Iterator[bytes]:
        """The body as it goes out: split where a pause lies, ended where it is cut."""
        at, end = self.start, self.stop
        if self.cut_at is not None:
            end = min(end, at + self.cut_at)
        if self.pause and at + self.pause.at <= end:
            yield from self.file.pieces(at, at + self.pause.at)
            at += self.pause.at
            self.pause.reached.set()
            self.pause.go.wait(self.pause.seconds)
        yield from self.file.pieces(at, end)
        if self.cut_at is None:
            yield self.tail
