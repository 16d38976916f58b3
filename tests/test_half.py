"""Weights in 16 bits, by the rules that the chapter shows."""

import importlib.util

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gpt2hw.half import FEW, HalfMatrix, one_row, room_for
from gpt2hw.properties import half as rules
from gpt2hw.properties.drawn import SEEDS
from gpt2hw.properties.seeded import normal

quickly = settings(deadline=None, max_examples=40)
SIZES = st.floats(-37, 37).map(lambda power: 10.0**power)


@given(st.integers(1, 40), st.integers(10, 40), SIZES, SEEDS)
@quickly
def test_a_row_of_any_size_keeps_its_digits(n_in, n_out, size, seed):
    x = size * normal(1, n_in, seed=seed)
    values = normal(n_out, n_in, seed=seed + 1).half()
    rules.no_float16_is_infinite(one_row, x, values)
    rules.equals_the_widened_product(one_row, x, values)


@pytest.mark.parametrize("n_in", [1, 3, 768])
def test_zeros_stay_zeros(n_in):
    rules.zeros_stay_zeros(one_row, normal(5, n_in).half())


def test_a_default_set_before_the_import_changes_nothing():
    spec = importlib.util.find_spec("gpt2hw.half")
    assert spec is not None
    assert spec.loader is not None
    half, before = importlib.util.module_from_spec(spec), torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with torch.device("meta"):
            spec.loader.exec_module(half)
    finally:
        torch.set_default_dtype(before)
    assert (half.TINY.dtype, half.TINY.device.type) == (torch.float32, "cpu")


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("broken", [float("nan"), float("inf"), -float("inf")])
def test_one_row_with_what_is_no_number_gives_none(at, broken):
    x, out = torch.ones(3), torch.zeros(2)
    x[at] = broken
    half = HalfMatrix.of(torch.ones(2, 3))
    half.prepared(torch.zeros(2), out)(x)
    assert not out.isfinite().any()
    assert not half(x).isfinite().any()


@pytest.mark.parametrize("n", [1, 2048, 2050, 4096, 60000])
def test_a_sum_has_more_digits_than_float16(n):
    rules.ones_are_counted(one_row, n)


def test_a_weight_beyond_the_range_becomes_its_end():
    rules.weights_end_where_float16_ends(lambda m: HalfMatrix.of(m).values)


@given(st.integers(1, 12), st.integers(1, 20), st.integers(10, 30), SEEDS)
@quickly
def test_few_rows_and_many_give_the_product_of_the_widened_matrix(
    n_rows, n_in, n_out, seed
):
    matrix = HalfMatrix.of(normal(n_out, n_in, seed=seed))
    x = normal(n_rows, n_in, seed=seed + 1)
    rules.equals_the_widened_product(lambda x, _: matrix(x), x, matrix.values)


@pytest.mark.parametrize("shape", [(1,), (2,), (FEW,), (1, FEW), (FEW, 1), (1, 1)])
def test_each_of_a_few_rows_gives_what_it_gives_alone(shape):
    matrix, x = HalfMatrix.of(normal(30, 16)), normal(*shape, 16, seed=1)
    x[0] *= 1e6  # a scale of its own for each
    found = matrix(x)
    assert found.shape == (*shape, 30)
    alone = torch.stack([matrix(row) for row in x.reshape(-1, 16)])
    assert torch.equal(found.view(-1, 30), alone)


@pytest.mark.parametrize("n_in", [1, 768, 3072])
@pytest.mark.parametrize("weight", [100.0, -1000.0])
def test_large_weights_of_one_sign_make_no_sum_infinite(n_in, weight):
    x, values = torch.ones(n_in), torch.full((2, n_in), weight)
    matrix, out = HalfMatrix.of(values), torch.empty(2)
    matrix.prepared(torch.zeros(2), out)(x)
    for found in (matrix(x), out):
        assert torch.allclose(found, torch.tensor(n_in * weight), rtol=2e-3)


def test_what_is_no_finite_number_stays_so():
    broken = torch.tensor([[torch.inf, -torch.inf, torch.nan, 7e4]])
    found = HalfMatrix.of(broken).values[0].tolist()
    assert found[:2] == [torch.inf, -torch.inf]
    assert found[2] != found[2]
    assert found[3] == 65504


def test_a_rule_says_what_is_wrong():
    with pytest.raises(AssertionError, match=r"result is torch\.float32"):
        rules.weights_end_where_float16_ends(lambda m: m)
    with pytest.raises(AssertionError, match="NaN becomes 0"):
        rules.weights_end_where_float16_ends(
            lambda m: m.nan_to_num().clamp(-65504, 65504).half()
        )
    with pytest.raises(AssertionError, match=r"a row of zeros gives \[1, 1\]"):
        rules.zeros_stay_zeros(lambda x, v: torch.ones(1, len(v)), torch.ones(2, 3))


@pytest.mark.parametrize("n_rows", [1, FEW, FEW + 1])
@pytest.mark.parametrize("largest", [1.0, 5000.0, 60_000.0, torch.inf, torch.nan])
def test_no_sum_leaves_the_range_however_large_the_weights_are(n_rows, largest):
    weights = normal(8, 768)
    weights *= 60_000 / weights.abs().max() if largest > 60_000 else 1
    weights[0] = weights[0].sign() * largest  # as the row: all products add up
    matrix, x = HalfMatrix.of(weights), weights[0].sign().expand(n_rows, 768)
    out = torch.empty(8)
    matrix.prepared(torch.zeros(8), out)(x[0].contiguous())
    right = x.double() @ matrix.values.double().T
    for found in (matrix(x), out.expand(n_rows, 8)):
        finite = right.isfinite()
        gap = (found.double() - right)[finite].abs().max()
        assert gap <= 2e-3 * right[finite].abs().max()
        assert not found[~finite].isfinite().any()


@pytest.mark.parametrize(
    ("n_in", "largest", "room"),
    [
        (16, 1.0, 4.0),  # the root of n_in
        (17, 1.0, 8.0),  # rounded up to a power of two
        (16, 60_000.0, 32.0),  # 16 x 60,000 / 2**15 is 29.3
        (16, -60_000.0, 32.0),
        (16, torch.inf, 4.0),
        (16, torch.nan, 4.0),
    ],
)
def test_the_room_is_that_of_n_in_or_of_the_largest_weight(n_in, largest, room):
    weights = torch.zeros(3, n_in)
    weights[1, 2] = largest
    assert room_for(weights.half()) == HalfMatrix(weights.half()).room == room
