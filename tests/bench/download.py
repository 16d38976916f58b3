"""The download's bars on the loopback: speed while hashing and writing, and memory.

    python tests/bench/download.py [MEGABYTES]

The server runs beside it and takes its part of the processor; what a fast line would
bring is more, not less. Five runs, each in a process and a folder of its own; the
median counts.
"""

import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from measuring import report, results

from downloads import NAME, WEIGHTS, clean_environment, repository, weights
from hub_server import Hub

RUN = """
import json, sys, time
from gpt2hw import download
download(sys.argv[1], sys.argv[2] + "-warm")  # what is imported late, and a connection
def peak():
    try:
        lines = open("/proc/self/status").read().splitlines()
    except OSError:
        return float("nan")
    return next(int(l.split()[1]) * 1024 for l in lines if l.startswith("VmHWM"))
before = peak()
start, worked = time.perf_counter(), time.process_time()
download(sys.argv[3], sys.argv[2])
took, worked = time.perf_counter() - start, time.process_time() - worked
print(json.dumps([took, worked, peak() - before]))
"""


def measured(folder: Path, number: int) -> list[float]:
    """Seconds, the processor's seconds, and further bytes of memory of a download."""
    command = [sys.executable, "-c", RUN, f"{NAME}-warm", folder / f"run{number}", NAME]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    got = folder / f"run{number}" / WEIGHTS
    with got.open("rb") as file, (folder / WEIGHTS).open("rb") as published:
        digests = [hashlib.file_digest(f, "sha256").digest() for f in (file, published)]
    assert digests[0] == digests[1]
    got.unlink()
    return json.loads(done.stdout)


def main() -> None:
    megabytes = float(sys.argv[1]) if sys.argv[1:] else 548
    size = int(megabytes * 1e6)
    with tempfile.TemporaryDirectory() as name, Hub() as hub:
        folder = Path(name)
        (folder / WEIGHTS).write_bytes(weights(size))
        hub.put(NAME, repository() | {WEIGHTS: folder / WEIGHTS})
        hub.put(f"{NAME}-warm", repository())
        os.environ.update(clean_environment(hub, folder))
        rows = [measured(folder, number) for number in range(5)]
    rates = [size / 1e6 / took for took, _, _ in rows]
    _, worked, grown = (statistics.median(c) for c in zip(*rows, strict=True))
    rate = statistics.median(rates)
    report("download, hash, write: rate", rate, 200, "MB/s", at_least=True)
    print(f"      the five: {', '.join(f'{rate:.0f}' for rate in rates)}")
    print(f"      {size / 1e6 / worked:.0f} MB for a second of its own processor time")
    report("further memory for the large file", grown / 1e6, 20, "MB")


if __name__ == "__main__":
    main()
    sys.exit(not all(results))
