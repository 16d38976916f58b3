"""Which of the places where a model may lie has it, whole or in part.

Whole is told without reading much: weights say in their header how long they are, and
a record beside a downloaded file how long that was.
"""

from pathlib import Path

from gpt2hw.errors import GPT2HWError
from gpt2hw.files import not_a_file
from gpt2hw.folder import INDEX, weights_file
from gpt2hw.hub.places import SHIPPED, places_of
from gpt2hw.hub.records import contradicted
from gpt2hw.shards import read_headers

WEIGHTS = "model.safetensors"
KINDS = (WEIGHTS, INDEX, "pytorch_model.bin")


def is_whole(folder: Path) -> bool:
    """Whether a folder has a config.json, and weights that are as long as they say.

    >>> is_whole(SHIPPED / "tiny")
    True
    """
    if not_a_file(folder / "config.json") is not None or contradicted(folder):
        return False
    try:
        read_headers(weights_file(folder))
    except (GPT2HWError, OSError, ValueError):
        return False
    return True


def first_whole(name: str, revision: str | None = None) -> Path | None:
    """The first place that has the whole model.

    What a person has put into models/NAME is taken as it is: its reader says what is
    wrong there.
    """
    if name == "tiny":
        return SHIPPED / "tiny"
    for number, folder in enumerate(places_of(name, revision)):
        if number == 0 and revision is None:
            names = ("config.json", WEIGHTS), ("config.json", INDEX)
            if any(all(not_a_file(folder / n) is None for n in some) for some in names):
                return folder
        elif is_whole(folder):
            return folder
    return None


def first_with_some(name: str, revision: str | None = None) -> Path | None:
    """The first place that has weights, of the best kind that is anywhere; or None."""
    looked = list(places_of(name, revision))
    for file in KINDS:  # the best kind first, wherever it lies
        for folder in looked:
            if not_a_file(folder / file) is None:
                return folder
    return None


def listed(name: str, revision: str | None = None) -> str:
    """The places, one a line, for a message."""
    return "\n  ".join(str(folder) for folder in places_of(name, revision))
