"""Amounts as the pixels of a PNG: white, each as opaque as its amount.

Source: the PNG specification (W3C), colour type 4, 8 bits: grey and alpha.
"""

import base64
import struct
import zlib

import torch
from torch import Tensor


def opacity_png(amounts: Tensor) -> str:
    """A data URI of a picture [n_row, n_column]; amounts from 0 (clear) to 1.

    >>> from torch import ones
    >>> opacity_png(ones(2, 2))[:22]
    'data:image/png;base64,'
    """
    levels = (amounts.clamp(0, 1) * 255).round().to(torch.uint8).tolist()
    rows = (b"\0" + b"".join(b"\xff%c" % level for level in row) for row in levels)
    size = struct.pack(">II", len(levels[0]), len(levels))
    data = b"\x89PNG\r\n\x1a\n"
    data += _chunk(b"IHDR", size + bytes([8, 4, 0, 0, 0]))
    data += _chunk(b"IDAT", zlib.compress(b"".join(rows), 9)) + _chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(data).decode("ascii")


def _chunk(kind: bytes, data: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(kind + data))
    return struct.pack(">I", len(data)) + kind + data + check
