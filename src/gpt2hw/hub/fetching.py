"""A whole model from the hub: which files, in which order, into one folder.

Weights come last, and the index of shards after its shards. So where the weights of a
model are, all of it is there.

Source of the files' names: transformers, `utils/__init__.py`.
"""

import codecs
from contextlib import suppress
from pathlib import Path

from gpt2hw.config import GPT2Config
from gpt2hw.errors import CheckpointError, DownloadError, GPT2HWError
from gpt2hw.files import DANGLING, NOT_THERE, not_a_file, read_plain, replacing
from gpt2hw.folder import INDEX, MAX_SETTINGS_BYTES, read_config
from gpt2hw.hub.asking import Asker
from gpt2hw.hub.draft import Desk, Draft, remove
from gpt2hw.hub.file_kinds import stands_alone
from gpt2hw.hub.folder_lock import locked
from gpt2hw.hub.order import Order
from gpt2hw.hub.places import SHIPPED
from gpt2hw.hub.presence import WEIGHTS
from gpt2hw.hub.progress import Watch
from gpt2hw.hub.records import BESIDE, Record, read_record, write_record
from gpt2hw.hub.refusals import NotThereError, not_written
from gpt2hw.hub.statement import sha256_of
from gpt2hw.hub.transfer import Transfer
from gpt2hw.shards import MAX_INDEX_BYTES, parse_weight_map
from gpt2hw.strict_json import parse_object

PICKLE = "pytorch_model.bin"


def fetch_model(order: Order, asker: Asker, watch: Watch) -> None:
    """Brings a model's files into its folder, one process at a time.

    Files that are there and right are kept. Raises DownloadError, and CheckpointError
    for a model that cannot be run here.
    """

    def waits() -> None:
        watch.waits("another process downloads into this folder; waiting for it")

    beside = order.folder / BESIDE
    if beside.is_symlink():
        raise DownloadError(f"{beside} is a link: move it out of the way")
    try:
        beside.mkdir(parents=True, exist_ok=True)
        with locked(beside / "lock", waits) as is_ours:
            desk = Desk(beside, is_ours)
            _Fetch(order, asker, desk, watch).run()
            if order.weights:
                desk.clear()
    except GPT2HWError:
        raise
    except OSError as error:
        raise not_written(error, Path(error.filename or order.folder), None) from None


class _Fetch:
    """One order, while it is carried out."""

    def __init__(self, order: Order, asker: Asker, desk: Desk, watch: Watch) -> None:
        self._order, self._asker, self._desk, self._watch = order, asker, desk, watch
        # Once it is known, all files are asked for at it, so that they belong together.
        self._commit: str | None = None

    def run(self) -> None:
        """Fetches config, tokenizer and weights, in this order."""
        order = self._order
        self._fetch_config()
        if order.has_own_tokenizer:
            for file in ("vocab.json", "merges.txt"):
                self._fetch_if_there(file)
        else:
            self._put_merges(order.folder / "merges.txt")
        if order.weights:
            self._fetch_weights()

    def _put_merges(self, path: Path) -> None:
        """Puts GPT-2's merges, which the package has, where other ones may lie."""
        merges = (SHIPPED / "gpt2" / "merges.txt").read_bytes()
        is_there = _is_file(path)
        if is_there and path.read_bytes().splitlines() == merges.splitlines():
            return
        if is_there and not (self._order.is_own or self._order.force):
            raise self._is_anothers(path)
        if path.is_symlink():
            path.unlink()  # what it leads to is not ours
        with replacing(path) as out:
            out.write(merges)

    def _fetch_config(self) -> None:
        """Fetches what tells whether the rest is worth it: one that can be run here."""
        path = self._order.folder / "config.json"
        draft = self._arrived(path.name)
        if draft:
            try:
                self._check_config(draft.path)
            except CheckpointError:
                draft.close()
                remove(draft.path)
                raise
            self._install(draft, path)
        read_config(path.parent)

    def _check_config(self, path: Path) -> None:
        try:
            raw = read_plain(path, MAX_SETTINGS_BYTES).removeprefix(codecs.BOM_UTF8)
            GPT2Config.from_dict(parse_object(raw))
        except ValueError as error:
            raise CheckpointError(f"config.json of {self._page}: {error}") from None

    def _fetch_weights(self) -> None:
        if self._order.pinned:
            self._fetch(WEIGHTS)
        elif not self._fetch_if_there(WEIGHTS) and not self._fetch_shards():
            self._refuse()

    def _refuse(self) -> None:
        with suppress(NotThereError):
            self._transfer(PICKLE).stated()
            raise CheckpointError(
                f"{self._page} has its weights only as {PICKLE}, a pickle, which can"
                " run code when it is opened, so it is not fetched: take another model,"
                " or convert it where you trust it (save_pretrained of transformers"
                f" writes {WEIGHTS}) and name the folder"
            )
        raise DownloadError(f"{self._page} has no {WEIGHTS}, and no shards of one")

    def _fetch_shards(self) -> bool:
        """Fetches the shards that the index names, and the index after them."""
        index = self._order.folder / INDEX
        try:
            draft = self._arrived(INDEX)
        except NotThereError:
            return False
        try:
            for shard in self._shards(draft.path if draft else index):
                self._fetch(shard)
        except BaseException:
            if draft:
                draft.close()
            raise
        if draft:
            self._install(draft, index)
        return True

    def _shards(self, index: Path) -> list[str]:
        """The names of files in an index, none of which leaves the folder."""
        try:
            weight_map = parse_weight_map(read_plain(index, MAX_INDEX_BYTES))
        except ValueError as error:
            raise CheckpointError(f"{INDEX} of {self._page}: {error}") from None
        return sorted(set(weight_map.values()))

    # --- one file ---

    @property
    def _page(self) -> str:
        return self._order.page(self._asker)

    def _fetch_if_there(self, file: str) -> bool:
        """Fetches a file that the hub may not have; whether it has it."""
        try:
            self._fetch(file)
        except NotThereError:
            return False
        return True

    def _fetch(self, file: str) -> None:
        draft = self._arrived(file)
        if draft:
            self._install(draft, self._order.folder / file)

    def _install(self, draft: Draft, path: Path) -> None:
        length, sha256 = draft.length, draft.sha256
        draft.install(path)
        self._write_record(path, length, sha256)

    def _write_record(self, path: Path, length: int, sha256: str) -> None:
        order = self._order
        record = Record(order.repository, order.revision, self._commit, length, sha256)
        write_record(path, record)

    def _arrived(self, file: str) -> Draft | None:
        """The draft of a file; None if the file is in its place, and right."""
        transfer, path = self._transfer(file), self._order.folder / file
        if _is_file(path) and self._is_right(path, transfer):
            return None
        draft = transfer.fetched()
        self._commit = self._commit or transfer.known.commit
        return draft

    def _is_right(self, path: Path, transfer: Transfer) -> bool:
        """Whether the file in its place is the one that is wanted.

        A record of the same model tells it, by the size alone; without one, or by
        force, the file is read, and its hash is compared with what the hub states.
        """
        record = read_record(path)
        if (
            record
            and not self._order.force
            and self._order.is_met_by(record, path.name)
        ):
            self._commit = self._commit or record.commit
            return True
        stated = transfer.known if transfer.known.has_hash else transfer.stated()
        self._commit = self._commit or stated.commit
        if stated.has_hash and stated.is_true_of(path):
            self._write_record(path, path.stat().st_size, sha256_of(path))
            return True
        seems_whole = stands_alone(path) is True
        if not stated.has_hash and seems_whole and not self._order.force:
            return True
        if seems_whole and not (record or self._order.is_own or self._order.force):
            raise self._is_anothers(path)
        return False

    def _is_anothers(self, path: Path) -> CheckpointError:
        return CheckpointError(
            f"{path} is whole, but another file than the {path.name} of {self._page}:"
            " move it away, name another folder, or have it replaced (--force,"
            " force=True)"
        )

    def _transfer(self, file: str) -> Transfer:
        order = self._order
        source = order.source(file, self._asker, self._commit)
        return Transfer(source, order.folder / file, self._desk, self._watch)


def _is_file(path: Path) -> bool:
    """Whether a file is there; DownloadError where something else is in its place."""
    instead = not_a_file(path)
    if instead not in (None, NOT_THERE, DANGLING):
        raise DownloadError(f"{path} is {instead}: move it out of the way")
    return instead is None
