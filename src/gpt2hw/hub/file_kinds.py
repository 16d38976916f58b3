"""What a downloaded file should hold, by its name, and whether it does.

For a file of which the hub states a hash, the hash decides. The rest shows by itself
whether it is whole: a weights file says in its header how long it is, and JSON ends
where its first bracket closes.
"""

import codecs
import re
from collections.abc import Callable
from pathlib import Path

from gpt2hw.errors import SafetensorsError
from gpt2hw.files import read_plain
from gpt2hw.folder import INDEX, MAX_SETTINGS_BYTES
from gpt2hw.header import read_header
from gpt2hw.shards import MAX_INDEX_BYTES
from gpt2hw.strict_json import parse_object
from gpt2hw.wrong_files import identify

MAX_TEXT_BYTES = 2**26  # GPT-2's vocab.json has 2**20
_END_OF_A_DRAFT = re.compile(r"(\.[0-9a-f]+)*\.part$")  # as `draft.Desk` names it
_PAGE = (
    "a web page came in its place, an error or the login page of this network: open a"
    " browser, log in, and try again"
)


def judge_of(file: str) -> Callable[[bytes], str | None]:
    """What tells from the first bytes that a file of this name is something else.

    >>> judge_of("config.json")(b"<html>")[:16]
    'a web page came '
    >>> judge_of("config.json")(b'{"n_embd": 768}') is None
    True
    """
    return _judge_weights if file.endswith(".safetensors") else _judge_text


def _judge_weights(start: bytes) -> str | None:
    kind = identify(start)
    return _PAGE if kind and start.lstrip().startswith(b"<") else kind


def _judge_text(start: bytes) -> str | None:
    text = start.lstrip().lower()
    if text.startswith(b"<"):
        return _PAGE
    is_other = text.startswith((b"version https://git-lfs", b'{"error"', b"\x1f\x8b"))
    return identify(start) if is_other else None


def most_bytes(file: str) -> int | None:
    """How many bytes such a file may have at most; None for weights: any number.

    >>> most_bytes("config.json"), most_bytes("model.safetensors")
    (1048576, None)
    """
    if file.endswith(".safetensors"):
        return None
    limits = {"config.json": MAX_SETTINGS_BYTES, INDEX: MAX_INDEX_BYTES}
    return limits.get(file, MAX_TEXT_BYTES)


def stands_alone(path: Path) -> bool | None:
    """Whether a file is whole, by what stands in it; None where that cannot be seen.

    The kind is that of its name, also of a draft's (`config.json.part`).
    """
    name = _END_OF_A_DRAFT.sub("", path.name)
    if name.endswith(".safetensors"):
        return _holds(lambda: read_header(path))
    if name.endswith(".json"):
        return _holds(lambda: parse_object(_json_of(path)))
    return None


def _json_of(path: Path) -> bytes:
    """A file's bytes, without the mark that some editors put at the beginning."""
    return read_plain(path, MAX_TEXT_BYTES).removeprefix(codecs.BOM_UTF8)


def _holds(read: Callable[[], object]) -> bool:
    try:
        read()
    except (OSError, ValueError, SafetensorsError):
        return False
    return True
