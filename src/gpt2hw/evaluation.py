"""How well a model predicts a text: perplexity per token and bits per byte.

Source of the windows: transformers, `docs/source/en/perplexity.md` (a strided window,
of which only the tokens that no earlier window scored are counted). That page gives
19.44 for gpt2-large on WikiText-2 (raw, test, its lines joined by two newlines) with
window and stride 1024, and 16.44 with stride 512; `evaluate` takes the same windows and
scores the same tokens. One detail differs. Each token counts once here; there, each
window counts by one token less than were new in it. That is right for a window without
context before its first new token, and one too few for the others. With stride equal to
window the two agree; else their mean losses differ by at most the spread of the
windows' losses times (window / stride + 1) / tokens: nothing that two decimals show on
a text of a hundred windows or more.

Radford et al. 2019 (table 3) report other numbers (29.41 for 124M, 19.93 for large):
their text went through "invertible de-tokenizers", which were not published with it.

Bits per byte can be compared between tokenizers; perplexity per token cannot.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import exp, inf, isnan, log

import torch
from jaxtyping import Float, Int
from torch import Tensor

from gpt2hw.pretrained import GPT2
from gpt2hw.tokenizer import Tokenizer


@dataclass(frozen=True)
class Evaluation:
    """What `evaluate` found.

    `perplexity` is e to the mean loss, in nats, of a scored token; `bits_per_byte` the
    sum of the losses, in bits, over the bytes of the whole text in UTF-8.
    """

    perplexity: float
    bits_per_byte: float
    n_tokens: int  # scored
    n_bytes: int


def token_losses(
    logits: Float[Tensor, "*batch n_vocab"], targets: Int[Tensor, "*batch"]
) -> Float[Tensor, "*batch"]:
    """The loss of each target in nats: minus the log of its probability.

    -log softmax(x)[t] = log sum exp(x) - x[t], with the maximum taken out of the
    exponentials as in softmax.

    >>> token_losses(torch.zeros(1, 4), torch.tensor([2]))  # log 4: one of four
    tensor([1.3863])
    """
    highest = logits.max(dim=-1, keepdim=True).values
    log_sum = torch.log(torch.exp(logits - highest).sum(dim=-1)) + highest.squeeze(-1)
    return log_sum - logits.gather(-1, targets[..., None]).squeeze(-1)


def strided_windows(
    n_tokens: int, window: int, stride: int
) -> Iterator[tuple[int, int, int]]:
    """(begin, first scored, end) of each window over a text of n_tokens.

    A window feeds tokens begin to end and scores those from `first scored` on. The
    first token of all has nothing before it and is not scored; nor, where stride
    equals window, is the first of any window.

    >>> list(strided_windows(10, window=4, stride=2))
    [(0, 1, 4), (2, 4, 6), (4, 6, 8), (6, 8, 10)]
    """
    scored = 0
    for begin in range(0, n_tokens, stride):
        end = min(begin + window, n_tokens)
        yield begin, max(scored, begin + 1), end
        scored = end
        if end == n_tokens:
            return


def evaluate(
    model: GPT2,
    tokenizer: Tokenizer,
    text: str,
    *,
    window: int | None = None,
    stride: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Evaluation:
    """Scores a text, verbatim, as one string.

    `window` (n_ctx tokens unless given) is how much the model sees at once, `stride`
    (half the window) how far it moves on; a token is scored with at least
    window - stride tokens before it, once the text has as many. After each window
    `progress` is called with how many tokens are done, and how many there are. Raises
    ValueError, naming the argument, for a text of fewer than two tokens, numbers out of
    range, or a model whose logits are NaN.

    >>> model = GPT2.from_pretrained("tiny")
    >>> found = evaluate(model, Tokenizer.from_pretrained("tiny"), "Once upon a time")
    >>> found.n_bytes, found.perplexity > 1
    (16, True)
    """
    window = _in_range("window", window, model.config.n_ctx, 2, model.config.n_ctx)
    stride = _in_range("stride", stride, window // 2, 1, window)
    ids = tokenizer.encode(text)
    if len(ids) < 2:
        raise ValueError(f"text: {len(ids)} token(s); at least two are needed")
    total, n_scored = 0.0, 0
    for begin, first, end in strided_windows(len(ids), window, stride):
        if first < end:  # a window of one token predicts nothing
            losses = _last_losses(model, ids[begin:end], end - first)
            total += float(losses.double().sum())
            n_scored += end - first
        if progress is not None:
            progress(end, len(ids))
    if isnan(total):
        raise ValueError("model: its logits are not numbers (NaN); look at its weights")
    n_bytes = len(tokenizer.decode_bytes(ids))
    mean = total / n_scored
    return Evaluation(
        perplexity=exp(mean) if mean < 700 else inf,  # e**710 is beyond a float
        bits_per_byte=total / log(2) / n_bytes,
        n_tokens=n_scored,
        n_bytes=n_bytes,
    )


def _last_losses(model: GPT2, ids: list[int], n: int) -> Float[Tensor, " n"]:
    """The loss of each of the last n ids, given those before it."""
    logits = model(ids)[-n - 1 : -1]
    return token_losses(logits, torch.tensor(ids[-n:], device=logits.device))


def _in_range(
    name: str, value: int | None, default: int, lowest: int, highest: int
) -> int:
    if value is None:
        return default
    if type(value) is not int or not lowest <= value <= highest:
        raise ValueError(f"{name} must be from {lowest} to {highest}, not {value!r}")
    return value
