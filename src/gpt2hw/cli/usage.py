"""A wrong use of the command line, told in our own words; and where to look.

What typer and its parsers say differs from release to release, and of a number it
speaks a library's language. So values are read here, by `whole`, `number` and
`choice`, and the few errors that are left to typer are told anew.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

TEXT_IN_DASHES = "a text that begins with - stands after --"


class WrongUse(Exception):  # noqa: N818 -- and no ValueError, which typer would catch
    """What is wrong with the words of a command; it ends with status 2."""


def must_be(option: str, rule: str, word: object) -> WrongUse:
    """The error of a value that breaks an option's rule.

    >>> print(must_be("--top-k", "an integer from 1 up", "0"))
    --top-k must be an integer from 1 up, not 0
    >>> print(must_be("--temperature", "a number from 0 up", "x"))
    --temperature must be a number from 0 up, not 'x'
    """
    shown = repr(str(word))
    with suppress(ValueError):
        float(str(word))
        shown = str(word).strip()
    return WrongUse(f"{option} must be {rule}, not {shown}")


def whole(option: str, least: int, most: int | None = None) -> Callable[[str], int]:
    """A reader of integers for an option.

    >>> whole("--threads", 1, 1024)("2")
    2
    """
    upto = "up" if most is None else f"to {most}"

    def read(word: str) -> int:
        with suppress(ValueError):
            value = int(word)
            if value >= least and (most is None or value <= most):
                return value
        raise must_be(option, f"an integer from {least} {upto}", word)

    return read


def number(
    option: str, rule: str, fits: Callable[[float], bool]
) -> Callable[[str], float]:
    """A reader of numbers that fit a rule."""

    def read(word: str) -> float:
        with suppress(ValueError):
            value = float(word)
            if fits(value):
                return value
        raise must_be(option, rule, word)

    return read


def choice(option: str, words: Sequence[str]) -> Callable[[str], str]:
    """A reader of one of a few words."""

    def read(word: str) -> str:
        if word not in words:
            raise must_be(option, f"one of {', '.join(words)}", word)
        return word

    return read


def told(error: Exception, program: Any, words: Sequence[str]) -> str | None:
    """What to say of a wrong use in `words`, with a hint; None of another error."""
    name = words[0] if words and words[0] in program.commands else None
    command = program.commands.get(name, program)
    if isinstance(error, WrongUse):
        message = str(error)
    elif hasattr(error, "format_message"):  # typer's errors of usage have it
        message = _told_anew(error, command, program, words)
    else:
        return None
    hint = f"see gpt2hw {name} --help" if name else "see gpt2hw --help"
    return f"{message} ({hint})"


def _told_anew(error: Any, command: Any, program: Any, words: Sequence[str]) -> str:
    kind = type(error).__name__
    option = getattr(error, "option_name", "")
    if kind == "MissingParameter":
        return _missing(error.param)
    if kind == "NoSuchOption":
        return _no_option(option, command, program, words)
    if kind == "BadOptionUsage":
        return _bad_value(option, command)
    return str(error.format_message()).rstrip(".")


def _missing(parameter: Any) -> str:
    what, _, dash = (parameter.metavar or parameter.name).partition("|")
    from_input = "; put - to read it from standard input" if dash == "-" else ""
    return f"the {what} is missing{from_input}"


def _bad_value(option: str, command: Any) -> str:
    of_that_name = [p for p in command.params if option in p.opts]
    if of_that_name and not getattr(of_that_name[0], "is_flag", False):
        return f"{option} needs a value: {option} {of_that_name[0].metavar}"
    return f"{option} takes no value"


def _no_option(option: str, command: Any, program: Any, words: Sequence[str]) -> str:
    """A name that no option has: what may be meant, or where it belongs."""
    if not option.startswith("--"):  # one letter of the word that was given
        option = next((word for word in words if word.startswith(option)), option)
    message = f"no option {option}"
    near = did_you_mean(option, _options(command))
    if near:
        return message + near
    if command is program:
        others = [name for c in program.commands.values() for name in _options(c)]
        is_there = option in others
        return message + "; options stand after the command" * is_there
    metavars = [p.metavar or "" for p in command.params]
    takes_text = any(m.endswith("|-") and m != "FILE|-" for m in metavars)
    has_text = not words[1].startswith("-")  # right after the command's name
    return message + f"; {TEXT_IN_DASHES}" * (takes_text and not has_text)


def _options(command: Any) -> list[str]:
    names = [name for p in command.params for name in p.opts]
    return [name for name in names if name.startswith("--")]


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """A guess at what was meant, or nothing.

    >>> did_you_mean("gen", ["generate", "tokenize"])
    '; did you mean generate?'
    >>> did_you_mean("write", ["generate", "tokenize"])
    ''
    """
    from difflib import get_close_matches

    names = list(names)
    long_enough = len(re.sub(r"\W", "", word)) > 1
    near = [name for name in names if long_enough and name.startswith(word)]
    near = near or get_close_matches(word, names, n=1, cutoff=0.7)
    return f"; did you mean {near[0]}?" if near else ""


def too_many(n: int, metavar: str) -> WrongUse:
    """The error of several arguments where one is taken, the one called `metavar`.

    >>> print(too_many(2, "TEXT|-"))
    one text is expected, but there are two: put quotes around it
    >>> print(too_many(2, "FILE|-"))
    one file is expected, but there are two
    """
    found = {2: "two", 3: "three", 4: "four"}.get(n, f"{n}")
    if not metavar.endswith("|-"):
        return WrongUse(f"one model is expected, but there are {found}")
    if metavar.startswith("FILE"):
        return WrongUse(f"one file is expected, but there are {found}")
    return WrongUse(
        f"one text is expected, but there are {found}: put quotes around it"
    )
