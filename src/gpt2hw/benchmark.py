"""How fast this machine writes tokens, beside how fast it could.

To write one token, every weight is read once. So no engine is faster than memory: the
limit is the bytes that are read a second, over the bytes that a token reads. Here both
are measured, in one run: machines drift, and a share of the limit drifts less.

What is measured goes round in turn, several times, and the median counts, of reading as
of writing. The limit is taken from the fastest of three ways to read memory. A model
that fits into the processor's cache can be faster than that.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, is_dataclass
from numbers import Integral
from statistics import median
from typing import Any

import torch
from torch import Tensor

from gpt2hw import huge_pages
from gpt2hw.doors import checked, no_type_check
from gpt2hw.pretrained import GPT2
from gpt2hw.rows import RowMatrix

READ_AT_ONCE = 2**28  # bytes: far more than most caches hold
N_ROUNDS = 3
BATCHES = (1, 2, 4, 8)


@dataclass(frozen=True)
class Decoding:
    """Tokens a second after `position` tokens, and their share of the limit."""

    position: int
    tokens_per_second: float
    share_of_limit: float


@dataclass(frozen=True)
class FirstToken:
    """Seconds from a prompt of so many tokens to the logits of the next."""

    n_prompt: int
    seconds: float


@dataclass(frozen=True)
class Together:
    """Tokens a second in all, of so many texts at once, and that over one alone."""

    n_texts: int
    tokens_per_second: float
    times_one: float


@dataclass(frozen=True)
class Benchmark:
    """What `measure` found; bytes are bytes, and speeds bytes a second.

    `reading`: each way to read memory; `bandwidth`: the fastest of them;
    `limit`: tokens a second at that bandwidth.
    """

    torch: str
    threads: int
    weight_bytes: int
    cache_bytes: int
    bytes_per_token: int
    reading: dict[str, float]
    bandwidth: float
    limit: float
    first_token: list[FirstToken]
    decoding: list[Decoding]
    together: list[Together]

    def as_dict(self) -> dict[str, Any]:
        """The same as plain numbers, lists and dicts."""
        return asdict(self)


def tensor_bytes(*parts: object) -> int:
    """The bytes of all tensors in these parts; memory that is shared counts once.

    >>> two = torch.zeros(2)
    >>> tensor_bytes(two, two.view(1, 2)), tensor_bytes((two, torch.zeros(3)))
    (8, 20)
    """
    memory = (tensor.untyped_storage() for tensor in _tensors(parts))
    return sum({m.data_ptr(): m.nbytes() for m in memory}.values())


def _tensors(part: object) -> Iterator[Tensor]:
    if isinstance(part, Tensor):
        yield part
    elif isinstance(part, tuple):
        for one in part:
            yield from _tensors(one)
    elif is_dataclass(part):
        for field in fields(part):
            yield from _tensors(getattr(part, field.name))


def bytes_per_token(model: GPT2) -> int:
    """The bytes of the parameters that each token reads: all blocks, and the head.

    Of positions, and of wte where it is not the head, a token reads one row.

    >>> from gpt2hw import GPT2Config
    >>> model = GPT2.random(
    ...     GPT2Config(n_vocab=7, n_ctx=8, n_embd=4, n_head=2, n_layer=1))
    >>> bytes_per_token(model) == tensor_bytes(model) - tensor_bytes(model.wpe)
    True
    """
    return tensor_bytes(model.h, model.ln_f, model.lm_head, model.head)


@no_type_check
def measure(model: GPT2, *, n_tokens: int = 12) -> Benchmark:
    """Measures a model on this machine.

    n_tokens: how many each measurement writes at most. The ids are random: speed does
    not depend on them. Raises ValueError for a model of fewer than 16 positions, and
    where n_tokens is less than 1.
    """
    checked("model", model, GPT2, lambda _: True, "a GPT2")
    checked("n_tokens", n_tokens, Integral, lambda n: n >= 1, "1 or more")
    n_ctx = model.config.n_ctx
    if n_ctx < 16:
        raise ValueError(f"model: its {n_ctx} positions are too few to measure in")
    works: dict[Any, Callable[[], float]] = dict(_reading())
    works |= {("first", n): _first_token(model, n) for n in (n_ctx // 16, n_ctx // 2)}
    positions = (n_ctx // 16, n_ctx // 2, n_ctx * 15 // 16 - 2)
    works |= {("at", p): _writing(model, p, n_tokens) for p in positions}
    works |= {("of", n): _writing(model, n_ctx // 16, n_tokens, n) for n in BATCHES}
    times: dict[Any, list[float]] = {name: [] for name in works}
    with torch.inference_mode():
        for _ in range(N_ROUNDS):
            for name, work in works.items():
                times[name].append(work())
    reading = {
        name: READ_AT_ONCE / median(times[name])
        for name in works
        if isinstance(name, str)
    }
    return _told(model, reading, {name: median(found) for name, found in times.items()})


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _reading() -> Iterator[tuple[str, Callable[[], float]]]:
    """Three kernels that read READ_AT_ONCE bytes and do little else.

    The bytes lie as the weights of a model that was loaded, in huge pages.
    """
    numbers = huge_pages.empty((READ_AT_ONCE // 4,), torch.float32).fill_(1)
    matrix, row = RowMatrix(numbers.view(-1, 1024)), torch.ones(1, 1024, device="cpu")
    yield "sum", lambda: _seconds(numbers.sum)
    yield "largest", lambda: _seconds(numbers.max)
    yield "row blocks", lambda: _seconds(lambda: matrix(row))


def _random_ids(model: GPT2, *shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    n_vocab = model.config.n_vocab
    return torch.randint(n_vocab, shape, generator=generator, device="cpu")


def _first_token(model: GPT2, n_prompt: int) -> Callable[[], float]:
    ids = _random_ids(model, n_prompt)
    return lambda: _seconds(lambda: model.last_logits(ids, model.new_cache()))


def _writing(
    model: GPT2, position: int, n_tokens: int, n_texts: int = 1
) -> Callable[[], float]:
    """Seconds a token, from `position` on; each call goes on where the last ended."""
    cache, n_room = model.new_cache(), model.config.n_ctx - position
    # One text is no batch of one: it goes the way of `generate`.
    shape = (position,) if n_texts == 1 else (n_texts, position)
    full = _random_ids(model, *shape)
    one = full[..., :1]
    n_steps = min(n_tokens, n_room // N_ROUNDS)

    def work() -> float:
        if not len(cache):
            model.last_logits(full, cache)
        steps = (lambda: model.last_logits(one, cache),) * n_steps
        return median(map(_seconds, steps))

    return work


def _told(model: GPT2, reading: dict[str, float], found: dict[Any, float]) -> Benchmark:
    bandwidth, a_token = max(reading.values()), bytes_per_token(model)
    limit, alone = bandwidth / a_token, found["of", 1]
    n_layer, n_ctx, n_embd = (
        getattr(model.config, name) for name in ("n_layer", "n_ctx", "n_embd")
    )
    by_kind = {
        kind: [(name[1], t) for name, t in found.items() if name[0] == kind]
        for kind in ("first", "at", "of")
    }
    return Benchmark(
        torch=torch.__version__,
        threads=torch.get_num_threads(),
        weight_bytes=tensor_bytes(model),
        cache_bytes=2 * n_layer * n_ctx * n_embd * model.wpe.element_size(),
        bytes_per_token=a_token,
        reading=reading,
        bandwidth=bandwidth,
        limit=limit,
        first_token=[FirstToken(n, t) for n, t in by_kind["first"]],
        decoding=[Decoding(n, 1 / t, 1 / t / limit) for n, t in by_kind["at"]],
        together=[Together(n, n / t, n * alone / t) for n, t in by_kind["of"]],
    )
