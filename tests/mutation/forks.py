"""A process that is copied and thrown away: with limits, and with one word as its end.

It needs os.fork, and /proc for the limit on memory: Linux.
"""

import os
import resource
import signal
import sys
from pathlib import Path

MORE_MEMORY = 4 * 2**30  # bytes that a child may ask for beyond what is loaded
LARGEST_FILE = 2**30
# A busy machine's clock shows more than the seconds that a process had, but hardly so
# many times as much.
PATIENCE = 20
TOO_LONG = (signal.SIGPROF, signal.SIGXCPU, signal.SIGKILL)
NOT_SWAPPED = 100  # beside pytest's exit status, of which 2 is a failed import
RESULTS = {0: "passed", 1: "failed", 2: "failed", NOT_SWAPPED: ""}


def fork(log: Path, cpu_s: int) -> int:
    """As os.fork: in the child 0, its output in `log`, its processor time limited."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    os.setpgid(0, 0)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    limits = {
        resource.RLIMIT_CPU: cpu_s,
        resource.RLIMIT_FSIZE: LARGEST_FILE,
        resource.RLIMIT_AS: _memory() + MORE_MEMORY,
    }
    for what, most in limits.items():
        resource.setrlimit(what, (most, resource.getrlimit(what)[1]))
    return 0


def end_of(child: int, cpu_s: int) -> str:
    """Waits for a child: "passed", "failed", "time-out", "error", or "" (no swap)."""
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(child, signal.SIGKILL))
    signal.alarm(PATIENCE * cpu_s)
    try:
        _, status = os.waitpid(child, 0)
    except KeyboardInterrupt:
        os.killpg(child, signal.SIGKILL)
        raise
    signal.alarm(0)
    if os.WIFSIGNALED(status):
        return "time-out" if os.WTERMSIG(status) in TOO_LONG else "failed"
    return RESULTS.get(os.WEXITSTATUS(status), "error")


def _memory() -> int:
    """Bytes of address space in use."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
    return int(pages) * resource.getpagesize()
