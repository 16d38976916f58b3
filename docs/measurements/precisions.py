"""Speed, memory and error of each precision: `python docs/measurements/precisions.py`.

Writes precisions.json beside itself, which step 10 reads. The model has GPT-2 124M's
shape and random weights. Speed and memory do not depend on the values. Errors do: those
found here are of a model that has learned nothing, and tell how rounding adds up over
twelve blocks, not how well GPT-2 still writes (`nox -s gpt2` measures that).

The precisions are measured in turn, three times each; the median counts, of memory's
speed that of all rounds. The small model, which fits into the processor's cache, has a
measurement of its own. Limits and ratios are not written: step 10 makes them of these
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
from gpt2hw.fast_cache import FastCache, state_after_one_token
from gpt2hw.half import WIDENED_AT_ONCE, HalfMatrix, one_row, product_by_pieces
from gpt2hw.int8 import Int8Matrix
from gpt2hw.precisions import Precision

PRECISIONS = get_args(Precision)
ROUNDS = 3
N_IDS = 128
N_ROWS = (1, 2, 3, 4, 6, 8, 16, 32, 64, 128)
POSITION, N_STEPS = 64, 12  # of the small model


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
        "together": {
            of_n.n_texts: each(lambda b, i=i: b.together[i].tokens_per_second, 1)
            for i, of_n in enumerate(first.together)
        },
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
    """Milliseconds of one matrix's product, by rows: in each precision, and widened.

    "float16" is one row after another. The matrix is c_fc's of 124M, [3072, 768]; there
    are as many of it as a model has, and each call takes the next, so that it comes
    from memory.
    """
    generator = torch.Generator().manual_seed(0)
    wides = torch.randn(GPT2Config().n_layer, 3072, 768, generator=generator)
    halves = cycle([HalfMatrix(wide.half()) for wide in wides])
    wholes = cycle([Int8Matrix.of(wide) for wide in wides])
    lying = cycle([BagMatrix(wide) for wide in wides.mT.contiguous().mT])  # by inputs

    def row_after_row(x: Tensor) -> Tensor:
        half = next(halves)
        return torch.cat([one_row(row, half.values, half.room) for row in x.split(1)])

    forms: dict[str, Callable[[Tensor], Tensor]] = {
        "float16": row_after_row,
        "widened": lambda x: product_by_pieces(x, next(halves).values, WIDENED_AT_ONCE),
        "float32": lambda x: next(lying)(x),
        "int8": lambda x: next(wholes)(x),
    }
    found: dict[str, list[float]] = {name: [] for name in forms}
    for n in N_ROWS:
        x = torch.randn(n, 768, generator=generator)
        times: dict[str, list[float]] = {name: [] for name in forms}
        for _ in range(9):
            for name, form in forms.items():
                times[name].append(seconds(partial(form, x)))
        for name, taken in times.items():
            found[name].append(round(1000 * statistics.median(taken), 3))
    return {"n_rows": N_ROWS, **found}


def seconds(work: Callable[[], object]) -> float:
    """How long it takes, once."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def prepared(model: GPT2, one: Tensor, cache: FastCache) -> Tensor:
    """The logits after one id more, in the prepared way."""
    return model.logits(state_after_one_token(model, one, cache))


def of_the_small_model() -> dict[str, float]:
    """Microseconds a token of `tiny`, by one thread, as gpt2hw runs it.

    In float32 it has the taught form; "prepared" is float32 in the way of one token
    that the other precisions take.
    """
    one, before = torch.tensor([1]), torch.get_num_threads()
    works: dict[str, Callable[[], object]] = {}
    for p in PRECISIONS:
        model = GPT2.from_pretrained("tiny", precision=p)
        cache = model.new_cache()
        model.last_logits(torch.arange(POSITION), cache)
        works[p] = partial(model.last_logits, one, cache)
        if p == "float32":
            still = cache.copy()  # it counts no token: that is the model's last act
            works["prepared"] = partial(prepared, model, one, still)
    torch.set_num_threads(1)
    try:
        rounds = [
            {
                name: [seconds(work) for _ in range(N_STEPS)]
                for name, work in works.items()
            }
            for _ in range(1 + ROUNDS)
        ][1:]  # the first does not count
    finally:
        torch.set_num_threads(before)
    return {
        name: round(1e6 * statistics.median(t for r in rounds for t in r[name]))
        for name in works
    }


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
            "small_us": of_the_small_model(),
            "n_ids": N_IDS,
            "errors": errors(models),
        }
    file = Path(__file__).with_suffix(".json")
    file.write_text(json.dumps(measured, indent=2) + "\n", encoding="utf-8")
    print(file.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
