"""What several commands share: their common options, and the texts they are given."""

from typing import TYPE_CHECKING, Annotated

import typer

from gpt2hw.cli import console
from gpt2hw.cli.usage import whole

if TYPE_CHECKING:
    from gpt2hw.config import GPT2Config
    from gpt2hw.pretrained import GPT2
    from gpt2hw.tokenizer import Tokenizer

SMALL = 10_000_000  # parameters; below, threads wait for each other more than they do
MODELS = "tiny, gpt2 (-medium, -large, -xl), distilgpt2, owner/name, or a folder"

Model = Annotated[
    str,
    typer.Option(
        "--model", "-m", metavar="NAME|FOLDER", help=f"{MODELS} [default: tiny]"
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        parser=whole("--threads", 1, 1024),
        metavar="N",
        help="compute with N threads [default: 1 for a model of fewer than 10 million"
        " parameters, else torch's choice]",
    ),
]
Device = Annotated[
    str,
    typer.Option(
        "--device", metavar="NAME", help="torch's cpu, cuda, mps, ... [default: cpu]"
    ),
]


def text_of(argument: str) -> str:
    """The text that an argument stands for: itself, or standard input for "-"."""
    return console.read_input() if argument == "-" else argument


def prompt_of(argument: str) -> str:
    """As `text_of`, without the one line end that `echo` and editors put at the end."""
    text = text_of(argument)
    if argument != "-" or not text.endswith("\n"):
        return text
    return text.removesuffix("\n").removesuffix("\r")


def usual_threads(config: "GPT2Config") -> int | None:
    """How many threads a model gets unless --threads tells; None leaves it to torch.

    >>> from gpt2hw import GPT2Config
    >>> usual_threads(GPT2Config(n_embd=64, n_head=4, n_layer=2))
    1
    """
    from gpt2hw.layout import n_parameters

    return 1 if n_parameters(config) < SMALL else None


def load(
    model: str, device: str = "cpu", threads: int | None = None
) -> tuple["GPT2", "Tokenizer"]:
    """The model and its tokenizer; what fails quickly does so before torch is there."""
    from gpt2hw.folder import read_config
    from gpt2hw.hub import find
    from gpt2hw.tokenizer import Tokenizer

    folder = find(model)
    if threads is None:
        threads = usual_threads(read_config(folder))
    tokenizer = Tokenizer.from_pretrained(model)
    with console.leaving_at_once():
        import torch

        from gpt2hw.pretrained import GPT2
    if threads is not None:
        torch.set_num_threads(threads)
    return GPT2.from_pretrained(model, device), tokenizer
