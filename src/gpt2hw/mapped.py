"""Tensors that are the file's own bytes: mapped into memory, not read.

The system keeps what was lately read from a file in memory. A program can ask for that
memory itself: nothing is copied, a model of any size is there at once, and what was not
read yet comes from the disk when somebody looks at it. What a program writes into such
a tensor goes to a page of its own, never into the file.

The price: the file stays open, and must stay as long as it is, while the tensors live.
Another file may take its place, which is how this package downloads and writes. But
where it is cut short as it lies, the system ends the process that looks for what is
gone.

Source: mmap(2) and madvise(2) of the Linux manual.
"""

import mmap
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress

import torch
from torch import Tensor

from gpt2hw.files import file_path
from gpt2hw.header import Header
from gpt2hw.safetensors import iter_tensors

FLOAT = 4  # bytes


def iter_mapped(
    path: str | os.PathLike[str], header: Header, names: Iterable[str]
) -> Iterator[tuple[str, Tensor]]:
    """As iter_tensors, but float32 tensors are views of the file where they can be.

    Those come first. The rest is read: other types, and what `view` says. Raises as
    iter_tensors does.

    >>> from gpt2hw.header import read_header
    >>> from gpt2hw.hub import find
    >>> path = find("tiny") / "model.safetensors"
    >>> [(name, bias)] = iter_mapped(path, read_header(path), ["ln_f.bias"])
    >>> name, bias.dtype
    ('ln_f.bias', torch.float16)
    """
    wanted = list(dict.fromkeys(header[name].name for name in names))
    memory, rest = map_file(path), []
    for name in wanted:
        tensor = view(memory, header, name) if memory is not None else None
        if tensor is None:
            rest.append(name)
        else:
            yield name, tensor
    yield from iter_tensors(path, header, rest)


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


def view(memory: mmap.mmap, header: Header, name: str) -> Tensor | None:
    """A float32 tensor of the file where it lies; None where it has to be read.

    Its numbers may not lie at multiples of four bytes, as in GPT-2's own file, from
    where some processors cannot read them and none reads them as fast. Or the file may
    have become shorter than its header says.
    """
    info = header[name]
    start = header.data_start + info.start
    lies_well = start % FLOAT == 0 and 0 < info.n_bytes <= len(memory) - start
    if info.dtype != "F32" or not lies_well:
        return None
    numbers = torch.frombuffer(
        memory, dtype=torch.float32, offset=start, count=info.n_elements
    )
    return numbers.view(info.shape)
