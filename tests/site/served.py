"""A built site on the loopback, with an account of what each load cost."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


class Served:
    """The address of a site, and what was asked of it since `reset`."""

    def __init__(self, address: str, site: Path) -> None:
        self.address = address
        self.site = site
        self.statuses: dict[str, int] = {}

    def reset(self) -> None:
        """Forgets what was asked."""
        self.statuses = {}

    def note(self, path: str, status: int) -> None:
        """A request came and was answered."""
        self.statuses[urlsplit(path).path] = status

    def failed(self) -> list[str]:
        """The paths that were asked for in vain."""
        return [path for path, status in self.statuses.items() if status >= 400]

    def bodies(self) -> dict[str, int]:
        """Bytes of each response body, uncompressed, those to workers included."""
        found = {path: self.site / path.lstrip("/") for path in self.statuses}
        return {path: f.stat().st_size for path, f in found.items() if f.is_file()}


@contextmanager
def serve(site: Path) -> Iterator[Served]:
    """Serves the folder on a free port of the loopback, from threads of its own."""

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given, directory=str(site))

        def log_request(self, code: Any = "-", size: Any = "-") -> None:
            served.note(self.path, int(code))

        def log_message(self, *given: Any) -> None:
            """Nothing: the walk tells what matters."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *given: Any) -> None:
            """Nothing: a browser that hangs up early is no fault of the site."""

    server = Server(("127.0.0.1", 0), Handler)
    served = Served(f"http://127.0.0.1:{server.server_port}/", site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
