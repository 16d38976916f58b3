"""One text that is to go on: what was asked for, checked, and what it will write."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from operator import index
from typing import Any

from jaxtyping import Float
from torch import Tensor

from gpt2hw.config import GPT2Config
from gpt2hw.doors import checked, no_type_check
from gpt2hw.errors import ContextError
from gpt2hw.request import checked_limit, checked_prompt, checked_stops
from gpt2hw.sampling import Sampler
from gpt2hw.tokenizer import Tokenizer
from gpt2hw.writing import Writing

Choose = Callable[[Float[Tensor, " n_vocab"]], int]


@dataclass(frozen=True)
class Settings:
    """How to go on: the arguments of `generate` beside the prompt, not checked yet."""

    max_new_tokens: Any
    sampler: Any
    stop: Any
    overflow: Any


@dataclass(eq=False)
class Row:
    """A text: its prompt, all its ids, how it chooses the next, what it writes."""

    prompt: str
    ids: list[int]
    choose: Choose
    writing: Writing

    def go_on(self, logits: Float[Tensor, " n_vocab"]) -> None:
        """Chooses the next id and writes it down."""
        new_id = checked_id(self.choose(logits))
        self.ids.append(new_id)
        self.writing.push(new_id)


@no_type_check
def checked_id(chosen: Any) -> int:
    """What a sampler chose, as an int; ValueError where it is none.

    >>> checked_id(0.5)
    Traceback (most recent call last):
    ValueError: sampler: must give an id, not 0.5
    """
    try:
        return index(chosen)
    except TypeError:
        raise ValueError(f"sampler: must give an id, not {chosen!r:.80}") from None


@no_type_check
def asked(
    config: GPT2Config,
    tokenizer: Tokenizer,
    prompt: Any,
    settings: Settings,
) -> Row:
    """The text that a prompt begins; raises what `generate` raises.

    >>> settings = Settings(3, None, (), "error")
    >>> asked(GPT2Config(n_vocab=257), Tokenizer([]), "Hm", settings).ids
    [39, 76]
    """
    text, ids = checked_prompt(prompt, tokenizer, config.n_vocab)
    n_new, at_limit = checked_limit(
        len(ids), settings.max_new_tokens, config.n_ctx, settings.overflow
    )
    stops = checked_stops(settings.stop)
    choose = Sampler.greedy() if settings.sampler is None else settings.sampler
    checked("sampler", choose, object, _chooses, "a Sampler or None")
    return Row(text, ids, choose, Writing(tokenizer, n_new, at_limit, stops))


@no_type_check
def all_asked(
    config: GPT2Config,
    tokenizer: Tokenizer,
    prompts: Any,
    settings: Settings,
) -> list[Row]:
    """The texts of several prompts, each with its own copy of the sampler.

    A ContextError says which of them is too long.
    """
    settings = replace(settings, stop=checked_stops(settings.stop))  # read once
    rows = []
    for number, prompt in enumerate(prompts):
        own = replace(settings, sampler=_copied(settings.sampler))
        try:
            rows.append(asked(config, tokenizer, prompt, own))
        except ContextError as error:
            raise ContextError(f"prompt {number} of the list: {error}") from None
    return rows


def _copied(sampler: Any) -> Any:
    try:
        return deepcopy(sampler)
    except Exception as error:
        raise ValueError(
            f"sampler: each text takes a copy, and this has none: {error}"
        ) from error


def _chooses(sampler: Any) -> bool:
    return callable(sampler) and not isinstance(sampler, type)  # Sampler for Sampler()
