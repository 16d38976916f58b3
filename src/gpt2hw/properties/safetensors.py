"""Rules of reading and writing tensors."""
# ruff: noqa: S101

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from gpt2hw.properties.header import file_bytes

Read = Callable[[Path], dict[str, Tensor]]
Write = Callable[[Path, Mapping[str, Tensor]], None]


def bits(tensor: Tensor) -> bytes:
    """The bytes of a tensor, row by row, so that NaN equals itself and -0 is not 0."""
    return bytes(tensor.detach().contiguous().reshape(-1).view(torch.uint8).tolist())


def round_trip_keeps_every_bit(
    write: Write, read: Read, tensors: Mapping[str, Tensor], path: Path
) -> None:
    """What is read is what was written: names, dtypes, shapes, and all bits."""
    write(path, tensors)
    found = read(path)
    assert found.keys() == tensors.keys(), "the names differ"
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype, f"{name!r}: another dtype"
        assert found[name].shape == tensor.shape, f"{name!r}: another shape"
        assert bits(found[name]) == bits(tensor), f"{name!r}: other numbers"


def order_of_writing_does_not_matter(
    write: Write, tensors: Mapping[str, Tensor], path: Path
) -> None:
    """The same tensors, handed over in another order, make the same file."""
    write(path, tensors)
    once = path.read_bytes()
    write(path, {name: tensors[name] for name in reversed(list(tensors))})
    assert path.read_bytes() == once, "the file depends on the order of the dict"


def tensors_are_independent(read: Read, path: Path) -> None:
    """Each tensor can be written to, and no other tensor nor the file changes."""
    before = path.read_bytes()
    tensors = read(path)
    kept = {name: bits(tensor) for name, tensor in tensors.items()}
    for name, tensor in tensors.items():
        flat = tensor.reshape(-1).view(torch.uint8)
        flat.bitwise_xor_(1)
        others = {n: bits(t) for n, t in tensors.items() if n != name}
        assert others == {n: kept[n] for n in others}, f"{name!r} shares its memory"
        flat.bitwise_xor_(1)
    assert path.read_bytes() == before, "the file changed with the tensors"


def bfloat16_is_the_upper_half_of_float32(read: Read, path: Path) -> None:
    """1 and -2 in bfloat16, 0x3f80 and 0xc000, are read as 1 and -2.

    `path` is where the file may be written. float16 has as many bits, but other ones
    for the exponent: read as such they are 1.875 and -2.
    """
    header = {"x": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}
    path.write_bytes(file_bytes(header, b"\x80\x3f\x00\xc0"))
    found = read(path)["x"].float().tolist()
    assert found == [1.0, -2.0], f"1 and -2 in bfloat16 were read as {found}"
