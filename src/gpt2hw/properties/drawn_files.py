"""Weight files and tensors to try the rules on, good and bad, by hypothesis."""

import json
from typing import Any

import torch
from torch import Tensor

from gpt2hw.properties.header import file_bytes
from gpt2hw.properties.strategies import st
from gpt2hw.safetensors import torch_dtype
from gpt2hw.tensor_info import DTYPE_BYTES

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


def _this_torch_has(name: str) -> bool:
    try:
        torch_dtype(name)
    except ValueError:
        return False
    return True


DTYPES = [name for name in DTYPE_BYTES if _this_torch_has(name)]


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    """A tensor of any dtype with any bits; now and then a transposed view."""
    dtype, shape = draw(st.sampled_from(DTYPES)), draw(SHAPES)
    n_bytes = DTYPE_BYTES[dtype] * torch.Size(shape).numel()
    raw = torch.tensor(list(draw(st.binary(min_size=n_bytes, max_size=n_bytes))))
    raw = raw.to(torch.uint8)
    if dtype == "BOOL":
        raw = raw % 2
    tensor = raw.view(torch_dtype(dtype)).reshape(shape)
    if draw(st.booleans()):
        tensor = tensor.permute(tuple(reversed(range(tensor.ndim))))
    return tensor


NAMED_TENSORS = st.dictionaries(
    NAMES.filter(lambda name: name != "__metadata__"), tensors(), max_size=5
)
