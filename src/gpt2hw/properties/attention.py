"""The rules of steps 4a and 4b: probabilities, averages, and no look ahead."""

# ruff: noqa: S101

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import sqrt

import torch
from torch import Tensor

from gpt2hw.attention import CausalSelfAttention
from gpt2hw.linear import Linear
from gpt2hw.properties.closeness import agree, first_five

Softmax = Callable[[Tensor], Tensor]
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


def rows_sum_to_one(softmax: Softmax, x: Tensor, within: float = 1e-6) -> None:
    """Each row of the result is a distribution: nothing below 0, and the sum is 1.

    >>> from gpt2hw.attention import softmax
    >>> rows_sum_to_one(softmax, torch.tensor([[0.0, 1.0], [-5.0, 90.0]]))
    """
    p = softmax(x)
    assert p.shape == x.shape, f"shape {list(p.shape)}, expected {list(x.shape)}"
    assert (p >= 0).all(), f"a probability is negative or NaN: {first_five(p)}"
    gap = float((p.sum(dim=-1) - 1).abs().max())
    assert gap <= within, f"a row's sum differs from 1 by {gap:.2g}"


def keeps_the_order(softmax: Softmax, x: Tensor) -> None:
    """A larger number never gets a smaller probability (a last digit aside)."""
    p = softmax(x).gather(-1, x.argsort(dim=-1))
    assert (p[..., 1:] >= p[..., :-1] * (1 - 1e-6)).all(), (
        "a larger number has a smaller probability"
    )


def is_unmoved_by_a_shift(
    softmax: Softmax, x: Tensor, shift: float, within: float = 1e-6
) -> None:
    """softmax(x + c) = softmax(x): differences count, not sizes.

    `within` is for what a softmax rounds. The rest is the price of x + c: each number
    is rounded by up to d, half a last digit of the largest, which moves a share p by
    2 p (1 - p) d at most, and so by d / 2. A softmax that subtracts the logarithm of
    the sum rounds that by d as well, and p moves with it by p d: 3 d / 2 in all.

    >>> from gpt2hw.attention import softmax
    >>> is_unmoved_by_a_shift(softmax, torch.tensor([0.0, 1.0]), 64.0)
    """
    moved = x + shift
    d = float(moved.abs().max()) * torch.finfo(moved.dtype).eps / 2
    gap = float((softmax(moved) - softmax(x)).abs().max())
    assert gap <= within + 1.5 * d, (
        f"adding {shift} to every number moves a result by {gap:.2g}"
    )


def survives_huge_numbers(softmax: Softmax) -> None:
    """Numbers of 1e38, where exp is long infinite, give probabilities all the same.

    >>> survives_huge_numbers(lambda x: x.exp() / x.exp().sum(-1, keepdim=True))
    Traceback (most recent call last):
    AssertionError: softmax([1e+38, -1e+38, 1e+38]) is [nan, 0, nan]
    """
    for row, right in (
        ([1e38, -1e38, 1e38], [0.5, 0.0, 0.5]),
        ([-1e38, -1e38], [0.5, 0.5]),
        ([3e38, -3e38], [1.0, 0.0]),
    ):
        found = softmax(torch.tensor(row))
        shown = f"softmax({first_five(torch.tensor(row))}) is {first_five(found)}"
        assert torch.equal(found, torch.tensor(right)), shown


def scores_are_over_the_root_of_d_head(
    attention_scores: Callable[[Tensor, Tensor], Tensor], d_head: int
) -> None:
    """Two vectors of ones match with d_head / sqrt(d_head): 8 for GPT-2's 64.

    >>> from gpt2hw.attention import attention_scores
    >>> scores_are_over_the_root_of_d_head(attention_scores, 64)
    """
    ones = torch.ones(1, d_head)
    found = float(attention_scores(ones, ones))
    assert abs(found - sqrt(d_head)) <= 1e-5 * sqrt(d_head), (
        f"{d_head} ones match with {found:.6g}, expected {sqrt(d_head):.6g}"
    )


def mask_ends_in_the_lower_right_corner(
    causal_mask: Callable[[int, int], Tensor], n_seq: int, n_kv: int
) -> None:
    """Query i of n_seq may look at the first n_kv - n_seq + i + 1 keys, no others.

    >>> mask_ends_in_the_lower_right_corner(
    ...     lambda n_seq, n_kv: torch.ones(n_seq, n_kv).tril().bool(), 2, 5)
    Traceback (most recent call last):
    AssertionError: query 0 of 2 sees 1 of 5 keys, expected the first 4
    """
    mask = causal_mask(n_seq, n_kv)
    for i in range(n_seq):
        n_seen = n_kv - n_seq + i + 1
        right = [True] * n_seen + [False] * (n_kv - n_seen)
        assert mask[i].tolist() == right, (
            f"query {i} of {n_seq} sees {int(mask[i].sum())} of {n_kv} keys, "
            f"expected the first {n_seen}"
        )


def no_weight_on_the_future(
    attention_weights: Callable[[Tensor], Tensor], scores: Tensor
) -> None:
    """The weight of every later key is 0, exactly; each row still sums to 1.

    >>> from gpt2hw.attention import attention_weights
    >>> no_weight_on_the_future(attention_weights, torch.randn(3, 5))
    """
    weights = attention_weights(scores)
    n_seq, n_kv = scores.shape[-2:]
    future = weights.triu(diagonal=n_kv - n_seq + 1)
    assert torch.equal(future, torch.zeros_like(future)), (
        f"a later key has weight {float(future.abs().max()):.3g}"
    )
    rows_sum_to_one(lambda _: weights, scores)


def outputs_lie_between_the_values(
    attend: Attend, q: Tensor, k: Tensor, v: Tensor
) -> None:
    """Each output is a weighted average: column by column between the least and the
    largest of the values that its query may see.
    """
    out = attend(q, k, v)
    n_past = k.shape[-2] - q.shape[-2]
    least = v.cummin(dim=-2).values[..., n_past:, :]
    most = v.cummax(dim=-2).values[..., n_past:, :]
    slack = 1e-6 * float(v.abs().max())
    inside = (out >= least - slack) & (out <= most + slack)
    assert inside.all(), "an output lies outside the values that its query may see"


def later_rows_change_nothing(
    layer: Callable[[Tensor], Tensor], x: Tensor, later: Tensor
) -> None:
    """With other rows at the end, the rows before them come out the same, to the bit.

    `layer` maps [*batch, n_seq, n_embd] to the same shape; `later` replaces x's last
    rows.

    >>> centre = lambda x: x - x.mean(dim=-2)
    >>> later_rows_change_nothing(centre, torch.eye(3), later=torch.ones(1, 3))
    Traceback (most recent call last):
    AssertionError: changing rows 2 to 2 changes rows before them
    """
    n_seq, n_later = x.shape[-2], later.shape[-2]
    first = n_seq - n_later
    changed = torch.cat([x[..., :first, :], later], dim=-2)
    before, after = layer(x)[..., :first, :], layer(changed)[..., :first, :]
    assert torch.equal(before, after), (
        f"changing rows {first} to {n_seq - 1} changes rows before them"
    )


def heads_work_apart(
    attend: Attend, q: Tensor, k: Tensor, v: Tensor, order: Sequence[int]
) -> None:
    """Heads in another order give their outputs in that order."""
    moved = attend(q[..., order, :, :], k[..., order, :, :], v[..., order, :, :])
    agree(moved, attend(q, k, v)[..., order, :, :], 1e-6, "outputs of the moved heads")


def the_order_of_heads_is_free(
    attention: CausalSelfAttention, x: Tensor, order: Sequence[int]
) -> None:
    """Move the heads' columns in c_attn and their rows in c_proj alike: same output."""
    n_embd = x.shape[-1]
    d_head = n_embd // attention.n_head
    columns = torch.arange(n_embd).view(-1, d_head)[list(order)].flatten()
    thirds = torch.cat([columns, columns + n_embd, columns + 2 * n_embd])
    c_attn, c_proj = attention.c_attn, attention.c_proj
    moved = replace(
        attention,
        c_attn=Linear(weight=c_attn.weight[:, thirds], bias=c_attn.bias[thirds]),
        c_proj=Linear(weight=c_proj.weight[columns], bias=c_proj.bias),
    )
    agree(moved(x), attention(x), 1e-5, "output with its heads in another order")


def projections_are_contiguous_thirds(
    attention: CausalSelfAttention, x: Tensor
) -> None:
    """Queries, keys and values are thirds of c_attn's output, heads lie end to end.

    Column h d_head + i of the third belongs to head h.
    """
    wide = x @ attention.c_attn.weight + attention.c_attn.bias
    n_embd, n_head = x.shape[-1], attention.n_head
    d_head = n_embd // n_head
    for third, (name, found) in enumerate(
        zip("qkv", attention.project(x), strict=True)
    ):
        for h in range(n_head):
            start = third * n_embd + h * d_head
            right = wide[..., start : start + d_head]
            agree(found[..., h, :, :], right, 1e-6, f"{name} of head {h}")


def split_heads_keeps_tokens_whole(
    split_heads: Callable[[Tensor, int], Tensor], x: Tensor, n_head: int
) -> None:
    """Head h of token t is the h-th piece of row t.

    >>> one_view = lambda x, n_head: x.view(n_head, x.shape[-2], -1)
    >>> split_heads_keeps_tokens_whole(one_view, torch.arange(8.0).view(2, 4), 2)
    Traceback (most recent call last):
    AssertionError: head 1 of token 0 is [4, 5], its row has [2, 3] there
    """
    heads = split_heads(x, n_head)
    for t in range(x.shape[-2]):
        for h, piece in enumerate(x[..., t, :].chunk(n_head, dim=-1)):
            assert torch.equal(heads[..., h, t, :], piece), (
                f"head {h} of token {t} is {first_five(heads[..., h, t, :])}, "
                f"its row has {first_five(piece)} there"
            )


def merging_undoes_splitting(
    split_heads: Callable[[Tensor, int], Tensor],
    merge_heads: Callable[[Tensor], Tensor],
    x: Tensor,
    n_head: int,
) -> None:
    """Cut into heads and put together again, every row is what it was."""
    assert torch.equal(merge_heads(split_heads(x, n_head)), x), (
        f"{n_head} heads, split and merged, do not give the rows back"
    )
