"""Code of the book in a process of its own, as a reader runs it."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def run_alone(code: str) -> "subprocess.CompletedProcess[str]":
    """What becomes of it in the clone's top folder, with docs/wrong in reach."""
    path = [str(ROOT / "docs"), os.environ.get("PYTHONPATH", "")]
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
