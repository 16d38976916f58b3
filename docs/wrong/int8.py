"""Step 10: mistakes with 8 bits."""

import torch
from torch import Tensor

from gpt2hw.int8 import LARGEST, Int8Matrix, by_plain_tensors, integer_product, quantize
from gpt2hw.properties import int8 as rules
from gpt2hw.properties.seeded import normal
from wrong.entry import entry


def quantize_by_cutting_off(x: Tensor) -> tuple[Tensor, Tensor]:
    """Cuts the digits after the point off instead of rounding."""
    step = x.abs().amax(dim=-1, keepdim=True) / LARGEST
    step = step.clamp(min=torch.finfo(x.dtype).tiny)
    return (x / step).to(torch.int8), step


def quantize_to_128(x: Tensor) -> tuple[Tensor, Tensor]:
    """The largest becomes 128, for which 8 bits have no room: it turns into -128."""
    step = x.abs().amax(dim=-1, keepdim=True) / 128
    step = step.clamp(min=torch.finfo(x.dtype).tiny)
    return (x / step).round().int().to(torch.int8), step


def quantize_with_a_step_of_zero(x: Tensor) -> tuple[Tensor, Tensor]:
    """Divides a row of zeros by its largest number."""
    step = x.abs().amax(dim=-1, keepdim=True) / LARGEST
    return (x / step).nan_to_num().round().to(torch.int8), step


def matrix_with_one_scale(matrix: Tensor) -> Int8Matrix:
    """One scale for the whole matrix."""
    step = matrix.abs().amax() / LARGEST
    values = (matrix / step).round().to(torch.int8)
    return Int8Matrix(values, step.expand(len(matrix)))


def matrix_with_a_scale_for_each_input(matrix: Tensor) -> Int8Matrix:
    """Takes the largest weight of each input; where n_in is n_out, it fits."""
    step = matrix.abs().amax(dim=0) / LARGEST  # [n_in]
    return Int8Matrix((matrix / step).round().to(torch.int8), step)


def product_with_one_scale_for_all_rows(matrix: Int8Matrix, x: Tensor) -> Tensor:
    """The largest number of all rows decides how fine the steps of each are."""
    step = x.abs().amax() / LARGEST
    whole = (x / step).round().to(torch.int8)
    return integer_product()(whole, matrix.values) * step * matrix.scales


def product_with_one_of_two_scales(matrix: Int8Matrix, x: Tensor) -> Tensor:
    """Forgets that the row had a scale as well."""
    whole, _ = quantize(x)
    return integer_product()(whole, matrix.values) * matrix.scales


def sums_that_wrap_around(x: Tensor, values: Tensor) -> Tensor:
    """Adds up in 16 bits, where 32,767 + 1 is -32,768."""
    return x.short() @ values.short().T


def pairs_in_16_bits(x: Tensor, values: Tensor) -> Tensor:
    """As a processor that wants x from 0 to 255, and has 16 bits for two products.

    So x is moved up by 128, which is taken off again at the end; and what does not
    fit stays at the end of the 16 bits.
    """
    moved = (x.int() + 128)[:, None] * values.int()  # [n_rows, n_out, n_in]
    pairs = moved.unflatten(-1, (-1, 2)).sum(dim=-1).clamp(-(2**15), 2**15 - 1)
    return pairs.sum(dim=-1) - 128 * values.int().sum(dim=-1)


# What catches them

X, MATRIX = normal(3, 8, seed=1), normal(8, 8, seed=2)
STORED = Int8Matrix.of(MATRIX)
FULL = torch.full((1, 64), LARGEST, dtype=torch.int8)

ENTRIES = [
    entry(
        quantize_by_cutting_off,
        quantize,
        rules.numbers_come_back_within_half_a_step,
        X,
    ),
    entry(quantize_to_128, quantize, rules.numbers_come_back_within_half_a_step, X),
    entry(quantize_with_a_step_of_zero, quantize, rules.zeros_stay_zeros),
    entry(
        matrix_with_one_scale,
        Int8Matrix.of,
        rules.a_large_weight_hurts_no_other_output,
        MATRIX,
    ),
    entry(
        matrix_with_a_scale_for_each_input,
        Int8Matrix.of,
        rules.weights_come_back_within_half_a_step,
        MATRIX,
    ),
    entry(
        product_with_one_scale_for_all_rows,
        Int8Matrix.__call__,
        rules.a_row_ignores_the_rows_beside_it,
        STORED,
        X,
    ),
    entry(
        product_with_one_of_two_scales,
        Int8Matrix.__call__,
        rules.equals_the_widened_product,
        STORED,
        X,
    ),
    entry(
        sums_that_wrap_around,
        by_plain_tensors,
        rules.whole_numbers_are_multiplied_exactly,
        FULL,
        FULL,
    ),
    entry(
        pairs_in_16_bits,
        by_plain_tensors,
        rules.whole_numbers_are_multiplied_exactly,
        FULL,
        FULL,
    ),
]
