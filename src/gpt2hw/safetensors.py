"""Tensors from a .safetensors file, and back: bytes are bytes.

A tensor in memory and a tensor in the file are the same bytes, row by row. So reading
one is: make an empty tensor of the right type and shape, and let the operating system
fill its memory from the file. Nothing is mapped or shared: the tensors are independent
of the file, of each other, and writable.

Source: the README of https://github.com/huggingface/safetensors ("Format").
"""

import ctypes
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from io import BufferedReader
from typing import Any

import torch
from torch import Tensor

from gpt2hw import huge_pages
from gpt2hw.errors import SafetensorsError
from gpt2hw.files import file_path, replacing
from gpt2hw.header import (
    METADATA,
    Header,
    TensorInfo,
    format_header,
    read_header,
)
from gpt2hw.tensor_info import DTYPE_BYTES

# Name in the file -> name in torch. Some torch versions lack some of the newer ones.
_TORCH_NAME = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "I16": "int16",
    "U16": "uint16",
    "F16": "float16",
    "BF16": "bfloat16",
    "I32": "int32",
    "U32": "uint32",
    "F32": "float32",
    "C64": "complex64",
    "F64": "float64",
    "I64": "int64",
    "U64": "uint64",
}


def read_safetensors(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """Every tensor of the file by name, on the CPU, in the file's own dtypes.

    Raises SafetensorsError where the file breaks the format, before any tensor is read,
    and where a tensor does not fit in memory.

    >>> from gpt2hw.hub import find
    >>> tensors = read_safetensors(find("tiny") / "model.safetensors")
    >>> tensors["ln_f.weight"].dtype, tensors["ln_f.weight"].ndim
    (torch.float16, 1)
    """
    header = read_header(path)
    return dict(iter_tensors(path, header, header.tensors))


def iter_tensors(
    path: str | os.PathLike[str], header: Header, names: Iterable[str]
) -> Iterator[tuple[str, Tensor]]:
    """The tensors of these names, one at a time, in the order of the file.

    Other tensors are skipped without being read. Raises SafetensorsError for a name
    that the header lacks, or where the file ends before its data does.

    >>> from gpt2hw.hub import find
    >>> path = find("tiny") / "model.safetensors"
    >>> names = ["wte.weight", "ln_f.bias"]
    >>> [name for name, tensor in iter_tensors(path, read_header(path), names)]
    ['ln_f.bias', 'wte.weight']
    """
    wanted = {header[name].name for name in names}
    infos = [info for info in header.tensors.values() if info.name in wanted]
    # Addresses first, for all: memory is taken only as it is filled, and neighbours can
    # share a huge page.
    room = [_empty(path, info) for info in reversed(infos)]
    with file_path(path).open("rb") as file:
        for info in infos:
            file.seek(header.data_start + info.start)
            yield info.name, _filled(room.pop(), file, info)


def _filled(tensor: Tensor, file: BufferedReader, info: TensorInfo) -> Tensor:
    """The tensor with the bytes that come next in the file."""
    n_read = file.readinto(_memory(tensor))
    if n_read != info.n_bytes:
        raise SafetensorsError(
            f"{file.name}: the file ends inside tensor {info.name!r}: {n_read} of its"
            f" {info.n_bytes} bytes are there"
        )
    if tensor.dtype == torch.bool:
        tensor.view(-1).view(torch.uint8).clamp_(max=1)  # true is any byte but 0
    _swap_on_big_endian(tensor)
    return tensor


def _empty(path: str | os.PathLike[str], info: TensorInfo) -> Tensor:
    """A tensor, not filled yet; SafetensorsError where there is no room for it."""
    try:
        dtype = torch_dtype(info.dtype)
    except SafetensorsError as error:
        raise SafetensorsError(f"{path}: tensor {info.name!r}: {error}") from None
    try:
        return huge_pages.empty(info.shape, dtype)
    except (RuntimeError, MemoryError, OSError, OverflowError):
        raise SafetensorsError(
            f"{path}: tensor {info.name!r:.80} takes {info.n_bytes} bytes: more memory"
            " than there is"
        ) from None


def torch_dtype(name: str) -> torch.dtype:
    """The torch dtype of a dtype's name in the file.

    Raises SafetensorsError where this version of torch has none.

    >>> torch_dtype("BF16")
    torch.bfloat16
    """
    dtype = getattr(torch, _TORCH_NAME[name], None)
    if not isinstance(dtype, torch.dtype):
        raise SafetensorsError(
            f"dtype {name} needs a newer torch than {torch.__version__}"
        )
    return dtype


def _memory(tensor: Tensor) -> memoryview:
    """The bytes of a contiguous CPU tensor, as they lie; not to outlive the tensor."""
    n_bytes = tensor.numel() * tensor.element_size()
    return memoryview((ctypes.c_ubyte * n_bytes).from_address(tensor.data_ptr()))


def _swap_on_big_endian(tensor: Tensor) -> None:
    """Turns the file's byte order into the machine's, or back, in place."""
    if sys.byteorder == "big":
        storage: Any = tensor.untyped_storage()
        storage.byteswap(tensor.dtype)


def write_safetensors(
    path: str | os.PathLike[str],
    tensors: Mapping[str, Tensor],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Writes the tensors to a .safetensors file, whole or not at all.

    The same tensors give the same bytes, in whatever order they come: the widest dtypes
    stand first, so that each tensor is aligned, and names are sorted within a dtype, as
    the safetensors library does. Views, and tensors that share memory, are written out
    in full. A link is followed, and a file that was there hands its permissions on.
    Raises ValueError, before the file is touched, for what the format cannot hold, and
    for a path that leads to anything but a plain file.

    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "two.safetensors")
    >>> write_safetensors(path, {"one": torch.ones(2), "zero": torch.zeros(2, 1)})
    >>> read_safetensors(path)["zero"]
    tensor([[0.],
            [0.]])
    >>> folder.cleanup()
    """
    if not isinstance(tensors, Mapping):
        kind = type(tensors).__name__
        raise ValueError(f"tensors must be a dict, not a {kind}")  # noqa: TRY004
    _check_metadata(metadata)
    infos = _lay_out(
        {name: _file_dtype(name, t) for name, t in tensors.items()}, tensors
    )
    start = format_header(infos, metadata)
    with replacing(path) as file:
        file.write(start)
        for info in infos:
            plain = _plain(tensors[info.name])  # one at a time: no copy of the whole
            file.write(_memory(plain))


def _lay_out(
    dtypes: Mapping[str, str], tensors: Mapping[str, Tensor]
) -> list[TensorInfo]:
    """Each tensor's place in the file, end to end from offset 0."""
    rank = list(DTYPE_BYTES).index
    infos, at = [], 0
    for name in sorted(dtypes, key=lambda name: (-rank(dtypes[name]), name)):
        end = at + tensors[name].numel() * tensors[name].element_size()
        infos.append(
            TensorInfo(name, dtypes[name], tuple(tensors[name].shape), at, end)
        )
        at = end
    return infos


def _file_dtype(name: object, tensor: object) -> str:
    """The file's name for the tensor's dtype; a ValueError if the format has none."""
    if not isinstance(name, str) or name == METADATA:
        raise ValueError(f"tensors: {name!r} cannot be the name of a tensor")
    if not isinstance(tensor, Tensor):
        kind = type(tensor).__name__
        raise ValueError(f"tensors[{name!r}] is a {kind}, no tensor")  # noqa: TRY004
    if tensor.layout != torch.strided or tensor.is_meta or tensor.is_nested:
        what = "nested" if tensor.is_nested else f"{tensor.layout}"
        raise ValueError(
            f"tensors[{name!r}] is {what} on {tensor.device}: only dense tensors with"
            " data can be written"
        )
    for file_name, torch_name in _TORCH_NAME.items():
        if tensor.dtype == getattr(torch, torch_name, None):
            return file_name
    raise ValueError(f"tensors[{name!r}]: the format has no dtype for {tensor.dtype}")


def _check_metadata(metadata: object) -> None:
    if metadata is None:
        return
    if not isinstance(metadata, Mapping):
        kind = type(metadata).__name__
        raise ValueError(f"metadata must be a dict, not a {kind}")  # noqa: TRY004
    for item in metadata.items():
        if not all(isinstance(text, str) for text in item):
            raise ValueError(f"metadata must map texts to texts, not {item!r:.80}")


def _plain(tensor: Tensor) -> Tensor:
    """The tensor as it will lie in the file: on the CPU, row by row, little-endian."""
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    if sys.byteorder == "big":
        plain = plain.clone()
        _swap_on_big_endian(plain)
    return plain
