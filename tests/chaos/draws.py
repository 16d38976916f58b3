"""What the chaos draws from: faults of servers and ways, damage to what lies here."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hub_faults as faults
from downloads import NAME, WEIGHTS
from hub_messages import Answer, Seen

STATUSES = (400, 401, 403, 404, 405, 408, 410, 412, 416, 429, 451, 500, 503)
WHERE: tuple[dict[str, Any], ...] = (
    {"host": "cdn"},
    {"host": "cdn"},
    {"host": "hub"},
    {"method": "HEAD"},
    {"file": "config.json"},
    {"file": "merges.txt"},
    {"file": WEIGHTS},
)
TIMES = (1, 1, 1, 2, 6, None)  # None is for ever


def changes(
    chance: random.Random, elsewhere: str, publish: Callable[[], None]
) -> dict[str, faults.Change]:
    """Every kind of network fault, with numbers drawn."""
    part, byte, some = chance.random(), chance.randrange(400), chance.randint(1, 2000)
    return {
        "cut": faults.cut(part),
        "reset": faults.cut(part, is_reset=True),
        "cut in the first bytes": faults.cut(byte),
        "no answer": faults.no_answer,
        "no http": faults.no_http,
        "half the headers": faults.half_headers,
        "stall": faults.stalled(byte, 2.5),
        "slow": faults.slow(4e6),
        "short": faults.short_and_said(some),
        "long": faults.long(some),
        "wrong length": faults.length(str(some)),
        "no length": faults.length(None),
        "cut without length": faults.cut_without_length(byte),
        "chunks": faults.chunked,
        "chunks, cut": faults.both(faults.chunked, faults.cut(part)),
        "bit": faults.damaged(byte),
        "gzip": faults.zipped,
        "said to be gzip": faults.with_headers(Content_Encoding="gzip"),
        "login page": faults.instead(faults.LOGIN_PAGE),
        "LFS pointer": faults.instead(faults.POINTER),
        "range ignored": faults.no_range,
        "no content-range": faults.content_range(None),
        "wrong content-range": faults.content_range("bytes {off}-{last}/{size}"),
        "wrong size": faults.content_range("bytes {start}-{last}/77"),
        "the start again": faults.other_part,
        "a later part": faults.later_part,
        "no headers": faults.without(["X-Repo-Commit", "X-Linked-Etag", "ETag"]),
        "wrong etag": faults.with_headers(X_Linked_Etag=f'"{"0" * 64}"'),
        "status": faults.status(chance.choice(STATUSES)),
        "retry-after": faults.status(429, Retry_After=str(chance.randint(0, 1))),
        "loop": faults.loop,
        "redirect": faults.redirect(f"{elsewhere}/{NAME}?Signature=x"),
        "republished": faults.meanwhile(publish, at=byte),
    }


def network_fault(
    chance: random.Random,
    kinds: dict[str, faults.Change],
    count: Callable[[str], None],
) -> tuple[faults.Change, dict[str, Any]]:
    """A fault, and which requests it takes; `count` is told once it takes one."""
    what = chance.choice(list(kinds))
    which = chance.choice(WHERE) | {"times": chance.choice(TIMES)}
    told: Iterator[str] = iter([f"{what} ({which})"])

    def change(seen: Seen, answer: Answer) -> Answer | None:
        for text in told:
            count(text)
        return kinds[what](seen, answer)

    return change, which


def damaged(chance: random.Random, path: Path) -> str:
    """Damages a file as a dying disk or system does; how, in a word."""
    content = path.read_bytes()
    damage = {
        "zeros": bytes(len(content)),
        "half": content[: len(content) // 2],
        "nothing": b"",
        "noise": chance.randbytes(len(content)),
        "too much": content + b"\0" * 100,
    }
    what = chance.choice(list(damage))
    path.write_bytes(damage[what])
    return what
