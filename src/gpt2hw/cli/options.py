"""What several commands share: their common options, and the texts they are given."""

from typing import TYPE_CHECKING, Annotated

import typer

from gpt2hw.cli import console
from gpt2hw.cli.text import counted
from gpt2hw.cli.usage import choice, whole
from gpt2hw.errors import ContextError

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
PRECISIONS = ("float32", "float16", "int8")  # as in `precisions`, which needs torch
Precision = Annotated[
    str,
    typer.Option(
        "--precision",
        parser=choice("--precision", PRECISIONS),
        metavar="|".join(PRECISIONS),
        help="keep the matrices in 32, 16 or 8 bits: fewer bytes are read faster"
        " [default: float32]",
    ),
]
Device = Annotated[
    str,
    typer.Option(
        "--device", metavar="NAME", help="torch's cpu, cuda, mps, ... [default: cpu]"
    ),
]


def text_of(argument: str, what: str = "TEXT") -> str:
    """The text that an argument stands for: itself, or standard input for "-"."""
    if argument == "-":
        return console.read_input()
    return console.decoded(argument, what)


def prompt_of(argument: str) -> str:
    """As `text_of`, without the one line end that `echo` and editors put at the end."""
    text = text_of(argument, "PROMPT")
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

    if config.n_layer > 1000:  # a file may say anything; do not count
        return None
    return 1 if n_parameters(config) < SMALL else None


def too_long(n_prompt: int, n_ctx: int, n_new: int | None = None) -> ContextError:
    """The error of too many tokens, in options; n_new is None where none are written.

    >>> print(too_long(300, 256))
    the prompt has 300 tokens, more than the model's 256 positions: shorten it
    """
    if n_new is None or n_prompt > n_ctx:
        alone = "" if n_new is None else " alone"
        way = "" if n_new is None else ", or forget its oldest tokens: --overflow slide"
        return ContextError(
            f"the prompt{alone} has {n_prompt} tokens, more than the model's {n_ctx}"
            f" positions: shorten it{way}"
        )
    return ContextError(
        f"after {counted(n_prompt, 'token')} of prompt there is room for"
        f" {n_ctx - n_prompt + 1} new in the model's {n_ctx} positions, not for"
        f" {n_new}: lower --max-new-tokens,"
        " shorten the prompt, end where they are used up (--overflow stop), or forget"
        " the oldest tokens (--overflow slide)"
    )


def load(
    model: str,
    device: str = "cpu",
    threads: int | None = None,
    precision: str = "float32",
    *,
    mmap: bool = False,
) -> tuple["GPT2", "Tokenizer"]:
    """The model and its tokenizer; what fails quickly does so before torch is there."""
    with console.importing():
        from gpt2hw.folder import read_config
        from gpt2hw.hub import find_or_download
        from gpt2hw.tokenizer import Tokenizer
    folder = find_or_download(model)
    if threads is None:
        threads = usual_threads(read_config(folder))
    tokenizer = Tokenizer.from_pretrained(model)
    with console.importing():
        import torch

        from gpt2hw.precisions import checked_precision
        from gpt2hw.pretrained import GPT2
    if threads is not None:
        torch.set_num_threads(threads)
    chosen = checked_precision(precision)
    return GPT2.from_pretrained(model, device, precision=chosen, mmap=mmap), tokenizer
