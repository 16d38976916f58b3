"""A file at the hub: where it is, what is said of it, what it should hold."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from gpt2hw.errors import DownloadError
from gpt2hw.hub.asking import REDIRECTS, Answer, Asker, Extra
from gpt2hw.hub.draft import START, Draft
from gpt2hw.hub.refusals import TryAgain, refusal
from gpt2hw.hub.statement import Statement, blob_sha1, whole_number


@dataclass(frozen=True)
class Source:
    """A file at the hub, and what is known of it before it is asked for.

    `page` is the address of its model. `judge` is given a draft's first bytes and says
    what they are, if not what the file should hold; `stands_alone` says whether a file
    is whole by what stands in it, None where that cannot be seen. No more than `most`
    bytes are taken, where that is told.
    """

    asker: Asker
    url: str
    file: str
    page: str
    known: Statement
    judge: Callable[[bytes], str | None]
    stands_alone: Callable[[Path], bool | None]
    most: int | None = None

    def ask(self, extra: Extra) -> Answer:
        """Asks for the file; the answer is to be closed."""
        return self.asker.ask(self.url, extra)

    def state(self) -> Statement:
        """What the hub says of the file, which is not taken.

        Raises TryAgain and DownloadError.
        """
        answer = self.asker.ask(self.url, method="HEAD")
        if answer.status in (400, 403, 405, 501):  # of a server for GET alone, maybe
            answer.close()
            answer = self.asker.ask(self.url)
        with closing(answer):
            if answer.status in REDIRECTS:
                return answer.statement
            if answer.status != 200:
                raise self.refused(answer)
            length = whole_number(answer.headers.get("Content-Length"))
            return answer.statement.completed_by(Statement(size=length))

    def refused(self, answer: Answer) -> Exception:
        """The error of an answer that brings nothing of the file."""
        access = self.asker.access
        has_token = access.token is not None
        told = refusal(answer.status, answer.headers, self.file, self.page, has_token)
        if isinstance(told, TryAgain) or access.may_see_token(answer.url):
            return told
        # No word of the hub's: its next redirect has a fresh signature, say.
        return TryAgain(f"status {answer.status} where the hub keeps {self.file}")

    def look_at(self, start: bytes) -> None:
        """Refuses what is plainly another kind of file, before all of it has come."""
        kind = self.judge(start[:START])
        if kind:
            raise DownloadError(f"{self.url}: {kind}")

    def check_size(self, n_bytes: int) -> None:
        """Refuses more bytes than such a file may have."""
        if self.most is not None and n_bytes > self.most:
            raise DownloadError(
                f"{self.url}: it has more than {self.most:,} bytes, which is no"
                f" {self.file} of a GPT-2"
            )

    def learned(self, known: Statement, news: Statement) -> Statement:
        """What is known now; the news rule, unless the file is pinned."""
        if self.known.differs_from(news):
            raise DownloadError(
                f"{self.url}: the hub has another file than the one that is pinned"
                " here, by its size or hash; another endpoint may have it"
            )
        return news if known.differs_from(news) else known.completed_by(news)

    def is_right(self, draft: Draft, known: Statement, is_framed: bool) -> bool:
        """Whether a draft is the whole file, by its hash or else by what can be seen.

        `is_framed` says whether a body that was cut off would have been noticed.
        """
        if known.sha256:
            return draft.sha256 == known.sha256
        if known.blob_sha1:
            return blob_sha1(draft.path) == known.blob_sha1
        alone = self.stands_alone(draft.path)
        if alone is None and known.size is None and not is_framed:
            raise DownloadError(
                f"{self.url}: the server says neither how long the file is nor its"
                " hash, so a cut would not be seen: use another endpoint"
            )
        return alone is not False
