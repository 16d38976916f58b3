"""`gpt2hw download`: a model from the hub onto this machine."""

from typing import Annotated

import typer

from gpt2hw.cli import console
from gpt2hw.cli.text import in_a_line


def download(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="gpt2 (-medium, -large, -xl), distilgpt2, owner/name"
        ),
    ],
    directory: Annotated[
        str | None,
        typer.Option(
            "--directory",
            "-d",
            metavar="FOLDER",
            help="put the files straight into FOLDER [default: a folder of the"
            " package's cache, GPT2HW_CACHE]",
        ),
    ] = None,
    revision: Annotated[
        str | None,
        typer.Option(
            "--revision",
            metavar="NAME",
            help="a branch, a tag or a commit [default: for gpt2 a fixed commit, else"
            " main]",
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="ask the hub again, read every file that is here, and replace those"
            " that differ",
        ),
    ] = False,
    offline: Annotated[
        bool,
        typer.Option("--offline", help="look on this machine alone, as HF_HUB_OFFLINE"),
    ] = False,
) -> None:
    """Bring a model onto this machine, and print its folder.

    A model that is here already is not downloaded again; a download that was cut off
    goes on where it ended. What arrives is checked against the size and the hash that
    the hub states. HF_ENDPOINT names another hub, HF_TOKEN opens private models, and
    HTTPS_PROXY is heeded.
    """
    from gpt2hw.hub import get

    got = get(
        name,
        directory,
        revision=revision,
        offline=True if offline else None,
        force=force,
    )
    how = "downloaded into" if got.is_new else "found in"
    console.say(f"gpt2hw: {in_a_line(name)} {how} {in_a_line(str(got.folder))}")
    typer.echo(got.folder)
