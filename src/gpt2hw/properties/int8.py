"""The rules of 8 bits: steps as fine as they can be, and sums that are exact."""

# ruff: noqa: S101

from collections.abc import Callable

import torch
from torch import Tensor

from gpt2hw.int8 import LARGEST, Int8Matrix
from gpt2hw.int8 import quantize as right_quantize
from gpt2hw.properties.closeness import agree, first_five

Quantize = Callable[[Tensor], tuple[Tensor, Tensor]]
Of = Callable[[Tensor], Int8Matrix]  # as Int8Matrix.of
Product = Callable[[Int8Matrix, Tensor], Tensor]  # as Int8Matrix.__call__
IntegerProduct = Callable[[Tensor, Tensor], Tensor]

HALF = 0.5001  # of a step; the last digits are float32's own rounding


def numbers_come_back_within_half_a_step(quantize: Quantize, x: Tensor) -> None:
    """Whole number times step is the number again, but for half a step.

    >>> from gpt2hw.int8 import quantize
    >>> numbers_come_back_within_half_a_step(quantize, torch.tensor([[2.5, -1.0]]))
    """
    whole, step = quantize(x)
    assert whole.dtype == torch.int8, f"the whole numbers are {whole.dtype}"
    back = whole * step
    off = (back - x).abs() / step
    assert (off <= HALF).all(), _said(x, back, off)


def _said(x: Tensor, back: Tensor, off: Tensor) -> str:
    """The number that is furthest off, in words."""
    at = tuple(int(i) for i in torch.unravel_index(off.argmax(), off.shape))
    return (
        f"the number at [{', '.join(map(str, at))}] is {float(x[at]):.3g} and comes "
        f"back as {float(back[at]):.3g}: off by {float(off[at]):.3g} steps"
    )


def the_largest_of_a_row_becomes_127(quantize: Quantize, x: Tensor) -> None:
    """No step is wider than it must be, and -128 is not used.

    >>> from gpt2hw.int8 import quantize
    >>> the_largest_of_a_row_becomes_127(quantize, torch.tensor([[2.5, -1.0]]))
    """
    most = quantize(x)[0].int().abs().amax(dim=-1)
    assert (most == LARGEST).all(), (
        f"the largest numbers of the rows become {most.flatten()[:5].tolist()}, "
        f"expected {LARGEST} for each"
    )


def zeros_stay_zeros(quantize: Quantize) -> None:
    """A row of zeros becomes zeros, with a step that can be divided by.

    >>> zeros_stay_zeros(lambda x: (x.to(torch.int8), x.abs().amax(-1, True) / 127))
    Traceback (most recent call last):
    AssertionError: the step of a row of zeros is 0, and 0 / 0 is not a number
    """
    whole, step = quantize(torch.zeros(2, 3))
    assert not whole.any(), f"a row of zeros becomes {whole[0].tolist()}"
    assert (step > 0).all(), (
        f"the step of a row of zeros is {float(step.min()):g}, and 0 / 0 is not a "
        "number"
    )
    assert step.isfinite().all(), f"the step of a row of zeros is {first_five(step)}"


def weights_come_back_within_half_a_step(of: Of, matrix: Tensor) -> None:
    """Of a matrix, the step being the largest weight of the output over 127.

    >>> weights_come_back_within_half_a_step(Int8Matrix.of, torch.randn(3, 4))
    """
    step = matrix.abs().amax(dim=-1, keepdim=True) / LARGEST
    back = of(matrix).widened()
    off = (back - matrix).abs() / step
    assert (off <= HALF).all(), _said(matrix, back, off)


def a_large_weight_hurts_no_other_output(
    of: Of, matrix: Tensor, size: float = 1000.0
) -> None:
    """Make one weight of one output large: the others come back as before.

    >>> a_large_weight_hurts_no_other_output(Int8Matrix.of, torch.randn(3, 4))
    """
    before = of(matrix).widened()
    large = matrix.clone()
    large[-1, 0] = size
    moved = (of(large).widened() - before)[:-1].abs()
    n_moved = int((moved.amax(dim=-1) > 0).sum())
    assert n_moved == 0, (
        f"one weight of {size:g} in output {len(matrix) - 1}: {n_moved} other outputs "
        f"change, by up to {float(moved.max()):.2g}"
    )


def a_row_ignores_the_rows_beside_it(
    product: Product, matrix: Int8Matrix, x: Tensor
) -> None:
    """The first row gives the same, to the bit, whatever stands beside it.

    >>> a_row_ignores_the_rows_beside_it(
    ...     Int8Matrix.__call__, Int8Matrix.of(torch.randn(5, 4)), torch.randn(2, 4))
    """
    alone = product(matrix, x[:1])
    beside = torch.cat([x[:1], 1000 * x[1:]])
    found = product(matrix, beside)[:1]
    assert torch.equal(found, alone), (
        "beside larger rows, the row's outputs are off by up to "
        f"{float((found - alone).abs().max()):.2g}; they have to be the same to the bit"
    )


def equals_the_widened_product(
    product: Product, matrix: Int8Matrix, x: Tensor, within: float = 1e-6
) -> None:
    """Two scales times the product of whole numbers: what rounding left, multiplied.

    >>> equals_the_widened_product(
    ...     Int8Matrix.__call__, Int8Matrix.of(torch.randn(9, 4)), torch.randn(2, 4))
    """
    whole, step = right_quantize(x)
    right = (whole * step).double() @ matrix.widened().double().T
    agree(product(matrix, x), right.float(), within, "outputs")


def whole_numbers_are_multiplied_exactly(
    product: IntegerProduct, x: Tensor, values: Tensor
) -> None:
    """Each sum of products is the whole number that it is, however large.

    >>> from gpt2hw.int8 import by_torch
    >>> full = torch.full((1, 64), 127, dtype=torch.int8)
    >>> whole_numbers_are_multiplied_exactly(by_torch, full, full)
    """
    right = x.long() @ values.long().T
    found = product(x, values).long()
    wrong = (found != right).nonzero()
    if len(wrong):
        at = tuple(wrong[0].tolist())
        raise AssertionError(
            f"a sum of {x.shape[-1]} products is {int(found[at]):,}, "
            f"expected {int(right[at]):,}"
        )
