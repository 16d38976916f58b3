"""Step 1: mistakes in reading a checkpoint."""

import json
import struct
from pathlib import Path

import torch
from torch import Tensor


def header_by_plain_json(path: Path) -> dict[str, dict]:
    """Keeps the last of two equal names in silence: json.loads does."""
    raw = path.read_bytes()
    (n_header,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + n_header])
    header.pop("__metadata__", None)
    return header


def header_without_coverage(path: Path) -> dict[str, dict]:
    """Checks each tensor's range alone: two may overlap, and bytes may lie between."""
    header = json.loads(
        path.read_bytes()[8:][: struct.unpack("<Q", path.read_bytes()[:8])[0]],
        object_pairs_hook=_unique,
    )
    header.pop("__metadata__", None)
    n_data = path.stat().st_size - 8 - len(json.dumps(header))
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        if not 0 <= start <= end <= max(n_data, end):
            raise ValueError(f"{name}: outside the file")
    return header


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a name stands twice")
    return dict(pairs)


def bfloat16_read_as_float16(raw: bytes) -> Tensor:
    """Both have 16 bits, but bfloat16 gives eight of them to the exponent, not five."""
    return torch.frombuffer(bytearray(raw), dtype=torch.float16).float()


def count_with_buffers(shapes: dict[str, tuple[int, ...]]) -> int:
    """Adds up every tensor of the file: the stored causal masks are no parameters."""
    return sum(torch.Size(shape).numel() for shape in shapes.values())


def buffer_by_ending(name: str) -> bool:
    """Forgets the dot: `c_attn.bias` ends with `attn.bias` too."""
    return name.endswith(("attn.bias", "attn.masked_bias"))
