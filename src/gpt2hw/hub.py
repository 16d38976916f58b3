"""Where a model lies: from a name to a folder of files on this machine.

A name is looked for in the package (`tiny`), in `models/NAME` under the working
directory, in the package's own cache, and in the cache of Hugging Face's hub, which is
read and never written.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import platformdirs

from gpt2hw.config import PUBLISHED
from gpt2hw.errors import CheckpointError
from gpt2hw.files import read_plain

SHIPPED = Path(__file__).parent / "models"
MAX_REFERENCE_BYTES = 1000  # a commit has 40
WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin")
# A part of owner/name: letters, digits, "_", and inside "." and "-", never doubled. So
# no name climbs out of a cache, and owner--name, as caches write it, has one meaning.
_HUB_NAME = re.compile(r"\w+([.-]\w+)*/\w+([.-]\w+)*", re.ASCII)


def find(name_or_path: str | os.PathLike[str]) -> Path:
    """The folder of a model that is on this machine.

    `tiny` and the published names are names even where a folder of that name stands
    beside; what starts with `.`, `/` or `~`, holds a backslash or more than one slash,
    or is an existing folder, is a path; `owner/name` is a name of the hub. Raises
    CheckpointError that lists where it looked.

    >>> find("tiny").name
    'tiny'
    """
    is_text = isinstance(name_or_path, (str, os.PathLike))
    name = os.fspath(name_or_path) if is_text else name_or_path
    if not isinstance(name, str) or not name or "\0" in name:
        raise CheckpointError(f"a model is a name or a folder, not {name!r}")
    if is_path(name_or_path):
        return _folder(_expanded(name))
    if name == "tiny":
        return SHIPPED / "tiny"
    if name not in PUBLISHED and not _HUB_NAME.fullmatch(name):
        known = ", ".join(["tiny", *PUBLISHED])
        raise CheckpointError(
            f"{name!r} is neither a folder nor a model's name (known: {known}; "
            "others are written owner/name)"
        )
    return _first_that_is_there(name)


def is_path(name_or_path: str | os.PathLike[str]) -> bool:
    """Whether the contract reads this as a path, not as a name; a Path always is one.

    >>> is_path("./gpt2"), is_path("gpt2"), is_path(Path("./gpt2"))
    (True, False, True)
    """
    if not isinstance(name_or_path, str):
        return True
    name = name_or_path
    if name == "tiny" or name in PUBLISHED:
        return False
    if name[:1] in {".", "/", "~"} or "\\" in name or name.count("/") > 1:
        return True
    climbs = ".." in name.split("/")  # Windows takes "a/.." for a folder that is there
    return not climbs and os.path.isdir(name)  # noqa: PTH112 -- never raises


def _expanded(path: str) -> Path:
    """The path with `~` spelt out; where no such user is known, as it stands."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 -- Path.expanduser raises


def _folder(path: Path) -> Path:
    if os.path.isdir(path):  # noqa: PTH112
        return path
    what = "a file, not a folder" if os.path.exists(path) else "not there"  # noqa: PTH110
    raise CheckpointError(
        f"{path} is {what}: a model is a folder with config.json and model.safetensors"
    )


def _first_that_is_there(name: str) -> Path:
    looked = list(_places(name))
    for file in WEIGHTS:  # the best kind first, wherever it lies
        for folder in looked:
            if os.path.isfile(folder / file):  # noqa: PTH113 -- never raises
                return folder
    places = "\n  ".join(str(folder) for folder in looked)
    raise CheckpointError(
        f"the model {name!r} is not on this machine; looked in\n  {places}\n"
        "Put its config.json and model.safetensors into one of these folders, or "
        "name the folder that holds them."
    )


def _places(name: str) -> Iterator[Path]:
    yield _absolute(Path("models", *name.split("/")))
    yield package_cache() / name.replace("/", "--")
    owner_and_name = name if "/" in name else f"openai-community/{name}"
    names = [owner_and_name] + ([name] if "/" not in name else [])
    if name == "distilgpt2":
        names = ["distilbert/distilgpt2", name]
    for hub_name in names:
        repository = hub_cache() / f"models--{hub_name.replace('/', '--')}"
        yield from _snapshots(repository)


def _absolute(path: Path) -> Path:
    """The path from the root on; as it stands where the working directory is gone."""
    try:
        return path.absolute()
    except OSError:
        return path


def package_cache() -> Path:
    """The package's own cache: GPT2HW_CACHE, or the system's folder for caches."""
    named = os.environ.get("GPT2HW_CACHE")
    if named:
        return _absolute(_expanded(named))
    return platformdirs.user_cache_path("gpt2hw", appauthor=False)


def hub_cache() -> Path:
    """The cache of Hugging Face's hub, where its own client would look.

    Source: huggingface_hub, `constants.py`.
    """
    for variable, below in _HUB_VARIABLES:
        named = os.environ.get(variable)
        if named:
            return _expanded(os.path.expandvars(named)).joinpath(*below)
    return _expanded("~/.cache/huggingface/hub")


_HUB_VARIABLES = (
    ("HF_HUB_CACHE", ()),
    ("HUGGINGFACE_HUB_CACHE", ()),
    ("HF_HOME", ("hub",)),
    ("XDG_CACHE_HOME", ("huggingface", "hub")),
)


def _snapshots(repository: Path) -> Iterator[Path]:
    """The folder of the commit that `main` names; the repository itself if none."""
    try:
        raw = read_plain(repository / "refs" / "main", MAX_REFERENCE_BYTES)
        commit = raw.decode("ascii").strip()
    except (OSError, ValueError):
        commit = ""
    is_commit = re.fullmatch(r"[0-9a-f]{40}", commit)
    yield repository / "snapshots" / commit if is_commit else repository
