"""What a checkpoint holds, counted, from its header alone: no tensor is read.

A count that adds up every tensor in GPT-2's file gives 137,022,720 "parameters". But
the file also stores twelve causal masks of 1024 x 1024 (`attn.bias`), which no training
made; without them it is 124,439,808.
"""

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from gpt2hw.errors import CheckpointError
from gpt2hw.files import file_path
from gpt2hw.folder import read_settings, weights_file
from gpt2hw.header import Header, TensorInfo, read_header
from gpt2hw.layout import HEAD, PREFIX, is_buffer

Kind = Literal["parameter", "buffer", "tied head"]


@dataclass(frozen=True, slots=True)
class TensorRow:
    """One tensor of a checkpoint; `kind` says whether its numbers count.

    Only a "parameter" does. A "buffer" is a stored causal mask; a "tied head" is the
    token embedding, wte, stored a second time as lm_head.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    n_elements: int
    n_bytes: int
    kind: Kind

    def to_json(self) -> dict[str, Any]:
        """The row as a plain dict; by hand, as asdict copies each value at length."""
        return {
            "name": self.name,
            "dtype": self.dtype,
            "shape": list(self.shape),
            "n_elements": self.n_elements,
            "n_bytes": self.n_bytes,
            "kind": self.kind,
        }


@dataclass(frozen=True, slots=True)
class Total:
    """The sum over all tensors of one kind."""

    n_tensors: int
    n_elements: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class Report:
    """A checkpoint's contents: its rows in the order of the file.

    `data_start` is the byte where the tensors' data begins. `notes` are sentences for
    the reader, on what the numbers alone would hide.
    """

    path: Path
    data_start: int
    metadata: dict[str, str]
    rows: tuple[TensorRow, ...]
    notes: tuple[str, ...]

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
            "parameters": asdict(self.total("parameter")),
            "buffers": asdict(self.total("buffer")),
            "tied_head": asdict(self.total("tied head")),
            "all": asdict(self.total()),
            "notes": list(self.notes),
            "tensors": [row.to_json() for row in self.rows],
        }


def inspect_checkpoint(path: str | os.PathLike[str]) -> Report:
    """The report on a .safetensors file, or on the model folder that holds one.

    Raises SafetensorsError where the file breaks the format, CheckpointError where a
    folder holds no model.safetensors, FileNotFoundError, and ValueError for what cannot
    be a path.
    """
    path = file_path(path)
    is_folder = os.path.isdir(path)  # noqa: PTH112 -- never raises
    header = read_header(weights_file(path) if is_folder else path)
    tied = _stores_tied_head(header)
    rows = tuple(_row(info, tied) for info in header.tensors.values())
    notes = (_TIED_NOTE,) if tied else ()
    return Report(header.path, header.data_start, header.metadata, rows, notes)


_TIED_NOTE = (
    f"{HEAD} is stored although it is tied to wte.weight: its numbers count once, as"
    " those of wte.weight"
)


def _row(info: TensorInfo, head_is_tied: bool) -> TensorRow:
    kind: Kind = "parameter"
    if is_buffer(info.name):
        kind = "buffer"
    elif head_is_tied and info.name.removeprefix(PREFIX) == HEAD:
        kind = "tied head"
    return TensorRow(
        info.name, info.dtype, info.shape, info.n_elements, info.n_bytes, kind
    )


def _stores_tied_head(header: Header) -> bool:
    """Whether lm_head.weight is a second copy of wte.weight.

    GPT-2's is, unless the config.json beside the file says otherwise.
    """
    shapes = {n.removeprefix(PREFIX): t.shape for n, t in header.tensors.items()}
    if HEAD not in shapes or shapes[HEAD] != shapes.get("wte.weight"):
        return False
    try:
        settings = read_settings(header.path.parent)
    except CheckpointError:
        return True
    return settings.get("tie_word_embeddings", True) is not False
