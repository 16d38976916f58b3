"""One tensor's entry in the header of a .safetensors file: type, shape and place.

Source: the README of https://github.com/huggingface/safetensors ("Format").
"""

import math
from dataclasses import dataclass
from typing import Any

from gpt2hw.errors import SafetensorsError

# Name in the file -> bytes of one number. The order is the format's own, from the type
# with the loosest alignment to the one with the strictest; writers sort by it.
DTYPE_BYTES = {
    "BOOL": 1,
    "U8": 1,
    "I8": 1,
    "F8_E5M2": 1,
    "F8_E4M3": 1,
    "F8_E8M0": 1,
    "F8_E4M3FNUZ": 1,
    "F8_E5M2FNUZ": 1,
    "I16": 2,
    "U16": 2,
    "F16": 2,
    "BF16": 2,
    "I32": 4,
    "U32": 4,
    "F32": 4,
    "C64": 8,
    "F64": 8,
    "I64": 8,
    "U64": 8,
}
SUB_BYTE_DTYPES = ("F4", "F6_E2M3", "F6_E3M2")


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor of a file: its type, its shape, and its bytes in the data section.

    >>> info = TensorInfo("ln_f.bias", "F32", (768,), start=0, end=3072)
    >>> info.n_elements, info.n_bytes
    (768, 3072)
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int

    @property
    def n_elements(self) -> int:
        """How many numbers the tensor holds; a scalar, of shape (), holds one."""
        return math.prod(self.shape)

    @property
    def n_bytes(self) -> int:
        """How many bytes of the file it takes."""
        return self.end - self.start


def parse_tensor_info(name: str, entry: Any) -> TensorInfo:
    """The entry of one tensor in the header, checked by itself.

    Fields that the format does not know are ignored. Raises SafetensorsError.

    >>> entry = {"dtype": "I16", "shape": [2, 3], "data_offsets": [4, 16]}
    >>> parse_tensor_info("w", entry)
    TensorInfo(name='w', dtype='I16', shape=(2, 3), start=4, end=16)
    >>> parse_tensor_info("w", entry | {"shape": [4]})
    Traceback (most recent call last):
    gpt2hw.errors.SafetensorsError: tensor 'w': shape [4] in I16 takes 8 bytes, ...
    """
    if not isinstance(entry, dict):
        raise SafetensorsError(
            f"tensor {name!r:.80}: its entry is no object: {entry!r:.80}"
        )
    for field in ("dtype", "shape", "data_offsets"):
        if field not in entry:
            raise SafetensorsError(
                f"tensor {name!r:.80}: the field {field!r} is missing"
            )
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    _check_dtype(name, dtype)
    if not _are_naturals(shape):
        raise SafetensorsError(
            f"tensor {name!r:.80}: the shape must be a list of whole numbers from 0,"
            f" it is {shape!r:.80}"
        )
    if not _are_naturals(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise SafetensorsError(
            f"tensor {name!r:.80}: data_offsets must be [begin, end], whole numbers"
            f" with 0 <= begin <= end, they are {offsets!r:.80}"
        )
    info = TensorInfo(name, dtype, tuple(shape), *offsets)
    _check_size(info)
    return info


def _check_dtype(name: str, dtype: Any) -> None:
    if isinstance(dtype, str) and dtype in DTYPE_BYTES:
        return
    if dtype in SUB_BYTE_DTYPES:
        raise SafetensorsError(
            f"tensor {name!r:.80}: dtype {dtype} packs several numbers in a byte, which"
            " is not supported here"
        )
    raise SafetensorsError(
        f"tensor {name!r:.80}: unknown dtype {dtype!r:.40}; known:"
        f" {', '.join(DTYPE_BYTES)}"
    )


def _are_naturals(values: Any) -> bool:
    """Whether this is a list of whole numbers from 0. In Python, True is an int too."""
    return isinstance(values, list) and all(type(v) is int and v >= 0 for v in values)


def _check_size(info: TensorInfo) -> None:
    """The bytes must be as many as the shape says; Python's integers never overflow."""
    n_counted = 1
    for axis in info.shape:
        # An empty tensor too may claim axes too long for any program to count through.
        n_counted *= max(axis, 1)
        if n_counted >= 2**63:
            raise SafetensorsError(
                f"tensor {info.name!r:.80}: the shape {list(info.shape)!r:.80} is too"
                " large"
            )
    n_bytes = info.n_elements * DTYPE_BYTES[info.dtype]
    if n_bytes != info.n_bytes:
        raise SafetensorsError(
            f"tensor {info.name!r:.80}: shape {list(info.shape)!r:.80} in {info.dtype}"
            f" takes {n_bytes} bytes, and its data_offsets span {info.n_bytes}"
        )
