"""Rules of the header parser, and strategies that make files for it, good and bad."""
# ruff: noqa: S101

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

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


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SHAPES = st.lists(st.integers(0, 4), max_size=4)
SPACE = st.text(" \t\r\n", max_size=5).map(str.encode)


@st.composite
def headers(draw: st.DrawFn) -> tuple[dict[str, Any], bytes]:
    """A good header, as the dict that its JSON says, and as many random bytes of data.

    The entries stand in any order, which need not be the order of the data; they may
    hold a field that the format does not know.
    """
    header: dict[str, Any] = {}
    at = 0
    for name in draw(st.lists(NAMES, unique=True, max_size=5)):
        dtype, shape = draw(st.sampled_from(list(DTYPE_BYTES))), draw(SHAPES)
        n_bytes = DTYPE_BYTES[dtype]
        for axis in shape:
            n_bytes *= axis
        offsets = [at, at := at + n_bytes]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        header[name] |= draw(st.just({}) | st.just({"later": [1.5, None]}))
    if draw(st.booleans()):
        header["__metadata__"] = draw(st.dictionaries(NAMES, NAMES, max_size=2))
    header = dict(draw(st.permutations(list(header.items()))))
    return header, draw(st.binary(min_size=at, max_size=at))


@st.composite
def good_files(draw: st.DrawFn) -> bytes:
    """A file that keeps the format, its JSON padded with white space on both sides."""
    header, data = draw(headers())
    text = json.dumps(header, ensure_ascii=draw(st.booleans())).encode()
    return file_bytes(draw(SPACE) + text + draw(SPACE), data)


@st.composite
def edited_files(draw: st.DrawFn) -> bytes:
    """A file with one value of its header exchanged, taken out, or put in."""
    header, data = draw(headers().filter(lambda pair: pair[0] != {}))
    owner = draw(st.sampled_from([header, *filter(None, header.values())]))
    key = draw(st.sampled_from([*owner, "__metadata__", "dtype", "shape"]))
    if draw(st.booleans()):
        owner[key] = draw(_VALUES)
    else:
        owner.pop(key, None)
    return file_bytes(header, data)


@st.composite
def damaged_files(draw: st.DrawFn) -> bytes:
    """A good file after a fault of disk or wire: bytes changed, lost, or added."""
    content = bytearray(draw(good_files()))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(len(content) - 1, 0)))
        piece = draw(st.binary(max_size=3) | st.sampled_from(_BYTES_THAT_MATTER))
        content[at : at + draw(st.integers(0, 3))] = piece
    return bytes(content)


_BYTES_THAT_MATTER = [
    b"{",
    b"}",
    b'"',
    b"[",
    b",",
    b":",
    b"-",
    b"0",
    b"\\u0000",
    b"\xff",
]
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-2, 10)
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.sampled_from(["F32", "f32", "F4", "F6_E2M3", "BOOL", "", "0", "\ud800"])
)
_VALUES = _SCALARS | st.lists(_SCALARS | st.integers(0, 4), max_size=3)
