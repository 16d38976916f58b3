"""Weights in 8 bits: a quarter of the bytes to read, with a scale for each output.

Quantised by hand. The largest weight of an output becomes 127 or -127, the others are
rounded to whole steps of that scale. A row that comes in is treated alike, so that the
product is one of whole numbers, exact, in 32 bits; two scales, the row's and the
output's, make numbers of it again:

    x ~ s_x q_x,   w ~ s_w q_w,   so   x . w ~ s_x s_w (q_x . q_w)

A scale for each output, not one for the matrix: one large weight then makes the steps
of its own output coarse, and no other's. A scale for each row: what a token gives does
not depend on the tokens beside it.

Source: Jacob et al. 2018, section 2 (whole-number products with scales); Dettmers et
al. 2022, "LLM.int8()", section 2 (a scale for each row and each output).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Float, Float32, Int, Int8, Int32
from torch import Tensor

from gpt2hw import huge_pages
from gpt2hw.half import AT_ONCE, WIDENED_AT_ONCE, pieces
from gpt2hw.many_rows import wants_derivative

SMALLEST = torch.finfo(torch.float32).tiny  # a step that can be divided by
LARGEST = 127  # -128 is not used: what can be stored is as far below 0 as above


def quantize(
    x: Float[Tensor, "*batch n_in"],
) -> tuple[Int8[Tensor, "*batch n_in"], Float[Tensor, "*batch 1"]]:
    """Each row as whole numbers from -127 to 127, and the step that one of them is.

    >>> whole, step = quantize(torch.tensor([[2.54, -1.0, 0.011]]))
    >>> whole, step
    (tensor([[127, -50,   1]], dtype=torch.int8), tensor([[0.0200]]))
    """
    step = x.abs().amax(dim=-1, keepdim=True).div_(LARGEST)
    step.clamp_(min=torch.finfo(x.dtype).tiny)  # a row of zeros
    return (x / step).round_().to(torch.int8), step


def quantize_one(x: Float32[Tensor, " n_in"], whole: Int8[Tensor, "1 n_in"]) -> float:
    """What quantize makes of one row, in fewer calls: written to `whole`; the step.

    The step is a number of Python's: what is done with it then is no call of torch.

    >>> whole = torch.empty(1, 3, dtype=torch.int8)
    >>> quantize_one(torch.tensor([63.5, -25.0, 0.0]), whole), whole
    (0.5, tensor([[127, -50,   0]], dtype=torch.int8))
    """
    low, high = torch.aminmax(x)
    largest: float = max(-low.item(), high.item())  # NaN where one is NaN
    step = max(largest / LARGEST, SMALLEST)
    whole.copy_((x / step).round_())
    return step


@dataclass(frozen=True, eq=False)
class Int8Matrix:
    """A matrix [n_out, n_in] of whole numbers, and a scale for each of its outputs.

    >>> matrix = Int8Matrix.of(torch.tensor([[1.0, -0.5], [0.001, 0.0]]))
    >>> matrix.values.tolist(), matrix(torch.tensor([1.0, 1.0]))
    ([[127, -64], [127, 0]], tensor([0.4961, 0.0010]))
    """

    values: Int8[Tensor, "n_out n_in"]
    scales: Float32[Tensor, " n_out"]

    @classmethod
    def of(cls, matrix: Float[Tensor, "n_out n_in"]) -> "Int8Matrix":
        """Quantises each output's weights; some outputs at a time, to spare memory."""
        values = huge_pages.empty(tuple(matrix.shape), torch.int8)
        scales = torch.empty(len(matrix), 1, dtype=torch.float32, device="cpu")
        parts = [pieces(matrix, AT_ONCE), pieces(values, AT_ONCE)]
        of_each = torch.split(scales, len(parts[0][0]))
        for piece, rounded, steps in zip(*parts, of_each, strict=True):
            whole, found = quantize(piece.float())
            rounded.copy_(whole)
            steps.copy_(found)
        return cls(values, scales.flatten())

    def __call__(
        self, x: Float32[Tensor, "*batch n_in"]
    ) -> Float32[Tensor, "*batch n_out"]:
        """x times the matrix turned, both in whole numbers.

        Raises ValueError where a derivative is asked for: rounding gives none.
        """
        if wants_derivative(x):
            raise ValueError("int8: rounding has no derivative; take another precision")
        whole, step = quantize(x.reshape(-1, x.shape[-1]))
        found = integer_product()(whole, self.values) * self.scales
        return found.mul_(step).view(*x.shape[:-1], len(self.values))

    def prepared(
        self, bias: Float32[Tensor, " n_out"], out: Float32[Tensor, " n_out"]
    ) -> Callable[[Float32[Tensor, " n_in"]], None]:
        """A function that writes one row's product, plus the bias, into `out`."""
        values, scales, row_of_out = self.values, self.scales, out[None]
        multiply, whole = integer_product(), values.new_empty(1, values.shape[1])
        found = values.new_empty(1, len(values), dtype=torch.int32)

        def product(x: Tensor) -> None:
            step = quantize_one(x, whole)
            multiply(whole, values, found)
            # Step times scale first: step times a sum of products may be too large.
            torch.addcmul(bias, scales, found, value=step, out=row_of_out)

        return product

    def rows(self, ids: Int[Tensor, "*ids"]) -> Float32[Tensor, "*ids n_in"]:
        """The rows of these numbers, each times its scale."""
        return self.values[ids] * self.scales[ids][..., None]

    def widened(self) -> Float32[Tensor, "n_out n_in"]:
        """The whole matrix in float32."""
        return self.values * self.scales[:, None]


IntegerProduct = Callable[..., Tensor]  # (x, values), and where to write it, or None


@cache
def integer_product() -> IntegerProduct:
    """The fastest product of whole numbers that is right on this machine.

    torch's own is private, and on some processors a sum of two products of large
    numbers does not fit into what it is kept in. So it is asked, once, for products of
    the largest numbers; where it is missing or wrong, plain tensors take its place.
    """
    hardest = torch.full((2, 64), LARGEST, dtype=torch.int8, device="cpu")
    signs = torch.tensor([[1], [-1]], dtype=torch.int8, device="cpu")
    for rows in (hardest[:1], hardest):
        try:
            found = by_torch(rows, hardest * signs)
        except (AttributeError, RuntimeError, NotImplementedError):
            return by_plain_tensors
        if not torch.equal(found, by_plain_tensors(rows, hardest * signs)):
            return by_plain_tensors
    return by_torch


def by_torch(
    x: Int8[Tensor, "n_rows n_in"],
    values: Int8[Tensor, "n_out n_in"],
    out: Int32[Tensor, "n_rows n_out"] | None = None,
) -> Int32[Tensor, "n_rows n_out"]:
    """x times the matrix turned, in 32-bit whole numbers: exact.

    >>> by_torch(torch.tensor([[2, 3]]).to(torch.int8), torch.eye(2).to(torch.int8))
    tensor([[2, 3]], dtype=torch.int32)
    """
    if x.shape[-1] == 1:  # of one input torch 2.13 makes nonsense
        return by_plain_tensors(x, values, out)
    product: Tensor = torch._int_mm(x, values.T, out=out)
    return product


def by_plain_tensors(
    x: Int8[Tensor, "n_rows n_in"],
    values: Int8[Tensor, "n_out n_in"],
    out: Int32[Tensor, "n_rows n_out"] | None = None,
) -> Int32[Tensor, "n_rows n_out"]:
    """The same in float32, some outputs at a time: slower, and exact up to 2**24.

    >>> by_plain_tensors(torch.ones(1, 2).to(torch.int8), torch.eye(2).to(torch.int8))
    tensor([[1, 1]], dtype=torch.int32)
    """
    wide = x.float()
    with torch.autocast("cpu", enabled=False):
        parts = [wide @ piece.float().T for piece in pieces(values, WIDENED_AT_ONCE)]
    found = torch.cat(parts, dim=-1)
    return found.int() if out is None else out.copy_(found)
