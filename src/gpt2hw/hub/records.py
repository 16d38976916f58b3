"""What is kept beside a downloaded file: whence it came, and what it was then.

A record is a small JSON file in the folder `.gpt2hw`. Where its size is the file's, the
file is taken for what was downloaded, without reading it again.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gpt2hw.files import not_a_file, read_plain, replacing
from gpt2hw.strict_json import parse_object

BESIDE = ".gpt2hw"
MAX_RECORD_BYTES = 2**14


@dataclass(frozen=True)
class Record:
    """One file: where it is from, at which commit, and its size and hash here."""

    repository: str
    revision: str
    commit: str | None
    size: int
    sha256: str


def record_path(file: Path) -> Path:
    """Where the record of a file lies.

    >>> record_path(Path("a/config.json")).as_posix()
    'a/.gpt2hw/config.json.json'
    """
    return file.parent / BESIDE / f"{file.name}.json"


def read_record(file: Path) -> Record | None:
    """The record of a file that is as long as the record says; None without one."""
    try:
        entries: Any = parse_object(read_plain(record_path(file), MAX_RECORD_BYTES))
        record = Record(**entries)
        _check_kinds(record)
        fits = not_a_file(file) is None and file.stat().st_size == record.size
    except (OSError, ValueError, TypeError):
        return None
    return record if fits else None


def _check_kinds(record: Record) -> None:
    """Refuses, with a ValueError, what another program may have written there."""
    texts = (record.repository, record.revision, record.sha256, record.commit or "")
    if not all(isinstance(text, str) for text in texts) or type(record.size) is not int:
        raise ValueError("a record holds texts and a size")


def write_record(file: Path, record: Record) -> None:
    """Keeps the record of a file, in the place of a link if one is there."""
    path = record_path(file)
    if path.is_symlink():
        path.unlink()
    with replacing(path) as out:
        out.write(json.dumps(asdict(record), indent=1).encode() + b"\n")


def contradicted(folder: Path) -> bool:
    """Whether a file in a folder is not as long as its record says."""
    for path in (folder / BESIDE).glob("*.json"):
        file = folder / path.name.removesuffix(".json")
        if not_a_file(file) is None and read_record(file) is None:
            return True
    return False
