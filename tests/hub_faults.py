"""What goes wrong on the way: changes of an honest answer, for `Hub.fault`.

Each is what a server, a mirror, a proxy or a hotel's network has been seen to do.
"""

import gzip
import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from hub_answers import page, whole
from hub_messages import Answer, File, Pause, Seen

Change = Callable[[Seen, Answer], Answer | None]

LOGIN_PAGE = "<!DOCTYPE html><html><title>Welcome to the hotel</title></html>"
POINTER = (
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:248dfc3911869ec493c76e65bf2fcf7f615828b0254c12b473182f0f81d3a707\n"
    "size 548105171\n"
)


def both(*changes: Change) -> Change:
    """One fault after the other, on the same answer."""

    def change(seen: Seen, answer: Answer) -> Answer:
        for each in changes:
            answer = each(seen, answer) or answer
        return answer

    return change


# --- the connection ---


def cut(at: int | float, is_reset: bool = False) -> Change:
    """Ends after `at` bytes of the body, or after that part of it."""

    def change(seen: Seen, answer: Answer) -> None:
        length = answer.stop - answer.start
        answer.cut_at = int(at * length) if isinstance(at, float) else at
        answer.is_reset = is_reset

    return change


def no_answer(seen: Seen, answer: Answer) -> None:
    """Ends before a single byte."""
    answer.raw = b""


def no_http(seen: Seen, answer: Answer) -> None:
    """Speaks another language than HTTP."""
    answer.raw = b"SSH-2.0-OpenSSH_9.6\r\n"


def half_headers(seen: Seen, answer: Answer) -> None:
    """Ends within the headers."""
    answer.raw = b"HTTP/1.1 200 OK\r\nContent-Length: 20"


def paused(pause: Pause) -> Change:
    """Stops in mid-body until it is told to go on; then it goes on."""

    def change(seen: Seen, answer: Answer) -> None:
        answer.pause = pause

    return change


def stalled(at: int, seconds: float) -> Change:
    """Falls silent after `at` bytes, for so long, and then ends."""

    def change(seen: Seen, answer: Answer) -> None:
        answer.pause = Pause(at, seconds)
        answer.cut_at = at

    return change


def slow(rate: float) -> Change:
    """Sends so many bytes a second."""

    def change(seen: Seen, answer: Answer) -> None:
        answer.rate = rate

    return change


def trickle(seen: Seen, answer: Answer) -> None:
    """Sends a few bytes now and then: never silent, never done."""
    answer.grain, answer.rate = 10, 50.0


def raw(text: bytes) -> Change:
    """Sends these bytes and no more, whatever they are."""

    def change(seen: Seen, answer: Answer) -> None:
        answer.raw = text

    return change


# --- the body and its length ---


def chunked(seen: Seen, answer: Answer) -> None:
    """No length beforehand, as servers send what they make while they send it."""
    answer.headers.pop("Content-Length", None)
    answer.headers["Transfer-Encoding"] = "chunked"
    answer.is_chunked = True


def short_and_said(by: int) -> Change:
    """A body that lacks its last bytes, and a length that agrees with it."""

    def change(seen: Seen, answer: Answer) -> None:
        answer.stop = max(answer.start, answer.stop - by)
        answer.headers["Content-Length"] = str(answer.stop - answer.start)

    return change


def long(by: int) -> Change:
    """A body that goes on after its end, and a length that agrees with it."""

    def change(seen: Seen, answer: Answer) -> None:
        answer.tail = b"\0" * by
        answer.headers["Content-Length"] = str(answer.stop - answer.start + by)

    return change


def length(said: str | None) -> Change:
    """Another Content-Length than the body has, or none."""

    def change(seen: Seen, answer: Answer) -> None:
        without(["Content-Length"])(seen, answer)
        if said is not None:
            answer.headers["Content-Length"] = said

    return change


def cut_without_length(at: int) -> Change:
    """A body that ends too early, and no length that would tell."""

    def change(seen: Seen, answer: Answer) -> None:
        without(["Content-Length"])(seen, answer)
        answer.cut_at = at

    return change


def damaged(at: int) -> Change:
    """One bit of the file turned."""

    def change(seen: Seen, answer: Answer) -> None:
        content = bytearray(b"".join(answer.file.pieces(0, answer.file.size)))
        if at < len(content):
            content[at] ^= 1
        answer.file = File(bytes(content), answer.file.is_large)

    return change


def zipped(seen: Seen, answer: Answer) -> None:
    """Compressed, whether the client takes that or not."""
    content = b"".join(answer.file.pieces(answer.start, answer.stop))
    answer.file = File(gzip.compress(content), answer.file.is_large)
    answer.start, answer.stop = 0, answer.file.size
    said = {"Content-Encoding": "gzip", "Content-Length": str(answer.stop)}
    answer.headers |= said


def instead(text: str, **headers: str) -> Change:
    """A page in the file's place, with status 200."""
    kind = "text/html" if text.startswith("<") else "text/plain"
    return lambda seen, answer: page(text, Content_Type=kind, **headers)


# --- ranges ---


def no_range(seen: Seen, answer: Answer) -> Answer | None:
    """The whole file, whatever part was asked for."""
    if answer.status not in (206, 416):
        return None
    return whole(answer.file, answer.headers.get("ETag", '"none"'))


def content_range(said: str | None) -> Change:
    """A part that says another range than it is, or none; `{start}` is filled in."""

    def change(seen: Seen, answer: Answer) -> None:
        if answer.status != 206:
            return
        without(["Content-Range"])(seen, answer)
        if said is not None:
            where = {"start": answer.start, "last": answer.stop - 1}
            answer.headers["Content-Range"] = said.format(
                **where, size=answer.file.size, off=answer.start + 7
            )

    return change


def other_part(seen: Seen, answer: Answer) -> Answer | None:
    """The part from byte 0 on, honestly named, where a later one was asked for."""
    if answer.status != 206:
        return None
    stop = answer.stop - answer.start
    named = {"Content-Range": f"bytes 0-{stop - 1}/{answer.file.size}"}
    return replace(answer, start=0, stop=stop, headers=answer.headers | named)


def later_part(seen: Seen, answer: Answer) -> Answer | None:
    """The part from seven bytes further on, honestly named, to the end."""
    if answer.status != 206:
        return None
    start, stop, size = answer.start + 7, answer.stop, answer.file.size
    named = {
        "Content-Range": f"bytes {start}-{stop - 1}/{size}",
        "Content-Length": str(stop - start),
    }
    return replace(answer, start=start, headers=answer.headers | named)


# --- headers, statuses, redirects ---


def without(names: Iterable[str]) -> Change:
    """Some headers fallen away."""

    def change(seen: Seen, answer: Answer) -> None:
        for name in names:
            answer.headers.pop(name, None)

    return change


def with_headers(**headers: str) -> Change:
    """Some headers with other values; names by underscores."""

    def change(seen: Seen, answer: Answer) -> None:
        answer.headers |= {n.replace("_", "-"): value for n, value in headers.items()}

    return change


def status(code: int, **headers: str) -> Change:
    """A refusal, with a body that must not be taken for the file."""
    text = f"<html><h1>{code} {'.' * 100}</h1></html>"
    return lambda seen, answer: page(text, code, Content_Type="text/html", **headers)


def redirect(to: str, code: int = 302) -> Change:
    """Leads elsewhere, with what the hub would have said of the file."""

    def change(seen: Seen, answer: Answer) -> Answer:
        kept = {n: v for n, v in answer.headers.items() if n.startswith("X-")}
        away = page("Moved", code, Location=to)
        away.headers |= kept
        return away

    return change


def loop(seen: Seen, answer: Answer) -> Answer:
    """Leads back to where the request came from."""
    return redirect(re.sub(r"^https?://[^/]*", "", seen.url))(seen, answer)


def circle(seen: Seen, answer: Answer) -> Answer:
    """Leads to and fro between two addresses."""
    there = seen.url.removesuffix("&again")
    return redirect(there if there != seen.url else f"{there}&again")(seen, answer)


def endless(seen: Seen, answer: Answer) -> Answer:
    """Leads on and on, each time to an address that is new."""
    return redirect(f"{seen.url}&again")(seen, answer)


def meanwhile(act: Callable[[], object], at: int = 0) -> Change:
    """Something happens elsewhere (another commit, say), and the answer is cut."""

    def change(seen: Seen, answer: Answer) -> None:
        answer.cut_at = at
        act()

    return change
