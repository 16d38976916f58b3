"""One file from the hub: streamed, resumed, checked, and only then given its name.

    ask for what is missing -> append and hash -> size and hash right? -> installed
          ^                          |                    |
          +------ wait a while <-----+--------------------+

Tries that bring nothing are counted (`patience.Tries`); one that brings more of the
file than was ever here starts the count anew. What has arrived is used by a later call
too, where the file's hash is known, so that a mixture of two files would be seen.

Source: RFC 9110, sections 13.1.5 (If-Range) and 14 (ranges).
"""

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from gpt2hw.errors import DownloadError, GPT2HWError
from gpt2hw.hub.asking import Answer
from gpt2hw.hub.body import Part, gathered, part_of
from gpt2hw.hub.draft import Desk, Draft, remove
from gpt2hw.hub.patience import Tries
from gpt2hw.hub.progress import Watch
from gpt2hw.hub.refusals import TryAgain, free_bytes, no_room, not_written
from gpt2hw.hub.source import Source
from gpt2hw.hub.statement import Statement, strong_etag

NO_PART = (204, 412, 416)  # answers to a question for a part that bring none
MAX_WRONG = 3  # whole bodies with the wrong hash
_Gained = TypeVar("_Gained")


class Transfer:
    """The way of one file to `path`."""

    def __init__(self, source: Source, path: Path, desk: Desk, watch: Watch) -> None:
        self.known = source.known
        self._source, self._path, self._desk, self._watch = source, path, desk, watch
        self._patience = source.asker.patience
        self._draft: Draft | None = None
        self._validator: tuple[str, str] | None = None  # an address and its ETag
        self._n_wrong = 0
        self._part = Part(0, None, is_framed=False)

    def fetched(self) -> Draft:
        """The draft, whole and checked, for the caller to install.

        Raises DownloadError, and its kind NotThereError.
        """
        return self._trying(self._once)

    def stated(self) -> Statement:
        """What the hub says of the file, which is not taken; raises as `fetched`."""
        return self._trying(self._source.state)

    def _trying(self, once: Callable[[], _Gained]) -> _Gained:
        tries = Tries(self._patience)
        try:
            while True:
                try:
                    return once()
                except TryAgain as failure:
                    time.sleep(self._wait(tries, failure))
        except OSError as error:
            self._leave()
            if isinstance(error, GPT2HWError):
                raise
            raise not_written(error, self._path, self._n_missing()) from None
        except BaseException:
            self._leave()
            raise

    def _once(self) -> Draft:
        """One try: asks unless all is here, takes what comes, and checks it."""
        if self._draft is None:
            if not self.known.has_hash and any(self._desk.drafts_of(self._path.name)):
                self._learn(self._source.state())
            if self.known.has_hash:
                self._draft = self._desk.open(self._path.name, self.known)
        if self._draft is None or self._n_missing() != 0:
            with closing(self._source.ask(self._extra)) as answer:
                self._take(answer)
        return self._checked()

    def _extra(self, url: str, said: Statement) -> Mapping[str, str]:
        """The headers that ask for the rest alone, where it is known of which file."""
        draft, address = self._draft, url.partition("?")[0]
        if draft is None or draft.length == 0 or self.known.differs_from(said):
            return {}
        headers = {"Range": f"bytes={draft.length}-"}
        if self._validator and self._validator[0] == address:
            return headers | {"If-Range": self._validator[1]}
        return headers if self.known.has_hash else {}

    def _take(self, answer: Answer) -> None:
        """Takes what an answer brings; raises where that is not the file."""
        if answer.status in NO_PART and self._draft and self._draft.length:
            self._start_anew(self._draft, answer)
            return
        if answer.status not in (200, 206):
            raise self._source.refused(answer)
        self._learn(answer.statement)
        self._part = self._usable_part(answer)
        etag = strong_etag(answer.headers)
        self._validator = (answer.url.partition("?")[0], etag) if etag else None
        self._append(answer)

    def _start_anew(self, draft: Draft, answer: Answer) -> None:
        """Where no part is to be had, the whole is; unless all of it is here."""
        ends_here = answer.headers.get("Content-Range") == f"bytes */{draft.length}"
        if ends_here and self.known.size is None:
            return
        draft.reset()
        raise TryAgain(f"status {answer.status}: the missing part is not to be had")

    def _learn(self, news: Statement) -> None:
        """Takes what the hub states now, which may be another file than before."""
        known = self._source.learned(self.known, news)
        is_other = known.differs_from(self.known) or known.label != self.known.label
        if self._draft and is_other:
            self._draft.close()
            self._draft = None
        self.known = known

    def _opened(self) -> Draft:
        if self._draft is None:
            self._draft = self._desk.open(self._path.name, self.known)
        return self._draft

    def _usable_part(self, answer: Answer) -> Part:
        """The part that an answer brings; the draft then ends where it begins."""
        draft = self._opened()
        try:
            part = part_of(answer.status, answer.headers, draft.length, self.known.size)
        except TryAgain:
            if answer.status == 200 and "Content-Encoding" not in answer.headers:
                # Most likely it is a page in the file's place.
                self._source.look_at(next(gathered(answer.pieces())))
            draft.reset()
            raise
        if part.start != draft.length:
            draft.reset()
        return part

    def _append(self, answer: Answer) -> None:
        draft, stop = self._opened(), self._part.stop
        self._source.check_size(stop or 0)
        n_new = None if stop is None else stop - draft.length
        if n_new is not None and n_new > free_bytes(self._desk.folder):
            raise no_room(self._path.parent, n_new)
        self._watch.begins(self._path, draft.length, self.known.size or stop)
        for piece in gathered(answer.pieces()):
            if draft.length == 0:
                self._source.look_at(piece)
            room = len(piece) if stop is None else stop - draft.length
            draft.append(piece[:room])
            self._source.check_size(draft.length)
            self._watch.reached(draft.length)
            if len(piece) > room:
                self._end_of_too_much()
                return
        if stop is not None and draft.length < stop:
            raise TryAgain(f"the answer ended after {draft.length:,} of {stop:,} bytes")

    def _end_of_too_much(self) -> None:
        """More came than was announced: only a hash can tell whether this is it."""
        if not self.known.has_hash:
            self._opened().reset()
            raise TryAgain("more bytes came than were announced")

    # --- is it what it should be? ---

    def _checked(self) -> Draft:
        """The draft, if it is the whole file; else TryAgain, and it starts anew."""
        draft, size = self._opened(), self.known.size
        if size is not None and draft.length < size:
            raise TryAgain(f"{draft.length:,} of {size:,} bytes came")
        if self._source.is_right(draft, self.known, self._part.is_framed):
            return draft
        draft.reset()
        self._n_wrong += 1
        why = "what came is not the file: its hash or its structure is wrong"
        if self._n_wrong < MAX_WRONG:
            raise TryAgain(why)
        raise DownloadError(
            f"{self._source.url}: {why}, {MAX_WRONG} times over. Something on the way"
            " changes it: try another network or endpoint"
        )

    # --- when it does not go on ---

    def _wait(self, tries: Tries, failure: TryAgain) -> float:
        """The seconds until the next try; DownloadError if there is none."""
        reached = self._draft.length if self._draft else 0
        wait = tries.next_delay(reached, self.known.size, failure.wait)
        if wait is None:
            why = f"{failure}; tried {self._patience.tries} times"
            raise self._given_up(why, reached)
        if wait > self._patience.longest_retry_after:
            asked = f"it asks to wait {wait:,.0f} seconds"
            raise self._given_up(f"{failure}, and {asked}", reached)
        self._watch.waits(f"{failure}; next try in {wait:.0f} s")
        return wait

    def _given_up(self, why: str, reached: int) -> DownloadError:
        next_step = (
            ". The model tiny needs no network; the files of another, come by another"
            f" way, can be put into {self._path.parent}"
        )
        if reached and self.known.has_hash and self._desk.is_ours:
            next_step = (
                f". {reached:,} bytes are here; the same again goes on from there"
            )
        return DownloadError(
            f"{self._source.url} could not be fetched: {why}{next_step}"
        )

    def _n_missing(self) -> int | None:
        reached = self._draft.length if self._draft else 0
        return None if self.known.size is None else self.known.size - reached

    def _leave(self) -> None:
        """Closes the draft; it stays only where it can be told from other files."""
        if self._draft is not None:
            self._draft.close()
            if not (self.known.has_hash and self._desk.is_ours and self._draft.length):
                remove(self._draft.path)
