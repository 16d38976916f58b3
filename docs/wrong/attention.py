"""Steps 4a and 4b: mistakes in attention."""

from math import inf, sqrt

import torch
from torch import Tensor

from gpt2hw.attention import attention_scores, causal_mask, softmax


def softmax_without_maximum(x: Tensor) -> Tensor:
    """Right on paper; exp(89) is infinity in float32, and infinity over itself NaN."""
    exponentials = torch.exp(x)
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


def softmax_over_queries(x: Tensor) -> Tensor:
    """Sums over the axis of the queries: columns sum to 1, rows do not."""
    exponentials = torch.exp(x - x.max(dim=-2, keepdim=True).values)
    return exponentials / exponentials.sum(dim=-2, keepdim=True)


def softmax_over_everything(x: Tensor) -> Tensor:
    """One sum for the whole table: its rows together sum to 1."""
    exponentials = torch.exp(x - x.max())
    return exponentials / exponentials.sum()


def scores_over_root_of_n_embd(q: Tensor, k: Tensor, n_head: int = 12) -> Tensor:
    """Divides by sqrt(n_embd), the width of all heads together: weights too flat."""
    return q @ k.transpose(-1, -2) / sqrt(n_head * q.shape[-1])


def scores_without_scale(q: Tensor, k: Tensor) -> Tensor:
    """Leaves the root out: weights too sharp."""
    return q @ k.transpose(-1, -2)


def scores_over_d_head(q: Tensor, k: Tensor) -> Tensor:
    """Divides by d_head, not by its root."""
    return q @ k.transpose(-1, -2) / q.shape[-1]


def mask_from_the_upper_left(
    n_seq: int, n_kv: int, device: torch.device | None = None
) -> Tensor:
    """Counts the diagonal from the wrong corner: right only while there is no past."""
    return torch.ones(n_seq, n_kv, dtype=torch.bool, device=device).tril()


def mask_without_oneself(
    n_seq: int, n_kv: int, device: torch.device | None = None
) -> Tensor:
    """Strict: a token may not look at itself, and the first has nowhere to look."""
    return torch.ones(n_seq, n_kv, dtype=torch.bool, device=device).tril(
        n_kv - n_seq - 1
    )


def weights_with_a_finite_mask(scores: Tensor) -> Tensor:
    """-10,000 for "never": where the allowed scores are as low, the future leaks in."""
    allowed = causal_mask(*scores.shape[-2:])
    return softmax(scores.masked_fill(~allowed, -10_000.0))


def weights_masked_after_softmax(scores: Tensor) -> Tensor:
    """Zeroes the future after the sum has been taken: rows sum to less than 1."""
    return softmax(scores) * causal_mask(*scores.shape[-2:])


def weights_without_a_mask(scores: Tensor) -> Tensor:
    """Everyone sees everyone: right for reading, wrong for writing."""
    return softmax(scores)


def heads_by_one_view(x: Tensor, n_head: int) -> Tensor:
    """One view to the last shape, no transpose: it cuts tokens up, not heads."""
    *batch, n_seq, n_embd = x.shape
    return x.reshape(*batch, n_head, n_seq, n_embd // n_head)


def heads_interleaved(x: Tensor, n_head: int) -> Tensor:
    """Takes every n_head-th column: the columns of a head lie side by side."""
    *batch, n_seq, n_embd = x.shape
    return x.view(*batch, n_seq, n_embd // n_head, n_head).movedim(-1, -3)


def merge_without_transpose(x: Tensor) -> Tensor:
    """Flattens the heads as they lie: heads take the place of tokens."""
    *batch, n_head, n_seq, d_head = x.shape
    return x.reshape(*batch, n_seq, n_head * d_head)


def attend_with_sums(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Exponentials without their sum: a weighted sum, not an average."""
    scores = attention_scores(q, k)
    allowed = causal_mask(*scores.shape[-2:])
    return torch.exp(scores.masked_fill(~allowed, -inf)) @ v


def project_keys_first(attn, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Takes the thirds in the order K, Q, V."""
    q, k, v = attn.project(x)
    return k, q, v
