"""Tensors that are the file's own bytes: mapped into memory, not read.

The system keeps what was lately read from a file in memory. A program can ask for that
memory itself: nothing is copied, the tensors are there at once, and what was not read
yet comes from the disk when somebody looks at it. What a program writes into such a
tensor goes to a page of its own, never into the file.

The price: the file stays open, and must stay as it is while the tensors live. Another
file may take its place, which is how this package downloads and writes. But what is
written into it as it lies is in the tensors, too; and where it is cut short, or the
disk fails, the system ends the process that looks for what is gone.

Source: mmap(2) and madvise(2) of the Linux manual.
"""

import mmap
import os
import platform
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress

import torch
from torch import Tensor

from gpt2hw.files import file_path
from gpt2hw.header import Header
from gpt2hw.safetensors import iter_tensors
from gpt2hw.tensor_info import DTYPE_BYTES

IS_X86 = platform.machine().lower() in ("x86_64", "amd64")


def iter_mapped(
    path: str | os.PathLike[str], header: Header, names: Iterable[str]
) -> Iterator[tuple[str, Tensor]]:
    """As iter_tensors, but float32 tensors are views of the file where they can be.

    Those come first; the rest is read (see `can_be_viewed`). Raises as iter_tensors
    does.

    >>> from gpt2hw.header import read_header
    >>> from gpt2hw.hub import find
    >>> path = find("tiny") / "model.safetensors"
    >>> [(name, bias)] = iter_mapped(path, read_header(path), ["ln_f.bias"])
    >>> name, bias.dtype
    ('ln_f.bias', torch.float16)
    """
    wanted = list(dict.fromkeys(header[name].name for name in names))
    views = [name for name in wanted if can_be_viewed(header, name)]
    ends = [header.data_start + header[name].end for name in views]
    memory = map_file(path) if views else None
    if memory is not None and len(memory) >= max(ends):
        for name in views:
            yield name, view(memory, header, name)
    else:  # it cannot be mapped, or has become shorter than its header says
        views = []
    del memory
    yield from iter_tensors(path, header, [n for n in wanted if n not in set(views)])


def map_file(path: str | os.PathLike[str]) -> mmap.mmap | None:
    """The whole file in memory; None where the system cannot do it, or not well.

    The system is asked to keep it in large pages, as `huge_pages` does, and told that
    all of it will be needed: what is still on the disk is fetched meanwhile. On Windows
    a mapped file could not be replaced.
    """
    if sys.platform == "win32" or sys.byteorder == "big":
        return None
    try:
        with file_path(path).open("rb") as file:
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except (OSError, ValueError):  # no memory, no such file, nothing in it
        return None
    for advice in ("MADV_HUGEPAGE", "MADV_WILLNEED"):
        if hasattr(mmap, advice):
            with suppress(OSError):  # a system that knows the name and not the thing
                memory.madvise(getattr(mmap, advice))
    return memory


def can_be_viewed(header: Header, name: str) -> bool:
    """Whether it is float32, and its numbers lie where this processor can use them.

    In GPT-2's own file they begin at byte 14,291, so none lies at a multiple of its
    four bytes. x86 uses them all the same, in all but few kernels as fast as others
    (see `rows.lies_well`). Some other processors refuse to.
    """
    info = header[name]
    lies_well = (header.data_start + info.start) % DTYPE_BYTES["F32"] == 0
    return info.dtype == "F32" and info.n_bytes > 0 and (lies_well or IS_X86)


def view(memory: mmap.mmap, header: Header, name: str) -> Tensor:
    """A float32 tensor of the mapped file, where it lies."""
    info = header[name]
    start = header.data_start + info.start
    numbers = torch.frombuffer(
        memory, dtype=torch.float32, offset=start, count=info.n_elements
    )
    return numbers.view(info.shape)
