"""The rules of a product with few rows: the same numbers, and nothing large made.

A product is given as `product(x, values)`: x [n_rows, n_in] and a matrix that lies by
outputs, values [n_out, n_in], to [n_rows, n_out].
"""

# ruff: noqa: S101

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode

from gpt2hw.properties.closeness import agree

Product = Callable[[Tensor, Tensor], Tensor]


def blocks_equal_one_product(product: Product, x: Tensor, values: Tensor) -> None:
    """However the matrix is cut, each row of x meets each row of it: x @ values.T.

    Not to the bit: sums are added up in another order.

    >>> import torch
    >>> blocks_equal_one_product(lambda x, w: x @ w.T, torch.ones(1, 2), torch.eye(2))
    """
    agree(product(x, values), x @ values.T, 1e-5, "product")


def nothing_large_is_made(product: Product, x: Tensor, values: Tensor) -> None:
    """No tensor on the way has more numbers than x and the product together.

    A copy of the row for each block, or of the matrix, gives the right numbers and
    takes the time of many products. No clock is needed to see it: what shares no memory
    with x or the matrix has been made.

    >>> import torch
    >>> x, values = torch.ones(1, 4), torch.ones(3, 4)
    >>> nothing_large_is_made(lambda x, w: x @ w.T, x, values)
    >>> nothing_large_is_made(lambda x, w: x @ w.T.contiguous(), x, values)
    Traceback (most recent call last):
    AssertionError: contiguous makes 12 numbers, [4, 3]: x and the product have 7
    """
    with _Watched(x, values) as made:
        found = product(x, values)
    most = x.numel() + found.numel()
    for name, tensor in made.tensors:
        assert tensor.numel() <= most, (
            f"{name} makes {tensor.numel()} numbers, {list(tensor.shape)}: x and the "
            f"product have {most}"
        )


class _Watched(TorchFunctionMode):
    """Collects what torch's functions return that stands in memory of its own."""

    def __init__(self, *inputs: Tensor) -> None:
        super().__init__()
        self.known = {_memory(tensor) for tensor in inputs}
        self.tensors: list[tuple[str, Tensor]] = []

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        given = {_memory(a) for a in args if isinstance(a, Tensor)}
        found = func(*args, **(kwargs or {}))
        for tensor in found if isinstance(found, tuple | list) else [found]:
            if not isinstance(tensor, Tensor):
                continue
            if _memory(tensor) not in self.known | given:  # no view, not in place
                self.tensors.append((func.__name__, tensor))
        return found


def _memory(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
