"""From a name to a folder with the model's files: found here, or downloaded.

"gpt2" -> models/gpt2? -> the package's cache? -> the hub's cache? -> download
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpt2hw.errors import CheckpointError
from gpt2hw.folder import weights_file
from gpt2hw.hub.access import choose_hub, is_offline
from gpt2hw.hub.places import (
    SHIPPED,
    check_name,
    check_revision,
    checked_text,
    expanded,
    is_path,
)
from gpt2hw.hub.presence import first_whole, first_with_some, is_whole, listed
from gpt2hw.hub.records import read_record

if TYPE_CHECKING:
    from gpt2hw.hub.order import Order


def find(name_or_path: str | os.PathLike[str]) -> Path:
    """The folder of a model that is on this machine; nothing is downloaded.

    `tiny` and the published names are names even where a folder of that name stands
    beside; what starts with `.`, `/` or `~`, holds a backslash or more than one slash,
    or is an existing folder, is a path; `owner/name` is a name of the hub. A folder
    that holds the whole model comes first; where there is none, one with some of it,
    for its reader to say what is wrong. Raises CheckpointError that lists where it
    looked.

    >>> find("tiny").name
    'tiny'
    """
    name = checked_text(name_or_path)
    if is_path(name_or_path):
        return _folder(expanded(name))
    check_name(name)
    found = first_whole(name) or first_with_some(name)
    if found:
        return found
    raise CheckpointError(
        f"the model {name!r} is not on this machine; looked in\n  {listed(name)}\n"
        "Put its config.json and model.safetensors into one of these folders, or "
        f"download it: gpt2hw download {name}"
    )


def find_or_download(name_or_path: str | os.PathLike[str]) -> Path:
    """As `find`; a model that is not here is downloaded, unless offline is set."""
    name = checked_text(name_or_path)
    if is_path(name_or_path):
        return _folder(expanded(name))
    return _part_offline(name) or get(name).folder


def find_or_download_tokenizer(name_or_path: str | os.PathLike[str]) -> Path:
    """As `find_or_download`, without the weights."""
    name = checked_text(name_or_path)
    if is_path(name_or_path):
        return _folder(expanded(name))
    return _part_offline(name) or get(name, weights=False).folder


def _part_offline(name: str) -> Path | None:
    """Offline, a folder with some of a model, for its reader to say what is wrong."""
    check_name(name)
    if not is_offline() or first_whole(name):
        return None
    return first_with_some(name)


def download(
    name: str,
    directory: str | os.PathLike[str] | None = None,
    *,
    revision: str | None = None,
    endpoint: str | None = None,
    token: str | bool | None = None,
    offline: bool | None = None,
    force: bool = False,
) -> Path:
    """The folder of a model, which is downloaded from the hub unless it is here.

    It goes into the package's own cache, or straight into `directory`; what an earlier
    try has left is taken up. `revision` is a branch, a tag or a commit; gpt2 has a
    fixed one, the others `main`, and tiny, which comes with the package, none.
    `endpoint`, `token` and `offline` are HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE
    unless they are given; token=False sends none. `force` asks the hub again, compares
    the hash of every file, and fetches those that differ.

    Raises DownloadError where a transfer was tried and failed, CheckpointError for a
    model that is not here while offline, or cannot be run, and ValueError.

    >>> download("tiny").name
    'tiny'
    """
    return get(
        name,
        directory,
        revision=revision,
        endpoint=endpoint,
        token=token,
        offline=offline,
        force=force,
    ).folder


@dataclass(frozen=True)
class Got:
    """Where a model is, and whether something was downloaded for it."""

    folder: Path
    is_new: bool


def get(
    name: str,
    directory: str | os.PathLike[str] | None = None,
    *,
    revision: str | None = None,
    endpoint: str | None = None,
    token: str | bool | None = None,
    offline: bool | None = None,
    force: bool = False,
    weights: bool = True,
) -> Got:
    """As `download`, and it tells whether anything was to be downloaded."""
    check_name(checked_text(name))
    if revision is not None:
        check_revision(revision)
    is_told = endpoint is not None or token is not None
    hub, may_not = choose_hub(endpoint, token) if is_told else None, is_offline(offline)
    if not isinstance(force, bool):
        raise ValueError(f"force: must be True or False, not {force!r:.80}")  # noqa: TRY004
    if name == "tiny":
        return Got(_shipped(directory, revision), is_new=False)
    from gpt2hw.hub.order import (
        order_of,  # it knows how to download, and takes its time
    )

    order = order_of(name, directory, revision, force=force, weights=weights)
    found = None if force else _found(name, revision, order)
    if found:
        return Got(found, is_new=False)
    if may_not:
        raise _not_here(name, revision, order)
    from gpt2hw.hub.asking import Asker
    from gpt2hw.hub.fetching import fetch_model
    from gpt2hw.hub.patience import usual
    from gpt2hw.hub.progress import shown

    with Asker(hub or choose_hub(), usual()) as asker, shown() as watch:
        fetch_model(order, asker, watch)
    return Got(order.folder, is_new=True)


def _shipped(directory: object, revision: object) -> Path:
    """The folder of tiny; ValueError for a wish that only a download could grant."""
    folder = SHIPPED / "tiny"
    if directory is not None:
        raise ValueError(
            f"directory: tiny comes with the package; its files are in {folder}"
        )
    if revision is not None:
        raise ValueError(
            "revision: tiny comes with the package, and has no revisions: leave"
            f" {revision!r} out"
        )
    return folder


# --- what is here ---


def _found(name: str, revision: str | None, order: "Order") -> Path | None:
    """The folder that needs no download, None if there is none."""
    if not order.is_own:
        return order.folder if _was_downloaded(order) else None
    whole = first_whole(name, revision)
    if whole or order.weights:
        return whole
    merges = order.folder / "merges.txt"
    return order.folder if read_record(merges) else None


def _was_downloaded(order: "Order") -> bool:
    """Whether a folder holds this very model, by the record of its weights."""
    if not is_whole(order.folder):
        return False
    record = read_record(weights_file(order.folder))
    of = (order.repository, order.revision)
    return record is not None and (record.repository, record.revision) == of


def _not_here(name: str, revision: str | None, order: "Order") -> CheckpointError:
    if order.force:
        return CheckpointError(
            f"the model {name!r} cannot be checked anew: force asks the hub, and"
            " offline is set (HF_HUB_OFFLINE, or offline=True); leave one of them out"
        )
    looked = listed(name, revision) if order.is_own else str(order.folder)
    return CheckpointError(
        f"the model {name!r} is not on this machine, and offline is set"
        " (HF_HUB_OFFLINE, or offline=True), so it is not downloaded; looked in"
        f"\n  {looked}\nPut its config.json and model.safetensors into one of these"
        " folders, or go online"
    )


def _folder(path: Path) -> Path:
    if os.path.isdir(path):  # noqa: PTH112 -- never raises
        return path
    what = "a file, not a folder" if os.path.exists(path) else "not there"  # noqa: PTH110
    raise CheckpointError(
        f"{path} is {what}: a model is a folder with config.json and model.safetensors"
    )
