"""Speed, memory and error of each precision: `python docs/measurements/precisions.py`.

Writes precisions.json beside itself, which step 10 reads. The model has GPT-2 124M's
shape and random weights. Speed and memory do not depend on the values. Errors do: those
found here are of a model that has learned nothing, and tell how rounding adds up over
twelve blocks, not how well GPT-2 still writes (`nox -s gpt2` measures that).

The precisions are measured in turn, three times each; the median counts, of memory's
speed that of all rounds. Limits and ratios are not written: step 10 makes them of these
medians, so that what it shows can be divided again.
"""

import json
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any, get_args

import torch
from cache_time import processor
from torch import Tensor

from gpt2hw import GPT2, GPT2Config
from gpt2hw.bags import BagMatrix
from gpt2hw.benchmark import Benchmark, measure
from gpt2hw.half import WIDENED_AT_ONCE, product_by_pieces
from gpt2hw.precisions import Precision

PRECISIONS = get_args(Precision)
ROUNDS = 3
N_IDS = 128
N_ROWS = (1, 2, 4, 8, 16, 32, 64, 128)


def speeds(models: dict[str, GPT2]) -> dict[str, Any]:
    """Of each precision, what `gpt2hw bench` finds: the median of the rounds."""
    rounds = [
        {p: measure(model, n_tokens=12) for p, model in models.items()}
        for _ in range(ROUNDS)
    ]

    def each(of: Callable[[Benchmark], float], digits: int) -> dict[str, float]:
        return {
            p: round(statistics.median(of(found[p]) for found in rounds), digits)
            for p in models
        }

    bandwidths = (b.bandwidth for found in rounds for b in found.values())
    first = rounds[0]["float32"]
    return {
        "weight_bytes": each(lambda b: b.weight_bytes, 0),
        "bytes_per_token": each(lambda b: b.bytes_per_token, 0),
        "bandwidth": round(statistics.median(bandwidths) / 1e9, 1),
        "position": first.decoding[0].position,
        "tokens_per_second": each(lambda b: b.decoding[0].tokens_per_second, 1),
        "n_prompt": first.first_token[-1].n_prompt,
        "prompt_seconds": each(lambda b: b.first_token[-1].seconds, 3),
    }


def row_by_row(model: GPT2, ids: Tensor) -> Tensor:
    """The logits of each id, read one at a time, as where text is written."""
    cache = model.new_cache()
    return torch.stack([model.last_logits(one, cache) for one in ids.split(1)])


def errors(models: dict[str, GPT2]) -> dict[str, dict[str, float]]:
    """How far the logits are from float32's, and how often the likeliest is another."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(GPT2Config().n_vocab, (N_IDS,), generator=generator)
    right = row_by_row(models["float32"], ids).double()
    spread = right - right.mean(dim=-1, keepdim=True)
    told = {}
    for p, model in models.items():
        found = row_by_row(model, ids).double()
        log_p, log_q = right.log_softmax(-1), found.log_softmax(-1)
        same = found.argmax(-1) == right.argmax(-1)
        told[p] = {
            "relative_error": float((found - right).norm() / spread.norm()),
            "agreement": float(same.double().mean()),
            "kl": float((log_p.exp() * (log_p - log_q)).sum(-1).mean()),
        }
    return {p: {k: float(f"{x:.3g}") for k, x in t.items()} for p, t in told.items()}


def products() -> dict[str, Any]:
    """Milliseconds of one matrix's product, by rows: in float16, widened, in float32.

    The matrix is c_fc's of 124M, [3072, 768]; there are as many of it as a model has,
    and each call takes the next, so that it comes from memory.
    """
    generator = torch.Generator().manual_seed(0)
    wides = torch.randn(GPT2Config().n_layer, 3072, 768, generator=generator)
    lying = wides.mT.contiguous().mT  # by inputs, as float32 has it
    by_inputs, half = (partial(next, cycle(m)) for m in (lying, wides.half()))
    found: dict[str, list[float]] = {"float16": [], "widened": [], "float32": []}
    for n in N_ROWS:
        x = torch.randn(n, 768, generator=generator)
        works = {
            "float16": lambda x=x: x.half() @ half().T,
            "widened": lambda x=x: product_by_pieces(x, half(), WIDENED_AT_ONCE),
            "float32": lambda x=x: BagMatrix(by_inputs())(x),
        }
        times: dict[str, list[float]] = {name: [] for name in works}
        for _ in range(9):
            for name, work in works.items():
                start = time.perf_counter()
                work()
                times[name].append(time.perf_counter() - start)
        for name, taken in times.items():
            found[name].append(round(1000 * statistics.median(taken), 3))
    return {"n_rows": N_ROWS, **found}


def main() -> None:
    """Measures and writes the file."""
    config = GPT2Config()
    models = {p: GPT2.random(config, precision=p) for p in PRECISIONS}
    with torch.inference_mode():
        measured = {
            "date": datetime.now(UTC).date().isoformat(),
            "processor": processor(),
            "threads": torch.get_num_threads(),
            "torch": torch.__version__.split("+")[0],
            "model": "GPT-2 124M's shape, random weights",
            **speeds(models),
            "product_ms": products(),
            "n_ids": N_IDS,
            "errors": errors(models),
        }
    file = Path(__file__).with_suffix(".json")
    file.write_text(json.dumps(measured, indent=2) + "\n", encoding="utf-8")
    print(file.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
