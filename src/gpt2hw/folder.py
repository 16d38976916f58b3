"""What a model's folder holds: its settings, and the file of its weights."""

import codecs
import re
from pathlib import Path
from typing import Any

from gpt2hw.config import GPT2Config
from gpt2hw.errors import CheckpointError
from gpt2hw.files import NOT_THERE, not_a_file, read_plain
from gpt2hw.strict_json import parse_object

MAX_SETTINGS_BYTES = 2**20  # GPT-2's has 665
INDEX = "model.safetensors.index.json"  # of weights in several files, see shards.py


def read_settings(folder: Path) -> dict[str, Any]:
    """The keys of a folder's config.json, as they stand there.

    A byte order mark before them, as Windows' editors leave it, does no harm. Raises
    CheckpointError where there is none, or it is no JSON object.

    >>> from gpt2hw.hub import find
    >>> read_settings(find("tiny"))["model_type"]
    'gpt2'
    """
    path = folder / "config.json"
    try:
        raw = read_plain(path, MAX_SETTINGS_BYTES)
    except FileNotFoundError:
        raise CheckpointError(
            f"{folder} has no config.json: put the one of the same model there"
        ) from None
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise CheckpointError(f"{path} cannot be read: it is {error}") from None
    try:
        return parse_object(raw.removeprefix(codecs.BOM_UTF8))
    except ValueError as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from None


def read_config(folder: Path) -> GPT2Config:
    """The shape of a folder's model; CheckpointError where it cannot be run.

    >>> from gpt2hw.hub import find
    >>> read_config(find("tiny")).n_vocab
    2048
    """
    settings = read_settings(folder)
    try:
        return GPT2Config.from_dict(settings)
    except CheckpointError as error:
        raise CheckpointError(f"{folder / 'config.json'}: {error}") from None


def weights_file(folder: Path) -> Path:
    """The model.safetensors of a folder, or else the index of its shards.

    A CheckpointError says what is there instead.

    >>> from gpt2hw.hub import find
    >>> weights_file(find("tiny")).name
    'model.safetensors'
    """
    for name in ("model.safetensors", INDEX):
        path = folder / name
        instead = not_a_file(path)
        if instead is None:
            return path
        if instead != NOT_THERE:
            raise CheckpointError(f"{path} is {instead}, not a file of weights")
    raise CheckpointError(_what_is_there_instead(folder))


def _what_is_there_instead(folder: Path) -> str:
    """Why a folder has no model.safetensors, and what to do."""
    files = folder.glob("*.safetensors")
    others = sorted(p.name for p in files if not_a_file(p) is None)
    if any(re.search(r"-\d+-of-\d+\.safetensors$", name) for name in others):
        return (
            f"{folder} has shards ({', '.join(others[:5])}), but not the index that"
            f" names them: put the {INDEX} of the same model there"
        )
    if others:
        return (
            f"{folder} has no model.safetensors, but {', '.join(others[:5])}: rename "
            "the one that is meant"
        )
    if any(folder.glob("pytorch_model*.bin")):
        return (
            f"{folder} holds only pytorch_model.bin, a pickle, which can run code when "
            "opened and is never loaded here: take the model.safetensors of the same "
            "model, or convert it to model.safetensors where you trust it "
            "(transformers' save_pretrained writes one)"
        )
    return f"{folder} has no model.safetensors: put the one of the same model there"
