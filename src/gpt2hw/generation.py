"""Text from a prompt: forward, sample the last row, append, and again.

`sampled_ids` is that loop, and it never ends by itself. Around it stand the limits
(the number of new tokens, the context, end-of-text, stop strings) and the way back
from ids to text, which shows whole characters alone.

Source: Radford et al. 2019, section 2; openai/gpt-2, `src/sample.py` (the loop).
"""

import math
from collections.abc import Generator, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from typing import Any, Protocol, overload, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from gpt2hw.batch_generation import write_together
from gpt2hw.config import GPT2Config
from gpt2hw.continuing import Choose, Row, Settings, all_asked, asked, checked_id
from gpt2hw.doors import checked, no_type_check
from gpt2hw.pretrained import GPT2
from gpt2hw.request import FinishReason, Overflow, is_several
from gpt2hw.sampling import Sampler
from gpt2hw.tokenizer import Tokenizer


@runtime_checkable
class LanguageModel(Protocol):
    """What the loop needs of a model. GPT2 has it, and so may a model of your own.

    >>> class AfterEachComesTheNext:
    ...     config = GPT2Config(n_vocab=257)
    ...     def new_cache(self):
    ...         return []
    ...     def __call__(self, ids, cache=None):
    ...         if cache is not None:
    ...             cache.extend(ids)
    ...         return torch.eye(257).roll(1, 1)[torch.tensor(ids)]  # [n_seq, n_vocab]
    >>> generate(AfterEachComesTheNext(), Tokenizer([]), "a", max_new_tokens=5).text
    'bcdef'
    """

    @property
    def config(self) -> GPT2Config:
        """Its shape; n_vocab and n_ctx are read."""

    def new_cache(self) -> Any:
        """A cache, whose length is the number of ids that it has seen."""

    def __call__(
        self, ids: Sequence[int], cache: Any = None
    ) -> Float[Tensor, "n_seq n_vocab"]:
        """A row of logits for each id; with a cache, the ids follow those in it."""


@dataclass(frozen=True)
class Completion:
    """What was generated, and why it ended.

    `text` is the new text alone; `prompt` and `prompt_ids` are what it follows; `ids`
    are all ids that were sampled, with end-of-text and those of a stop string.
    `finish_reason`: "end_of_text" (the model ended the text), "stop" (a stop string
    was written), "length" (max_new_tokens is reached) or "context" (it is full); where
    more than one holds after the same id, the first of them in this order.

    >>> Completion(" time", "Once upon a", [7454, 2402, 257], [640], "length").text
    ' time'
    """

    text: str
    prompt: str
    prompt_ids: list[int]
    ids: list[int]
    finish_reason: FinishReason


def next_logits(
    model: LanguageModel, ids: Sequence[int], cache: Sized
) -> Float[Tensor, " n_vocab"]:
    """The row of logits for the id that comes after `ids`.

    The model is given what its cache has not seen yet. Once the ids are more than
    n_ctx, the last n_ctx are computed anew each time: when the window slides, every
    token's position changes, and what the cache holds is no longer right.

    >>> from gpt2hw import GPT2
    >>> model = GPT2.random(
    ...     GPT2Config(n_vocab=7, n_ctx=8, n_embd=4, n_head=2, n_layer=1))
    >>> cache = model.new_cache()
    >>> next_logits(model, [3, 1, 4], cache).shape, len(cache)
    (torch.Size([7]), 3)
    """
    n_ctx = model.config.n_ctx
    with torch.inference_mode():  # torch need not be ready to differentiate
        if len(ids) > n_ctx:
            return _last_row(model, ids[-n_ctx:])
        return _last_row(model, ids[len(cache) :], cache)


def _last_row(model: LanguageModel, ids: Sequence[int], cache: Any = None) -> Tensor:
    """[n_vocab]; a model that has a short way to its last row goes it."""
    if isinstance(model, GPT2):
        return model.last_logits(ids, cache)
    return model(ids, cache)[-1]  # [n_seq, n_vocab] -> [n_vocab]


def mask_unknown_ids(
    logits: Float[Tensor, " n_vocab"], n_known: int
) -> Float[Tensor, " n_vocab"]:
    """-inf from id n_known on: a model may have more rows than its tokenizer tokens.

    >>> mask_unknown_ids(torch.tensor([1.0, 2.0, 3.0]), 2)
    tensor([1., 2., -inf])
    """
    ids = torch.arange(len(logits), device=logits.device)
    return logits.masked_fill(ids >= n_known, -math.inf)


def sampled_ids(
    model: LanguageModel, ids: Sequence[int], choose: Choose, n_known: int
) -> Iterator[int]:
    """New ids without end, each chosen from the logits that all ids before it give.

    >>> from gpt2hw import GPT2
    >>> model = GPT2.random(
    ...     GPT2Config(n_vocab=7, n_ctx=8, n_embd=4, n_head=2, n_layer=1))
    >>> always_five = lambda logits: 5
    >>> from itertools import islice
    >>> list(islice(sampled_ids(model, [3, 1, 4], always_five, n_known=7), 4))
    [5, 5, 5, 5]
    """
    ids = list(ids)
    cache = model.new_cache()
    while True:
        logits = next_logits(model, ids, cache)
        new_id = checked_id(choose(mask_unknown_ids(logits, n_known)))
        ids.append(new_id)
        yield new_id


@no_type_check
def stream(
    model: LanguageModel,
    tokenizer: Tokenizer,
    prompt: str | list[int],
    *,
    max_new_tokens: int = 50,
    sampler: Sampler | Choose | None = None,
    stop: str | Iterable[str] = (),
    overflow: Overflow = "error",
) -> Generator[str, None, Completion]:
    """Yields the new text piece by piece, then returns the Completion.

    Pieces are whole characters, never empty, and their join is the Completion's text.
    The arguments are those of `generate` and are checked at the call, before the first
    piece is asked for: it raises what `generate` raises. The Completion is the value
    of `yield from stream(...)`, or of the StopIteration that ends the pieces.

    >>> from gpt2hw import GPT2
    >>> model = GPT2.random(
    ...     GPT2Config(n_vocab=257, n_ctx=8, n_embd=4, n_head=2, n_layer=1))
    >>> bytes_of_a_snowman = iter([158, 246, 225])
    >>> choose = lambda logits: next(bytes_of_a_snowman)
    >>> list(stream(model, Tokenizer([]), "It is ", max_new_tokens=3, sampler=choose))
    ['☃']
    """
    _check_model(model, tokenizer)
    settings = Settings(max_new_tokens, sampler, stop, overflow)
    return _written(model, tokenizer, asked(model.config, tokenizer, prompt, settings))


@overload
def generate(
    model: LanguageModel,
    tokenizer: Tokenizer,
    prompt: str | list[int],
    *,
    max_new_tokens: int = 50,
    sampler: Sampler | Choose | None = None,
    stop: str | Iterable[str] = (),
    overflow: Overflow = "error",
) -> Completion:
    """Of one prompt, one completion."""


@overload
def generate(
    model: LanguageModel,
    tokenizer: Tokenizer,
    prompt: list[str] | list[list[int]],
    *,
    max_new_tokens: int = 50,
    sampler: Sampler | Choose | None = None,
    stop: str | Iterable[str] = (),
    overflow: Overflow = "error",
) -> list[Completion]:
    """Of several, a list, in their order."""


@no_type_check
def generate(
    model: LanguageModel,
    tokenizer: Tokenizer,
    prompt: str | list[int] | list[str] | list[list[int]],
    *,
    max_new_tokens: int = 50,
    sampler: Sampler | Choose | None = None,
    stop: str | Iterable[str] = (),
    overflow: Overflow = "error",
) -> Completion | list[Completion]:
    """Continues a prompt by at most `max_new_tokens` ids, or several prompts at once.

    prompt: a text, or ids; an empty one stands for end-of-text, after which documents
    begin. A list of texts, or of lists of ids that are not empty, gives a list of
    completions: each is that of its prompt alone, but for rounding (coarser in float16
    and int8, where it may change a text), and is written with a copy of the sampler as
    it was passed: equal prompts give equal texts. sampler: None is greedy; it may also
    be any function from a row of logits to an id. stop: one string or more; the text is
    cut before the first that appears in it (in the prompt they are not looked for).
    overflow: what to do where the context is too short: "error", "stop" (then the
    finish_reason is "context"), or "slide" (forget the oldest ids and recompute, which
    is slow).

    A prompt of n_ctx ids allows one new id, since the last id is never read. A
    character that is unfinished at the end is one U+FFFD. Of several stop strings in
    the text after an id, the one that begins first cuts; so which one does can depend
    on where the tokens end.

    Raises ContextError, before anything is computed, for more than n_ctx positions;
    ValueError, naming the argument, for one that is out of range; TokenizerError for a
    text that cannot be encoded.

    >>> from gpt2hw import GPT2
    >>> model = GPT2.random(
    ...     GPT2Config(n_vocab=257, n_ctx=8, n_embd=4, n_head=2, n_layer=1))
    >>> choose = lambda logits: 76
    >>> done = generate(model, Tokenizer([]), "Hm", max_new_tokens=3, sampler=choose)
    >>> done.text, done.ids, done.finish_reason
    ('mmm', [76, 76, 76], 'length')
    """
    _check_model(model, tokenizer)
    settings = Settings(max_new_tokens, sampler, stop, overflow)
    if not is_several(prompt):
        row = asked(model.config, tokenizer, prompt, settings)
        return _exhausted(_written(model, tokenizer, row))
    rows = all_asked(model.config, tokenizer, prompt, settings)
    if not isinstance(model, GPT2):
        return [_exhausted(_written(model, tokenizer, row)) for row in rows]
    prompts = [list(row.ids) for row in rows]
    write_together(model, [_of_known(row, tokenizer) for row in rows])
    return [_completion(row, ids) for row, ids in zip(rows, prompts, strict=True)]


@no_type_check
def _check_model(model: LanguageModel, tokenizer: Tokenizer) -> None:
    checked("model", model, LanguageModel, callable, "a GPT2, or what works as one")
    checked("tokenizer", tokenizer, Tokenizer, lambda _: True, "a Tokenizer")


@no_type_check
def _written(
    model: LanguageModel, tokenizer: Tokenizer, row: Row
) -> Generator[str, None, Completion]:
    """Turns ids into text as they come, until the text is done."""
    new_ids = sampled_ids(model, row.ids, row.choose, tokenizer.n_vocab)
    while not row.writing.is_done:
        if piece := row.writing.push(next(new_ids)):
            yield piece
    if piece := row.writing.finish():
        yield piece
    return _completion(row, row.ids)


def _completion(row: Row, prompt_ids: list[int]) -> Completion:
    done = row.writing
    return Completion(done.text, row.prompt, prompt_ids, done.ids, done.finish_reason)


def _exhausted(pieces: Generator[str, None, Completion]) -> Completion:
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            done: Completion = end.value
            return done


def _of_known(row: Row, tokenizer: Tokenizer) -> Row:
    """The row, which now chooses among the tokenizer's ids alone."""
    choose, n_known = row.choose, tokenizer.n_vocab
    row.choose = lambda logits: choose(mask_unknown_ids(logits, n_known))
    return row
