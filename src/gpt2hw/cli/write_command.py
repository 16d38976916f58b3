"""`gpt2hw generate`: a text goes on, and is shown as it is written."""

from enum import StrEnum
from typing import Annotated

import typer

from gpt2hw.cli import console
from gpt2hw.cli.options import Device, Model, Threads, load, number, prompt_of
from gpt2hw.cli.writing import (
    TEMPERATURE,
    TOP_P,
    Clock,
    sampler_settings,
    stats_lines,
    unescaped,
    write,
)

N_NEW = 200


class Overflow(StrEnum):
    """What to do where the model's context is too short."""

    error = "error"
    stop = "stop"
    slide = "slide"


def generate(
    prompt: Annotated[
        str,
        typer.Argument(metavar="PROMPT|-", help="the text to continue; may be empty"),
    ],
    model: Model = "tiny",
    max_new_tokens: Annotated[
        int,
        typer.Option(min=0, metavar="N", help=f"write at most N tokens [{N_NEW}]"),
    ] = N_NEW,
    temperature: Annotated[
        float | None,
        typer.Option(
            metavar="T",
            help=f"below 1 the likely gets likelier; 0 is --greedy [{TEMPERATURE}]",
            callback=number(lambda t: 0 <= t < float("inf"), "a finite number from 0"),
        ),
    ] = None,
    top_k: Annotated[
        int | None,
        typer.Option(min=1, metavar="K", help="draw from the K likeliest [all]"),
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help=f"draw from the likeliest that reach P together [{TOP_P}]",
            callback=number(lambda p: 0 < p <= 1, "above 0 and at most 1"),
        ),
    ] = None,
    greedy: Annotated[
        bool, typer.Option("--greedy", help="always take the likeliest token")
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, max=2**64 - 1, metavar="N", help="write the same text each time"
        ),
    ] = None,
    stop: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help=r"end before TEXT, in which \n, \t and \\ are understood; repeatable",
        ),
    ] = None,
    overflow: Annotated[
        Overflow,
        typer.Option(
            metavar="error|stop|slide",
            help="where the context is too short: refuse, stop when it is full, or"
            " forget the oldest tokens (slow) [error]",
        ),
    ] = Overflow.error,
    only_new: Annotated[
        bool, typer.Option("--only-new", help="leave the prompt out of the output")
    ] = False,
    stats: Annotated[
        bool, typer.Option("--stats", help="tell times and the seed, on standard error")
    ] = False,
    threads: Threads = None,
    device: Device = "cpu",
) -> None:
    """Continue a text, shown as it is written.

    The output is the prompt and what follows it, and ends with a line end. The prompt -
    is read from standard input, as UTF-8; one line end at its end is dropped.
    """
    settings = sampler_settings(greedy, temperature, top_k, top_p, seed)
    stops = [unescaped(text) for text in stop or []]
    text = prompt_of(prompt)
    engine, tokenizer = load(model, device, threads)
    from gpt2hw.generation import stream
    from gpt2hw.sampling import Sampler

    clock = Clock(Sampler(**settings))
    pieces = stream(
        engine,
        tokenizer,
        text,
        max_new_tokens=max_new_tokens,
        sampler=clock,
        stop=stops,
        overflow=overflow.value,
    )
    clock.start()
    done = write("" if only_new else text, pieces)
    if stats:
        for line in stats_lines(
            done, clock.times, None if greedy else settings["seed"]
        ):
            console.say(line)
