"""How a product with many rows is done: by oneDNN, where torch has it.

A prompt uses each weight once a token, so its products are bound by arithmetic, not by
memory. torch gives float32 products to MKL, which on some processors runs at half the
speed of oneDNN, a library that torch carries as well. The way to it is private, so it
is asked once whether it is there and right, and a plain product stands in its place
where it is not.
"""

from collections.abc import Callable
from functools import cache
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual

Product = Callable[[Tensor, Tensor], Tensor]
GeluProduct = Callable[[Tensor, Tensor, Tensor], Tensor]
Way = TypeVar("Way", bound=Callable[..., Tensor])


@cache
def product_of_many() -> Product:
    """The product of rows with a matrix that lies by outputs, as fast as there is one.

    >>> product_of_many()(torch.ones(2, 3), torch.eye(3)).tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """
    x, values, _ = _whole_numbers()
    return _first_if_right(by_onednn, by_plain_tensors, x, values)


@cache
def gelu_of_many() -> GeluProduct:
    """Gelu of such a product plus a bias, done while each number is still at hand.

    >>> gelu_of_many()(torch.ones(1, 2), torch.eye(2), torch.tensor([1.0, -2.0]))
    tensor([[ 1.9546, -0.1588]])
    """
    x, values, bias = _whole_numbers()
    x = x / 2**17  # sums of about 1, where gelu bends
    return _first_if_right(gelu_by_onednn, gelu_by_plain_tensors, x, values, bias)


def by_onednn(
    x: Float[Tensor, "*batch n_in"], values: Float[Tensor, "n_out n_in"]
) -> Float[Tensor, "*batch n_out"]:
    """x times the matrix turned; or by plain tensors (`only_plainly`)."""
    if only_plainly(x, values):
        return by_plain_tensors(x, values)
    op = torch.ops.mkldnn._linear_pointwise
    product: Tensor = op(x, values, None, "none", [], "")
    return product


def by_plain_tensors(
    x: Float[Tensor, "*batch n_in"], values: Float[Tensor, "n_out n_in"]
) -> Float[Tensor, "*batch n_out"]:
    """The same by torch's product of matrices.

    >>> by_plain_tensors(torch.ones(1, 2), torch.eye(2))
    tensor([[1., 1.]])
    """
    return x @ values.T


def gelu_by_onednn(
    x: Float[Tensor, "*batch n_in"],
    values: Float[Tensor, "n_out n_in"],
    bias: Float[Tensor, " n_out"],
) -> Float[Tensor, "*batch n_out"]:
    """Gelu of x times the matrix turned, plus the bias, in one call."""
    if only_plainly(x, values, bias):
        return gelu_by_plain_tensors(x, values, bias)
    op = torch.ops.mkldnn._linear_pointwise
    # Of a bias, it reads what lies in memory one number after another.
    found: Tensor = op(x, values, bias.contiguous(), "gelu", [], "tanh")
    return found


def gelu_by_plain_tensors(
    x: Float[Tensor, "*batch n_in"],
    values: Float[Tensor, "n_out n_in"],
    bias: Float[Tensor, " n_out"],
) -> Float[Tensor, "*batch n_out"]:
    """The same one after the other.

    >>> gelu_by_plain_tensors(torch.ones(1, 1), torch.eye(1), torch.zeros(1))
    tensor([[0.8412]])
    """
    found: Tensor = torch.ops.aten.gelu(x @ values.T + bias, approximate="tanh")
    return found


def only_plainly(*given: Tensor) -> bool:
    """Whether plain tensors must do it: derivatives are asked for, or types differ.

    The private call gives no derivative; and it takes one type, where autocast may hand
    over two.
    """
    return len({tensor.dtype for tensor in given}) > 1 or wants_derivative(*given)


def wants_derivative(*given: Tensor) -> bool:
    """Whether one of them brings a derivative along, backward or forward.

    >>> x = torch.ones(1)
    >>> wants_derivative(x), wants_derivative(x.requires_grad_())
    (False, True)
    """
    backward = torch.is_grad_enabled() and any(t.requires_grad for t in given)
    return backward or any(_has_tangent(tensor) for tensor in given)


def _has_tangent(tensor: Tensor) -> bool:
    """Whether a forward derivative comes with it."""
    dual = unpack_dual(tensor)  # type: ignore[no-untyped-call]
    return dual.tangent is not None


def _first_if_right(first: Way, plain: Way, *given: Tensor) -> Way:
    """`first`, where this torch has it and it finds what `plain` finds; or `plain`."""
    with torch.autocast("cpu", enabled=False):
        right = plain(*given)
        try:
            found = first(*given)
        except (AttributeError, RuntimeError, NotImplementedError):
            return plain
    alike = found.shape == right.shape and found.dtype == right.dtype
    same = alike and torch.allclose(found, right, rtol=0, atol=1e-5)
    return first if same else plain


def _whole_numbers() -> tuple[Tensor, Tensor, Tensor]:
    """Rows, a matrix and a bias, whose products have exact sums in any order.

    Those of the rows need all but a few of float32's digits: a kernel that drops some
    is found out.
    """
    generator = torch.Generator().manual_seed(0)

    def whole(size: int, *shape: int) -> Tensor:
        numbers = torch.randint(
            -size, size + 1, shape, generator=generator, device="cpu"
        )
        return numbers.float()

    return whole(4001, 33, 129), whole(9, 67, 129), whole(3, 67)
