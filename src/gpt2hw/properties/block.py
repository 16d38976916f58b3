"""The rules of step 5: layer norm, GELU, and the residual stream."""

# ruff: noqa: S101

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from gpt2hw.block import TransformerBlock
from gpt2hw.linear import Linear
from gpt2hw.properties.closeness import first_five

Normalize = Callable[[Tensor, float], Tensor]
Gelu = Callable[[Tensor], Tensor]

# x -> 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), computed in float64.
TANH_GELU = {-3.0: -0.0036374, -1.0: -0.1588080, 1.0: 0.8411920, 2.0: 1.9545977}


def rows_have_mean_0(normalize: Normalize, x: Tensor, within: float = 1e-5) -> None:
    """Each row of the result has mean 0.

    >>> from gpt2hw.block import normalize
    >>> rows_have_mean_0(normalize, torch.tensor([[1.0, 2.0], [50.0, -3.0]]))
    """
    gap = float(normalize(x, 1e-5).mean(dim=-1).abs().max())
    assert gap <= within, f"a row's mean is {gap:.2g} away from 0"


def rows_have_the_variance_that_eps_leaves(
    normalize: Normalize, x: Tensor, eps: float, within: float = 1e-4
) -> None:
    """A row of population variance s comes out with s / (s + eps): nearly 1.

    It tells apart what is easily confused: the variance over n or over n - 1, and eps
    inside the root or beside it.

    >>> over_n_minus_1 = lambda x, eps: (x - x.mean()) / x.std()
    >>> x = torch.tensor([1.0, 2.0, 3.0])
    >>> rows_have_the_variance_that_eps_leaves(over_n_minus_1, x, eps=1e-5)
    Traceback (most recent call last):
    AssertionError: a row of variance 0.667 comes out with 0.667, expected 1
    """
    before = x.double().var(dim=-1, unbiased=False).flatten()
    found = normalize(x, eps).double().var(dim=-1, unbiased=False).flatten()
    right = before / (before + eps)
    worst = int((found - right).abs().argmax())
    assert float((found - right).abs().max()) <= within, (
        f"a row of variance {before[worst]:.3g} comes out with {found[worst]:.3g}, "
        f"expected {right[worst]:.3g}"
    )


def a_constant_row_becomes_zero(normalize: Normalize, value: float, n: int) -> None:
    """Where nothing varies there is nothing to scale, and no division by zero."""
    found = normalize(torch.full((n,), value), 1e-5)
    allowed = 1e-3 * max(1.0, abs(value))  # the mean itself is rounded
    assert float(found.abs().max()) <= allowed, (
        f"{n} times {value:g} becomes {first_five(found)}, expected zeros"
    )


def half_precision_stays_finite(normalize: Normalize) -> None:
    """A row of float16 with one 3000 among 300s: its squares do not fit into float16.

    >>> naive = lambda x, eps: (x - x.mean()) / (x * x).mean().sqrt()
    >>> half_precision_stays_finite(naive)
    Traceback (most recent call last):
    AssertionError: the largest number, 3000, comes out as 0
    """
    x = torch.full((768,), 300.0, dtype=torch.float16)
    x[5] = 3000.0
    found = normalize(x, 1e-5)
    assert found.dtype == torch.float16, f"float16 came back as {found.dtype}"
    assert found.isfinite().all(), f"not finite: {first_five(found)}"
    right = 767**0.5  # one value against 767 equal ones, whatever their distance
    assert abs(float(found[5]) - right) < 0.05, (
        f"the largest number, 3000, comes out as {found[5]:.4g}"
    )


def gelu_is_the_tanh_form(gelu: Gelu) -> None:
    """The values of the tanh form, to 1e-6; the form with erf differs from them.

    >>> gelu_is_the_tanh_form(lambda x: x * (1 + torch.erf(x / 2**0.5)) / 2)
    Traceback (most recent call last):
    AssertionError: gelu(-3) is -0.0040497, expected -0.0036374
    """
    for x, right in TANH_GELU.items():
        found = float(gelu(torch.tensor([x], dtype=torch.float64)))
        assert abs(found - right) <= 1e-6, (
            f"gelu({x:g}) is {found:.7f}, expected {right}"
        )


def gelu_is_a_gate(gelu: Gelu, x: Tensor) -> None:
    """gelu(x) = x g(x) with a gate 0 <= g <= 1, and g(-x) = 1 - g(x)."""
    size = 1e-6 * (1 + x.abs())
    positive = gelu(x.abs())
    assert (positive >= -size).all(), "the gate is below 0"
    assert (positive <= x.abs() + size).all(), "the gate is above 1"
    assert ((gelu(x) - gelu(-x) - x).abs() <= size).all(), "the two gates' sum is not 1"


def silent_parts_leave_the_stream_alone(block: TransformerBlock, x: Tensor) -> None:
    """A block whose two parts add nothing gives x back, to the bit.

    So nothing stands between x and the output but two sums: a norm after the sum, as in
    the first Transformer, would show here.
    """

    def silent(linear: Linear) -> Linear:
        return Linear(torch.zeros_like(linear.weight), torch.zeros_like(linear.bias))

    quiet = replace(
        block,
        attn=replace(block.attn, c_proj=silent(block.attn.c_proj)),
        mlp=replace(block.mlp, c_proj=silent(block.mlp.c_proj)),
    )
    assert torch.equal(quiet(x), x), "a block that adds nothing changes the stream"


def tokens_think_alone(layer: Callable[[Tensor], Tensor], x: Tensor) -> None:
    """The result for all rows is the result for each row: no row sees another.

    For layer norm and the MLP, which work on a token at a time.
    """
    together = layer(x)
    for i in range(x.shape[-2]):
        alone = layer(x[..., i, :])
        gap = float((together[..., i, :] - alone).abs().max())
        allowed = 1e-5 * (1 + float(alone.abs().max()))
        assert gap <= allowed, f"row {i} depends on the other rows"
