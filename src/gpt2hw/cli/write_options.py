"""The options of `gpt2hw generate`."""

from enum import StrEnum
from typing import Annotated

import typer

from gpt2hw.cli.options import must_be
from gpt2hw.cli.writing import TEMPERATURE, TOP_P

N_NEW = 200


class Overflow(StrEnum):
    """What to do where the model's context is too short."""

    error = "error"
    stop = "stop"
    slide = "slide"


Prompt = Annotated[
    str, typer.Argument(metavar="PROMPT|-", help="the text to continue; may be empty")
]
MaxNewTokens = Annotated[
    int, typer.Option(min=0, metavar="N", help=f"write at most N tokens [{N_NEW}]")
]
Temperature = Annotated[
    float | None,
    typer.Option(
        metavar="T",
        help=f"below 1 the likely gets likelier; 0 is --greedy [{TEMPERATURE}]",
        callback=must_be("a finite number from 0", lambda t: 0 <= t < float("inf")),
    ),
]
TopK = Annotated[
    int | None,
    typer.Option(min=1, metavar="K", help="draw from the K likeliest [all]"),
]
TopP = Annotated[
    float | None,
    typer.Option(
        metavar="P",
        help=f"draw from the likeliest that reach P together [{TOP_P}]",
        callback=must_be("above 0 and at most 1", lambda p: 0 < p <= 1),
    ),
]
Greedy = Annotated[
    bool, typer.Option("--greedy", help="always take the likeliest token")
]
Seed = Annotated[
    int | None,
    typer.Option(
        min=0, max=2**64 - 1, metavar="N", help="write the same text each time"
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
    Overflow | None,
    typer.Option(
        metavar="error|stop|slide",
        help="where the context is too short: refuse, stop when it is full, or forget"
        " the oldest tokens (slow) [stop]",
    ),
]
OnlyNew = Annotated[
    bool, typer.Option("--only-new", help="leave the prompt out of the output")
]
Stats = Annotated[
    bool, typer.Option("--stats", help="tell times and the seed, on standard error")
]
