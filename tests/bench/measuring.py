"""What the benches share: a bar met or missed, a model loaded in a new process."""

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from gpt2hw import GPT2Config

sys.path.insert(0, str(Path(__file__).parent.parent))

from checkpoints import settings_of

results: list[bool] = []

LOAD = """
import json, sys, time
import torch
from gpt2hw.pretrained import GPT2
def status(key):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(l.split()[1]) * 1024 for l in lines if l.startswith(key))
before = status("VmRSS")
open("/proc/self/clear_refs", "w").write("5")  # the peak counts from here
start = time.perf_counter()
model = GPT2.from_pretrained(sys.argv[1], precision=sys.argv[2])
took = time.perf_counter() - start
print(json.dumps([took, status("VmHWM") - before, status("VmRSS") - before]))
"""


class Loaded(NamedTuple):
    """Seconds, and bytes: the most that there were meanwhile, and those that stay."""

    took: float
    peak: float
    stays: float


def report(
    what: str, found: float, bar: float, unit: str = "", *, at_least: bool = False
) -> None:
    """Prints a figure beside its bar, and keeps whether it is met."""
    met = found >= bar if at_least else found <= bar
    results.append(met)
    sign = ">=" if at_least else "<="
    line = f"{'met ' if met else 'MISS'}  {what:<58} {found:9.3f} {sign} {bar:g} {unit}"
    print(line.rstrip())


def load(folder: Path, precision: str = "float32") -> Loaded:
    """What it takes to load a folder's model in a new process (Linux)."""
    command = [sys.executable, "-c", LOAD, str(folder), precision]
    return Loaded(*json.loads(subprocess.check_output(command)))


def write_settings(folder: Path, config: GPT2Config) -> None:
    """The config.json of a model of this shape."""
    text = json.dumps(settings_of(config))
    (folder / "config.json").write_text(text, encoding="utf-8")
