"""Where a model may lie: names and paths told apart, and the folders to look in.

A name is looked for in `models/NAME` under the working directory, in the package's own
cache, and in the cache of Hugging Face's hub, which is read and never written.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import platformdirs

from gpt2hw.config import PUBLISHED
from gpt2hw.errors import CheckpointError
from gpt2hw.files import read_plain

SHIPPED = Path(__file__).parent.parent / "models"
MAX_REFERENCE_BYTES = 1000  # a commit has 40
# A part of owner/name: letters, digits, "_", and inside "." and "-", never doubled. So
# no name climbs out of a cache, and owner--name, as caches write it, has one meaning.
_HUB_NAME = re.compile(r"\w+([.-]\w+)*/\w+([.-]\w+)*", re.ASCII)
_REVISION = re.compile(r"\w+([./-]\w+)*", re.ASCII)  # v1.0, refs/pr/1, a commit
_COMMIT = re.compile(r"[0-9a-f]{40}")


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


def checked_text(name_or_path: object) -> str:
    """A name or a path as text; CheckpointError for what is neither."""
    text = name_or_path
    if isinstance(text, os.PathLike):
        text = os.fspath(text)
    if not isinstance(text, str) or not text or "\0" in text:
        raise CheckpointError(f"a model is a name or a folder, not {text!r}")
    return text


def check_name(name: str) -> None:
    """Refuses, with a CheckpointError, what no model can be called.

    >>> check_name("gpt2"), check_name("owner/name")
    (None, None)
    >>> check_name("owner/name?download=true")
    Traceback (most recent call last):
    gpt2hw.errors.CheckpointError: 'owner/name?download=true' is neither a folder ...
    """
    if name == "tiny" or name in PUBLISHED or _HUB_NAME.fullmatch(name):
        return
    known = ", ".join(["tiny", *PUBLISHED])
    raise CheckpointError(
        f"{name!r} is neither a folder nor a model's name (known: {known}; "
        "others are written owner/name)"
    )


def check_revision(revision: object) -> None:
    """Refuses, with a ValueError, what is no branch, tag, pull request or commit.

    >>> check_revision("refs/pr/1")
    >>> check_revision("../main")
    Traceback (most recent call last):
    ValueError: revision: must be a branch, a tag or a commit, not '../main'
    """
    fits = isinstance(revision, str) and len(revision) <= 100
    if not fits or not _REVISION.fullmatch(str(revision)):
        raise ValueError(
            f"revision: must be a branch, a tag or a commit, not {revision!r:.80}"
        )


def short_name(name: str) -> str:
    """The name without its owner, for the published sizes of GPT-2.

    >>> short_name("openai-community/gpt2"), short_name("owner/gpt2")
    ('gpt2', 'owner/gpt2')
    """
    for bare in PUBLISHED:
        if name == repository(bare):
            return bare
    return name


def repository(name: str) -> str:
    """The owner/name under which the hub has a model.

    >>> repository("gpt2"), repository("distilgpt2"), repository("owner/name")
    ('openai-community/gpt2', 'distilbert/distilgpt2', 'owner/name')
    """
    if name in PUBLISHED:
        owner = "distilbert" if name == "distilgpt2" else "openai-community"
        return f"{owner}/{name}"
    return name


def own_folder(name: str, revision: str | None = None) -> Path:
    """Where the package's own cache has a model, at a revision if one is asked for.

    >>> own_folder("owner/name", "refs/pr/1").name
    'owner--name@refs--pr--1'
    """
    at = f"@{revision.replace('/', '--')}" if revision else ""
    return package_cache() / (short_name(name).replace("/", "--") + at)


def places_of(name: str, revision: str | None = None) -> Iterator[Path]:
    """The folders in which a model may lie, the first to be looked into first.

    What lies in `models` says nothing of its revision, so it is passed over where one
    is asked for.
    """
    if revision is None:
        yield absolute(Path("models", *name.split("/")))
    yield own_folder(name, revision)
    bare = short_name(name)
    for hub_name in dict.fromkeys([repository(bare), bare]):
        folder = hub_cache() / f"models--{hub_name.replace('/', '--')}"
        yield _snapshot(folder, revision or "main")


def _snapshot(folder: Path, revision: str) -> Path:
    """The folder of the commit that a revision names; the repository itself if none."""
    if _COMMIT.fullmatch(revision):
        return folder / "snapshots" / revision
    try:
        raw = read_plain(folder / "refs" / revision, MAX_REFERENCE_BYTES)
        commit = raw.decode("ascii").strip()
    except (OSError, ValueError):
        commit = ""
    return folder / "snapshots" / commit if _COMMIT.fullmatch(commit) else folder


def expanded(path: str) -> Path:
    """The path with `~` spelt out; where no such user is known, as it stands."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 -- Path.expanduser raises


def absolute(path: Path) -> Path:
    """The path from the root on; as it stands where the working directory is gone."""
    try:
        return path.absolute()
    except OSError:
        return path


def package_cache() -> Path:
    """The package's own cache: GPT2HW_CACHE, or the system's folder for caches."""
    named = os.environ.get("GPT2HW_CACHE")
    if named:
        return absolute(expanded(named))
    return platformdirs.user_cache_path("gpt2hw", appauthor=False)


def hub_cache() -> Path:
    """The cache of Hugging Face's hub, where its own client would look.

    Source: huggingface_hub, `constants.py`.
    """
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        named = os.environ.get(variable)
        if named:
            return expanded(os.path.expandvars(named))
    return hub_home() / "hub"


def hub_home() -> Path:
    """The folder of Hugging Face's hub: its cache, and the token of who has logged in.

    Source: huggingface_hub, `constants.py`.
    """
    for variable, below in (("HF_HOME", ""), ("XDG_CACHE_HOME", "huggingface")):
        named = os.environ.get(variable)
        if named:
            return expanded(os.path.expandvars(named)) / below
    return expanded("~/.cache/huggingface")
