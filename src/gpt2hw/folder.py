"""What a model's folder holds: its settings, and the file of its weights."""

from pathlib import Path
from typing import Any

from gpt2hw.config import GPT2Config
from gpt2hw.errors import CheckpointError
from gpt2hw.strict_json import parse_object

MAX_SETTINGS_BYTES = 2**20  # GPT-2's has 665; what is cut off is no JSON


def read_settings(folder: Path) -> dict[str, Any]:
    """The keys of a folder's config.json, as they stand there.

    Raises CheckpointError where there is none, or it is no JSON object.

    >>> from gpt2hw.hub import find
    >>> read_settings(find("tiny"))["model_type"]
    'gpt2'
    """
    path = folder / "config.json"
    try:
        with path.open("rb") as file:
            return parse_object(file.read(MAX_SETTINGS_BYTES))
    except FileNotFoundError:
        raise CheckpointError(
            f"{folder} has no config.json: put the one of the same model there"
        ) from None
    except (OSError, ValueError) as error:
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
    """The model.safetensors of a folder; a CheckpointError says what is there instead.

    >>> from gpt2hw.hub import find
    >>> weights_file(find("tiny")).name
    'model.safetensors'
    """
    path = folder / "model.safetensors"
    if path.is_file():
        return path
    if (folder / "model.safetensors.index.json").is_file():
        raise CheckpointError(
            f"{folder} holds its weights in several shards, which are not read here; "
            "join them into one model.safetensors"
        )
    others = sorted(p.name for p in folder.glob("*.safetensors"))
    if others:
        raise CheckpointError(
            f"{folder} has no model.safetensors, but {', '.join(others[:5])}: rename "
            "the one that is meant"
        )
    if any(folder.glob("pytorch_model*.bin")):
        raise CheckpointError(
            f"{folder} holds only pytorch_model.bin, a pickle, which can run code when "
            "opened and is never loaded here; convert it to model.safetensors first"
        )
    raise CheckpointError(
        f"{folder} has no model.safetensors: put the one of the same model there"
    )
