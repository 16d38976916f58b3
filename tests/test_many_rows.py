"""How a product with many rows is done: by oneDNN, or by plain tensors, the same."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gpt2hw import many_rows
from gpt2hw.block import gelu
from gpt2hw.many_rows import (
    by_onednn,
    by_plain_tensors,
    gelu_by_onednn,
    gelu_by_plain_tensors,
    gelu_of_many,
    product_of_many,
)
from gpt2hw.properties.closeness import agree
from gpt2hw.properties.seeded import normal

SIZES = st.integers(1, 70)
OUTPUTS = st.integers(10, 70)  # fewer may have next to no range


def forget() -> None:
    product_of_many.cache_clear()
    gelu_of_many.cache_clear()


@pytest.fixture
def asked_anew():
    """The choice is made once in a process; here it is made again, and forgotten."""
    forget()
    yield
    forget()


@given(SIZES, SIZES, OUTPUTS, st.integers(0, 99))
@settings(deadline=None, max_examples=60)
def test_the_product_is_that_of_plain_tensors(n_rows, n_in, n_out, seed):
    x, values = normal(n_rows, n_in, seed=seed), normal(n_out, n_in, seed=seed + 1)
    agree(product_of_many()(x, values), by_plain_tensors(x, values), 1e-5)


@pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN"
)
def test_onednn_is_taken_where_torch_has_it(asked_anew):
    assert product_of_many() is by_onednn
    assert gelu_of_many() is gelu_by_onednn


@given(SIZES, SIZES, OUTPUTS, st.sampled_from([0.1, 1, 10]), st.integers(0, 99))
@settings(deadline=None, max_examples=60)
def test_gelu_after_a_product_is_the_taught_gelu(n_rows, n_in, n_out, size, seed):
    x, values = size * normal(n_rows, n_in, seed=seed), normal(n_out, n_in, seed=seed)
    bias = normal(n_out, seed=seed + 2)
    right = gelu(x.double() @ values.double().T + bias.double()).float()
    for way in (gelu_of_many(), gelu_by_plain_tensors):
        agree(way(x, values, bias), right, 1e-5)


def test_several_axes_of_rows_stay_as_they_are():
    x, values, bias = normal(2, 3, 5), normal(7, 5), normal(7)
    found = gelu_of_many()(x, values, bias)
    assert found.shape == (2, 3, 7)
    agree(found, gelu(x @ values.T + bias), 1e-5)
    agree(product_of_many()(x, values), x @ values.T, 1e-5)


def test_rows_and_matrix_may_lie_in_any_order():
    x, values = normal(64, 9).T, normal(64, 5).T  # [9, 64], [5, 64]
    right = by_plain_tensors(x.contiguous(), values.contiguous())
    agree(product_of_many()(x, values), right, 1e-5)
    part = normal(9, 80)[:, :64]
    agree(product_of_many()(part, values), by_plain_tensors(part, values), 1e-5)


@pytest.mark.parametrize(
    "fault", [AttributeError, RuntimeError, NotImplementedError, None]
)
def test_where_onednn_is_missing_or_wrong_plain_tensors_take_its_place(
    monkeypatch, asked_anew, fault
):
    def broken(x, values, bias=None):
        if fault is None:
            return by_plain_tensors(x, values) + 1
        raise fault("no such kernel")

    monkeypatch.setattr(many_rows, "by_onednn", broken)
    monkeypatch.setattr(many_rows, "gelu_by_onednn", broken)
    assert product_of_many() is by_plain_tensors
    assert gelu_of_many() is gelu_by_plain_tensors


@pytest.mark.parametrize(
    "spoil",
    [
        lambda found: found[None],
        lambda found: found[:-1],
        lambda found: found.double(),
        lambda found: found.bfloat16().float(),
    ],
    ids=["an axis more", "a row less", "another type", "digits lost"],
)
def test_what_comes_out_must_be_alike_in_shape_type_and_digits(
    spoil, monkeypatch, asked_anew
):
    monkeypatch.setattr(many_rows, "by_onednn", lambda x, v: spoil(x @ v.T))
    monkeypatch.setattr(
        many_rows, "gelu_by_onednn", lambda x, v, b: spoil(gelu(x @ v.T + b))
    )
    assert product_of_many() is by_plain_tensors
    assert gelu_of_many() is gelu_by_plain_tensors


def test_a_kernel_that_rounds_what_goes_in_is_not_taken(monkeypatch, asked_anew):
    def rounded(x):
        return x.bfloat16().float()

    monkeypatch.setattr(many_rows, "by_onednn", lambda x, v: rounded(x) @ rounded(v).T)
    monkeypatch.setattr(
        many_rows, "gelu_by_onednn", lambda x, v, b: gelu(rounded(x) @ v.T + b)
    )
    assert product_of_many() is by_plain_tensors
    assert gelu_of_many() is gelu_by_plain_tensors


@pytest.mark.parametrize(
    "within",
    [lambda: torch.autocast("cpu"), lambda: torch.device("meta")],
    ids=["autocast", "another default device"],
)
def test_the_choice_is_the_same_wherever_it_is_first_asked_for(within, asked_anew):
    chosen = product_of_many(), gelu_of_many()
    forget()
    with within():
        assert (product_of_many(), gelu_of_many()) == chosen


@pytest.mark.parametrize(
    "lie",
    [
        lambda bias: bias.repeat_interleave(2)[::2],
        lambda bias: bias[:, None].repeat(1, 3)[:, 0],
        lambda bias: bias[:1].expand(67),
    ],
    ids=["every other", "a column", "one for all"],
)
def test_a_bias_may_lie_in_memory_as_it_likes(lie):
    x, values, bias = normal(33, 5), normal(67, 5), lie(normal(67))
    assert not bias.is_contiguous()
    agree(gelu_of_many()(x, values, bias), gelu(x @ values.T + bias), 1e-5)


def test_a_gelu_in_its_other_form_is_not_taken(monkeypatch, asked_anew):
    def by_erf(x, values, bias):
        return torch.nn.functional.gelu(x @ values.T + bias)

    monkeypatch.setattr(many_rows, "gelu_by_onednn", by_erf)
    assert gelu_of_many() is gelu_by_plain_tensors


def test_a_product_that_is_wrong_for_larger_matrices_alone_is_not_taken(
    monkeypatch, asked_anew
):
    def wrong(x, values):
        return by_plain_tensors(x, values) + (x.shape[-1] > 100)

    monkeypatch.setattr(many_rows, "by_onednn", wrong)
    assert product_of_many() is by_plain_tensors


def test_a_product_that_is_off_by_a_small_share_is_not_taken(monkeypatch, asked_anew):
    def nearly(x, values):
        return by_plain_tensors(x, values) * (1 + 2**-18)

    monkeypatch.setattr(many_rows, "by_onednn", nearly)
    assert product_of_many() is by_plain_tensors


def test_the_question_takes_nothing_of_a_user_s_random_numbers(asked_anew):
    before = torch.get_rng_state()
    product_of_many()
    gelu_of_many()
    assert torch.equal(torch.get_rng_state(), before)


def test_a_gradient_is_found_where_it_is_asked_for():
    x = normal(9, 5).requires_grad_()
    product_of_many()(x, normal(4, 5)).sum().backward()
    agree(x.grad, normal(4, 5).sum(0).expand(9, 5), 1e-6)


@pytest.mark.parametrize("asked", [0, 1, 2], ids=["rows", "matrix", "bias"])
def test_a_gradient_of_gelu_is_found_wherever_it_is_asked_for(asked):
    gradients = []
    for way in (gelu_of_many(), lambda x, values, bias: gelu(x @ values.T + bias)):
        given = [normal(9, 5), normal(4, 5, seed=1), normal(4, seed=2)]
        given[asked].requires_grad_()
        way(*given).sum().backward()
        gradients.append(given[asked].grad)
    agree(*gradients, 1e-5)


def test_the_gradient_of_a_matrix_is_found_where_it_is_asked_for():
    values = normal(4, 5).requires_grad_()
    product_of_many()(normal(9, 5), values).sum().backward()
    agree(values.grad, normal(9, 5).sum(0).expand(4, 5), 1e-6)


@pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN"
)
def test_without_gradients_weights_that_could_have_them_are_multiplied_by_onednn(
    monkeypatch,
):
    monkeypatch.setattr(many_rows, "by_plain_tensors", None)
    monkeypatch.setattr(many_rows, "gelu_by_plain_tensors", None)
    x, values, bias = normal(9, 5), normal(4, 5).requires_grad_(), normal(4)
    with torch.no_grad():
        agree(many_rows.by_onednn(x, values), x @ values.T, 1e-5)
        found = many_rows.gelu_by_onednn(x, values, bias)
        agree(found, gelu(x @ values.T + bias), 1e-5)


def test_the_private_call_itself_may_be_gone(monkeypatch, asked_anew):
    class NoKernels:
        pass

    monkeypatch.setattr(torch.ops, "mkldnn", NoKernels())
    assert product_of_many() is by_plain_tensors
    assert gelu_of_many() is gelu_by_plain_tensors
