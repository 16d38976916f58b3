"""Step 5: layer norm, GELU, the MLP, and the stream that they add to."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpoints import SMALL, random_model
from gpt2hw.block import LayerNorm, gelu, normalize
from gpt2hw.properties import block as rules
from gpt2hw.properties.attention import later_rows_change_nothing
from gpt2hw.properties.drawn import SEEDS, batch_shapes, rows
from gpt2hw.properties.seeded import normal

quickly = settings(deadline=None, max_examples=40)
BLOCK = random_model().h[1]
EPSILONS = st.sampled_from([1e-12, 1e-6, 1e-5, 1e-3, 0.1, 0.9])


# --- layer norm ---


@given(rows(limit=1e3))
@quickly
def test_a_normalized_row_has_mean_0(x):
    rules.rows_have_mean_0(normalize, x)


@given(rows(limit=1e3), EPSILONS)
@quickly
def test_a_normalized_row_has_the_variance_that_epsilon_leaves(x, eps):
    rules.rows_have_the_variance_that_eps_leaves(normalize, x, eps)


@given(batch_shapes(), st.integers(1, 60), st.floats(1e-3, 1e3), EPSILONS, SEEDS)
@quickly
def test_layer_norm_equals_torchs(batch, n_embd, deviation, eps, seed):
    x = 3 + normal(*batch, n_embd, seed=seed, deviation=deviation)
    weight, bias = normal(n_embd, seed=seed + 1), normal(n_embd, seed=seed + 2)
    found = LayerNorm(weight, bias, eps)(x.double())
    expected = F.layer_norm(x.double(), (n_embd,), weight.double(), bias.double(), eps)
    torch.testing.assert_close(found, expected)


def test_the_variance_is_the_populations():
    found = normalize(torch.tensor([1.0, 2.0, 3.0, 4.0]), 1e-5).tolist()
    expected = [-1.3416354, -0.4472118, 0.4472118, 1.3416354]  # of a sample: 1.1618915
    assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("eps", "expected"), [(1e-5, 0.3015113), (1e-6, 0.7071068)])
def test_epsilon_stands_inside_the_root(eps, expected):
    found = normalize(torch.tensor([-1e-3, 1e-3]), eps).tolist()
    assert found == pytest.approx([-expected, expected], abs=1e-6)


@given(st.floats(-1e4, 1e4, width=32), st.integers(1, 800))
@quickly
def test_a_constant_row_becomes_zero(value, n):
    rules.a_constant_row_becomes_zero(normalize, value, n)


def test_half_precision_is_widened_before_it_is_squared():
    rules.half_precision_stays_finite(normalize)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_normalizing_keeps_the_precision_that_came_in(dtype):
    x = normal(3, 48, deviation=30).to(dtype)
    expected = F.layer_norm(x.double(), (48,), eps=1e-5)
    found = normalize(x, 1e-5)
    assert found.dtype == dtype
    torch.testing.assert_close(found.double(), expected, atol=0.02, rtol=0.01)


@given(batch_shapes(), st.integers(1, 5), SEEDS)
@quickly
def test_layer_norm_and_mlp_work_on_a_token_at_a_time(batch, n_seq, seed):
    x = normal(*batch, n_seq, SMALL.n_embd, seed=seed)
    rules.tokens_think_alone(BLOCK.ln_1, x)
    rules.tokens_think_alone(BLOCK.mlp, x)


# --- gelu ---


def test_gelu_is_the_tanh_form():
    rules.gelu_is_the_tanh_form(gelu)


@given(rows(limit=1e4))
@quickly
def test_gelu_is_a_gate(x):
    rules.gelu_is_a_gate(gelu, x)


def test_gelu_equals_torchs_tanh_form_and_not_the_exact_one():
    x = torch.linspace(-8, 8, 4001, dtype=torch.float64)
    expected = F.gelu(x, approximate="tanh")
    torch.testing.assert_close(gelu(x), expected, atol=1e-12, rtol=0)
    gap = (gelu(x) - F.gelu(x)).abs()
    assert gap.max() == pytest.approx(4.73e-4, abs=1e-6)
    assert abs(x[gap.argmax()]) == pytest.approx(2.70, abs=0.01)


def test_gelu_survives_huge_numbers():
    found = gelu(torch.tensor([1e38, -1e38, 1e15, -1e15]))
    assert found.tolist() == [
        float(torch.tensor(1e38)),
        0,
        float(torch.tensor(1e15)),
        0,
    ]


# --- MLP and block ---


def test_the_mlp_is_two_linear_maps_with_gelu_between():
    mlp, x = BLOCK.mlp, normal(4, SMALL.n_embd)
    inner = F.linear(x, mlp.c_fc.weight.T, mlp.c_fc.bias)
    act = F.gelu(inner, approximate="tanh")
    expected = F.linear(act, mlp.c_proj.weight.T, mlp.c_proj.bias)
    torch.testing.assert_close(mlp(x), expected)
    assert inner.shape[-1] == SMALL.n_inner


@given(batch_shapes(), st.integers(1, 6), SEEDS)
@quickly
def test_parts_that_add_nothing_leave_the_stream_alone(batch, n_seq, seed):
    x = normal(*batch, n_seq, SMALL.n_embd, seed=seed, deviation=3)
    rules.silent_parts_leave_the_stream_alone(BLOCK, x)


def test_each_part_reads_the_normalized_stream_and_adds_to_the_plain_one():
    x = normal(5, SMALL.n_embd)
    middle = x + BLOCK.attn(BLOCK.ln_1(x))
    assert torch.equal(BLOCK(x), middle + BLOCK.mlp(BLOCK.ln_2(middle)))


@given(st.integers(2, 8), SEEDS, st.data())
@quickly
def test_later_tokens_change_nothing_before_them(n_seq, seed, data):
    x = normal(n_seq, SMALL.n_embd, seed=seed)
    n_later = data.draw(st.integers(1, n_seq - 1))
    later = normal(n_later, SMALL.n_embd, seed=seed + 1, deviation=50)
    later_rows_change_nothing(BLOCK, x, later)


def test_a_row_of_the_residual_stream_may_be_large():
    x = torch.full((2, SMALL.n_embd), 1e6)
    x[:, 3] = -math.pi * 1e6
    assert BLOCK(x).isfinite().all()
