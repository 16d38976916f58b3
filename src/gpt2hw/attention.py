"""Attention: every token looks at the tokens before it and takes what it needs.

Source: Vaswani et al. 2017, section 3.2 (scaled dot-product attention, heads); the
order of c_attn's columns and of the heads is that of openai/gpt-2, `src/model.py`.
GPT-2 departs from the paper: one matrix projects to queries, keys and values, its
maps have biases, and it only ever looks back (a decoder without an encoder).
"""

from dataclasses import dataclass
from math import inf, sqrt

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from gpt2hw.linear import Linear


def softmax(x: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
    """Each row of numbers as probabilities: none negative, in the same order, of sum 1.

    The row's maximum is subtracted first. It changes nothing in exact arithmetic,
    since softmax(x + c) = softmax(x), and keeps exp from overflowing.

    >>> softmax(torch.tensor([0.0, 0.0, -inf]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    exponentials = torch.exp(x - x.amax(dim=-1, keepdim=True))
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


def attention_scores(
    q: Float[Tensor, "*batch n_seq d_head"], k: Float[Tensor, "*batch n_kv d_head"]
) -> Float[Tensor, "*batch n_seq n_kv"]:
    """How well each query matches each key: their dot product over sqrt(d_head).

    A sum of d_head products of unit variance has variance d_head; the root brings it
    back to 1, where softmax is neither flat nor a single spike.

    >>> attention_scores(torch.tensor([[2.0, 0.0, 0.0, 0.0]]), torch.eye(4))
    tensor([[1., 0., 0., 0.]])
    """
    d_head = q.shape[-1]
    return q @ k.transpose(-1, -2) / sqrt(d_head)  # [n_seq, d_head] @ [d_head, n_kv]


def causal_mask(
    n_seq: int, n_kv: int, device: torch.device | None = None
) -> Bool[Tensor, "n_seq n_kv"]:
    """True where a query may look: at itself and at what came before.

    The last query is the last key, so the diagonal is counted from the lower right
    corner: with n_past = n_kv - n_seq keys before them, query i sees n_past + i + 1.

    >>> causal_mask(2, 5).int()
    tensor([[1, 1, 1, 1, 0],
            [1, 1, 1, 1, 1]], dtype=torch.int32)
    """
    everything = torch.ones(n_seq, n_kv, dtype=torch.bool, device=device)
    return everything.tril(diagonal=n_kv - n_seq)


def attention_weights(
    scores: Float[Tensor, "*batch n_seq n_kv"],
) -> Float[Tensor, "*batch n_seq n_kv"]:
    """Scores to weights: the future is struck out, each row becomes probabilities.

    Minus infinity is exp's exact zero. A large negative number is not: -10,000 leaks
    where all scores are as low, and -1e9 does not fit into float16.

    >>> attention_weights(torch.zeros(2, 2))
    tensor([[1.0000, 0.0000],
            [0.5000, 0.5000]])
    """
    n_seq, n_kv = scores.shape[-2:]
    allowed = causal_mask(n_seq, n_kv, scores.device)
    return softmax(scores.masked_fill(~allowed, -inf))


def attend(
    q: Float[Tensor, "*batch n_seq d_head"],
    k: Float[Tensor, "*batch n_kv d_head"],
    v: Float[Tensor, "*batch n_kv d_head"],
) -> Float[Tensor, "*batch n_seq d_head"]:
    """For each query, the average of the values, weighted by how well the keys match.

    >>> one = torch.ones(2, 1)
    >>> attend(one, one, torch.tensor([[2.0], [4.0]]))
    tensor([[2.],
            [3.]])
    """
    weights = attention_weights(attention_scores(q, k))
    return weights @ v  # [n_seq, n_kv] @ [n_kv, d_head] -> [n_seq, d_head]


def split_heads(
    x: Float[Tensor, "*batch n_seq n_embd"], n_head: int
) -> Float[Tensor, "*batch n_head n_seq d_head"]:
    """Cuts each row into n_head pieces and puts the heads in front.

    Two moves: the view cuts a row's columns, which lie head after head; the transpose
    then swaps axes. One view straight to the last shape would mix tokens with heads.

    >>> split_heads(torch.arange(4.0).view(1, 4), n_head=2)
    tensor([[[0., 1.]],
    <BLANKLINE>
            [[2., 3.]]])
    """
    *batch, n_seq, n_embd = x.shape
    cut = x.view(*batch, n_seq, n_head, n_embd // n_head)
    return cut.transpose(-3, -2)  # [n_seq, n_head, d_head] -> [n_head, n_seq, d_head]


def merge_heads(
    x: Float[Tensor, "*batch n_head n_seq d_head"],
) -> Float[Tensor, "*batch n_seq n_embd"]:
    """Puts the heads' columns side by side again: the inverse of split_heads.

    >>> merge_heads(torch.arange(4.0).view(2, 1, 2))
    tensor([[0., 1., 2., 3.]])
    """
    return x.transpose(-3, -2).flatten(start_dim=-2)


@dataclass(frozen=True, eq=False)
class CausalSelfAttention:
    """All heads of one block, from the residual stream back to the residual stream.

    c_attn is [n_embd, 3 n_embd] (768 to 2304 in GPT-2 124M): its columns are three
    thirds, for queries, keys and values. c_proj, [n_embd, n_embd], mixes the heads.

    >>> same = Linear(weight=torch.eye(2), bias=torch.zeros(2))
    >>> three_times = Linear(weight=torch.eye(2).repeat(1, 3), bias=torch.zeros(6))
    >>> CausalSelfAttention(c_attn=three_times, c_proj=same, n_head=1)(torch.eye(2))
    tensor([[1.0000, 0.0000],
            [0.3302, 0.6698]])
    """

    c_attn: Linear
    c_proj: Linear
    n_head: int

    def project(
        self, x: Float[Tensor, "*batch n_seq n_embd"]
    ) -> tuple[
        Float[Tensor, "*batch n_head n_seq d_head"],
        Float[Tensor, "*batch n_head n_seq d_head"],
        Float[Tensor, "*batch n_head n_seq d_head"],
    ]:
        """Queries, keys, values of every head, each [*batch, n_head, n_seq, d_head]."""
        q, k, v = self.c_attn(x).chunk(3, dim=-1)  # [n_seq, 3 n_embd], three thirds
        n_head = self.n_head
        return split_heads(q, n_head), split_heads(k, n_head), split_heads(v, n_head)

    def __call__(
        self, x: Float[Tensor, "*batch n_seq n_embd"]
    ) -> Float[Tensor, "*batch n_seq n_embd"]:
        """[*batch, n_seq, n_embd] -> the same shape, each row with those before."""
        q, k, v = self.project(x)
        return self.c_proj(merge_heads(attend(q, k, v)))
