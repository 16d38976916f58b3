"""The rule of the linear map: which way round its matrix lies."""

# ruff: noqa: S101

from collections.abc import Callable

import torch
from torch import Tensor

from gpt2hw.linear import Linear
from gpt2hw.properties.closeness import first_five


def rows_of_the_matrix_are_inputs(
    apply: Callable[[Linear, Tensor], Tensor],
) -> None:
    """The first input alone brings out the first ROW of W, plus the bias.

    The matrix is square, so that no check of shapes sees a transpose, and not
    symmetric, so that this one does.

    >>> rows_of_the_matrix_are_inputs(lambda linear, x: linear(x))
    """
    linear = Linear(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([0.5, 0.5]))
    found = apply(linear, torch.tensor([1.0, 0.0]))
    assert torch.equal(found, torch.tensor([1.5, 2.5])), (
        f"x = [1, 0] brings out {first_five(found)}, expected the first row of W plus "
        "the bias, [1.5, 2.5]: GPT-2 stores its matrices [in, out]"
    )
