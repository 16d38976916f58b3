"""Step 3: mistakes in the embeddings."""

from torch import Tensor


def embed_at_position_zero(ids: Tensor, wte: Tensor, wpe: Tensor, n_past: int = 0) -> Tensor:
    """Forgets the past: with a cache every new token stands at position 0 again."""
    return wte[ids] + wpe[: ids.shape[-1]]


def embed_from_position_one(ids: Tensor, wte: Tensor, wpe: Tensor, n_past: int = 0) -> Tensor:
    """Counts positions from 1: every vector is its neighbour's."""
    return wte[ids] + wpe[n_past + 1 : n_past + 1 + ids.shape[-1]]


def embed_without_position(ids: Tensor, wte: Tensor, wpe: Tensor, n_past: int = 0) -> Tensor:
    """Leaves the positions out: "dog bites man" is "man bites dog"."""
    return wte[ids] + 0 * wpe[n_past : n_past + ids.shape[-1]]
