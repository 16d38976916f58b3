"""How a product with one row is done: the same numbers, in another order."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from checkpoints import as_on_x86
from gpt2hw import bags
from gpt2hw.fast import MatrixLinear
from gpt2hw.linear import Linear
from gpt2hw.properties import rows as rules
from gpt2hw.properties.closeness import agree
from gpt2hw.properties.linear import rows_of_the_matrix_are_inputs
from gpt2hw.properties.seeded import normal
from gpt2hw.rows import (
    LEAST_BLOCKS,
    MANY_ROWS,
    RowMatrix,
    number_of_blocks,
    pays,
    product_by_blocks,
)

quickly = settings(deadline=None, max_examples=40)
SIZES = st.integers(1, 40)


def by_rows(linear: Linear, x: Tensor) -> Tensor:
    """The map of `linear`, done by row blocks."""
    turned = linear.weight.T.contiguous()
    return MatrixLinear.of(RowMatrix(turned), linear.bias)(x)


@pytest.mark.parametrize("n_out", [3, 8, 37])  # the last leaves five over
def test_a_prepared_product_writes_every_output_with_its_bias(n_out):
    matrix, bias, x = RowMatrix(normal(n_out, 5)), normal(n_out, seed=1), normal(5)
    out, other = torch.full((n_out,), torch.nan), normal(5, seed=2)
    product = matrix.prepared(bias, out)
    for row in (x, other):
        product(row)
        assert torch.allclose(out, matrix.values @ row + bias, atol=1e-5)


@given(SIZES, SIZES, st.integers(1, MANY_ROWS + 2), st.integers(0, 99))
@quickly
def test_row_blocks_give_what_the_taught_map_gives(n_in, n_out, n_rows, seed):
    linear = Linear(weight=normal(n_in, n_out, seed=seed), bias=normal(n_out))
    x = normal(n_rows, n_in, seed=seed + 1)
    gap = (by_rows(linear, x) - linear(x)).abs().max()
    assert float(gap) <= 1e-5 * (1 + float(linear(x).abs().max()))


@pytest.mark.parametrize(
    "batch",
    [(), (1,), (1, 1), (MANY_ROWS - 1,), (MANY_ROWS - 1, 1), (MANY_ROWS,), (2, 3, 4)],
)
def test_any_batch_keeps_its_shape(batch):
    linear = Linear(weight=normal(12, 7), bias=normal(7))
    x = normal(*batch, 12)
    agree(by_rows(linear, x), linear(x), 1e-5)
    assert by_rows(linear, x.transpose(0, -1).contiguous().transpose(0, -1)).shape == (
        *batch,
        7,
    )


def test_the_rows_of_the_matrix_are_the_inputs_here_too():
    rows_of_the_matrix_are_inputs(by_rows)


@pytest.mark.parametrize("n_out", [1, 3, 4, 5, 8, 50257 % 64])
def test_every_row_is_in_a_block_or_in_the_rest(n_out):
    matrix = RowMatrix(normal(n_out, 3))
    joined = torch.cat([matrix.blocks.flatten(end_dim=1), matrix.rest])
    assert torch.equal(joined, matrix.values)
    assert len(matrix.rest) < matrix.blocks.shape[0]


def test_blocks_and_rest_are_views_and_hold_no_numbers_of_their_own():
    matrix = RowMatrix(normal(9, 3))
    matrix.values.zero_()
    assert not matrix.blocks.any()
    assert not matrix.rest.any()


def test_the_row_is_handed_to_each_block_without_a_copy(monkeypatch):
    """The strides decide which kernel runs; this is the rule that makes it fast."""
    seen = []

    def bmm(blocks, columns):
        seen.append(columns.stride())
        return torch.matmul(blocks, columns)

    monkeypatch.setattr("gpt2hw.rows.torch.bmm", bmm)
    product_by_blocks(normal(1, 3), normal(4, 2, 3), normal(0, 3))
    assert seen == [(0, 1, 3)]  # the last is the row's length, as MKL wants it


def test_many_rows_are_done_by_a_product_for_many(monkeypatch):
    def refused(*_):
        raise AssertionError("row blocks")

    monkeypatch.setattr("gpt2hw.rows.product_by_blocks", refused)
    matrix = RowMatrix(normal(8, 3))
    matrix(normal(MANY_ROWS, 3))
    with pytest.raises(AssertionError, match="row blocks"):
        matrix(normal(MANY_ROWS - 1, 3))


@given(st.integers(1, 60_000))
@quickly
def test_there_are_enough_blocks_for_all_cores_and_no_empty_one(n_out):
    n_blocks = number_of_blocks(n_out)
    assert min(n_out, LEAST_BLOCKS) <= n_blocks <= n_out


@given(SIZES, SIZES, st.integers(0, 99))
@quickly
def test_a_prepared_product_writes_x_w_plus_b_to_its_place(n_in, n_out, seed):
    matrix, bias = (
        RowMatrix(normal(n_out, n_in, seed=seed)),
        normal(n_out, seed=seed + 1),
    )
    out = torch.full((n_out,), torch.nan)
    product = matrix.prepared(bias, out)
    for shift in range(2):  # what was there before has no say
        x = normal(n_in, seed=seed + 2 + shift)
        product(x)
        agree(out, matrix.values @ x + bias, 1e-5)


@pytest.mark.parametrize(
    ("weight", "is_faster"),
    [
        (torch.zeros(768, 768), True),
        (torch.zeros(192, 768), False),
        (torch.zeros(768, 768, dtype=torch.float64), False),
        (torch.zeros(768, 768, device="meta"), False),
        (torch.zeros(768, 769).T, False),
    ],
)
def test_only_a_large_float32_matrix_on_a_cpu_is_cut(monkeypatch, weight, is_faster):
    as_on_x86(monkeypatch)
    assert pays(weight) is is_faster


def test_without_mkl_no_matrix_is_cut_and_bags_are_filled_all_the_same(monkeypatch):
    as_on_x86(monkeypatch)
    monkeypatch.setattr("gpt2hw.rows.torch.backends.mkl.is_available", lambda: False)
    assert not pays(torch.zeros(768, 768))
    assert bags.pays(torch.zeros(768, 768))


@given(st.integers(1, 8), SIZES, st.integers(8, 64))
@quickly
def test_nothing_large_is_made_for_a_product(n_rows, n_out, n_in):
    def by_row_matrix(x, values):
        return RowMatrix(values)(x)

    x, values = normal(n_rows, n_in), normal(n_out, n_in, seed=1)
    rules.blocks_equal_one_product(by_row_matrix, x, values)
    rules.nothing_large_is_made(by_row_matrix, x, values)


@pytest.mark.parametrize("at", [0, 3])
def test_numbers_that_lie_at_odd_places_are_done_by_the_product_for_many(
    monkeypatch, at
):
    seen, right = [], normal(8, 3)
    raw = bytearray(at) + right.numpy().tobytes()
    values = torch.frombuffer(raw, dtype=torch.float32, offset=at).view(8, 3)
    odd = values.data_ptr() % 4 != 0
    monkeypatch.setattr(
        "gpt2hw.rows.product_by_blocks",
        lambda *given: seen.append(1) or product_by_blocks(*given),
    )
    found = RowMatrix(values)(normal(1, 3))
    agree(found, normal(1, 3) @ right.T, 1e-6)
    assert len(seen) == (0 if odd else 1)
    assert odd == (at == 3)


def test_a_derivative_of_the_matrix_is_right_also_after_it_was_cut():
    values, x = normal(8, 3), normal(1, 3)
    matrix = RowMatrix(values)
    values.requires_grad_()  # the blocks were cut before
    matrix(x).sum().backward()
    agree(values.grad, x.expand(8, 3), 1e-6)
