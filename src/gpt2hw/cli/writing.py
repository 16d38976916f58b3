"""What `gpt2hw generate` is made of: its settings, its output, its clock."""

import os
import re
from collections.abc import Callable, Generator
from time import perf_counter
from typing import TYPE_CHECKING, Any

from gpt2hw.cli import console
from gpt2hw.cli.options import too_long
from gpt2hw.cli.text import counted
from gpt2hw.cli.usage import WrongUse
from gpt2hw.errors import ContextError

if TYPE_CHECKING:
    from gpt2hw.config import GPT2Config
    from gpt2hw.generation import Completion
    from gpt2hw.pretrained import GPT2
    from gpt2hw.tokenizer import Tokenizer

TEMPERATURE, TOP_P = 0.8, 0.95  # between the dullness of greedy and the slips of 1.0


def sampler_settings(
    greedy: bool,
    temperature: float | None,
    top_k: int | None,
    top_p: float | None,
    seed: int | None,
) -> dict[str, Any]:
    """The arguments of Sampler; a seed that is not given is drawn, for --stats to tell.

    >>> sampler_settings(False, 0.5, None, None, 7)
    {'temperature': 0.5, 'top_k': None, 'top_p': 0.95, 'seed': 7}
    """
    if greedy:
        given = {"--temperature": temperature, "--top-k": top_k, "--top-p": top_p}
        for name, value in given.items():
            if value is not None:
                raise WrongUse(
                    f"--greedy always takes the likeliest token: {name} has no say"
                )
        temperature = 0.0
    return {
        "temperature": TEMPERATURE if temperature is None else temperature,
        "top_k": top_k,
        "top_p": TOP_P if top_p is None else top_p,
        "seed": int.from_bytes(os.urandom(4), "big") if seed is None else seed,
    }


def unescaped(text: str) -> str:
    r"""A stop string as it is meant: \n, \t and \\ are what they are in Python.

    >>> unescaped(r"\n\n")
    '\n\n'
    """
    text = console.decoded(text, "--stop")
    if not text:
        raise WrongUse("--stop must not be empty")
    meant = {"n": "\n", "t": "\t", "\\": "\\"}
    return re.sub(r"\\([nt\\])", lambda match: meant[match[1]], text)


def begin(
    model: "GPT2",
    tokenizer: "Tokenizer",
    prompt: str,
    max_new_tokens: int,
    **settings: Any,
) -> Generator[str, None, "Completion"]:
    """`gpt2hw.stream`; a ContextError speaks of options, not of arguments."""
    from gpt2hw.generation import stream
    from gpt2hw.request import checked_prompt

    try:
        return stream(
            model, tokenizer, prompt, max_new_tokens=max_new_tokens, **settings
        )
    except ContextError:
        _, ids = checked_prompt(prompt, tokenizer, model.config.n_vocab)
        raise too_long(len(ids), model.config.n_ctx, max_new_tokens) from None


def write(prompt: str, pieces: Generator[str, None, "Completion"]) -> "Completion":
    """Prints the prompt, then each piece as it comes; returns the Completion."""
    from gpt2hw.cli.screen import Output

    with Output() as output:
        output.write(prompt, style="bold")
        while True:
            try:
                output.write(next(pieces))
            except StopIteration as end:
                done: Completion = end.value
                return done


class Clock:
    """A sampler that notes when it chose each token, in seconds from the start."""

    def __init__(self, sampler: Callable[[Any], int]) -> None:
        self._sampler = sampler
        self._start = perf_counter()
        self.times: list[float] = []

    def start(self) -> None:
        """Sets the clock to zero."""
        self._start = perf_counter()

    def __call__(self, logits_row: Any) -> int:
        """The sampler's choice."""
        chosen = self._sampler(logits_row)
        self.times.append(perf_counter() - self._start)
        return chosen


def threads_told(given: int | None, config: "GPT2Config") -> tuple[int, str]:
    """How many threads computed, and why so many."""
    from torch import get_num_threads

    from gpt2hw.cli.options import usual_threads

    if given is not None:
        return get_num_threads(), ""
    is_small = usual_threads(config) is not None
    why = "for a small model" if is_small else "by torch's choice"
    return get_num_threads(), f"{why}; --threads N sets it"


def stats_lines(
    done: "Completion",
    times: list[float],
    seed: int | None,
    threads: tuple[int, str] | None = None,
) -> list[str]:
    """What --stats tells, line by line; `times` are those of a Clock.

    The speed is that of the tokens after the first, which waits for the whole prompt.
    """
    ended = f"{_tokens(done.ids)}, ended by {_REASON[done.finish_reason]}"
    rows = [
        ("prompt", f"{len(done.prompt_ids)}", _tokens(done.prompt_ids)),
        ("written", f"{len(done.ids)}", ended),
    ]
    if times:
        rows.append(("first token", f"{times[0]:.3f}", "s"))
    if len(times) > 1:
        speed = (len(times) - 1) / (times[-1] - times[0])
        rows.append(("then", f"{speed:.1f}", "tokens per second"))
    if threads is not None:
        rows.append(("threads", f"{threads[0]}", threads[1]))
    if seed is not None:
        rows.append(("seed", f"{seed}", ""))
    width = max(len(number) for _, number, _ in rows)
    return [
        f"{what:11}  {number:>{width}} {unit}".rstrip() for what, number, unit in rows
    ]


def _tokens(ids: list[int]) -> str:
    return counted(len(ids), "token").split()[1]


_REASON = {
    "length": "--max-new-tokens",
    "stop": "--stop",
    "end_of_text": "the model's end of text",
    "context": "the end of the context",
}
