"""A short run of the chaos; `nox -s chaos` runs the long one."""

import subprocess
import sys
from pathlib import Path

CHAOS = Path(__file__).parent / "chaos" / "chaos.py"


def test_a_dozen_faults_break_no_rule():
    command = [sys.executable, str(CHAOS), "--faults", "12", "--seed", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].endswith("rounds: kept")
