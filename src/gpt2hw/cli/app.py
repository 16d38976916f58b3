"""The command line's table of contents: which commands there are.

Commands import the rooms that they need when they run, so that `--help` waits for none.
"""

from typing import Annotated

import typer

import gpt2hw
from gpt2hw.cli import console
from gpt2hw.cli.bench_command import bench
from gpt2hw.cli.download_command import download
from gpt2hw.cli.evaluate_command import evaluate
from gpt2hw.cli.help import Command, Group
from gpt2hw.cli.inspect_command import inspect
from gpt2hw.cli.tokenize_command import tokenize
from gpt2hw.cli.trace_command import trace
from gpt2hw.cli.write_command import generate

app = typer.Typer(
    cls=Group,
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, help="print the version")
    ] = False,
) -> None:
    """GPT-2 the hard way: from the bytes of its weight file to streamed text.

    A small model and GPT-2's tokenizer come with it: all but download works offline.

        gpt2hw generate "Once upon a time"
    """
    if version:
        typer.echo(f"gpt2hw {gpt2hw.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        console.say_as_it_is(context.get_help())
        raise typer.Exit(2)


for _name, _command in (
    ("generate", generate),
    ("tokenize", tokenize),
    ("inspect", inspect),
    ("trace", trace),
    ("download", download),
    ("evaluate", evaluate),
    ("bench", bench),
):
    app.command(_name, cls=Command)(_command)
