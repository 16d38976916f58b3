"""The header of a .safetensors file: which tensors it holds and where, without torch.

The whole format, byte by byte:

    byte 0              8                               8 + N                 the end
    +-------------------+-------------------------------+--------------------------+
    | N: 8 bytes, an    | N bytes of UTF-8 JSON         | the data: the tensors'   |
    | unsigned integer, | {"wte.weight": {"dtype": ..., | numbers, little-endian,  |
    | little-endian     |  "shape": ..., ...}, ...}     | end to end, without gaps |
    +-------------------+-------------------------------+--------------------------+

    {"wte.weight": {"dtype": "F32",             the type of one number, see DTYPE_BYTES
                    "shape": [50257, 768],      row by row, the last axis fastest
                    "data_offsets": [0, 154389504]},      begin and end in the data,
     "__metadata__": {"format": "pt"}}                    counted from byte 8 + N

The header is checked whole before a tensor is touched, for a file from the network may
say anything: the tensors must cover the data exactly, each as long as its shape says.

Source: the README of https://github.com/huggingface/safetensors ("Format"). Every
header that is accepted here is accepted by that library too (0.8), which also takes a
few that are refused here: a key that stands twice, an entry or a dtype written in
another way (`["U8", [1], [0, 1]]`, `{"U8": null}`), null for `__metadata__`, dtypes of
less than a byte, an empty tensor whose other axes multiply to 2**63 or more, and, in
fields that nobody reads, nesting beyond 100 levels or integers of over 20 digits.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from gpt2hw.errors import SafetensorsError
from gpt2hw.files import file_path, not_a_file
from gpt2hw.strict_json import check_texts, parse_object
from gpt2hw.tensor_info import TensorInfo, parse_tensor_info
from gpt2hw.wrong_files import identify

__all__ = ["Header", "TensorInfo", "format_header", "parse_header", "read_header"]

LENGTH_BYTES = 8
MAX_HEADER_BYTES = 100_000_000
METADATA = "__metadata__"
MAX_NEAR_NAMES = 2000  # GPT-2 XL has 580
MAX_NEAR_LENGTH = 100


@dataclass(frozen=True, slots=True)
class Header:
    """A file's header, checked: its tensors in the order of their data.

    `data_start` is the byte of the file where the data begins; the offsets of each
    TensorInfo count from there.

    >>> from gpt2hw.hub import find
    >>> header = read_header(find("tiny") / "model.safetensors")
    >>> header["ln_f.bias"].dtype, "ln_f.bias" in header.tensors
    ('F16', True)
    >>> header["ln_f.bais"]
    Traceback (most recent call last):
    gpt2hw.errors.SafetensorsError: ... 'ln_f.bais'; near names: 'ln_f.bias', ...
    """

    tensors: dict[str, TensorInfo]
    metadata: dict[str, str]
    data_start: int
    path: Path

    def __getitem__(self, name: str) -> TensorInfo:
        """The tensor of that name; a SafetensorsError lists near names."""
        if name in self.tensors:
            return self.tensors[name]
        raise SafetensorsError(
            f"{self.path}: no tensor is named {name!r:.80}{_near(name, self.tensors)}"
        )


def read_header(path: str | os.PathLike[str]) -> Header:
    """Reads and checks the header of a .safetensors file; no tensor is read.

    Raises SafetensorsError where the file breaks the format (or is something else, a
    web page say), FileNotFoundError where there is none, and ValueError for what cannot
    be a path.

    >>> import tempfile
    >>> text = b'{"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "b.safetensors")
    >>> path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(8))
    70
    >>> header = read_header(path)
    >>> header.data_start, header["b"]
    (62, TensorInfo(name='b', dtype='F32', shape=(2,), start=0, end=8))
    >>> folder.cleanup()
    """
    path = file_path(path)
    instead = not_a_file(path)
    if instead and os.path.exists(path):  # noqa: PTH110 -- what is not, open() tells
        raise SafetensorsError(f"{path} is {instead}, not a .safetensors file")
    with path.open("rb") as file:
        n_file = os.fstat(file.fileno()).st_size
        try:
            raw = _json_bytes(file, n_file)
            data_start = LENGTH_BYTES + len(raw)
            tensors, metadata = parse_header(raw, n_file - data_start)
        except SafetensorsError as error:
            raise SafetensorsError(f"{path}: {error}") from None
    return Header(tensors, metadata, data_start, path)


def _json_bytes(file: BinaryIO, n_file: int) -> bytes:
    """The N bytes of JSON at the start of a file that is `n_file` bytes long.

    N is checked against the file before anything of that length is read.
    """
    start = file.read(512)
    problem = _length_problem(start, n_file)
    if problem:
        raise SafetensorsError(identify(start) or problem)
    n_header = int.from_bytes(start[:LENGTH_BYTES], "little")
    file.seek(LENGTH_BYTES)
    raw = file.read(n_header)
    if len(raw) < n_header:
        raise SafetensorsError("the file shrank while it was read")
    return raw


def _length_problem(start: bytes, n_file: int) -> str | None:
    """What is wrong with a file that begins so, as far as its length field tells."""
    if n_file < LENGTH_BYTES:
        return f"truncated: {n_file} bytes, where the length field alone takes 8"
    n_header = int.from_bytes(start[:LENGTH_BYTES], "little")
    if n_header > MAX_HEADER_BYTES:
        return (
            f"not a .safetensors file, or a damaged one: its first 8 bytes announce a"
            f" header of {n_header} bytes, more than the {MAX_HEADER_BYTES} allowed"
        )
    if n_header > n_file - LENGTH_BYTES:
        return (
            f"truncated: the header should take {n_header} bytes, and"
            f" {n_file - LENGTH_BYTES} follow the length field; download it again"
        )
    first = start[LENGTH_BYTES : LENGTH_BYTES + min(n_header, 1)]
    if first not in (b"{", b" ", b"\t", b"\n", b"\r"):
        return f"the header must begin with b'{{', it begins with {first!r}"
    return None


def parse_header(
    raw: bytes, n_data: int
) -> tuple[dict[str, TensorInfo], dict[str, str]]:
    """The tensors and the metadata in a header's JSON, before `n_data` bytes of data.

    The tensors come in the order of their data. Raises SafetensorsError.

    >>> entry = b'{"dtype": "F16", "shape": [2, 3], "data_offsets": [0, 12]}'
    >>> tensors, metadata = parse_header(b'{"w": ' + entry + b"}", n_data=12)
    >>> tensors["w"].shape
    (2, 3)
    >>> parse_header(b'{"w": ' + entry + b"}", n_data=10)
    Traceback (most recent call last):
    gpt2hw.errors.SafetensorsError: truncated: the tensors take 12 bytes, of which ...
    """
    try:
        entries = parse_object(raw)
    except ValueError as error:
        raise SafetensorsError(f"the header is broken: {error}") from None
    metadata = _metadata(entries.pop(METADATA, {}))
    infos = [parse_tensor_info(name, entry) for name, entry in entries.items()]
    infos.sort(key=lambda info: (info.start, info.end))
    _check_coverage(infos, n_data)
    return {info.name: info for info in infos}, metadata


def _metadata(value: Any) -> dict[str, str]:
    if isinstance(value, dict) and all(isinstance(v, str) for v in value.values()):
        return value
    raise SafetensorsError(f"{METADATA} must map texts to texts, it is {value!r:.80}")


def _check_coverage(infos: Iterable[TensorInfo], n_data: int) -> None:
    """The tensors, in order, must cover the data: no gap, no overlap, no rest."""
    reached = 0
    for info in infos:
        if info.start != reached:
            fault = "overlaps another" if info.start < reached else "leaves a gap"
            raise SafetensorsError(
                f"tensor {info.name!r:.80} {fault}: it begins at byte {info.start} of"
                f" the data, where byte {reached} is next"
            )
        reached = info.end
    if reached > n_data:
        raise SafetensorsError(
            f"truncated: the tensors take {reached} bytes, of which {n_data} are there;"
            " download the file again"
        )
    if reached < n_data:
        raise SafetensorsError(
            f"the tensors take {reached} bytes, and {n_data} are there: the format"
            " forbids a rest"
        )


def format_header(
    infos: Iterable[TensorInfo], metadata: Mapping[str, str] | None
) -> bytes:
    """The start of a file, up to its data: the inverse of `parse_header`.

    Spaces after the JSON make the data begin at a multiple of 8 bytes. Raises
    ValueError for what no header can hold.

    >>> format_header([TensorInfo("b", "U8", (2,), 0, 2)], None)[8:]
    b'{"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}   '
    """
    entries: dict[str, Any] = {} if metadata is None else {METADATA: dict(metadata)}
    for info in infos:
        entries[info.name] = {
            "dtype": info.dtype,
            "shape": list(info.shape),
            "data_offsets": [info.start, info.end],
        }
    check_texts(entries)
    text = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > MAX_HEADER_BYTES:
        raise ValueError(f"a header of {len(text)} bytes, over {MAX_HEADER_BYTES}")
    return len(text).to_bytes(LENGTH_BYTES, "little") + text


def _near(name: str, names: Iterable[str]) -> str:
    """The end of a message: names that are spelt much like the one that is missing.

    A file may hold any number of names of any length, and each comparison takes the
    product of two lengths: no more are compared than a model has.
    """
    if len(name) > MAX_NEAR_LENGTH:
        return ""
    short = (other for other in names if len(other) <= MAX_NEAR_LENGTH)
    near = get_close_matches(name, islice(short, MAX_NEAR_NAMES), n=3, cutoff=0.6)
    return f"; near names: {', '.join(map(repr, near))}" if near else ""
