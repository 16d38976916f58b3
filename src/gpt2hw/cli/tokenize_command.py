"""`gpt2hw tokenize`: how a text is cut into tokens, and how the tokens came about."""

import re
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from gpt2hw.cli import console
from gpt2hw.cli.options import MODELS, text_of
from gpt2hw.cli.text import counted
from gpt2hw.cli.usage import WrongUse

if TYPE_CHECKING:
    from gpt2hw.tokenizer import Tokenizer

LONGEST_EXPLAINED = 2000  # characters; what --explain shows grows with the square


def tokenize(
    text: Annotated[
        str, typer.Argument(metavar="TEXT|-", help="the text; with --decode, the ids")
    ],
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            metavar="NAME|FOLDER",
            help=f"whose tokenizer: {MODELS} [default: gpt2; generate and trace use"
            " tiny]",
        ),
    ] = "gpt2",
    ids: Annotated[
        bool, typer.Option("--ids", help="print the ids alone, in one line")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="print ids, bytes and texts as JSON")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="show each merge that makes the tokens")
    ] = False,
    decode: Annotated[
        bool, typer.Option("--decode", help="turn ids into their text, byte for byte")
    ] = False,
    allow_special: Annotated[
        bool, typer.Option("--allow-special", help="read <|endoftext|> as one token")
    ] = False,
) -> None:
    """Show how a text is cut into tokens, and their ids.

    If TEXT is -, it is read from standard input (UTF-8), including its last newline. On
    a terminal a space is shown as a dot; in a pipe each token has a line of its own.
    """
    one_of({"--ids": ids, "--json": as_json, "--explain": explain, "--decode": decode})
    with console.importing():
        from gpt2hw.tokenizer import Tokenizer
    given = text_of(text)
    tokenizer = Tokenizer.from_pretrained(model)
    if decode:
        print_bytes(tokenizer.decode_bytes(parse_ids(given)))
        name_model(model)
        return
    found = tokenizer.encode(given, allow_special=allow_special)
    if ids:
        print(*found)
        return
    print_tokens(tokenizer, found, given if explain else None, as_json)
    if not as_json:
        name_model(model, f": {counted(len(found), 'token')}")


def one_of(flags: dict[str, bool]) -> None:
    """Raises an error of usage where two of the flags are given."""
    given = [name for name, is_given in flags.items() if is_given]
    if len(given) > 1:
        raise WrongUse(f"{given[0]} and {given[1]} do not go together")


def parse_ids(text: str) -> list[int]:
    """Ids from a text: with spaces or commas between them, with brackets or without.

    >>> parse_ids("15496 995"), parse_ids("[15496, 995]")
    ([15496, 995], [15496, 995])
    """
    words = re.sub(r"[\[\],]", " ", text).split()
    for word in words:
        if not re.fullmatch("-?[0-9]{1,18}", word):
            raise WrongUse(f"--decode takes ids, and {word!r} is not an id")
    return [int(word) for word in words]


def print_bytes(data: bytes) -> None:
    """Writes a text's own bytes; on a terminal they are shown as text."""
    if sys.stdout.isatty():
        from gpt2hw.cli.screen import Output

        with Output() as output:
            output.write(data.decode("utf-8", errors="replace"))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)


def name_model(model: str, what: str = "") -> None:
    """Tells a person whose tokenizer it was; a program asked for the tokens alone."""
    from gpt2hw.cli.screen import aside

    aside(f"tokenizer of {model}{what}")


def print_tokens(
    tokenizer: "Tokenizer", ids: list[int], explained: str | None, as_json: bool
) -> None:
    """Prints the tokens: under the merges that make them, as JSON, or by themselves."""
    from gpt2hw.cli import token_views

    tokens = [(token_id, tokenizer.token_bytes(token_id)) for token_id in ids]
    if as_json:
        console.print_json(token_views.as_rows(tokens))
        return
    if explained is not None:
        if len(explained) > LONGEST_EXPLAINED:
            raise ValueError(
                f"--explain takes {LONGEST_EXPLAINED} characters at most, this text has"
                f" {len(explained)}"
            )
        token_views.print_merges(tokenizer.explain(explained))
    token_views.print_tokens(tokens)
