"""The rules of step 6: one row of logits per id, and each row knows only the past."""

# ruff: noqa: S101

from collections.abc import Callable

import torch
from torch import Tensor

from gpt2hw.properties.closeness import agree

Model = Callable[[Tensor], Tensor]  # [*batch, n_seq] -> [*batch, n_seq, n_vocab]


def each_id_gets_a_row_of_logits(model: Model, ids: Tensor, n_vocab: int) -> None:
    """[*batch, n_seq] ids give [*batch, n_seq, n_vocab] finite float32 logits."""
    logits = model(ids)
    shape = (*ids.shape, n_vocab)
    assert logits.shape == shape, f"shape {list(logits.shape)}, expected {list(shape)}"
    assert logits.dtype == torch.float32, f"logits are {logits.dtype}, not float32"
    assert logits.isfinite().all(), "a logit is not finite"


def later_ids_change_nothing(model: Model, ids: Tensor, at: int, other: int) -> None:
    """Another id at position `at` leaves the rows before it the same, to the bit.

    And it changes the row of its own, else the rule would hold for a model that does
    not look at its input.
    """
    changed = ids.clone()
    changed[..., at] = other
    before, after = model(ids), model(changed)
    assert torch.equal(before[..., :at, :], after[..., :at, :]), (
        f"an id at position {at} changes the logits of an earlier position"
    )
    if not torch.equal(ids, changed):
        assert not torch.equal(before[..., at, :], after[..., at, :]), (
            f"the logits at position {at} do not depend on the id there"
        )


def a_prefix_gives_the_first_rows(model: Model, ids: Tensor, n: int) -> None:
    """The first n ids alone give the first n rows of the whole."""
    agree(model(ids[..., :n]), model(ids)[..., :n, :], 1e-5, f"logits of {n} ids")


def sequences_of_a_batch_are_apart(model: Model, batch: Tensor) -> None:
    """A sequence in a batch gets the logits that it gets alone."""
    together = model(batch).flatten(end_dim=-3)
    for i, ids in enumerate(batch.flatten(end_dim=-2)):
        agree(together[i], model(ids), 1e-5, f"batch's sequence {i}")
