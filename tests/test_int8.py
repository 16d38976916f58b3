"""Weights in 8 bits, by the rules that the chapter shows."""

from contextlib import nullcontext

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gpt2hw import int8
from gpt2hw.int8 import (
    LARGEST,
    Int8Matrix,
    by_plain_tensors,
    by_torch,
    integer_product,
    quantize,
    quantize_one,
)
from gpt2hw.properties import int8 as rules
from gpt2hw.properties.drawn import SEEDS, batch_shapes
from gpt2hw.properties.seeded import normal

quickly = settings(deadline=None, max_examples=40)
N = st.integers(1, 40)
SIZES = st.floats(-30, 30).map(lambda power: 10.0**power)
product = Int8Matrix.__call__


@given(batch_shapes(), N, SIZES, SEEDS)
@quickly
def test_a_number_comes_back_within_half_a_step(batch, n_in, size, seed):
    x = size * normal(*batch, n_in, seed=seed)
    rules.numbers_come_back_within_half_a_step(quantize, x)
    rules.the_largest_of_a_row_becomes_127(quantize, x)


def test_zeros_stay_zeros():
    rules.zeros_stay_zeros(quantize)


def quantized_one(rows):
    """What quantize gives, row after row: the whole numbers and the steps."""
    whole = torch.empty_like(rows, dtype=torch.int8)
    pairs = zip(torch.split(rows, 1), torch.split(whole, 1), strict=True)
    steps = [[quantize_one(row[0], out)] for row, out in pairs]
    return whole, torch.tensor(steps)


@given(N, SIZES, SEEDS)
@quickly
def test_one_row_is_quantised_as_rows_are(n_in, size, seed):
    x = size * normal(1, n_in, seed=seed)
    rules.numbers_come_back_within_half_a_step(quantized_one, x)
    rules.the_largest_of_a_row_becomes_127(quantized_one, x)
    (whole, step), (right, right_step) = quantized_one(x), quantize(x)
    torch.testing.assert_close(step, right_step, rtol=1e-6, atol=0)
    assert (whole.int() - right.int()).abs().max() <= 1  # a half may go either way


def test_a_row_of_zeros_is_quantised_as_rows_of_zeros_are():
    rules.zeros_stay_zeros(quantized_one)


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("broken", [float("nan"), float("inf"), -float("inf")])
def test_one_row_with_what_is_no_number_gives_none(at, broken):
    x, out = torch.ones(3), torch.zeros(2)
    x[at] = broken
    Int8Matrix.of(torch.ones(2, 3)).prepared(torch.zeros(2), out)(x)
    assert not out.isfinite().any()


@pytest.mark.parametrize("size", [1e-30, 1e30, 1e37])
def test_a_prepared_product_is_the_product_at_any_size(size):
    matrix, out = Int8Matrix.of(torch.full((2, 768), 1e-3)), torch.zeros(2)
    x = torch.zeros(768)
    x[:3] = torch.tensor([size, -size / 2, size / 4])
    matrix.prepared(torch.zeros(2), out)(x)
    assert out.isfinite().all()
    torch.testing.assert_close(out, matrix(x), rtol=1e-5, atol=0)


@given(st.integers(2, 40), N, SEEDS)
@quickly
def test_each_output_has_a_scale_of_its_own(n_out, n_in, seed):
    matrix = normal(n_out, n_in, seed=seed)
    rules.weights_come_back_within_half_a_step(Int8Matrix.of, matrix)
    rules.a_large_weight_hurts_no_other_output(Int8Matrix.of, matrix)


@given(st.integers(2, 9), N, st.integers(10, 40), SEEDS)
@quickly
def test_each_row_has_a_scale_of_its_own(n_rows, n_in, n_out, seed):
    matrix = Int8Matrix.of(normal(n_out, n_in, seed=seed))
    x = normal(n_rows, n_in, seed=seed + 1)
    rules.a_row_ignores_the_rows_beside_it(product, matrix, x)
    rules.equals_the_widened_product(product, matrix, x)


@pytest.mark.parametrize("multiply", [integer_product(), by_torch, by_plain_tensors])
@pytest.mark.parametrize("n_rows", [1, 2, 17])
@pytest.mark.parametrize("n_in", [1, 2, 64, 768])
def test_the_largest_whole_numbers_are_multiplied_exactly(multiply, n_rows, n_in):
    full = torch.full((n_rows, n_in), LARGEST, dtype=torch.int8)
    for values in (full[:1], -full[:1]):
        if multiply is by_torch and integer_product() is not by_torch:
            continue  # this machine's is not exact, and it is not used
        rules.whole_numbers_are_multiplied_exactly(multiply, full, values)


def test_plain_tensors_put_their_pieces_side_by_side(monkeypatch):
    x, values = (quantize(normal(n, 8, seed=n))[0] for n in (3, 7))
    right = by_plain_tensors(x, values)
    monkeypatch.setattr(int8, "WIDENED_AT_ONCE", 2 * 8)
    assert torch.equal(by_plain_tensors(x, values), right)


def test_a_rule_says_what_is_wrong():
    with pytest.raises(AssertionError, match=r"numbers are torch\.float32"):
        rules.numbers_come_back_within_half_a_step(
            lambda x: (x, torch.ones(1)), torch.ones(1, 2)
        )
    with pytest.raises(AssertionError, match=r"become \[127, 64\]"):
        rules.the_largest_of_a_row_becomes_127(
            lambda x: (torch.tensor([[127, 1], [64, -3]]), x), torch.ones(2, 2)
        )
    for whole, step, words in (
        (torch.ones(2, 3), torch.ones(2, 1), r"zeros becomes \[1.0, 1.0, 1.0\]"),
        (torch.zeros(2, 3), torch.full((2, 1), torch.inf), r"zeros is \[inf, inf\]"),
    ):
        with pytest.raises(AssertionError, match=words):
            rules.zeros_stay_zeros(lambda _, found=(whole, step): found)


@pytest.mark.parametrize(
    "around", [nullcontext(), torch.device("meta"), torch.autocast("cpu")]
)
def test_torch_s_product_is_taken_where_it_is_right(monkeypatch, around):
    def right(x, values):
        return by_plain_tensors(x, values).int()

    integer_product.cache_clear()
    with monkeypatch.context() as patch, around:
        patch.setattr(int8, "by_torch", right)
        assert integer_product() is right
    integer_product.cache_clear()


def test_a_user_s_defaults_have_no_say():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with torch.device("meta"):
            matrix = Int8Matrix.of(torch.ones(3, 2, dtype=torch.float32, device="cpu"))
    finally:
        torch.set_default_dtype(before)
    assert matrix.scales.dtype == torch.float32
    assert matrix.scales.device.type == matrix.values.device.type == "cpu"


@pytest.mark.parametrize("n_rows", [1, 3])
def test_a_derivative_is_refused_where_rounding_would_give_none(n_rows):
    matrix, x = Int8Matrix.of(normal(5, 4)), normal(n_rows, 4)
    with pytest.raises(ValueError, match="int8: rounding has no derivative"):
        matrix(x.clone().requires_grad_())
    with pytest.raises(ValueError, match="int8: rounding has no derivative"):
        torch.func.jvp(matrix, (x,), (torch.ones_like(x),))
    with torch.no_grad():
        assert torch.equal(matrix(x.clone().requires_grad_()), matrix(x))


@pytest.mark.parametrize("multiply", [by_torch, by_plain_tensors])
@pytest.mark.parametrize("n_in", [1, 8])
def test_a_product_goes_to_memory_that_is_there(monkeypatch, multiply, n_in):
    matrix, x, bias = Int8Matrix.of(normal(7, n_in)), normal(1, n_in), torch.ones(7)
    monkeypatch.setattr(int8, "integer_product", lambda: multiply)
    whole, found = quantize(x)[0], torch.empty(1, 7, dtype=torch.int32)
    assert multiply(whole, matrix.values, found) is found
    assert torch.equal(found, multiply(whole, matrix.values))
    out = torch.empty(7)
    matrix.prepared(bias, out)(x[0])
    assert torch.allclose(out, matrix(x)[0] + bias, rtol=1e-6)
