"""How a product with one row is done: as a sum of the matrix's rows.

To write one token, every weight is read once and used once: the product is as fast as
memory is read. A product of one row with a whole matrix is done by one core, which
cannot read as fast as the memory can give. So the work has to be cut, and there are two
ways, by how the matrix lies. This is the one for a matrix that lies by inputs, [n_in,
n_out], as GPT-2's files have it; `rows` has the other.

    x W = x_0 W_0 + x_1 W_1 + ...        W_i: the row of input i, n_out numbers

A table, of which some rows are added up, each times a number: torch knows it as an
embedding bag, and has a kernel for it that reads row after row and asks memory for the
next ones before it needs them. Each bag is filled by one core. So every core gets the
inputs of one bag, and in the end the bags are added up. (So the last digits depend on
how many cores there are, as in most products of matrices.)

Source: torch's `embedding_bag` (mode "sum" with per_sample_weights). On x86 its kernel
is FBGEMM's, written for each width while the program runs (`src/EmbeddingSpMDM.cc` of
https://github.com/pytorch/FBGEMM).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Float, Float32, Int, Int32, UInt8
from torch import Tensor
from torch.backends import cpu

from gpt2hw import huge_pages
from gpt2hw.many_rows import only_plainly, product_of_many

SUM = 0  # the mode, as torch.embedding_bag is told it
A_SHARE = 2**15  # numbers: what torch gives a core at least, where it shares work out
MANY = 2**19  # weights: below, the matrix stays in a core's cache, and it cuts no time


def pays(weight: Float[Tensor, "n_in n_out"]) -> bool:
    """Whether bags are faster with this matrix: a large one that lies by inputs.

    It was measured on x86 alone, with the kernel of FBGEMM.

    >>> pays(torch.zeros(768, 2304)), pays(torch.zeros(192, 576))
    (True, False)
    """
    return weight.numel() >= MANY and weight.is_contiguous() and has_kernel(weight)


def has_kernel(table: Tensor) -> bool:
    """Whether torch has a fast kernel for bags of this table's rows: on x86 alone."""
    is_float = table.dtype == torch.float32 and table.device.type == "cpu"
    has_fbgemm = "fbgemm" in torch.backends.quantized.supported_engines
    return is_float and has_fbgemm and cpu.get_cpu_capability() in ("AVX2", "AVX512")


@cache
def cut(
    n_in: int, n_bags: int
) -> tuple[Int32[Tensor, " n_in"], Int32[Tensor, " n_bags"]]:
    """The numbers of all inputs, and at which of them each bag begins.

    >>> cut(5, n_bags=2)[1].tolist()
    [0, 2]
    """
    with torch.inference_mode(False):  # they may be used outside of that mode
        numbers = torch.arange(n_in, dtype=torch.int32, device="cpu")
        bags = torch.arange(n_bags, dtype=torch.int64, device="cpu")  # n_in fold
        return numbers, (bags * n_in // n_bags).to(torch.int32)


def number_of_bags(n_in: int) -> int:
    """One for each core, or where inputs are fewer than cores, for each input."""
    return min(n_in, torch.get_num_threads())


@cache
def shares(n_cores: int) -> UInt8[Tensor, " n"]:
    """As many numbers as torch shares out among so many cores, for `free_registers`."""
    with torch.inference_mode(False):
        return torch.zeros(n_cores * A_SHARE, dtype=torch.uint8, device="cpu")


def free_registers(shared: UInt8[Tensor, " n"]) -> None:
    """Each core runs one of torch's own kernels, for what it does at its end.

    Compiled code ends by telling the processor that the upper parts of its widest
    registers are free (`vzeroupper`). FBGEMM's kernel does not, and as long as they
    count as in use, MKL's products take longer on that core. Found by a clock.
    """
    shared.zero_()


def sums_of_bags(
    factors: Float32[Tensor, " n_rows"],
    table: Float32[Tensor, "n_table n_out"],
    numbers: Int32[Tensor, " n_rows"],
    starts: Int32[Tensor, " n_bags"],
) -> Float32[Tensor, "n_bags n_out"]:
    """The rows of these numbers, each times its factor, added up bag by bag.

    It leaves registers in use (`free_registers`).

    >>> table = torch.tensor([[1.0, 3.0], [10.0, 20.0]])
    >>> numbers, starts = torch.tensor([0, 1, 1]).int(), torch.tensor([0, 2]).int()
    >>> sums_of_bags(torch.ones(3), table, numbers, starts)
    tensor([[11., 23.],
            [10., 20.]])
    """
    found: Tensor = torch.embedding_bag(
        table, numbers, starts, False, SUM, False, factors
    )[0]
    return found


def product_by_bags(
    x: Float32[Tensor, " n_in"], weight: Float32[Tensor, "n_in n_out"]
) -> Float32[Tensor, " n_out"]:
    """One row times a matrix that lies by inputs.

    >>> weight = torch.tensor([[1.0, 3.0, 5.0], [10.0, 20.0, 30.0]])
    >>> product_by_bags(torch.tensor([2.0, 1.0]), weight)
    tensor([12., 26., 40.])
    """
    numbers, starts = cut(len(x), number_of_bags(len(x)))
    found = weight.new_empty(weight.shape[1])  # before the bags: it may outlive them
    bags = sums_of_bags(x, weight, numbers, starts)
    free_registers(shares(len(starts)))
    return torch.sum(bags, dim=0, out=found)


@dataclass(frozen=True, eq=False)
class BagMatrix:
    """A matrix that lies by inputs, read at the speed of memory when one row comes.

    As every form of a matrix, it is seen by outputs: `values` is the turned view.

    >>> weight = torch.arange(6.0).view(2, 3)  # [n_in, n_out]
    >>> matrix = BagMatrix(weight.T)
    >>> matrix(torch.tensor([1.0, 1.0]))
    tensor([3., 5., 7.])
    """

    values: Float32[Tensor, "n_out n_in"]

    @classmethod
    def of(cls, matrix: Float32[Tensor, "n_out n_in"]) -> "BagMatrix":
        """A matrix that lies by outputs, laid anew by inputs: the same numbers.

        The zeros take the memory in order, which turning would take here and there.
        """
        n_out, n_in = matrix.shape
        by_inputs = huge_pages.empty((n_in, n_out), torch.float32).zero_()
        return cls(by_inputs.copy_(matrix.T).T)

    def __call__(
        self, x: Float[Tensor, "*batch n_in"]
    ) -> Float[Tensor, "*batch n_out"]:
        """x times the matrix turned: each input's number times that input's row."""
        *batch, n_in = x.shape
        rows = x.reshape(-1, n_in)
        if len(rows) == 1 and not only_plainly(rows, self.values):
            found = product_by_bags(rows[0], self.values.T)
        else:
            found = product_of_many()(rows, self.values)
        return found.view(*batch, len(self.values))

    def prepared(
        self, bias: Float32[Tensor, " n_out"], out: Float32[Tensor, " n_out"]
    ) -> Callable[[Float32[Tensor, " n_in"]], None]:
        """A function that writes one row's product, plus the bias, into `out`.

        It leaves registers in use (`free_registers`); its own addmv is too small to be
        any slower for it.

        >>> out = torch.empty(2)
        >>> BagMatrix(torch.eye(2)).prepared(torch.ones(2), out)(torch.ones(2))
        >>> out
        tensor([2., 2.])
        """
        weight, n_in = self.values.T, self.values.shape[1]
        numbers, starts = cut(n_in, number_of_bags(n_in))
        ones = bias.new_ones(len(starts))  # for bags.T @ ones, the sum of the bags

        def product(x: Tensor) -> None:
            bags = sums_of_bags(x, weight, numbers, starts)
            torch.addmv(bias, bags.T, ones, out=out)

        return product

    def rows(self, ids: Int[Tensor, "*ids"]) -> Float32[Tensor, "*ids n_in"]:
        """The columns of these outputs: rows, as every matrix gives them."""
        return self.values[ids]

    def widened(self) -> Float32[Tensor, "n_out n_in"]:
        """The matrix in float32: itself."""
        return self.values
