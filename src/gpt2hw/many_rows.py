"""How a product with many rows is done: by oneDNN, where torch has it.

A prompt uses each weight once a token, so its products are bound by arithmetic, not by
memory. torch gives float32 products to MKL, which on some processors runs at half the
speed of oneDNN, a library that torch carries as well: it is what compiled models use.
The way to it is private, so it is asked once whether it is there and right, and a plain
product stands in its place where it is not.
"""

from collections.abc import Callable
from functools import cache

import torch
from jaxtyping import Float32
from torch import Tensor

Product = Callable[..., Tensor]


@cache
def product_of_many() -> Product:
    """The product of rows with a matrix that lies by outputs, as fast as there is one.

    >>> product_of_many()(torch.ones(2, 3), torch.eye(3)).tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """
    return _first_if_right(by_onednn, by_plain_tensors, *_whole_numbers((33, 67)))


@cache
def gelu_of_many() -> Product:
    """Gelu of such a product plus a bias, done while each number is still at hand.

    >>> gelu_of_many()(torch.ones(1, 2), torch.eye(2), torch.tensor([1.0, -2.0]))
    tensor([[ 1.9546, -0.1588]])
    """
    x, values, bias = _whole_numbers((33, 67, 1))
    return _first_if_right(
        gelu_by_onednn, gelu_by_plain_tensors, x / 256, values, bias[0, :67]
    )


def by_onednn(
    x: Float32[Tensor, "*batch n_in"], values: Float32[Tensor, "n_out n_in"]
) -> Float32[Tensor, "*batch n_out"]:
    """x times the matrix turned; by plain tensors where a derivative is asked for."""
    if x.requires_grad:
        return by_plain_tensors(x, values)
    op = torch.ops.mkldnn._linear_pointwise
    product: Tensor = op(x, values, None, "none", [], "")
    return product


def by_plain_tensors(
    x: Float32[Tensor, "*batch n_in"], values: Float32[Tensor, "n_out n_in"]
) -> Float32[Tensor, "*batch n_out"]:
    """The same by torch's product of matrices.

    >>> by_plain_tensors(torch.ones(1, 2), torch.eye(2))
    tensor([[1., 1.]])
    """
    return x @ values.T


def gelu_by_onednn(
    x: Float32[Tensor, "*batch n_in"],
    values: Float32[Tensor, "n_out n_in"],
    bias: Float32[Tensor, " n_out"],
) -> Float32[Tensor, "*batch n_out"]:
    """Gelu of x times the matrix turned, plus the bias, in one call."""
    if x.requires_grad:
        return gelu_by_plain_tensors(x, values, bias)
    op = torch.ops.mkldnn._linear_pointwise
    found: Tensor = op(x, values, bias, "gelu", [], "tanh")
    return found


def gelu_by_plain_tensors(
    x: Float32[Tensor, "*batch n_in"],
    values: Float32[Tensor, "n_out n_in"],
    bias: Float32[Tensor, " n_out"],
) -> Float32[Tensor, "*batch n_out"]:
    """The same one after the other.

    >>> gelu_by_plain_tensors(torch.ones(1, 1), torch.eye(1), torch.zeros(1))
    tensor([[0.8412]])
    """
    found: Tensor = torch.ops.aten.gelu(x @ values.T + bias, approximate="tanh")
    return found


def _first_if_right(first: Product, plain: Product, *given: Tensor) -> Product:
    """`first`, where this torch has it and it finds what `plain` finds; or `plain`."""
    try:
        found = first(*given)
    except (AttributeError, RuntimeError, NotImplementedError):
        return plain
    same = torch.allclose(found, plain(*given), rtol=0, atol=1e-5)
    return first if same else plain


def _whole_numbers(heights: tuple[int, ...]) -> list[Tensor]:
    """Matrices of small whole numbers, whose products have exact sums in any order."""
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randint(-9, 10, (n, 129), generator=generator, device="cpu").float()
        for n in heights
    ]
