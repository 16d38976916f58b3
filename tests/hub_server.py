"""A hub of models on the loopback: a real HTTP server that can be told to misbehave.

It stands for Hugging Face's hub: a file is asked for at
/OWNER/NAME/resolve/REVISION/FILE. A small one is a relative redirect away, on the same
host; a large one (LFS) lies on another host, the CDN, at a signed address.
`tests/test_hub_server.py` shows that the hub's own client takes it for one. Every
request is logged. A fault (`hub_faults`) changes the honest answer to a request
(`hub_answers`) before it is sent, or while it is.
"""

import fnmatch
import socket
import ssl
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from hub_answers import honest
from hub_messages import LARGE, Answer, File, Seen

COMMIT = "c0ffee" * 6 + "abcd"
Change = Callable[[Seen, Answer], object]


@dataclass
class Fault:
    """A change of the answers to the next `times` requests that fit; None is always."""

    change: Change
    file: str = "*"
    method: str = "*"
    host: str = "*"
    times: int | None = 1

    def fits(self, seen: Seen) -> bool:
        asked = (seen.file, seen.method, seen.host)
        return all(map(fnmatch.fnmatch, asked, (self.file, self.method, self.host)))


class Hub:
    """The two hosts, what lies on them, their faults, and the log of all requests."""

    def __init__(
        self, cdn_name: str = "127.0.0.1", tls: ssl.SSLContext | None = None
    ) -> None:
        self.commits: dict[str, dict[str, dict[str, File]]] = {}
        self.published: list[dict[str, bytes | Path]] = []  # all that ever was
        self.moved: dict[str, str] = {}  # old name -> owner/name
        self.tokens: dict[str, str] = {}  # owner/name -> the token that opens it
        self.gated: set[str] = set()
        self.cdn_files: dict[str, File] = {}
        self.faults: list[Fault] = []
        self.log: list[Seen] = []
        self.errors: list[BaseException] = []
        self._lock = threading.Lock()
        self._servers = [_Server(self, host, tls) for host in ("hub", "cdn")]
        scheme = "https" if tls else "http"
        self.url, cdn = (f"{scheme}://127.0.0.1:{s.server_port}" for s in self._servers)
        self.cdn_url = cdn.replace("127.0.0.1", cdn_name)

    def put(
        self, name: str, files: dict[str, bytes | Path], commit: str = COMMIT
    ) -> None:
        """Publishes a repository, or one more commit of it, which is `main` then."""
        self.published.append(files)
        held = {n: File(c, n.endswith(LARGE)) for n, c in files.items()}
        self.commits.setdefault(name, {}).pop(commit, None)
        self.commits[name][commit] = held

    def fault(self, change: Change, **which: Any) -> Fault:
        """Adds a fault; which requests it takes stands at Fault."""
        self.faults.append(Fault(change, **which))
        return self.faults[-1]

    def requests(self, **which: str) -> list[Seen]:
        """The requests so far that fit such a fault."""
        fault = Fault(lambda seen, answer: None, **which)
        return [seen for seen in list(self.log) if fault.fits(seen)]

    def sent(self, **which: str) -> int:
        """How many bytes of bodies went out on such requests."""
        return sum(seen.sent for seen in self.requests(**which))

    def answer(self, seen: Seen) -> Answer:
        """The honest answer, changed by the first fault that fits."""
        with self._lock:
            self.log.append(seen)
            live = (f for f in self.faults if f.times != 0 and f.fits(seen))
            fault = next(live, None)
            if fault and fault.times:
                fault.times -= 1
        answer = honest(self, seen)
        return (fault and fault.change(seen, answer)) or answer

    def __enter__(self) -> Self:
        for server in self._servers:
            poll = {"poll_interval": 0.02}
            threading.Thread(target=server.serve_forever, kwargs=poll).start()
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a paused answer keeps nobody waiting

    def __init__(self, hub: Hub, host: str, tls: ssl.SSLContext | None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        if tls:
            self.socket = tls.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )
        self.hub, self.host = hub, host

    def shutdown_request(self, request: Any) -> None:
        """Closes and no more: an end that is said first would forestall a reset."""
        self.close_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keeps what went wrong here; a client that hangs up is no error."""
        error = sys.exception()
        if not isinstance(error, ConnectionError | ssl.SSLError | None):
            self.hub.errors.append(error)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or each answer waits 40 ms for an acknowledgement
    server: _Server

    def do_GET(self) -> None:
        """Answers; for another host too, as a proxy, where a whole address comes."""
        names = {name.lower(): value for name, value in self.headers.items()}
        address = urlsplit(self.path)
        host = self.server.host if not address.netloc else address.netloc.split(".")[0]
        seen = Seen(host, self.command, self.path, names)
        answer = self.server.hub.answer(seen)
        seen.status = answer.status
        if answer.raw is not None:
            self.wfile.write(answer.raw)
            self.close_connection = True
        else:
            self._send(seen, answer)

    do_HEAD = do_GET  # noqa: N815

    def _send(self, seen: Seen, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        is_odd = answer.headers.get("Content-Length") != str(answer.stop - answer.start)
        if is_odd or answer.tail or answer.cut_at is not None:
            self.send_header("Connection", "close")  # which ends it after this answer
        self.end_headers()
        if seen.method == "HEAD":
            return
        for piece in _in_steps(answer.pieces(), answer.grain):
            self.wfile.write(_chunk(piece) if answer.is_chunked else piece)
            seen.sent += len(piece)
            if answer.rate:
                time.sleep(len(piece) / answer.rate)
        if answer.is_chunked and answer.cut_at is None:
            self.wfile.write(_chunk(b""))
        if answer.is_reset:
            linger = struct.pack("ii", 1, 0)  # what is not yet sent is thrown away
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

    def log_message(self, *_: object) -> None:
        """Says nothing: the log is hub.log."""


def _in_steps(pieces: Iterable[bytes], grain: int | None) -> Iterator[bytes]:
    """The pieces, cut into smaller ones if asked for."""
    for piece in filter(None, pieces):
        step = grain or len(piece)
        yield from (piece[at : at + step] for at in range(0, len(piece), step))


def _chunk(piece: bytes) -> bytes:
    """A piece with its length in front (RFC 9112, 7.1); an empty one is the end."""
    return b"%x\r\n%s\r\n" % (len(piece), piece)
