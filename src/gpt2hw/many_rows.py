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

Product = Callable[[Tensor, Tensor], Tensor]


@cache
def product_of_many() -> Product:
    """The product of rows with a matrix that lies by outputs, as fast as there is one.

    >>> product_of_many()(torch.ones(2, 3), torch.eye(3)).tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """
    generator = torch.Generator().manual_seed(0)
    x, values = (  # whole numbers: every sum of them is exact, in any order
        torch.randint(-9, 10, shape, generator=generator, device="cpu").float()
        for shape in ((33, 129), (67, 129))
    )
    try:
        found = by_onednn(x, values)
    except (AttributeError, RuntimeError, NotImplementedError):
        return by_plain_tensors
    return (
        by_onednn
        if torch.equal(found, by_plain_tensors(x, values))
        else by_plain_tensors
    )


def by_onednn(
    x: Float32[Tensor, "n_rows n_in"], values: Float32[Tensor, "n_out n_in"]
) -> Float32[Tensor, "n_rows n_out"]:
    """x times the matrix turned; by plain tensors where a derivative is asked for."""
    if x.requires_grad:
        return by_plain_tensors(x, values)
    op = torch.ops.mkldnn._linear_pointwise
    product: Tensor = op(x, values, None, "none", [], "")
    return product


def by_plain_tensors(
    x: Float32[Tensor, "n_rows n_in"], values: Float32[Tensor, "n_out n_in"]
) -> Float32[Tensor, "n_rows n_out"]:
    """The same by torch's product of matrices.

    >>> by_plain_tensors(torch.ones(1, 2), torch.eye(2))
    tensor([[1., 1.]])
    """
    return x @ values.T
