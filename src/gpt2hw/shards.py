"""Weights in several files: an index names them, and is checked against what they hold.

A checkpoint that is too large for one file is cut into shards. Each is a whole
.safetensors file; `model.safetensors.index.json` beside them says where each tensor is:

    {"metadata": {"total_size": 6230568960},
     "weight_map": {"wte.weight": "model-00001-of-00002.safetensors", ...}}

The index comes from outside and may say anything. So it names plain files beside itself
alone: no folder, no drive, no way up; and no link that leads out of the folder, unless
to a blob of the hub's cache, which is made of such links. `metadata` is not read:
programs disagree on what counts.

Source: transformers, `modeling_utils.py`, `save_pretrained` with `max_shard_size`.
"""

import codecs
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gpt2hw.errors import CheckpointError
from gpt2hw.files import NOT_THERE, not_a_file, read_plain
from gpt2hw.folder import INDEX
from gpt2hw.header import Header, read_header
from gpt2hw.strict_json import parse_object

MAX_INDEX_BYTES = 2**24  # one for GPT-2 XL, which has 580 tensors, takes 50,000
_PLAIN_NAME = re.compile(r"\w[\w .+-]*\.safetensors")


def read_headers(path: Path) -> tuple[Header, ...]:
    """The headers behind a weights file: its own, or those of an index's shards.

    No tensor is read. The shards come in the order of their names; together they hold
    exactly the tensors that the index names, each once. Raises CheckpointError where
    they do not, SafetensorsError where a file breaks the format, FileNotFoundError.

    >>> from gpt2hw.hub import find
    >>> (header,) = read_headers(find("tiny") / "model.safetensors")
    >>> header["wpe.weight"].shape
    (256, 192)
    """
    if path.name != INDEX:
        return (read_header(path),)
    weight_map = read_weight_map(path)
    shards = [path.parent / name for name in sorted(set(weight_map.values()))]
    _check_shards_are_there(path, shards)
    headers = tuple(read_header(shard) for shard in shards)
    _check_tensors(path, weight_map, _shard_of_each(path, headers))
    return headers


def read_weight_map(index: Path) -> dict[str, str]:
    """Which tensor lies in which file, as an index says; the names of files are safe.

    Raises CheckpointError where the index cannot be read or names no plain file.
    """
    try:
        return parse_weight_map(read_plain(index, MAX_INDEX_BYTES))
    except OSError as error:
        raise CheckpointError(f"{index} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise CheckpointError(f"{index} cannot be used: {error}") from None


def parse_weight_map(raw: bytes) -> dict[str, str]:
    """The weight_map in an index's JSON; a ValueError says why there is none.

    >>> parse_weight_map(b'{"weight_map": {"wte.weight": "a.safetensors"}}')
    {'wte.weight': 'a.safetensors'}
    >>> parse_weight_map(b'{"weight_map": {"wte.weight": "../a.safetensors"}}')
    Traceback (most recent call last):
    ValueError: it puts 'wte.weight' into '../a.safetensors', which is no plain file ...
    """
    entries = parse_object(raw.removeprefix(codecs.BOM_UTF8))
    weight_map: Any = entries.get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise ValueError(
            "its weight_map must map the names of tensors to names of files, it is"
            f" {weight_map!r:.80}"
        )
    for tensor, file in weight_map.items():
        if not isinstance(file, str) or not _PLAIN_NAME.fullmatch(file):
            raise ValueError(
                f"it puts {tensor!r:.80} into {file!r:.80}, which is no plain file name"
                " that ends in .safetensors; shards lie beside their index"
            )
    return weight_map


def _check_shards_are_there(index: Path, shards: Iterable[Path]) -> None:
    states = {shard: not_a_file(shard) for shard in shards}
    for shard, instead in states.items():
        if instead not in (None, NOT_THERE):
            raise CheckpointError(f"{shard} is {instead}, not a shard of weights")
        if instead is None and _leads_outside(shard):
            raise CheckpointError(
                f"{shard} is a link out of its folder, to {os.path.realpath(shard)}:"
                " copy that file here, if it is the one that is meant"
            )
    missing = [shard.name for shard, instead in states.items() if instead]
    if missing:
        raise CheckpointError(
            f"{index} names {len(states)} shards, of which {len(missing)} cannot be"
            f" found: {_some(missing)}; download them, into the folder of the index"
        )


def _leads_outside(shard: Path) -> bool:
    """Whether a file lies elsewhere than its name, and not among a hub's blobs."""
    target = Path(os.path.realpath(shard))
    home = os.path.realpath(shard.parent)
    return not target.is_relative_to(home) and target.parent.name != "blobs"


def _shard_of_each(index: Path, headers: Iterable[Header]) -> dict[str, str]:
    """The shard in which each tensor really lies; no tensor may lie in two."""
    shard_of: dict[str, str] = {}
    for header in headers:
        for name in header.tensors:
            if name in shard_of:
                raise CheckpointError(
                    f"{index.parent}: the tensor {name!r:.80} lies both in"
                    f" {shard_of[name]} and in {header.path.name}: which of the two is"
                    " meant cannot be known"
                )
            shard_of[name] = header.path.name
    return shard_of


def _check_tensors(
    index: Path, said: Mapping[str, str], found: Mapping[str, str]
) -> None:
    """What the index says must be what its shards hold."""
    away = [name for name in said if name not in found]
    moved = [name for name in said if found.get(name, said[name]) != said[name]]
    unnamed = [name for name in found if name not in said]
    faults = []
    if away:
        name = away[0]
        faults.append(f"no shard holds {_some(away)}, by the index in {said[name]}")
    if moved:
        name = moved[0]
        faults.append(
            f"{_some(moved)} lies in {found[name]}, by the index in {said[name]}"
        )
    if unnamed:
        name = unnamed[0]
        faults.append(f"{found[name]} holds {_some(unnamed)}, which the index lacks")
    if faults:
        raise CheckpointError(
            f"{index} and its shards do not belong together: {'; '.join(faults)}."
            " Download all of them again, from one place"
        )


def _some(names: list[str], n_shown: int = 3) -> str:
    """The first of the names, and how many more there are.

    >>> _some(["a", "b", "c", "d"])
    "'a', 'b', 'c' (and 1 more)"
    """
    shown = ", ".join(f"{name!r:.80}" for name in names[:n_shown])
    n_more = len(names) - n_shown
    return f"{shown} (and {n_more} more)" if n_more > 0 else shown
