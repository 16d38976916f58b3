"""Each engine in a process of its own, which works when it is asked and else waits.

So no engine's threads, settings or memory reach another's. The parent is `Worker`; the
file, run as `python workers.py NAME FOLDER THREADS`, is the child: a line of JSON comes
in, a line goes out.
"""

import json
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from engines import ENGINES


class Worker:
    """An engine of ENGINES, loaded in a new process; it ends with `close`."""

    def __init__(self, name: str, folder: Path, threads: int) -> None:
        self.name = name
        command = [sys.executable, "-W", "ignore", __file__, name, folder, threads]
        self.process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def written(self, texts: list[list[int]], n_new: int) -> list[float]:
        """Seconds: to the first new token, then between each token and the next."""
        stamps = self._asked("written", texts, n_new)
        return [b - a for a, b in pairwise(stamps)]

    def logits(self, ids: list[int]) -> list[float]:
        return self._asked("logits", ids)

    def _asked(self, *request: Any) -> Any:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.name} has ended: see above")
        return json.loads(answer)

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def serve(name: str, folder: Path, threads: int) -> None:
    make, kind = ENGINES[name]
    engine = make(folder, kind, threads)
    for line in sys.stdin:
        what, *arguments = json.loads(line)
        found = getattr(engine, what)(*arguments)
        time.sleep(0.02)  # by then its threads no longer wait in a busy loop
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
