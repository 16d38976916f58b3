"""An order for a model: which files are wanted, from where, and where they go."""

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from gpt2hw.config import PUBLISHED
from gpt2hw.errors import CheckpointError
from gpt2hw.hub.asking import Asker
from gpt2hw.hub.file_kinds import judge_of, most_bytes, stands_alone
from gpt2hw.hub.pinned import PINNED, Pinned
from gpt2hw.hub.places import (
    absolute,
    checked_text,
    expanded,
    own_folder,
    repository,
    short_name,
)
from gpt2hw.hub.records import Record
from gpt2hw.hub.source import Source
from gpt2hw.hub.statement import Statement


@dataclass(frozen=True)
class Order:
    """What is wanted, from where, and where it goes.

    `is_own` says that the folder is in the package's own cache, where no file of
    anybody else's lies; `has_own_tokenizer` that the model's is not GPT-2's; without
    `weights` all but these are fetched; `force` has everything checked again.
    """

    repository: str
    revision: str
    folder: Path
    pinned: Pinned | None = None
    is_own: bool = True
    has_own_tokenizer: bool = True
    weights: bool = True
    force: bool = False

    def page(self, asker: Asker) -> str:
        """The model's address at the hub."""
        return f"{asker.access.endpoint}/{self.repository}"

    def is_met_by(self, record: Record, file: str) -> bool:
        """Whether a record is of this model's file, at this revision."""
        pinned = self.pinned.files.get(file) if self.pinned else None
        wanted, found = ((of.repository, of.revision) for of in (self, record))
        return wanted == found and pinned in (None, (record.size, record.sha256))

    def source(self, file: str, asker: Asker, commit: str | None) -> Source:
        """A file of the model, at a commit where that is known already."""
        known = Statement()
        if self.pinned and file in self.pinned.files:
            known = Statement(*self.pinned.files[file], commit=self.pinned.commit)
        at = quote(commit or self.revision, safe="")
        page = self.page(asker)
        return Source(
            asker=asker,
            url=f"{page}/resolve/{at}/{quote(file)}",
            file=file,
            page=page,
            known=known,
            judge=judge_of(file),
            stands_alone=stands_alone,
            most=most_bytes(file),
        )


def order_of(
    name: str,
    directory: str | os.PathLike[str] | None = None,
    revision: str | None = None,
    *,
    force: bool = False,
    weights: bool = True,
) -> Order:
    """The order for a name; a ValueError for a directory that can be none.

    >>> order = order_of("gpt2", "/models")
    >>> order.repository, order.folder.name, order.has_own_tokenizer
    ('openai-community/gpt2', 'models', False)
    """
    target = None if directory is None else _target(directory)
    pinned = PINNED.get(repository(name)) if revision is None else None
    return Order(
        repository=repository(name),
        revision=revision or (pinned.commit if pinned else "main"),
        folder=target or own_folder(name, revision),
        pinned=pinned,
        is_own=target is None,
        has_own_tokenizer=short_name(name) not in PUBLISHED,
        weights=weights,
        force=force,
    )


def _target(directory: str | os.PathLike[str]) -> Path:
    try:
        return absolute(expanded(checked_text(directory)))
    except CheckpointError:
        raise ValueError(
            f"directory: must be a folder, not {directory!r:.80}"
        ) from None
