"""What a checkpoint holds, counted, from its header alone: no tensor is read.

A count that adds up every tensor in GPT-2's file gives 137,022,720 "parameters". But
the file also stores twelve causal masks of 1024 x 1024 (`attn.bias`), which no training
made; without them it is 124,439,808.
"""

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from gpt2hw.errors import CheckpointError
from gpt2hw.files import file_path
from gpt2hw.folder import read_settings, weights_file
from gpt2hw.header import Header, TensorInfo
from gpt2hw.layout import HEAD, PREFIX, is_buffer
from gpt2hw.shards import read_headers

Kind = Literal["parameter", "buffer", "tied head"]


@dataclass(frozen=True, slots=True)
class TensorRow:
    """One tensor of a checkpoint; `kind` says whether its numbers count.

    Only a "parameter" does. A "buffer" is a stored causal mask; a "tied head" is the
    token embedding, wte, stored a second time as lm_head. `file` is the name of the
    file that holds it.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    n_elements: int
    n_bytes: int
    kind: Kind
    file: str

    def to_json(self) -> dict[str, Any]:
        """The row as a plain dict; by hand, as asdict copies each value at length."""
        return {
            "name": self.name,
            "dtype": self.dtype,
            "shape": list(self.shape),
            "n_elements": self.n_elements,
            "n_bytes": self.n_bytes,
            "kind": self.kind,
            "file": self.file,
        }


@dataclass(frozen=True, slots=True)
class Total:
    """The sum over all tensors of one kind."""

    n_tensors: int
    n_elements: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class File:
    """One file of weights; `data_start` is the byte where its tensors' data begins."""

    name: str
    data_start: int
    n_tensors: int
    n_bytes: int  # of its tensors, without the header
    metadata: dict[str, str]


@dataclass(frozen=True, slots=True)
class Report:
    """A checkpoint's contents: its rows in the order of its files and of their data.

    `path` is the file of weights, or the index of several. `notes` are sentences for
    the reader, on what the numbers alone would hide.
    """

    path: Path
    files: tuple[File, ...]
    rows: tuple[TensorRow, ...]
    notes: tuple[str, ...]

    @property
    def data_start(self) -> int | None:
        """The byte where the data begins, where there is one file alone."""
        return self.files[0].data_start if len(self.files) == 1 else None

    @property
    def metadata(self) -> dict[str, str]:
        """What all files say of themselves, in one; the first that says it counts."""
        return {k: v for file in reversed(self.files) for k, v in file.metadata.items()}

    def total(self, kind: Kind | None = None) -> Total:
        """The sum over the tensors of one kind, or over all."""
        rows = [row for row in self.rows if kind in (None, row.kind)]
        return Total(
            n_tensors=len(rows),
            n_elements=sum(row.n_elements for row in rows),
            n_bytes=sum(row.n_bytes for row in rows),
        )

    def to_json(self) -> dict[str, Any]:
        """The report as plain dicts, lists, texts and numbers."""
        return {
            "path": str(self.path),
            "data_start": self.data_start,
            "metadata": self.metadata,
            "files": [asdict(file) for file in self.files],
            "parameters": asdict(self.total("parameter")),
            "buffers": asdict(self.total("buffer")),
            "tied_head": asdict(self.total("tied head")),
            "all": asdict(self.total()),
            "notes": list(self.notes),
            "tensors": [row.to_json() for row in self.rows],
        }


def inspect_checkpoint(path: str | os.PathLike[str]) -> Report:
    """The report on a .safetensors file, on an index of shards, or on a model's folder.

    Raises SafetensorsError where a file breaks the format, CheckpointError where a
    folder holds no weights or an index does not fit its shards, FileNotFoundError, and
    ValueError for what cannot be a path.
    """
    path = file_path(path)
    if os.path.isdir(path):  # noqa: PTH112 -- never raises
        path = weights_file(path)
    headers = read_headers(path)
    tied = _stores_tied_head(headers, path.parent)
    rows = tuple(
        _row(info, tied, header.path.name)
        for header in headers
        for info in header.tensors.values()
    )
    notes = (_TIED_NOTE,) if tied else ()
    return Report(path, tuple(map(_file, headers)), rows, notes)


_TIED_NOTE = (
    f"{HEAD} is stored although it is tied to wte.weight: its numbers count once, as"
    " those of wte.weight"
)


def _file(header: Header) -> File:
    return File(
        name=header.path.name,
        data_start=header.data_start,
        n_tensors=len(header.tensors),
        n_bytes=sum(info.n_bytes for info in header.tensors.values()),
        metadata=header.metadata,
    )


def _row(info: TensorInfo, head_is_tied: bool, file: str) -> TensorRow:
    kind: Kind = "parameter"
    if is_buffer(info.name):
        kind = "buffer"
    elif head_is_tied and info.name.removeprefix(PREFIX) == HEAD:
        kind = "tied head"
    return TensorRow(
        name=info.name,
        dtype=info.dtype,
        shape=info.shape,
        n_elements=info.n_elements,
        n_bytes=info.n_bytes,
        kind=kind,
        file=file,
    )


def _stores_tied_head(headers: Iterable[Header], folder: Path) -> bool:
    """Whether lm_head.weight is a second copy of wte.weight.

    GPT-2's is, unless the config.json beside the weights says otherwise.
    """
    shapes = {
        name.removeprefix(PREFIX): info.shape
        for header in headers
        for name, info in header.tensors.items()
    }
    if HEAD not in shapes or shapes[HEAD] != shapes.get("wte.weight"):
        return False
    try:
        settings = read_settings(folder)
    except CheckpointError:
        return True
    return settings.get("tie_word_embeddings", True) is not False
