"""What several commands share: their common options, and the texts they are given."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpt2hw.cli import console

if TYPE_CHECKING:
    from gpt2hw.pretrained import GPT2
    from gpt2hw.tokenizer import Tokenizer

MODELS = "tiny, gpt2 (-medium, -large, -xl), distilgpt2, owner/name, or a folder"

Model = Annotated[
    str,
    typer.Option("--model", "-m", metavar="NAME|FOLDER", help=f"{MODELS} [tiny]"),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        min=1,
        max=1024,
        metavar="N",
        help="compute with N threads [torch decides]",
    ),
]
Device = Annotated[
    str,
    typer.Option("--device", metavar="NAME", help="torch's cpu, cuda, mps, ... [cpu]"),
]


def must_be(rule: str, fits: Callable[[Any], bool]) -> Callable[[Any], Any]:
    """A check for an option's value: None, or one that fits the rule."""

    def check(value: Any) -> Any:
        if value is not None and not fits(value):
            raise typer.BadParameter(f"must be {rule}, not {value}")
        return value

    return check


def text_of(argument: str) -> str:
    """The text that an argument stands for: itself, or standard input for "-"."""
    return console.read_input() if argument == "-" else argument


def prompt_of(argument: str) -> str:
    """As `text_of`, without the one line end that `echo` and editors put at the end."""
    text = text_of(argument)
    if argument != "-" or not text.endswith("\n"):
        return text
    return text.removesuffix("\n").removesuffix("\r")


def load(
    model: str, device: str = "cpu", threads: int | None = None
) -> tuple["GPT2", "Tokenizer"]:
    """The model and its tokenizer; what fails quickly does so before torch is there."""
    from gpt2hw.hub import find
    from gpt2hw.tokenizer import Tokenizer

    find(model)
    tokenizer = Tokenizer.from_pretrained(model)
    with console.leaving_at_once():
        import torch

        from gpt2hw.pretrained import GPT2
    if threads is not None:
        torch.set_num_threads(threads)
    return GPT2.from_pretrained(model, device), tokenizer
