"""The bars on speed that need no peer but transformers: `nox -s bench-speed`.

At the 124M shape with random weights, as many threads as torch takes. A machine should
do nothing else meanwhile. Each row says what was asked, what was found, and whether the
bar is met; a bar is a ratio of things measured in turn in one process.

    python tests/bench/speed.py              all of it, about two minutes
    python tests/bench/speed.py memory       one part: memory, shares, transformers
"""

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch
from engine import N_NEW, decode_theirs, write_checkpoint
from measuring import load, report, results

from gpt2hw import GPT2, GPT2Config
from gpt2hw.benchmark import Benchmark, measure
from gpt2hw.layout import n_parameters

PRECISIONS = ("float32", "float16", "int8")


# Memory


def memory(folder: Path) -> None:
    """What a model takes once it is loaded, and while it is loaded."""
    whole = 4 * n_parameters(GPT2Config())
    bars = {"float32": (1.05, 1.1), "float16": (0.56, 1.1), "int8": (0.32, 1.1)}
    for precision in PRECISIONS:
        _, peak, after = load(folder, precision)
        stays, at_most = bars[precision]
        for what, found, bar in (("", after, stays), (", peak", peak, at_most)):
            name = f"{precision}: memory{what} / float32's parameters"
            report(name, found / whole, bar)


# Shares of the limit


def shares(_: Path) -> None:
    """What `gpt2hw bench` tells, against the bars."""
    for precision in PRECISIONS:
        model = GPT2.random(GPT2Config(), precision=precision)
        found = measure(model)
        del model
        print(f"      {precision}: {json.dumps(found.as_dict())}")
        _shares(precision, found)


def _shares(precision: str, found: Benchmark) -> None:
    first, *_, last = found.decoding
    if precision == "float32":
        share = first.share_of_limit
        report(
            f"float32: share of the limit at {first.position}",
            share,
            0.9,
            at_least=True,
        )
        report(
            "float32: 8 texts at once / one",
            found.together[-1].times_one,
            4.0,
            at_least=True,
        )
    if precision != "float16":
        ratio = last.tokens_per_second / first.tokens_per_second
        what = f"{precision}: at {last.position} / at {first.position}"
        report(what, ratio, {"float32": 0.8, "int8": 0.7}[precision], at_least=True)


# Beside transformers


@torch.inference_mode()
def beside_transformers(folder: Path) -> None:
    """Tokens a second with a cache at the same shape, ours and theirs in turn."""
    import transformers

    theirs = transformers.GPT2LMHeadModel.from_pretrained(folder, dtype=torch.float32)
    models = {p: GPT2.from_pretrained(folder, precision=p) for p in PRECISIONS}
    ids = torch.randint(0, 50257, (64,), generator=torch.Generator().manual_seed(1))
    times: dict[str, list[float]] = {name: [] for name in (*models, "theirs")}
    for _ in range(7):
        for name, model in models.items():
            times[name].append(_ours(model, ids))
        times["theirs"].append(decode_theirs(theirs, ids))
    reference = statistics.median(times.pop("theirs"))
    print(
        f"      transformers {transformers.__version__}: {1 / reference:.1f} tokens/s"
    )
    for name, found in times.items():
        speed = reference / statistics.median(found)
        report(f"{name}: decode / transformers'", speed, 2.4, at_least=True)


def _ours(model: GPT2, ids: torch.Tensor) -> float:
    cache = model.new_cache()
    token = int(model.last_logits(ids, cache).argmax())
    start = time.perf_counter()
    for _ in range(N_NEW):
        token = int(model.last_logits([token], cache).argmax())
    return (time.perf_counter() - start) / N_NEW


PARTS = {"memory": memory, "shares": shares, "transformers": beside_transformers}


def main() -> int:
    chosen = sys.argv[1:] or list(PARTS)
    if unknown := set(chosen) - set(PARTS):
        print(f"no part {unknown}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    with tempfile.TemporaryDirectory() as folder:
        write_checkpoint(Path(folder), GPT2Config())
        for name in chosen:
            PARTS[name](Path(folder))
    print(f"{sum(results)} of {len(results)} bars met")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
