"""The command line's door: runs one command and turns what happens into an exit status.

0 is success, and also a reader that has seen enough (`| head -1`); 1 is an error of
ours, told in one line; 2 a wrong use of the command line; 130 an interruption (Ctrl-C).
Arguments that a room refuses are plain ValueErrors, so any ValueError is taken for one
of ours; so are what the system refuses, a module that is missing, and too little
memory. Any other exception is a fault in here, and keeps its traceback.

Little is imported before `main` watches for Ctrl-C, and nothing heavy.
"""

import signal
import sys
from collections.abc import Sequence
from contextlib import suppress

from gpt2hw.cli import console, usage
from gpt2hw.cli.text import in_a_line
from gpt2hw.errors import GPT2HWError

INTERRUPTED = 130  # 128 + SIGINT, as shells count


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command in `argv` (sys.argv[1:] if None) and returns its exit status.

    >>> main(["tokenize", "--ids", "Hello world"])
    15496 995
    0
    """
    try:
        console.prepare(process_is_ours=argv is None)
        status = _run(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
    except KeyboardInterrupt:
        status = _interrupted(ends=argv is None)
    except Exception as error:
        status = _failed(error)
    if argv is None:
        _ignore_interrupts()
    return status


def _run(argv: Sequence[str]) -> int:
    arguments = list(argv)
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    with console.importing():
        import typer

        from gpt2hw.cli.app import app
    command = typer.main.get_command(app)
    # Not `app()`: that would print errors and end the process in its own ways.
    try:
        with (
            console.warnings_in_one_line(),
            command.make_context("gpt2hw", arguments) as context,
        ):
            command.invoke(context)
    except typer.Exit as done:
        return done.exit_code
    except Exception as error:
        told = usage.told(error, command, arguments)
        if told is None:
            raise
        console.flush_or_discard_output()
        console.say(f"gpt2hw: error: {told}")
        return 2
    return 0


def _interrupted(ends: bool) -> int:
    """Ctrl-C; `ends` says whether the process ends here."""
    if ends:
        _ignore_interrupts()
        console.discard_output()  # a flush might wait for a reader who is stuck
    if sys.stderr.isatty():
        console.say("")  # the cursor stands after "^C"
    return INTERRUPTED


def _ignore_interrupts() -> None:
    """What is left of the process is its end, which a late Ctrl-C must not litter."""
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _failed(error: Exception) -> int:
    """Tells of an error in one line and returns its status; a fault is raised again."""
    lost = console.flush_or_discard_output()
    if console.is_closed_pipe(error):
        return 0
    message = _message(error, lost)
    if message is None:
        raise error
    console.say(f"gpt2hw: error: {message}")
    return 1


def _message(error: Exception, lost: OSError | None = None) -> str | None:
    """What to tell of an error that can be expected; None of a fault in here.

    `lost` is the error of writing out what was left of standard output.
    """
    if isinstance(error, GPT2HWError | ValueError | ImportError):
        return str(error)
    if isinstance(error, OSError):
        file = error.filename2 or error.filename  # the second is where to, of a move
        if not file and (lost is not None or console.cannot_write(error)):
            file = "standard output"  # what else is written has a name
        file = in_a_line(str(file)) if file else None
        return f"{file}: {error.strerror}" if file else error.strerror or str(error)
    if isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and _is_of_memory(str(error))
    ):
        return "not enough memory: a smaller model or a shorter text takes less"
    return None


def _is_of_memory(message: str) -> bool:
    """Whether a RuntimeError's message is torch's, or its oneDNN's, of no memory."""
    signs = ("out of memory", "not enough memory", "allocate memory")
    whole = ("could not create a primitive", "could not execute a primitive")
    return message in whole or any(sign in message for sign in signs)
