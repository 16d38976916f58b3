"""`gpt2hw trace`: every value on the way from a prompt to the next token's chances.

The names are those of `gpt2hw.trace`, so that a value can be put beside another
implementation's: by eye, as JSON, or as a .safetensors file that holds all of them.
"""

from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpt2hw.cli import console
from gpt2hw.cli.options import Device, Model, Threads, load, prompt_of, too_long
from gpt2hw.cli.text import counted, legible
from gpt2hw.cli.usage import WrongUse
from gpt2hw.files import why_not_writable

if TYPE_CHECKING:
    from torch import Tensor


def place_to_save(word: str) -> Path:
    """The FILE of --save; WrongUse for what is none."""
    if word == "-":
        raise WrongUse("--save needs a file: - would be standard output")
    if reason := why_not_writable(word):
        raise WrongUse(f"--save cannot write {word!r}: {reason}")
    return Path(word)


def trace(
    prompt: Annotated[
        str,
        typer.Argument(metavar="PROMPT|-", help="the text to trace; may be empty"),
    ],
    model: Model = "tiny",
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--name",
            "-n",
            metavar="FILTER",
            help="only values whose name holds FILTER, or fits it: h.0.*; repeatable",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="print the same as JSON")
    ] = False,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save",
            metavar="FILE",
            help="write whole tensors to a .safetensors file",
            parser=place_to_save,
        ),
    ] = None,
    threads: Threads = None,
    device: Device = "cpu",
) -> None:
    """Print every intermediate value of a forward pass.

    Each with its shape, its mean, its norm (the root of the sum of squares) and the
    last token's first numbers, in the first head where there are several; at the end,
    what the model thinks comes next. An empty prompt is the end-of-text token, after
    which documents begin. If PROMPT is -, it is read from standard input (UTF-8),
    without its last newline.
    """
    text = prompt_of(prompt)
    engine, tokenizer = load(model, device, threads)
    from gpt2hw import tracing
    from gpt2hw.cli import trace_view
    from gpt2hw.request import checked_prompt

    _, ids = checked_prompt(text, tokenizer, engine.config.n_vocab)
    if len(ids) > engine.config.n_ctx:
        raise too_long(len(ids), engine.config.n_ctx)
    values = tracing.trace(engine, ids)
    chosen = select(values, name or [])
    if save:
        write_values(save, ids, chosen, {"model": legible(model), "prompt": text})
    following = trace_view.likeliest(values["logits"][-1], tokenizer)
    if as_json:
        console.print_json(trace_view.as_dict(text, ids, chosen, following))
    else:
        trace_view.print_trace(model, tokenizer, ids, chosen, following)
    if following is None:
        console.say(f"gpt2hw: {trace_view.not_finite(values)}")


def select(values: dict[str, "Tensor"], filters: list[str]) -> dict[str, "Tensor"]:
    """The values that one filter at least lets through; all of them without filters.

    Raises ValueError for a filter that lets none through.
    """
    kept: set[str] = set()
    for pattern in filters:
        fitting = {n for n in values if pattern in n or fnmatchcase(n, pattern)}
        if not fitting:
            first = list(values)[:9]
            raise ValueError(
                f"--name: no value's name holds or fits {pattern!r}; the names are"
                f" {', '.join(first)}, ..., {', '.join(list(values)[-3:])}"
            )
        kept |= fitting
    return {n: value for n, value in values.items() if n in kept or not filters}


def write_values(
    path: Path, ids: list[int], values: dict[str, "Tensor"], metadata: dict[str, str]
) -> None:
    """Writes the ids and the values to a .safetensors file; an OSError names it."""
    import torch

    from gpt2hw.safetensors import write_safetensors

    try:
        write_safetensors(path, {"ids": torch.tensor(ids), **values}, metadata)
    except OSError as error:  # it names the draft, or nothing
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None
    console.say(f"gpt2hw: wrote {counted(len(values), 'value')} and the ids to {path}")
