"""The options of `gpt2hw generate`."""

from typing import Annotated

import typer

from gpt2hw.cli.usage import choice, number, whole
from gpt2hw.cli.writing import TEMPERATURE, TOP_P

N_NEW = 200
OVERFLOWS = ("error", "stop", "slide")

Prompt = Annotated[
    str, typer.Argument(metavar="PROMPT|-", help="the text to continue; may be empty")
]
MaxNewTokens = Annotated[
    int,
    typer.Option(
        parser=whole("--max-new-tokens", 0),
        metavar="N",
        help=f"write at most N tokens [default: {N_NEW}]",
    ),
]
Temperature = Annotated[
    float | None,
    typer.Option(
        metavar="T",
        help="lower is safer, higher is wilder; 0 is --greedy"
        f" [default: {TEMPERATURE}]",
        parser=number(
            "--temperature", "a number from 0 up", lambda t: 0 <= t < float("inf")
        ),
    ),
]
TopK = Annotated[
    int | None,
    typer.Option(
        parser=whole("--top-k", 1),
        metavar="K",
        help="draw from the K likeliest tokens [default: all]",
    ),
]
TopP = Annotated[
    float | None,
    typer.Option(
        metavar="P",
        help="draw from the fewest likeliest tokens whose probabilities add up to P"
        f" [default: {TOP_P}]",
        parser=number(
            "--top-p", "a number above 0 and at most 1", lambda p: 0 < p <= 1
        ),
    ),
]
Greedy = Annotated[
    bool, typer.Option("--greedy", help="always take the likeliest token")
]
Seed = Annotated[
    int | None,
    typer.Option(
        parser=whole("--seed", 0, 2**64 - 1),
        metavar="N",
        help="start the random numbers at N: the same N, the same text"
        " [default: another each time]",
    ),
]
Stop = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TEXT",
        help=r"end before TEXT, in which \n, \t and \\ are understood; repeatable",
    ),
]
OverflowWay = Annotated[
    str | None,
    typer.Option(
        parser=choice("--overflow", OVERFLOWS),
        metavar="|".join(OVERFLOWS),
        help="where the context is too short: refuse, stop when it is full, or forget"
        " the oldest tokens (slow) [default: stop]",
    ),
]
OnlyNew = Annotated[
    bool, typer.Option("--only-new", help="leave the prompt out of the output")
]
Stats = Annotated[
    bool,
    typer.Option("--stats", help="print timing and the seed to standard error"),
]
