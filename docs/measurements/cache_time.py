"""Time per token with and without a cache: `python docs/measurements/cache_time.py`.

Takes two minutes or so. Writes cache_time.json beside itself, over the one that is
there, which step 8 draws. The model has GPT-2 124M's
shape and random weights, since time does not depend on the values. At each position the
two ways are timed in turn, five times each; the median counts.
"""

import json
import platform
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path

import torch

from gpt2hw import GPT2, GPT2Config

POSITIONS = (16, 64, 128, 256, 384, 512, 640, 768, 896, 1023)
ROUNDS = 5


def seconds(model: GPT2, *arguments: object) -> float:
    """How long a call of the model takes."""
    start = time.perf_counter()
    model(*arguments)
    return time.perf_counter() - start


def at_position(model: GPT2, n_past: int) -> tuple[float, float]:
    """Seconds for one more token after n_past: (with a cache, without)."""
    ids = [i % model.config.n_vocab for i in range(n_past + 1)]
    cache = model.new_cache()
    model(ids[:-1], cache)
    with_cache, without = [], []
    for _ in range(ROUNDS):
        used = cache.copy()
        with_cache.append(seconds(model, ids[-1:], used))
        without.append(seconds(model, ids))
    return statistics.median(with_cache), statistics.median(without)


def processor() -> str:
    """The processor's name, as Linux tells it; elsewhere the kind of machine."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model n")]
    return names[0] if names else platform.machine()


def main() -> None:
    """Measures and writes the file."""
    model = GPT2.random(GPT2Config())
    with torch.inference_mode():
        at_position(model, 16)  # the first calls are slower
        times = [at_position(model, n_past) for n_past in POSITIONS]
    measured = {
        "date": datetime.now(UTC).date().isoformat(),
        "processor": processor(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__.split("+")[0],
        "model": "GPT-2 124M's shape, random weights, float32",
        "n_past": POSITIONS,
        "with_cache": [round(cached, 5) for cached, _ in times],
        "without": [round(whole, 5) for _, whole in times],
    }
    file = Path(__file__).with_suffix(".json")
    file.write_text(json.dumps(measured, indent=2) + "\n", encoding="utf-8")
    print(file.read_text(encoding="utf-8") + f"written to {file}")


if __name__ == "__main__":
    main()
