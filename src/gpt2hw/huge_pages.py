"""Memory for weights: in pages of 2 MB, not of 4 KB, where the system has them.

A model's weights are read whole for each token that it writes, and a processor looks
fewer pages up than it would have to: some per cent more tokens a second. And what is
given back goes to the system at once, all of it.
"""

import mmap
from contextlib import suppress
from math import prod

import torch
from torch import Tensor

HUGE_PAGE = 2**21  # bytes, on x86 and most ARM systems


def empty(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """A tensor on the CPU, not filled yet; a large one lies in huge pages.

    Memory is taken only as it is filled. Raises as torch.empty does where there is no
    room for it.

    >>> empty((2, 3), torch.int8).shape
    torch.Size([2, 3])
    """
    n_bytes = prod(shape) * dtype.itemsize
    if n_bytes < HUGE_PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return torch.empty(shape, dtype=dtype, device="cpu")
    try:
        memory = mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError):
        return torch.empty(shape, dtype=dtype, device="cpu")
    with suppress(OSError):  # a system without them
        memory.madvise(mmap.MADV_HUGEPAGE)
    return torch.frombuffer(memory, dtype=torch.uint8).view(dtype).view(shape)
