"""What a hub says of a file in its headers: its size, its hash, its commit.

The hub's own headers are believed, and then checked. What another host says, to which
the hub leads on for large files, is not: there an ETag may be any number.

Source: huggingface_hub, `file_download.py` (X-Linked-ETag, X-Linked-Size,
X-Repo-Commit); git's book, section 10.2 (the hash of a blob); RFC 9110, sections 8.8.3
(ETag) and 14.4 (Content-Range).
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

PIECE = 2**20  # bytes read at once to hash a file


@dataclass(frozen=True)
class Statement:
    """What is known of a file before it is here; None is not known."""

    size: int | None = None
    sha256: str | None = None
    blob_sha1: str | None = None  # git's hash: of "blob SIZE", a zero byte, the bytes
    commit: str | None = None

    @property
    def has_hash(self) -> bool:
        """Whether the bytes can be told from any others."""
        return bool(self.sha256 or self.blob_sha1)

    @property
    def label(self) -> str:
        """A few letters that differ where the bytes do; none without a hash."""
        return (self.sha256 or self.blob_sha1 or "")[:16]

    def differs_from(self, other: "Statement") -> bool:
        """Whether the two cannot both be true of one file."""
        mine = (self.size, self.sha256, self.blob_sha1)
        theirs = (other.size, other.sha256, other.blob_sha1)
        pairs = zip(mine, theirs, strict=True)
        return any(None not in (a, b) and a != b for a, b in pairs)

    def completed_by(self, other: "Statement") -> "Statement":
        """This statement, with what the other knows beyond it.

        >>> Statement(size=3).completed_by(Statement(size=4, commit="c"))
        Statement(size=3, sha256=None, blob_sha1=None, commit='c')
        """
        news = {k: v for k, v in vars(other).items() if getattr(self, k) is None}
        return replace(self, **news)

    def is_true_of(self, path: Path) -> bool:
        """Whether a file has this size and this hash."""
        n_bytes = path.stat().st_size
        if self.size is not None and n_bytes != self.size:
            return False
        if self.sha256:
            return sha256_of(path) == self.sha256
        if self.blob_sha1:
            return blob_sha1(path) == self.blob_sha1
        return True


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    return file_hash(path, hashlib.sha256())


def file_hash(path: Path, digest: "hashlib._Hash") -> str:
    """The hash of a file, in hex, read in pieces."""
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()


def blob_sha1(path: Path) -> str:
    """git's hash of a file.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> empty = Path(folder.name, "empty")
    >>> empty.touch()
    >>> blob_sha1(empty)
    'e69de29bb2d1d6434b8b29ae775ad8c2e48c5391'
    >>> folder.cleanup()
    """
    start = b"blob %d\0" % path.stat().st_size
    return file_hash(path, hashlib.sha1(start, usedforsecurity=False))


def stated(headers: Mapping[str, str]) -> Statement:
    """What the hub's headers say of the file that was asked for.

    The length of this very answer is not among it: it may be a redirect's.

    >>> stated({"X-Linked-Size": "665", "X-Linked-ETag": '"' + "0" * 40 + '"'}).size
    665
    """
    etag = headers.get("X-Linked-ETag") or headers.get("ETag") or ""
    bare = etag.strip().removeprefix("W/").strip('"').lower()
    is_hex = re.fullmatch(r"[0-9a-f]+", bare)
    commit = headers.get("X-Repo-Commit", "").lower()
    return Statement(
        size=whole_number(headers.get("X-Linked-Size")),
        sha256=bare if is_hex and len(bare) == 64 else None,
        blob_sha1=bare if is_hex and len(bare) == 40 else None,
        commit=commit if re.fullmatch(r"[0-9a-f]{40}", commit) else None,
    )


def whole_number(said: str | None) -> int | None:
    """A number in a header; None where it is none.

    >>> whole_number("12"), whole_number("-1"), whole_number("1e3"), whole_number(None)
    (12, None, None, None)
    """
    said = (said or "").strip()
    return int(said) if re.fullmatch(r"[0-9]{1,18}", said) else None


def strong_etag(headers: Mapping[str, str]) -> str | None:
    """An ETag that stands for the very bytes, as If-Range needs it; None if weak.

    >>> strong_etag({"ETag": '"a"'}), strong_etag({"ETag": 'W/"a"'})
    ('"a"', None)
    """
    etag = headers.get("ETag", "").strip()
    return etag if re.fullmatch(r'"[!#-~]*"', etag) else None


def content_range(said: str | None) -> tuple[int, int, int | None] | None:
    """First byte, last byte and size in a Content-Range; None for what is none.

    >>> content_range("bytes 10-19/20"), content_range("bytes 10-19/*")
    ((10, 19, 20), (10, 19, None))
    >>> content_range("bytes 19-10/20"), content_range("bytes */20")
    (None, None)
    """
    found = re.fullmatch(
        r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)", (said or "").strip()
    )
    if not found:
        return None
    first, last, size = int(found[1]), int(found[2]), whole_number(found[3])
    fits = first <= last and (size is None or last < size)
    return (first, last, size) if fits else None
