"""How a product with one row is done by bags: the same numbers, added up by cores."""

import pickle
from copy import deepcopy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from checkpoints import SMALL, as_on_x86, random_ids, random_tensors
from gpt2hw import GPT2, bags, huge_pages
from gpt2hw.bags import (
    A_SHARE,
    MANY,
    BagMatrix,
    cut,
    free_registers,
    number_of_bags,
    pays,
    product_by_bags,
    shares,
)
from gpt2hw.fast import MatrixLinear, taught
from gpt2hw.linear import Linear
from gpt2hw.properties import rows as rules
from gpt2hw.properties.closeness import agree
from gpt2hw.properties.linear import rows_of_the_matrix_are_inputs
from gpt2hw.properties.seeded import normal

quickly = settings(deadline=None, max_examples=40)
SIZES = st.integers(1, 40)
THREADS = st.integers(1, 4)
WAYS = (deepcopy, lambda given: pickle.loads(pickle.dumps(given)))


@pytest.fixture(autouse=True)
def _as_many_threads_as_before():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def by_bags(linear: Linear, x: Tensor) -> Tensor:
    """The map of `linear`, done by bags."""
    return MatrixLinear.of(BagMatrix(linear.weight.T), linear.bias)(x)


def near(found: Tensor, right: Tensor) -> None:
    """As close as float32 gets where sums are added up in another order."""
    assert found.shape == right.shape
    gap = (found - right).abs().max()
    assert float(gap) <= 1e-5 * (1 + float(right.abs().max()))


# The numbers


@given(SIZES, SIZES, st.integers(1, 6), THREADS, st.integers(0, 99))
@quickly
def test_bags_give_what_the_taught_map_gives(n_in, n_out, n_rows, n_threads, seed):
    torch.set_num_threads(n_threads)
    linear = Linear(weight=normal(n_in, n_out, seed=seed), bias=normal(n_out))
    x = normal(n_rows, n_in, seed=seed + 1)
    near(by_bags(linear, x), linear(x))


@pytest.mark.parametrize("n_threads", [1, 2, 3, 4])
def test_a_large_matrix_gives_the_same_with_any_number_of_threads(n_threads):
    torch.set_num_threads(n_threads)
    weight, x = normal(1001, 600), normal(1001, seed=1)
    right = (x.double() @ weight.double()).float()
    agree(product_by_bags(x, weight), right, 1e-5)


@pytest.mark.parametrize("batch", [(), (1,), (1, 1), (4,), (4, 1), (2, 3, 4)])
def test_any_batch_keeps_its_shape(batch):
    linear = Linear(weight=normal(12, 7), bias=normal(7))
    x = normal(*batch, 12)
    agree(by_bags(linear, x), linear(x), 1e-5)
    scattered = x.transpose(0, -1).contiguous().transpose(0, -1)
    agree(by_bags(linear, scattered), linear(x), 1e-5)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_a_row_that_does_not_lie_in_one_piece_is_read_right(n_threads):
    torch.set_num_threads(n_threads)
    weight, every_other = normal(12, 7), normal(24)[::2]
    agree(BagMatrix(weight.T)(every_other), every_other @ weight, 1e-5)


def test_the_rows_of_the_matrix_are_the_inputs_here_too():
    rows_of_the_matrix_are_inputs(by_bags)


@given(SIZES, SIZES, THREADS, st.integers(0, 99))
@quickly
def test_a_prepared_product_writes_x_w_plus_b_to_its_place(
    n_in, n_out, n_threads, seed
):
    torch.set_num_threads(n_threads)
    weight, bias = normal(n_in, n_out, seed=seed), normal(n_out, seed=seed + 1)
    out = torch.full((n_out,), torch.nan)
    product = BagMatrix(weight.T).prepared(bias, out)
    kept = bias.clone()
    for shift in range(2):  # what was there before has no say
        x = normal(n_in, seed=seed + 2 + shift)
        product(x)
        near(out, x @ weight + kept)
    assert torch.equal(bias, kept)


def test_what_was_prepared_is_right_with_another_number_of_threads_too():
    weight, bias, x = normal(50, 9), normal(9), normal(50, seed=1)
    for before, after in ((1, 4), (4, 1)):
        torch.set_num_threads(before)
        out = torch.empty(9)
        product = BagMatrix(weight.T).prepared(bias, out)
        torch.set_num_threads(after)
        product(x)
        agree(out, x @ weight + bias, 1e-5)


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("special", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("beside", [1.0, 0.0])  # 0 times infinity is no number
def test_what_is_no_number_spreads_as_in_any_product(n_threads, special, beside):
    torch.set_num_threads(n_threads)
    weight, x = torch.ones(3, 20), torch.tensor([1.0, beside, 1.0])
    weight[1, 4] = special
    found, out = [product_by_bags(x, weight)], torch.zeros(20)
    BagMatrix(weight.T).prepared(torch.zeros(20), out)(x)
    for one in (*found, out):
        torch.testing.assert_close(one, x @ weight, equal_nan=True)
    x = torch.tensor([1.0, special, 1.0])
    weight = torch.ones(3, 20)
    weight[1, 4] = beside
    found = product_by_bags(x, weight)
    torch.testing.assert_close(found, x @ weight, equal_nan=True)


@pytest.mark.parametrize("n_rows", [1, 3])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_derivatives_are_those_of_the_plain_product(n_rows, n_threads):
    torch.set_num_threads(n_threads)

    def derivatives(product):
        weight = normal(6, 9).requires_grad_()
        x = normal(n_rows, 6, seed=1).requires_grad_()
        (product(x, weight) * normal(n_rows, 9, seed=2)).sum().backward()
        return weight.grad, x.grad

    found = derivatives(lambda x, weight: BagMatrix(weight.T)(x))
    for one, right in zip(found, derivatives(torch.matmul), strict=True):
        agree(one, right, 1e-5)


# How the work is cut


@given(st.integers(1, 5000), st.data())
@quickly
def test_the_bags_hold_every_input_once_and_none_is_empty(n_in, data):
    n_bags = data.draw(st.integers(1, min(n_in, 64)))
    numbers, starts = cut(n_in, n_bags)
    ends = [*starts[1:].tolist(), n_in]
    sizes = [end - start for start, end in zip(starts.tolist(), ends, strict=True)]
    assert numbers.tolist() == list(range(n_in))
    assert int(starts[0]) == 0
    assert len(sizes) == n_bags
    assert min(sizes) >= 1
    assert max(sizes) - min(sizes) <= 1  # no core has more to do than the others


@pytest.mark.parametrize(("n_in", "n_threads", "n_bags"), [(9, 4, 4), (3, 4, 3)])
def test_each_core_gets_a_bag_and_no_bag_is_without_an_input(n_in, n_threads, n_bags):
    torch.set_num_threads(n_threads)
    assert number_of_bags(n_in) == n_bags


def test_what_is_cut_is_kept():
    assert cut(7, 3)[1] is cut(7, 3)[1]


@given(st.integers(1, 8), SIZES, st.integers(8, 64), THREADS)
@quickly
def test_nothing_large_is_made_for_a_product(n_rows, n_out, n_in, n_threads):
    def product(x, values):
        return BagMatrix(values)(x)

    torch.set_num_threads(n_threads)
    x, values = normal(n_rows, n_in), normal(n_in, n_out, seed=1).T
    rules.blocks_equal_one_product(product, x, values)
    torch.set_num_threads(1)  # with more, each has sums of its own
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bags, "free_registers", lambda shared: None)  # made before
        product(x, values)
        rules.nothing_large_is_made(product, x, values)


def test_many_rows_are_done_by_a_product_for_many(monkeypatch):
    def refused(*_):
        raise AssertionError("bags")

    def product_of_many():
        seen.append("asked")
        return lambda x, values: x @ values.T

    seen, matrix = [], BagMatrix(normal(3, 8).T)
    monkeypatch.setattr(bags, "product_by_bags", refused)
    monkeypatch.setattr(bags, "product_of_many", product_of_many)
    for axes in ((2,), (2, 1), (1, 2)):
        matrix(normal(*axes, 3))
    assert seen == ["asked"] * 3
    for axes in ((), (1,), (1, 1)):
        with pytest.raises(AssertionError, match="bags"):
            matrix(normal(*axes, 3))


@given(SIZES, SIZES, st.integers(0, 99))
@quickly
def test_a_matrix_by_outputs_is_laid_anew_by_inputs(n_out, n_in, seed):
    by_outputs = normal(n_out, n_in, seed=seed)
    matrix, kept = BagMatrix.of(by_outputs), by_outputs.clone()
    assert torch.equal(matrix.values, kept)
    assert matrix.values.T.is_contiguous()
    by_outputs.zero_()  # its memory is no part of it
    assert torch.equal(matrix.values, kept)
    x, ids = normal(n_in, seed=seed + 1), torch.arange(n_out).flip(0)
    near(matrix(x), kept @ x)
    assert torch.equal(matrix.rows(ids), kept[ids])


def test_a_large_matrix_is_laid_anew_in_huge_pages(monkeypatch):
    shapes, whole = [], huge_pages.empty
    monkeypatch.setattr(
        huge_pages, "empty", lambda *given: shapes.append(given) or whole(*given)
    )
    BagMatrix.of(normal(7, 5))
    assert shapes == [((5, 7), torch.float32)]


# The registers


@pytest.mark.parametrize("n_threads", [1, 3])
def test_each_core_that_filled_a_bag_has_its_registers_freed(monkeypatch, n_threads):
    seen = []
    monkeypatch.setattr(bags, "free_registers", lambda shared: seen.append(len(shared)))
    torch.set_num_threads(n_threads)
    BagMatrix(normal(8, 5).T)(normal(8))
    assert seen == [n_threads * A_SHARE]


def test_the_registers_are_freed_by_a_kernel_that_writes_to_all_of_the_shares():
    shared = torch.ones(3 * A_SHARE, dtype=torch.uint8)
    free_registers(shared)
    assert not shared.any()


@pytest.mark.parametrize("n_cores", [1, 2, 3, 64])
def test_there_is_shares_core(n_cores):
    assert shares(n_cores).numel() >= n_cores * 2**15  # torch shares out no less
    assert shares(n_cores).is_contiguous()
    assert shares(n_cores) is shares(n_cores)  # made once


# The matrix


def test_nothing_of_the_matrix_is_copied():
    weight = normal(6, 9)
    matrix = BagMatrix(weight.T)
    linear = MatrixLinear.of(matrix, normal(9))
    shared = (matrix.values, matrix.widened(), linear.weight, linear.taught().weight)
    assert {part.data_ptr() for part in shared} == {weight.data_ptr()}
    assert linear.weight.is_contiguous()
    before = weight.clone()
    linear(normal(6, seed=1))
    linear(normal(2, 6, seed=1))
    assert torch.equal(weight, before)
    weight.zero_()
    assert torch.equal(linear(normal(6)), linear.bias)


def test_it_is_seen_by_outputs_as_every_form_of_a_matrix():
    weight, ids = normal(6, 9), torch.tensor([[3, 1], [8, 3]])
    matrix = BagMatrix(weight.T)
    assert torch.equal(matrix.rows(ids), weight.T[ids])
    assert torch.equal(matrix.widened(), weight.T)


ENOUGH = (1024, MANY // 1024)


@pytest.mark.parametrize(
    ("weight", "is_faster"),
    [
        (torch.zeros(768, 768), True),
        (torch.zeros(ENOUGH), True),
        (torch.zeros(1, MANY - 1), False),
        (torch.zeros(192, 768), False),
        (torch.zeros(768, 768, dtype=torch.float64), False),
        (torch.zeros(768, 768, dtype=torch.float16), False),
        (torch.zeros(768, 768, device="meta"), False),
        (torch.zeros(768, 1024).T, False),
        (torch.zeros(768, 2048)[:, ::2], False),
    ],
)
def test_bags_are_for_a_large_float32_matrix_that_lies_row_by_row_on_a_cpu(
    monkeypatch, weight, is_faster
):
    as_on_x86(monkeypatch)
    assert pays(weight) is is_faster


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_lies_by_inputs_as_the_matrix_does(way):
    weight, x = normal(6, 9), normal(6, seed=1)
    matrix = BagMatrix(weight.T)
    twin = way(matrix)
    assert twin.values.T.is_contiguous()
    right = matrix(x)
    weight.zero_()
    assert torch.equal(twin(x), right)


# In a model


@pytest.fixture
def model(monkeypatch):
    as_on_x86(monkeypatch)
    monkeypatch.setattr(bags, "MANY", 1)
    model = GPT2.from_tensors(SMALL, random_tensors(SMALL))
    assert isinstance(model.h[0].mlp.c_proj.matrix, BagMatrix)
    return model


@pytest.mark.parametrize("way", WAYS)
def test_a_model_is_copied_and_pickled_with_its_bags(model, way):
    twin, ids = way(model), random_ids(SMALL, 5)
    assert isinstance(twin.h[1].attn.c_attn.matrix, BagMatrix)
    for block in twin.h:
        for linear in (block.attn.c_attn, block.attn.c_proj, block.mlp.c_fc):
            assert linear.weight.data_ptr() == linear.matrix.values.data_ptr()
            assert linear.weight.is_contiguous()
    assert torch.equal(twin(ids), model(ids))
    assert torch.equal(twin.last_logits(ids), model.last_logits(ids))


@pytest.mark.parametrize("n_threads", [1, 4])
def test_token_after_token_gives_the_taught_logits_with_any_number_of_threads(
    model, n_threads
):
    torch.set_num_threads(n_threads)
    ids, cache = random_ids(SMALL, 9), model.new_cache()
    found = torch.stack([model.last_logits(one, cache) for one in ids.split(1)])
    agree(found, taught(model).forward(ids), 1e-5)


@pytest.mark.parametrize("first_inside", [True, False])
def test_what_is_kept_may_be_used_inside_and_outside_of_inference_mode(first_inside):
    for kept in (cut, shares):
        kept.cache_clear()
    torch.set_num_threads(3)
    weight, x = normal(8, 5), normal(8, seed=1)
    for inside in (first_inside, not first_inside, first_inside):
        with torch.inference_mode(inside):
            agree(BagMatrix(weight.T)(x), x @ weight, 1e-5)
            BagMatrix(weight.T).prepared(normal(5), torch.empty(5))(x)
    weight.requires_grad_()
    BagMatrix(weight.T)(x).sum().backward()
    agree(weight.grad, x[:, None].expand(8, 5), 1e-6)
    assert not any(part.is_inference() for part in (*cut(8, 3), shares(3)))


def test_a_user_s_default_device_and_dtype_have_no_say():
    for kept in (cut, shares):
        kept.cache_clear()
    torch.set_num_threads(3)
    weight, bias, x = normal(8, 5), normal(5), normal(8, seed=1)
    before, out = torch.get_default_dtype(), torch.empty(5)
    torch.set_default_dtype(torch.float64)
    try:
        with torch.device("meta"):
            found = BagMatrix(weight.T)(x)
            BagMatrix(weight.T).prepared(bias, out)(x)
            assert shares(3).device.type == "cpu"
    finally:
        torch.set_default_dtype(before)
    agree(found, x @ weight, 1e-5)
    agree(out, x @ weight + bias, 1e-5)
    assert found.dtype == torch.float32


@pytest.mark.parametrize("n_rows", [1, 5])
def test_a_forward_derivative_goes_through(n_rows):
    linear = Linear(weight=normal(7, 5), bias=normal(5))
    fast = MatrixLinear.of(BagMatrix(linear.weight.T), linear.bias)
    x, tangent = normal(n_rows, 7), normal(n_rows, 7, seed=3)
    found = torch.func.jvp(fast, (x,), (tangent,))
    right = torch.func.jvp(linear, (x,), (tangent,))
    for a, b in zip(found, right, strict=True):
        agree(a, b, 1e-5)


@pytest.mark.parametrize("n_rows", [1, 5])
def test_rows_of_another_type_are_multiplied_where_autocast_allows_it(n_rows):
    linear = Linear(weight=normal(7, 5), bias=normal(5))
    fast = MatrixLinear.of(BagMatrix(linear.weight.T), linear.bias)
    x = normal(n_rows, 7).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        agree(fast(x).float(), linear(x).float(), 1e-2)


def test_bags_pay_only_where_torch_has_their_kernel(monkeypatch):
    as_on_x86(monkeypatch)
    assert pays(torch.zeros(768, 768))
    monkeypatch.setattr("torch.backends.quantized", _NoEngine)
    assert not pays(torch.zeros(768, 768))


class _NoEngine:
    supported_engines = ("qnnpack",)


@pytest.mark.parametrize("capability", ["DEFAULT", "NO AVX", "SVE256"])
def test_elsewhere_than_on_x86_torch_may_have_a_kernel_that_nobody_measured(
    monkeypatch, capability
):
    as_on_x86(monkeypatch)
    table = torch.zeros(2, 3)
    assert bags.has_kernel(table)
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: capability)
    assert not bags.has_kernel(table)


def test_bags_begin_where_they_should_also_where_the_product_is_a_large_number():
    n_in, n_bags = 40_000_003, 128
    numbers, starts = bags.cut.__wrapped__(n_in, n_bags)
    assert starts.tolist() == [i * n_in // n_bags for i in range(n_bags)]
    assert numbers.dtype == starts.dtype == torch.int32
