"""Rules of the header parser."""
# ruff: noqa: S101

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpt2hw.errors import SafetensorsError
from gpt2hw.header import Header
from gpt2hw.tensor_info import DTYPE_BYTES

ReadHeader = Callable[[Path], Header]


def tensors_cover_the_data(read_header: ReadHeader, path: Path) -> None:
    """The tensors lie end to end, from the data's first byte to the file's last."""
    header = read_header(path)
    reached = 0
    for name, info in header.tensors.items():
        assert info.name == name, f"{name!r} is filed under another name: {info.name!r}"
        assert info.start == reached, f"{name!r} begins at {info.start}, not {reached}"
        size = info.n_elements * DTYPE_BYTES[info.dtype]
        assert info.n_bytes == size, f"{name!r} takes {size} bytes, not {info.n_bytes}"
        reached = info.end
    n_file = path.stat().st_size
    assert header.data_start + reached == n_file, "bytes are left over or missing"


def answers_or_refuses(read: Callable[[Path], object], path: Path) -> bool:
    """Any file is either read, or refused by a SafetensorsError that names the file.

    Returns whether it was read. Every other exception is the property's failure.
    """
    refusal = None
    try:
        read(path)
    except SafetensorsError as error:
        refusal = str(error)
    assert refusal is None or str(path) in refusal, f"no file is named in {refusal!r}"
    return refusal is None


def refuses(read: Callable[[Path], object], path: Path, why: str) -> None:
    """A file with this fault is not read, but refused by a ValueError.

    A fault that is read all the same gives numbers that nobody wrote.
    """
    try:
        read(path)
    except ValueError:
        return
    raise AssertionError(f"a file was read although {why}")


def file_bytes(header: Any, data: bytes = b"") -> bytes:
    """A file with this header (bytes as they are, anything else as JSON) and data."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data
