"""The pages that --help prints: plain text, aligned, as wide as the terminal.

typer's own pages differ from release to release, and load much more of rich.
"""

import shutil
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from typer.core import TyperCommand, TyperGroup

from gpt2hw.cli.text import NARROWEST
from gpt2hw.cli.usage import WrongUse, did_you_mean, too_many

WIDEST = 88
NARROW = 60  # below this many columns, what an option does stands under its name


class Command(TyperCommand):
    """A command with our page of help; it takes one argument."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads the words; raises WrongUse where arguments are left over."""
        ctx.allow_extra_args = True
        left = super().parse_args(ctx, args)
        if left:
            raise too_many(1 + len(left), self.params[0].metavar or "")
        return left

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Writes the page."""
        formatter.write(page(self, ctx))


class Group(TyperGroup):
    """The program with our page of help."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is named first; raises WrongUse where there is none."""
        if args[0] not in self.commands:
            near = did_you_mean(args[0], self.commands)
            others = f"; there are {', '.join(self.commands)}"
            raise WrongUse(f"no command {args[0]!r}{near or others}")
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Writes the page."""
        formatter.write(page(self, ctx))


def page(command: Any, context: Any) -> str:
    """The help of a command: usage, what it does, commands, arguments, options."""
    width = min(max(shutil.get_terminal_size().columns, NARROWEST), WIDEST)
    parts = command.get_params(context)
    arguments = [_argument(p) for p in parts if p.param_type_name == "argument"]
    options = [_option(p) for p in parts if p.param_type_name == "option"]
    commands = list(_commands(command))
    words = ["[OPTIONS]", *(name for name, _ in arguments)]
    words += ["COMMAND ..."] * bool(commands)
    blocks = [f"Usage: {context.command_path} {' '.join(words)}"]
    blocks += _paragraphs(command.help or "", width)
    tables = {"Commands": commands, "Arguments": arguments, "Options": options}
    left = max(len(name) for rows in tables.values() for name, _ in rows) + 4
    for title, rows in tables.items():
        if rows:
            blocks.append(f"{title}:\n{_rows(rows, left, width)}")
    return "\n\n".join(blocks) + "\n"


def _argument(argument: Any) -> tuple[str, str]:
    name = argument.metavar if argument.required else f"[{argument.metavar}]"
    return name, argument.help or ""


def _option(option: Any) -> tuple[str, str]:
    names = ", ".join(sorted(option.opts, key=len))
    does = option.help or ""
    if "--help" in option.opts:
        does = "print this page"
    return (f"{names} {option.metavar}" if option.metavar else names), does


def _commands(command: Any) -> Iterator[tuple[str, str]]:
    for name, sub in getattr(command, "commands", {}).items():
        first = (sub.help or "").partition("\n\n")[0]
        yield name, " ".join(first.split()).rstrip(".")


def _paragraphs(text: str, width: int) -> Iterator[str]:
    """The text filled to the width; what is indented stays as it is."""
    for paragraph in text.strip("\n").split("\n\n"):
        is_verbatim = paragraph.startswith("    ")
        yield paragraph if is_verbatim else textwrap.fill(paragraph, width)


def _rows(rows: Iterable[tuple[str, str]], left: int, width: int) -> str:
    """Names on the left, what they do beside them, or beneath where it is narrow."""
    if width < NARROW:
        left = 6
    lines: list[str] = []
    for name, text in rows:
        body = textwrap.wrap(text, width - left) or [""]
        if width < NARROW:
            lines.append(f"  {name}")
        else:
            lines.append(f"  {name:{left - 2}}{body.pop(0)}".rstrip())
        lines += [" " * left + line for line in body if line]
    return "\n".join(lines)
