"""Where the time of a token goes: `python docs/measurements/speed.py`, some minutes.

Writes speed.json beside itself, which step 9 draws. The model has GPT-2 124M's shape
and random weights, since time does not depend on the values. What is compared goes
round in turn, and the median of all rounds counts, as in `gpt2hw bench` and in
precisions.py. Nothing else should run meanwhile: torch's threads wait for each other.
"""

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import torch
from cache_time import processor
from torch import Tensor

from gpt2hw import GPT2, GPT2Config, bags
from gpt2hw import benchmark as bench
from gpt2hw.bags import BagMatrix
from gpt2hw.fast import taught
from gpt2hw.huge_pages import empty
from gpt2hw.initialization import initial_weights
from gpt2hw.kv_cache import cached_forward
from gpt2hw.layout import n_parameters
from gpt2hw.model import Transformer
from gpt2hw.rows import RowMatrix
from gpt2hw.safetensors import write_safetensors

Work = Callable[[], object]
THREADS = tuple(sorted({1, torch.get_num_threads()}))
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
TEXTS = (1, 2, 4, 8, 16, 32)
POSITION, N_STEPS, ROUNDS = 64, 10, 7
SQUARE = 2048  # a product this large is bound by arithmetic
CONFIG = GPT2Config()

# A process that prints what torch asks of MKL, in the two ways of `columns`.
CALLS = """
import torch
blocks, row = torch.ones(4, 192, 768), torch.ones(1, 768)
for columns in (row.T.expand(4, 768, 1), row.T.expand(4, 768, 1).contiguous()):
    with torch.backends.mkl.verbose(torch.backends.mkl.VERBOSE_ON):
        torch.bmm(blocks, columns)
"""


def seconds(work: Work) -> float:
    """How long it takes, once."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def in_turn(works: dict[Any, Work]) -> dict[Any, float]:
    """The seconds of each, in the second of two rounds: the first does not count."""
    for _ in range(2):
        found = {name: seconds(work) for name, work in works.items()}
    return found


def middle(*rounds: Any) -> Any:
    """Several measurements of one form as one: of each number, the median."""
    if isinstance(rounds[0], dict):
        return {name: middle(*(found[name] for found in rounds)) for name in rounds[0]}
    if isinstance(rounds[0], list):
        return [middle(*same) for same in zip(*rounds, strict=True)]
    return median(rounds)


def with_threads(n: int, measured: Callable[[], Any]) -> Any:
    """What is measured with so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        return measured()
    finally:
        torch.set_num_threads(before)


def stored(n_rows: int, n_columns: int) -> Tensor:
    """A random matrix in memory like that of a model that was loaded."""
    return empty((n_rows, n_columns), torch.float32).normal_(std=0.02)


def block_matrices() -> list[Tensor]:
    """The four matrices of each block of GPT-2 124M, [n_out, n_in]."""
    n, m = CONFIG.n_embd, CONFIG.n_inner
    shapes = ((3 * n, n), (n, n), (m, n), (n, m))
    return [stored(*shape) for _ in range(CONFIG.n_layer) for shape in shapes]


def block_weights() -> int:
    """How many numbers those are."""
    n, m = CONFIG.n_embd, CONFIG.n_inner
    return CONFIG.n_layer * (4 * n * n + 2 * n * m)


def forms(matrices: list[Tensor]) -> dict[str, float]:
    """Seconds for one row times every matrix of the blocks, by form of the product."""
    by_inputs = [stored(*m.T.shape) for m in matrices]  # [n_in, n_out], as in the file
    cut = [RowMatrix(m) for m in matrices]
    in_bags = [BagMatrix(m.T) for m in by_inputs]
    rows = [torch.randn(1, m.shape[1]) for m in matrices]

    def all_of(product: Callable[[int, Tensor], Tensor]) -> Work:
        return lambda: [product(i, x) for i, x in enumerate(rows)]

    def copied(i: int, x: Tensor) -> Tensor:
        blocks = cut[i].blocks
        columns = x.T.expand(len(blocks), -1, -1).contiguous()
        return torch.bmm(blocks, columns)

    def told_otherwise(i: int, x: Tensor) -> Tensor:
        blocks, n_in = cut[i].blocks, x.shape[1]
        columns = x.T.expand(len(blocks), -1, -1).contiguous()
        told = columns.as_strided(columns.shape, (n_in, 1, n_in))
        return torch.bmm(blocks, told)

    return in_turn(
        {
            "by inputs": all_of(lambda i, x: x @ by_inputs[i]),
            "by outputs": all_of(lambda i, x: x @ matrices[i].T),
            "bags": all_of(lambda i, x: in_bags[i](x)),
            "blocks": all_of(lambda i, x: cut[i](x)),
            "blocks, row copied": all_of(copied),
            "blocks, copy told otherwise": all_of(told_otherwise),
            "turned each time": all_of(lambda i, x: x @ matrices[i].T.contiguous()),
        }
    )


def by_rows(matrices: list[Tensor], plainly: bool) -> list[float]:
    """Seconds for so many rows times every matrix: as the model does it, or by `@`."""
    cut = [BagMatrix(stored(*m.T.shape).T) for m in matrices]
    xs = {
        (n, m): torch.randn(n, m) for n in ROWS for m in {m.shape[1] for m in matrices}
    }
    works: dict[Any, Work] = {
        n: lambda n=n: [
            x @ c.values.T if plainly else c(x)
            for c in cut
            for x in (xs[n, c.values.shape[1]],)
        ]
        for n in ROWS
    }
    return list(in_turn(works).values())


def square() -> float:
    """Seconds for a product that uses each number very often."""
    a, b = torch.randn(2, SQUARE, SQUARE)
    return in_turn({0: lambda: a @ b})[0]


def reading() -> dict[str, float]:
    """Seconds to read READ_AT_ONCE bytes, by the kernels of `gpt2hw bench`."""
    return {name: median(work() for _ in range(3)) for name, work in bench._reading()}


def pages() -> dict[str, float]:
    """Seconds to read a matrix that lies in small pages, and one in huge ones."""
    shape = (bench.READ_AT_ONCE // 4 // 1024, 1024)
    kinds = {"small": torch.ones(shape), "huge": empty(shape, torch.float32).fill_(1)}
    row = torch.ones(1, 1024)
    cut = {name: RowMatrix(values) for name, values in kinds.items()}
    return in_turn({name: lambda m=m: m(row) for name, m in cut.items()})


def head_after_a_bag() -> dict[str, float]:
    """Seconds for the head's product, after a kernel that leaves registers in use."""
    n_embd = CONFIG.n_embd
    head = RowMatrix(stored(CONFIG.n_vocab, n_embd))
    weight, row = stored(n_embd, n_embd), torch.randn(n_embd)
    numbers, starts = bags.cut(n_embd, bags.number_of_bags(n_embd))
    shared = bags.shares(len(starts))

    def after(*between: Work) -> float:
        torch.embedding_bag(weight, numbers, starts, False, bags.SUM, False, row)
        for work in between:
            work()
        return seconds(lambda: head(row))

    found: dict[str, list[float]] = {"in use": [], "freed": []}
    for _ in range(9):
        found["in use"].append(after())
        found["freed"].append(after(lambda: bags.free_registers(shared)))
    return {name: median(times) for name, times in found.items()}


def head_by_how_it_lies() -> dict[str, float]:
    """Seconds for the head's product with one row and with eight."""
    values = stored(CONFIG.n_vocab, CONFIG.n_embd)
    forms = {"by outputs": RowMatrix(values), "by inputs": BagMatrix.of(values)}
    works: dict[str, Work] = {
        f"{name}, {len(x)}": lambda m=matrix, x=x: m(x)
        for x in (torch.randn(1, CONFIG.n_embd), torch.randn(8, CONFIG.n_embd))
        for name, matrix in forms.items()
    }
    return in_turn(works)


def a_step(model: GPT2, n_texts: int = 1) -> Work:
    """One more token of each of so many texts; the cache has room for all rounds.

    One text is no batch of one: it goes the way of `generate`.
    """
    cache = model.new_cache()
    ids = torch.arange(n_texts * POSITION).view(n_texts, -1) % model.config.n_vocab
    ids = ids[0] if n_texts == 1 else ids
    model.last_logits(ids, cache)
    return lambda: model.last_logits(ids[..., :1], cache)


def decoding(model: GPT2) -> float:
    """Seconds a token, after POSITION tokens."""
    step = a_step(model)
    step()
    return median(seconds(step) for _ in range(N_STEPS))


@contextmanager
def checkpoint() -> Iterator[Path]:
    """A folder with a model of this shape, as any other."""
    named = {
        "n_embd": CONFIG.n_embd,
        "n_head": CONFIG.n_head,
        "n_layer": CONFIG.n_layer,
        "vocab_size": CONFIG.n_vocab,
        "n_positions": CONFIG.n_ctx,
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = json.dumps({"model_type": "gpt2", **named})
        (folder / "config.json").write_text(text, encoding="utf-8")
        tensors = dict(initial_weights(CONFIG, seed=0))
        write_safetensors(folder / "model.safetensors", tensors)
        yield folder


def loaded(folder: Path) -> dict[str, dict[str, float]]:
    """Seconds to load the folder's model, and of its work, read and mapped."""
    found, prompt = {}, torch.arange(ROWS[-1])
    for name, mmap in (("read", False), ("mapped", True)):
        start = time.perf_counter()
        model = GPT2.from_pretrained(folder, mmap=mmap)
        load = time.perf_counter() - start
        texts = a_step(model, 8)
        works: dict[str, Work] = {
            "prompt": lambda m=model: m.last_logits(prompt, m.new_cache()),
            "texts": lambda s=texts: [s() for _ in range(5)],
        }
        found[name] = {"load": load, "token": decoding(model), **in_turn(works)}
        found[name]["texts"] /= 5
    return found


def decoding_as_taught(plain: Transformer, model: GPT2) -> float:
    """The same, of its taught form."""
    cache = model.new_cache()
    ids = torch.arange(POSITION)
    cached_forward(plain, ids, cache)
    one = ids[:1]
    cached_forward(plain, one, cache)
    return median(seconds(lambda: cached_forward(plain, one, cache)) for _ in range(3))


def together(model: GPT2) -> list[float]:
    """Seconds a step, of so many texts."""
    steps = {n: a_step(model, n) for n in TEXTS}
    return list(in_turn(steps).values())


def prompts(model: GPT2) -> list[float]:
    """Seconds from a prompt of so many tokens to the logits of the next."""
    works: dict[Any, Work] = {
        n: lambda n=n: model.last_logits(torch.arange(n), model.new_cache())
        for n in ROWS
    }
    return list(in_turn(works).values())


def small_call() -> float:
    """Seconds for a call of torch that has next to nothing to compute."""
    x = torch.ones(4)
    return in_turn({0: lambda: [x + x for _ in range(1000)]})[0] / 1000


def calls() -> list[str]:
    """What torch asks of MKL with the row as it is, and copied; [] without MKL."""
    done = subprocess.run(
        [sys.executable, "-c", CALLS], capture_output=True, encoding="utf-8", check=True
    )
    return re.findall(r"MKL_VERBOSE (\w+\(\w,\w),", done.stdout)


def with_each_number_of_threads(model: GPT2, matrices: list[Tensor]) -> Any:
    """What depends on it."""
    tiny, plain = GPT2.from_pretrained("tiny"), taught(model)
    works: dict[str, Callable[[], Any]] = {
        "reading": reading,
        "square": square,
        "products": lambda: forms(matrices),
        "by_rows": lambda: by_rows(matrices, plainly=False),
        "by_rows_plainly": lambda: by_rows(matrices, plainly=True),
        "token": lambda: decoding(model),
        "token_taught": lambda: decoding_as_taught(plain, model),
        "token_tiny": lambda: decoding(tiny),
    }
    return {
        n: {name: with_threads(n, work) for name, work in works.items()}
        for n in THREADS
    }


def times() -> dict[str, Any]:
    """Every time, the median of ROUNDS rounds of all of them."""
    model, matrices = GPT2.random(CONFIG), block_matrices()
    with checkpoint() as folder:
        return middle(*(a_round(model, matrices, folder) for _ in range(ROUNDS)))


def a_round(model: GPT2, matrices: list[Tensor], folder: Path) -> dict[str, Any]:
    """Every time, once."""
    return {
        "threads": with_each_number_of_threads(model, matrices),
        "prompt": prompts(model),
        "together": together(model),
        "pages": pages(),
        "head_after_a_bag": head_after_a_bag(),
        "head_by_how_it_lies": head_by_how_it_lies(),
        "call": small_call(),
        "loaded": loaded(folder),
    }


def measured() -> dict[str, Any]:
    """All of it."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "processor": processor(),
        "torch": torch.__version__.split("+")[0],
        "model": "GPT-2 124M's shape, random weights, float32",
        "block_weights": block_weights(),
        "bytes_per_token": 4 * (n_parameters(CONFIG) - CONFIG.n_ctx * CONFIG.n_embd),
        "read_at_once": bench.READ_AT_ONCE,
        "square_side": SQUARE,
        "n_rows": ROWS,
        "n_texts": TEXTS,
        **times(),
        "mkl": calls(),
    }


def main() -> None:
    """Measures and writes the file."""
    with torch.inference_mode():
        found = measured()
    file = Path(__file__).with_suffix(".json")
    text = json.dumps(found, indent=2, default=float)
    text = re.sub(r"\d+\.\d{6,}(e-\d+)?", lambda m: f"{float(m[0]):.4g}", text)
    file.write_text(text + "\n", encoding="utf-8")
    print(file.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
