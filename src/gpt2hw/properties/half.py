"""The rules of 16 bits: digits are lost, and nothing leaves the range."""

# ruff: noqa: S101

from collections.abc import Callable

import torch
from torch import Tensor

from gpt2hw.properties.closeness import agree, first_five

Rounding = Callable[[Tensor], Tensor]  # [n_out, n_in] float32 -> float16
OneRow = Callable[[Tensor, Tensor], Tensor]  # a row, values [n_out, n_in] -> outputs

END = torch.finfo(torch.float16).max


def no_float16_is_infinite(one_row: OneRow, x: Tensor, values: Tensor) -> None:
    """Whatever the size of the row, each output is a number.

    >>> no_float16_is_infinite(
    ...     lambda x, values: (x.half() @ values.T).float(),
    ...     torch.tensor([[70000.0, 0.0]]), torch.eye(2, dtype=torch.float16))
    Traceback (most recent call last):
    AssertionError: a row that goes up to 70000 gives [inf, nan]; float16 ends at 65504
    """
    found = one_row(x, values)
    assert found.isfinite().all(), (
        f"a row that goes up to {float(x.abs().max()):g} gives {first_five(found)}; "
        f"float16 ends at {END:g}"
    )


def equals_the_widened_product(
    one_row: OneRow, x: Tensor, values: Tensor, within: float = 0.002
) -> None:
    """The outputs are those of float32 with the same weights, to three digits.

    >>> from gpt2hw.half import one_row
    >>> equals_the_widened_product(
    ...     one_row, torch.randn(1, 64), torch.randn(50, 64).half())
    """
    right = (x.double() @ values.double().T).float()
    agree(one_row(x, values), right, within, "outputs")


def zeros_stay_zeros(one_row: OneRow, values: Tensor) -> None:
    """A row of zeros gives zeros.

    >>> from gpt2hw.half import one_row
    >>> zeros_stay_zeros(one_row, torch.ones(3, 4).half())
    """
    found = one_row(torch.zeros(1, values.shape[-1]), values)
    assert torch.equal(found, torch.zeros_like(found)), (
        f"a row of zeros gives {first_five(found)}"
    )


def ones_are_counted(one_row: OneRow, n: int = 4096) -> None:
    """A row of n ones times n weights of 1 gives n: the sum has more than 11 digits.

    >>> from gpt2hw.half import one_row
    >>> ones_are_counted(one_row, 4096)
    """
    ones = torch.ones(1, n)
    found = float(one_row(ones, ones.half()))
    assert found == n, f"{n} ones add up to {found:g}"


def weights_end_where_float16_ends(rounded: Rounding) -> None:
    """1e9 becomes the largest float16, -1e9 the least; NaN stays NaN.

    >>> weights_end_where_float16_ends(lambda matrix: matrix.half())
    Traceback (most recent call last):
    AssertionError: [1e9, -1e9] becomes [inf, -inf], expected [65504, -65504]
    """
    found = rounded(torch.tensor([[1e9, -1e9, torch.nan]]))
    assert found.dtype == torch.float16, f"the result is {found.dtype}"
    ends = found[0, :2]
    assert ends.tolist() == [END, -END], (
        f"[1e9, -1e9] becomes {first_five(ends)}, expected [{END:g}, {-END:g}]"
    )
    assert found[0, 2].isnan(), f"NaN becomes {float(found[0, 2]):g}"
