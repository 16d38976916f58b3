"""Step 1: mistakes in reading a checkpoint."""

import json
import tempfile
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gpt2hw import layout, read_header, read_safetensors
from gpt2hw.properties import header as rules
from gpt2hw.properties import layout as layout_rules
from gpt2hw.properties import safetensors as safetensors_rules
from wrong.entry import Entry, Piece, entry


def header_by_plain_json(path: Path) -> dict[str, dict]:
    """Keeps the last of two equal names in silence: json.loads does."""
    raw = path.read_bytes()
    n_header = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + n_header])
    header.pop("__metadata__", None)
    return header


def header_with_overlaps(path: Path) -> dict[str, dict]:
    """Checks each range alone: two may share bytes, and bytes may be left over."""
    header = header_by_plain_json(path)
    n_file = path.stat().st_size
    for name, info in header.items():
        start, end = info["data_offsets"]
        if not 0 <= start <= end <= n_file:
            raise ValueError(f"{name}: outside the file")
    return header


def read_bfloat16_as_float16(path: Path) -> dict[str, Tensor]:
    """Both have 16 bits, but bfloat16 gives eight of them to the exponent, not five."""
    tensors = read_safetensors(path)
    return {name: tensor.view(torch.float16) for name, tensor in tensors.items()}


def count_with_buffers(shapes: dict[str, tuple[int, ...]]) -> int:
    """Adds up every tensor of the file: the stored causal masks are no parameters."""
    return sum(prod(shape) for shape in shapes.values())


def buffer_by_ending(name: str) -> bool:
    """Forgets the dot: `c_attn.bias` ends with `attn.bias` too."""
    return name.endswith(("attn.bias", "attn.masked_bias"))


# What catches them


def _refuses(content: bytes, why: str) -> Piece:
    def check(read: Piece) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.safetensors")
            path.write_bytes(content)
            rules.refuses(read, path, why)

    return check


def _reads_bfloat16(read: Piece) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.safetensors")
        safetensors_rules.bfloat16_is_the_upper_half_of_float32(read, path)


def _f32(start: int, end: int) -> dict[str, Any]:
    shape = [(end - start) // 4]
    return {"dtype": "F32", "shape": shape, "data_offsets": [start, end]}


TWICE = rules.file_bytes(
    b'{"a":%s,"a":%s}' % ((json.dumps(_f32(0, 4)).encode(),) * 2), bytes(4)
)
OVERLAP = rules.file_bytes({"a": _f32(0, 8), "b": _f32(4, 12)}, bytes(12))

ENTRIES = [
    Entry(
        header_by_plain_json,
        read_header,
        rules.refuses,
        _refuses(TWICE, "a name stands in it twice"),
    ),
    Entry(
        header_with_overlaps,
        read_header,
        rules.refuses,
        _refuses(OVERLAP, "two tensors share bytes"),
    ),
    Entry(
        read_bfloat16_as_float16,
        read_safetensors,
        safetensors_rules.bfloat16_is_the_upper_half_of_float32,
        _reads_bfloat16,
    ),
    entry(
        count_with_buffers,
        layout.count_parameters,
        layout_rules.gpt2_has_124439808_parameters,
    ),
    entry(buffer_by_ending, layout.is_buffer, layout_rules.masks_alone_are_buffers),
]
