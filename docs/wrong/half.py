"""Step 10: mistakes with 16 bits."""

import torch
from torch import Tensor

from gpt2hw.half import HalfMatrix, one_row
from gpt2hw.properties import half as rules
from gpt2hw.properties.seeded import normal
from wrong.entry import entry


def one_row_as_it_is(x: Tensor, values: Tensor) -> Tensor:
    """Rounds the row to float16 without a scale: beyond 65,504 it is infinite."""
    return x.half().matmul(values.T).float()


def one_row_that_divides_by_zero(x: Tensor, values: Tensor) -> Tensor:
    """Scales by the largest number, also where that is 0."""
    scale = x.abs().amax()
    return (x / scale).half().matmul(values.T).float() * scale


def one_row_that_sums_in_float16(x: Tensor, values: Tensor) -> Tensor:
    """Adds up one product after the other, each sum rounded to 11 digits."""
    scale = x.abs().amax() + torch.finfo(torch.float32).tiny
    total = torch.zeros(len(x), len(values), dtype=torch.float16)
    for row, column in zip((x / scale).half().T, values.T, strict=True):
        total += row[:, None] * column
    return total.float() * scale


def rounded_without_an_end(matrix: Tensor) -> Tensor:
    """Weights beyond the range become infinite."""
    return matrix.half()


def _rounded(matrix: Tensor) -> Tensor:
    return HalfMatrix.of(matrix).values


# What catches them

VALUES = normal(5, 8, seed=1).abs().half()
LARGE = 1e6 * normal(1, 8, seed=2).abs()

ENTRIES = [
    entry(one_row_as_it_is, one_row, rules.no_float16_is_infinite, LARGE, VALUES),
    entry(one_row_that_divides_by_zero, one_row, rules.zeros_stay_zeros, VALUES),
    entry(one_row_that_sums_in_float16, one_row, rules.ones_are_counted, 4096),
    entry(
        rounded_without_an_end,
        _rounded,
        rules.weights_end_where_float16_ends,
    ),
]
