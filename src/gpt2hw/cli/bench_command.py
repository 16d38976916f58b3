"""`gpt2hw bench`: how fast a model writes on this machine, and what memory allows."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from gpt2hw.cli import console
from gpt2hw.cli.options import Model, Precision, Threads, load, usual_threads
from gpt2hw.cli.text import legible
from gpt2hw.cli.usage import WrongUse, choice
from gpt2hw.config import PUBLISHED

if TYPE_CHECKING:
    from gpt2hw.benchmark import Benchmark
    from gpt2hw.pretrained import GPT2

MILLION, BILLION = 1e6, 1e9
SMALL = 2**24  # bytes: what many processors keep in their cache


def bench(
    model: Model = "",
    shape: Annotated[
        str | None,
        typer.Option(
            "--random",
            parser=choice("--random", tuple(PUBLISHED)),
            metavar="NAME",
            help="instead: random weights in the shape of a published model"
            f" ({', '.join(PUBLISHED)}); nothing is downloaded",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="print the same as JSON")
    ] = False,
    precision: Precision = "float32",
    threads: Threads = None,
) -> None:
    """Measure how fast a model writes on this machine.

    To write a token, every weight is read once: no engine is faster than memory. So the
    speed of reading is measured too, and each speed is told as a share of the limit
    that follows from it. Other programs that run meanwhile take their part of both.
    """
    if shape and model:
        raise WrongUse("--random and --model do not go together")
    engine = _random(shape, threads, precision) if shape else None
    if engine is None:
        engine, _ = load(model or "tiny", "cpu", threads, precision)
    from gpt2hw.benchmark import measure

    found = measure(engine)
    name = f"{shape}, random weights" if shape else legible(model or "tiny")
    if as_json:
        about = {"model": name, "precision": precision}
        console.print_json(about | found.as_dict())
    else:
        from gpt2hw.cli.screen import show

        show(*lines(name, precision, found))


def _random(shape: str, threads: int | None, precision: str) -> "GPT2":
    config = PUBLISHED[shape]
    with console.importing():
        import torch

        from gpt2hw.precisions import checked_precision
        from gpt2hw.pretrained import GPT2
    threads = usual_threads(config) if threads is None else threads
    if threads is not None:
        torch.set_num_threads(threads)
    return GPT2.random(config, precision=checked_precision(precision))


def lines(name: str, precision: str, found: "Benchmark") -> Iterator[str]:
    """The table, line by line."""
    yield f"model        {name}, {precision}"
    yield f"computing    torch {found.torch}, threads: {found.threads}"
    yield f"weights      {found.weight_bytes / MILLION:,.1f} MB"
    yield f"cache        {found.cache_bytes / MILLION:,.1f} MB a text of full length"
    ways = ", ".join(f"{n} {v / BILLION:.1f}" for n, v in found.reading.items())
    yield f"reading      {found.bandwidth / BILLION:.1f} GB/s, the fastest of: {ways}"
    megabytes = found.bytes_per_token / MILLION
    yield f"limit        {found.limit:,.0f} tokens/s, of {megabytes:,.1f} MB each"
    yield ""
    for first in found.first_token:
        yield (
            f"first token  {first.seconds * 1000:8,.1f} ms after a prompt of"
            f" {first.n_prompt}"
        )
    for at in found.decoding:
        yield (
            f"writing      {at.tokens_per_second:8,.1f} tokens/s at position"
            f" {at.position:,}: {at.share_of_limit:.0%} of the limit"
        )
    for of in found.together:
        texts = "1 text" if of.n_texts == 1 else f"{of.n_texts} texts at once"
        yield (
            f"together     {of.tokens_per_second:8,.1f} tokens/s in all, {texts}:"
            f" {of.times_one:.1f} times one"
        )
    if any(at.share_of_limit > 1 for at in found.decoding):
        yield ""
        yield "More than all: these weights stay in the processor's cache."
    elif found.weight_bytes < SMALL:
        yield ""
        yield "These weights fit into a processor's cache, which is faster than memory."
