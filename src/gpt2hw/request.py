"""What `generate` is asked for, checked before anything is computed."""

import sys
from collections.abc import Iterable
from numbers import Integral
from typing import Any, Literal, get_args

from gpt2hw.doors import checked
from gpt2hw.errors import ContextError
from gpt2hw.splitting import join_surrogates
from gpt2hw.tokenizer import Tokenizer

FinishReason = Literal["length", "stop", "end_of_text", "context"]
Overflow = Literal["error", "stop", "slide"]


def checked_prompt(
    prompt: Any, tokenizer: Tokenizer, n_vocab: int
) -> tuple[str, list[int]]:
    """A prompt of either kind as text and as ids, of which there is at least one.

    An empty prompt stands for end-of-text, which is not in its text. Raises ValueError
    for an id that a model of n_vocab tokens does not know, TokenizerError for a text or
    an id that the tokenizer does not know.

    >>> checked_prompt("", Tokenizer([]), 257)
    ('', [256])
    """
    checked("prompt", prompt, (str, list), lambda _: True, "a str or a list of ids")
    given = tokenizer.encode(prompt) if isinstance(prompt, str) else prompt
    if isinstance(prompt, str) and (unknown := [i for i in given if i >= n_vocab]):
        raise ValueError(
            f"prompt: the tokenizer gives it the id {unknown[0]}, but the model knows "
            f"0 to {n_vocab - 1}: tokenizer and model do not belong together"
        )
    if not given and tokenizer.eot_id is None:
        raise ValueError("prompt: is empty, and the tokenizer has no end-of-text token")
    rule = f"ids of the model's vocabulary, 0 to {n_vocab - 1}"
    ids = [
        int(checked("prompt", token_id, Integral, lambda i: 0 <= i < n_vocab, rule))
        for token_id in given or [tokenizer.eot_id]
    ]
    if isinstance(prompt, str):
        return prompt, ids
    return tokenizer.decode(ids) if prompt else "", ids


def is_several(prompt: Any) -> bool:
    """Whether it is a list of prompts; one prompt may be a text, or a list of ids.

    Raises ValueError where it is a list of both, or holds an empty list of ids: an
    empty list is one empty prompt.

    >>> is_several(["a", ""]), is_several([[72], [73]]), is_several([72, 73])
    (True, True, False)
    """
    kinds = {type(one) for one in prompt} if isinstance(prompt, list) else set()
    if not any(issubclass(kind, (str, list)) for kind in kinds):
        return False
    are_texts = all(issubclass(kind, str) for kind in kinds)
    if not are_texts and not all(isinstance(one, list) and one for one in prompt):
        raise ValueError(
            "prompt: several are a list of str, or of lists of ids, none empty"
        )
    return True


def checked_stops(stop: str | Iterable[str]) -> tuple[str, ...]:
    """The stop strings; one alone is one, not a string of one-character stops.

    >>> checked_stops("END"), checked_stops(["a", "b"])
    (('END',), ('a', 'b'))
    """
    is_many = isinstance(stop, Iterable) and not isinstance(stop, str)
    stops: tuple[Any, ...] = tuple(stop) if is_many else (stop,)
    rule = "a string or several, none of them empty"
    strings = [checked("stop", string, str, bool, rule) for string in stops]
    return tuple(map(join_surrogates, strings))


def checked_limit(
    n_prompt: int, max_new_tokens: Any, n_ctx: int, overflow: Any
) -> tuple[int, FinishReason]:
    """How many new ids there may be, and the finish_reason if there are that many.

    The last new id is never read, so it needs no position: a prompt of n_ctx ids leaves
    room for one. Raises ContextError where the room is too small.

    >>> checked_limit(1000, 50, 1024, "stop")
    (25, 'context')
    """
    rule, ways = "an integer from 0 up", get_args(Overflow)
    checked("max_new_tokens", max_new_tokens, Integral, lambda n: n >= 0, rule)
    checked("overflow", overflow, str, lambda way: way in ways, f"one of {ways}")
    n_fit = n_ctx - n_prompt + 1
    too_long = n_prompt > n_ctx if overflow == "stop" else max_new_tokens > n_fit
    if too_long and overflow != "slide" and n_prompt > n_ctx:
        raise ContextError(
            f"the prompt alone has {n_prompt} ids, more than the model's {n_ctx} "
            "positions (n_ctx): shorten it, or let overflow be 'slide' (forget the "
            "oldest ids)"
        )
    if too_long and overflow != "slide":
        raise ContextError(
            f"{n_prompt} ids of prompt and {max_new_tokens} new ones are more than the "
            f"model's {n_ctx} positions (n_ctx) allow: shorten the prompt, lower "
            "max_new_tokens, or let overflow be 'stop' (end where the context is full) "
            "or 'slide' (forget the oldest ids)"
        )
    if overflow == "stop" and n_fit < max_new_tokens:
        return n_fit, "context"
    return min(int(max_new_tokens), sys.maxsize), "length"
