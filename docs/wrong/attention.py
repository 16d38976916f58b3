"""Steps 4a and 4b: mistakes in attention."""

from math import inf, sqrt

import torch
from torch import Tensor

from gpt2hw import attention
from gpt2hw.attention import (
    CausalSelfAttention,
    attention_scores,
    causal_mask,
    softmax,
)
from gpt2hw.linear import Linear
from gpt2hw.properties import attention as rules
from gpt2hw.properties import linear as linear_rules
from gpt2hw.properties.seeded import normal
from gpt2hw.properties.tracing import loud_model
from wrong.entry import Entry, Piece, entry


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


def project_keys_first(attn: CausalSelfAttention, x: Tensor) -> tuple[Tensor, ...]:
    """Takes the thirds in the order K, Q, V."""
    k, q, v = attn.c_attn(x).chunk(3, dim=-1)
    return tuple(attention.split_heads(third, attn.n_head) for third in (q, k, v))


def project_head_by_head(attn: CausalSelfAttention, x: Tensor) -> tuple[Tensor, ...]:
    """GPT-NeoX's order: the first head's query, key and value, then the next head's."""
    heads = attention.split_heads(attn.c_attn(x), attn.n_head)  # 3 d_head wide
    return heads.chunk(3, dim=-1)


def linear_transposed(linear: Linear, x: Tensor) -> Tensor:
    """torch.nn.Linear's way round, x @ W.T: it fits only where W is square."""
    return x @ linear.weight.T + linear.bias


# What catches them

TABLE = normal(4, 4, seed=1, deviation=3)
STREAM = normal(6, 12, seed=2, deviation=2)
QKV = [normal(5, 4, seed=seed) for seed in (3, 4, 5)]


def _thirds(project: Piece) -> None:
    kind = type("Attention", (attention.CausalSelfAttention,), {"project": project})
    parts = loud_model(n_layer=1).h[0].attn
    rules.projections_are_contiguous_thirds(
        kind(parts.c_attn, parts.c_proj, parts.n_head), STREAM
    )


def _heads_come_back(merge: Piece) -> None:
    rules.merging_undoes_splitting(attention.split_heads, merge, STREAM, 3)


def _low_scores_stay_causal(weights: Piece) -> None:
    rules.no_weight_on_the_future(weights, TABLE - 20_000)


STEP_4A = [
    entry(
        softmax_without_maximum,
        attention.softmax,
        rules.survives_huge_numbers,
    ),
    *(
        entry(wrong, attention.softmax, rules.rows_sum_to_one, TABLE)
        for wrong in (
            softmax_over_queries,
            softmax_over_everything,
        )
    ),
    *(
        entry(
            wrong,
            attention.attention_scores,
            rules.scores_are_over_the_root_of_d_head,
            64,
        )
        for wrong in (
            scores_over_root_of_n_embd,
            scores_without_scale,
            scores_over_d_head,
        )
    ),
    entry(
        attend_with_sums,
        attention.attend,
        rules.outputs_lie_between_the_values,
        *QKV,
    ),
]


STEP_4B = [
    entry(
        mask_from_the_upper_left,
        attention.causal_mask,
        rules.mask_ends_in_the_lower_right_corner,
        2,
        5,
    ),
    entry(
        mask_without_oneself,
        attention.causal_mask,
        rules.mask_ends_in_the_lower_right_corner,
        3,
        3,
    ),
    Entry(
        weights_with_a_finite_mask,
        attention.attention_weights,
        rules.no_weight_on_the_future,
        _low_scores_stay_causal,
    ),
    *(
        entry(
            wrong,
            attention.attention_weights,
            rules.no_weight_on_the_future,
            TABLE,
        )
        for wrong in (
            weights_masked_after_softmax,
            weights_without_a_mask,
        )
    ),
    *(
        entry(
            wrong,
            attention.split_heads,
            rules.split_heads_keeps_tokens_whole,
            torch.arange(8.0).view(2, 4),
            2,
        )
        for wrong in (heads_by_one_view, heads_interleaved)
    ),
    Entry(
        merge_without_transpose,
        attention.merge_heads,
        rules.merging_undoes_splitting,
        _heads_come_back,
    ),
    *(
        Entry(
            wrong,
            attention.CausalSelfAttention.project,
            rules.projections_are_contiguous_thirds,
            _thirds,
        )
        for wrong in (project_keys_first, project_head_by_head)
    ),
    entry(
        linear_transposed,
        Linear.__call__,
        linear_rules.rows_of_the_matrix_are_inputs,
    ),
]

ENTRIES = [*STEP_4A, *STEP_4B]
