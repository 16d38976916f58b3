"""Step 3: mistakes in the embeddings."""

import torch
from torch import Tensor

from gpt2hw import embeddings
from gpt2hw.properties import embeddings as rules
from gpt2hw.properties.seeded import normal
from wrong.entry import entry


def embed_at_position_zero(
    ids: Tensor,
    wte: Tensor,
    wpe: Tensor,
    n_past: int = 0,  # noqa: ARG001
) -> Tensor:
    """Forgets the past: with a cache every new token stands at position 0 again."""
    return wte[ids] + wpe[: ids.shape[-1]]


def embed_from_position_one(
    ids: Tensor, wte: Tensor, wpe: Tensor, n_past: int = 0
) -> Tensor:
    """Counts positions from 1: every vector is its neighbour's."""
    return wte[ids] + wpe[n_past + 1 : n_past + 1 + ids.shape[-1]]


def embed_without_position(
    ids: Tensor, wte: Tensor, wpe: Tensor, n_past: int = 0
) -> Tensor:
    """Leaves the positions out: "dog bites man" is "man bites dog"."""
    return wte[ids] + 0 * wpe[n_past : n_past + ids.shape[-1]]


# What catches them

WPE = normal(6, 2, seed=6)


ENTRIES = [
    entry(
        embed_at_position_zero,
        embeddings.embed,
        rules.the_count_goes_on_after_a_cut,
        torch.tensor([1, 0, 1]),
        torch.eye(2),
        WPE,
        2,
    ),
    *(
        entry(
            wrong,
            embeddings.embed,
            rules.each_row_is_token_plus_position,
            torch.tensor([1, 0, 1]),
            torch.eye(2),
            WPE,
        )
        for wrong in (
            embed_from_position_one,
            embed_without_position,
        )
    ),
]
