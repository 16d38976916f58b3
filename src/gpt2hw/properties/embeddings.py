"""The rules of step 3: what a token is, plus where it stands."""

# ruff: noqa: S101

from collections.abc import Callable

import torch
from torch import Tensor

Embed = Callable[..., Tensor]  # (ids, wte, wpe, n_past) -> [*batch, n_seq, n_embd]


def each_row_is_token_plus_position(
    embed: Embed, ids: Tensor, wte: Tensor, wpe: Tensor, n_past: int = 0
) -> None:
    """Row i is wte[ids[i]] + wpe[n_past + i], to the bit.

    >>> from gpt2hw.embeddings import embed
    >>> each_row_is_token_plus_position(
    ...     embed, torch.tensor([1, 1]), torch.eye(2), torch.rand(5, 2), n_past=3)
    """
    found = embed(ids, wte, wpe, n_past)
    shape = (*ids.shape, wte.shape[-1])
    assert found.shape == shape, f"shape {list(found.shape)}, expected {list(shape)}"
    for i in range(ids.shape[-1]):
        right = wte[ids[..., i]] + wpe[n_past + i]
        assert torch.equal(found[..., i, :], right), (
            f"row {i} after {n_past} tokens is not its token's row of wte plus row "
            f"{n_past + i} of wpe"
        )


def the_count_goes_on_after_a_cut(
    embed: Embed, ids: Tensor, wte: Tensor, wpe: Tensor, cut: int
) -> None:
    """Two parts, the second with n_past = cut, give the rows of the whole.

    >>> from gpt2hw.embeddings import embed
    >>> the_count_goes_on_after_a_cut(
    ...     embed, torch.tensor([1, 0, 1]), torch.eye(2), torch.rand(5, 2), cut=2)
    """
    whole = embed(ids, wte, wpe, 0)
    before = embed(ids[..., :cut], wte, wpe, 0)
    after = embed(ids[..., cut:], wte, wpe, cut)
    assert torch.equal(torch.cat([before, after], dim=-2), whole), (
        f"cut at {cut}, the second part does not count its positions from {cut}"
    )
