"""How a product with one row is done: as several smaller ones, side by side.

This is the way for a matrix that lies by outputs, [n_out, n_in]. In a file, wte does,
which is also the head (a model that is read lays it anew: `BagMatrix.of`). Each output
is one row of the matrix times the row that comes in (`bags` has the way for the others,
and says why the work has to be cut). The matrix is cut into blocks of rows, and
`torch.bmm` hands the blocks to all cores at once.

Three things decide whether that is fast, and all three stand in this file:

- the matrix lies by outputs, so that what makes one output lies in one piece of memory;
- the row is handed to every block as it is: `expand` gives it a stride of 0, and its
  last stride stays n_in. torch chooses the kernel by the strides: with a copy of the
  row for each block, the same product takes several times as long;
- many rows (a prompt) use each weight many times: see `many_rows`.

Source: the strides' part in the choice of a kernel is in torch's
`aten/src/ATen/native/LinearAlgebra.cpp` (`baddbmm_with_gemm_`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from gpt2hw import bags
from gpt2hw.many_rows import only_plainly, product_of_many

MANY_ROWS = 5  # from here on a product for many rows is faster
LEAST_BLOCKS = 8


def pays(values: Float[Tensor, "n_out n_in"]) -> bool:
    """Whether row blocks are faster with this matrix: a large one, on a CPU with MKL.

    >>> pays(torch.zeros(768, 2304)), pays(torch.zeros(192, 576))
    (True, False)
    """
    mkl = torch.backends.mkl.is_available()  # type: ignore[no-untyped-call]
    return bool(mkl) and bags.pays(values)


def number_of_blocks(n_out: int) -> int:
    """How many blocks: enough for all cores, and such that no row is left over.

    Where no number up to four times as many divides n_out, a rest is left.

    >>> number_of_blocks(768), number_of_blocks(50257), number_of_blocks(3)
    (8, 29, 3)
    """
    least = min(n_out, max(LEAST_BLOCKS, torch.get_num_threads()))
    even = (n for n in range(least, 4 * least) if n_out % n == 0)
    return next(even, least)


def lies_well(values: Float[Tensor, "n_out n_in"]) -> bool:
    """Whether its numbers lie at multiples of their size, or MKL takes twice as long.

    In a file that is mapped, they lie where the file has them (see `mapped`). oneDNN's
    product, and bags, are as fast with those.

    >>> lies_well(torch.zeros(2, 3))
    True
    """
    return values.data_ptr() % values.element_size() == 0


@dataclass(frozen=True, eq=False)
class RowMatrix:
    """A matrix [n_out, n_in] that is read at the speed of memory when one row comes.

    It holds no numbers of its own: blocks and rest are views of `values`.

    >>> matrix = RowMatrix(torch.arange(10.0).view(5, 2))
    >>> matrix.blocks.shape, matrix.rest.shape
    (torch.Size([5, 1, 2]), torch.Size([0, 2]))
    >>> matrix(torch.tensor([1.0, 1.0]))
    tensor([ 1.,  5.,  9., 13., 17.])
    """

    values: Float[Tensor, "n_out n_in"]
    blocks: Float[Tensor, "n_blocks n_a_block n_in"] = field(init=False)
    rest: Float[Tensor, "n_rest n_in"] = field(init=False)

    def __post_init__(self) -> None:
        """Cuts once, at load, what each token would cut again."""
        n_out, n_in = self.values.shape
        n_blocks = number_of_blocks(n_out)
        n_even = n_out - n_out % n_blocks
        blocks = self.values[:n_even].view(n_blocks, n_even // n_blocks, n_in)
        object.__setattr__(self, "blocks", blocks)
        object.__setattr__(self, "rest", self.values[n_even:])

    def __call__(
        self, x: Float[Tensor, "*batch n_in"]
    ) -> Float[Tensor, "*batch n_out"]:
        """x times the matrix turned: each output is a row of it times a row of x."""
        *batch, n_in = x.shape
        rows = x.reshape(-1, n_in)
        few = len(rows) < MANY_ROWS and lies_well(self.values)
        if few and not only_plainly(rows, self.values):
            found = product_by_blocks(rows, self.blocks, self.rest)
        else:
            found = product_of_many()(rows, self.values)
        return found.view(*batch, len(self.values))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and pickled as its numbers alone: blocks and rest are views again."""
        return RowMatrix, (self.values,)

    def prepared(
        self, bias: Float[Tensor, " n_out"], out: Float[Tensor, " n_out"]
    ) -> Callable[[Float[Tensor, " n_in"]], None]:
        """A function that writes one row's product, plus the bias, into `out`.

        The row lies whole in memory, and out does not change its place.

        >>> out = torch.empty(2)
        >>> RowMatrix(torch.eye(2)).prepared(torch.ones(2), out)(torch.ones(2))
        >>> out
        tensor([2., 2.])
        """
        blocks, rest = self.blocks, self.rest
        n_blocks, n_a_block, n_in = blocks.shape
        n_even = n_blocks * n_a_block
        even_bias, even_out = (
            part[:n_even].view(n_blocks, n_a_block, 1) for part in (bias, out)
        )
        rest_bias, rest_out = bias[n_even:], out[n_even:]
        shape, strides = (n_blocks, n_in, 1), (0, 1, n_in)  # as expand gives them

        def product(x: Tensor) -> None:
            column = x.as_strided(shape, strides)
            torch.baddbmm(even_bias, blocks, column, out=even_out)
            if len(rest):
                torch.addmv(rest_bias, rest, x, out=rest_out)

        return product

    def rows(self, ids: Int[Tensor, "*ids"]) -> Float[Tensor, "*ids n_in"]:
        """The rows of these numbers, for a matrix that is a table of vectors."""
        return self.values[ids]

    def widened(self) -> Float[Tensor, "n_out n_in"]:
        """The matrix in float32: itself."""
        return self.values


def product_by_blocks(
    rows: Float[Tensor, "n_rows n_in"],
    blocks: Float[Tensor, "n_blocks n_a_block n_in"],
    rest: Float[Tensor, "n_rest n_in"],
) -> Float[Tensor, "n_rows n_out"]:
    """A few rows times each block, side by side, and times what was left over.

    >>> from torch import arange, ones
    >>> product_by_blocks(ones(1, 2), arange(8.0).view(2, 2, 2), ones(1, 2))
    tensor([[ 1.,  5.,  9., 13.,  2.]])
    """
    n_blocks, _, n_in = blocks.shape
    n_rows = len(rows)
    columns = rows.T.expand(n_blocks, n_in, n_rows)  # no copy: a stride of 0
    found = torch.bmm(blocks, columns).flatten(end_dim=1).T.contiguous()
    return torch.cat([found, rows @ rest.T], dim=-1) if len(rest) else found
