"""What each attention head does: three scores by which a head can be named.

Source of the kinds: Elhage et al. 2021, "A Mathematical Framework for Transformer
Circuits" (previous-token and induction heads); Olsson et al. 2022, "In-context
Learning and Induction Heads", whose test on a random sequence said twice is used here;
Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks" (heads that
rest on the first token).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from gpt2hw.doors import checked
from gpt2hw.pretrained import GPT2
from gpt2hw.tracing import trace


@dataclass(frozen=True)
class HeadScore:
    """One head's mean attention weights, each from 0 to 1.

    `previous_token`: the token before; `first_token`: the first of the context;
    `induction`: in a repeated sequence, the token that followed last time.
    """

    layer: int
    head: int
    previous_token: float
    first_token: float
    induction: float


def head_scores(
    model: GPT2, ids: Sequence[int], *, n_repeat: int | None = None, seed: int = 0
) -> list[HeadScore]:
    """The scores of every head, layer by layer.

    The first two are means over the ids of a text, at least three, from the third on
    (the second token's previous token is the first); the third over the second half
    of `n_repeat` random ids (a quarter of n_ctx unless given) said twice. A head that
    looks at all tokens alike has scores near 1 / length. Raises ValueError where the
    ids are too few or too many.

    >>> from gpt2hw import Tokenizer
    >>> model = GPT2.from_pretrained("tiny")
    >>> ids = Tokenizer.from_pretrained("tiny").encode("Once upon a time, a king")
    >>> scores = head_scores(model, ids)
    >>> len(scores) == model.config.n_layer * model.config.n_head
    True
    """
    if len(ids) < 3:
        raise ValueError(f"ids: {len(ids)} are too few to score heads by; 3 are needed")
    n_repeat = max(2, model.config.n_ctx // 4) if n_repeat is None else n_repeat
    checked("n_repeat", n_repeat, int, lambda n: n >= 2, "an integer from 2 up")
    generator = torch.Generator().manual_seed(seed)
    once = torch.randint(
        model.config.n_vocab, (n_repeat,), device="cpu", generator=generator
    )
    on_text = trace(model, ids)
    on_repeat = trace(model, torch.cat([once, once]))
    scores = []
    for layer in range(model.config.n_layer):
        text = on_text[f"h.{layer}.attn.weights"]
        repeated = on_repeat[f"h.{layer}.attn.weights"]
        columns = zip(
            previous_token_score(text).tolist(),
            first_token_score(text).tolist(),
            induction_score(repeated).tolist(),
            strict=True,
        )
        scores += [HeadScore(layer, head, *row) for head, row in enumerate(columns)]
    return scores


def previous_token_score(
    weights: Float[Tensor, "n_head n_seq n_seq"],
) -> Float[Tensor, " n_head"]:
    """The mean weight on the token before, from the third token on.

    >>> previous_token_score(torch.eye(4).roll(-1, dims=1)[None])
    tensor([1.])
    """
    return weights.diagonal(offset=-1, dim1=-2, dim2=-1)[:, 1:].mean(dim=-1)


def first_token_score(
    weights: Float[Tensor, "n_head n_seq n_seq"],
) -> Float[Tensor, " n_head"]:
    """The mean weight on the first token, from the third token on."""
    return weights[:, 2:, 0].mean(dim=-1)


def induction_score(
    weights: Float[Tensor, "n_head n_seq n_seq"],
) -> Float[Tensor, " n_head"]:
    """The mean weight, in the second half of a sequence said twice, on what came next.

    A token at i was at i - n_repeat before; what followed it there is one to the right.
    """
    n_repeat = weights.shape[-1] // 2
    after_last_time = weights.diagonal(offset=1 - n_repeat, dim1=-2, dim2=-1)
    return after_last_time[:, 1:].mean(dim=-1)  # keys 1 to n_repeat, queries after them
