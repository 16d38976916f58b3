"""Weights in 16 bits: half the bytes to read, so up to twice the tokens a second.

A float16 has 11 binary digits and ends at 65,504. Weights lie far inside; what is lost
is the digits after the third or fourth. One row is multiplied in 16 bits, by a kernel
that sums in 32. A prompt is not: where a CPU cannot multiply matrices of float16, torch
does it a row at a time, and widens all weights anew for each. So a prompt widens the
matrix to float32 once, and multiplies that, one matrix after another.

What stays in float32: biases, norms, positions, everything between the products.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil, isfinite, log2

import torch
from jaxtyping import Float, Float16, Float32, Int, Num
from torch import Tensor

from gpt2hw import huge_pages
from gpt2hw.many_rows import product_of_many

TINY = torch.tensor(torch.finfo(torch.float32).tiny, dtype=torch.float32, device="cpu")
HALF_THE_RANGE = 2**15  # where a float16 of a sum is far from the end, 65,504
AT_ONCE = 2**17  # weights made narrower at a time: what is needed meanwhile stays small
FEW = 3  # rows: up to here one after another is faster than widening the matrix
WIDENED_AT_ONCE = 2**22  # 16 MB of float32, also where the matrix is the head


@dataclass(frozen=True, eq=False)
class HalfMatrix:
    """A matrix [n_out, n_in] in float16; float32 goes in, and float32 comes out.

    >>> HalfMatrix(torch.eye(2, dtype=torch.float16))(torch.tensor([0.1, 3.0]))
    tensor([0.1000, 3.0000])
    """

    values: Float16[Tensor, "n_out n_in"]
    room: float = field(init=False)  # see room_for

    def __post_init__(self) -> None:
        """Looks once for the largest weight, which a row has to leave room for."""
        object.__setattr__(self, "room", room_for(self.values))

    @classmethod
    def of(cls, matrix: Float[Tensor, "n_out n_in"]) -> "HalfMatrix":
        """Rounds each weight to the nearest float16; beyond its end to that end.

        What is no finite number stays what it is, so that a broken file shows.
        """
        end = torch.finfo(torch.float16).max
        half = huge_pages.empty(tuple(matrix.shape), torch.float16)
        both = (pieces(whole, AT_ONCE) for whole in (matrix, half))
        for piece, rounded in zip(*both, strict=True):
            rounded.copy_(piece.clamp(-end, end).where(piece.isfinite(), piece))
        return cls(half)

    def __call__(
        self, x: Float32[Tensor, "*batch n_in"]
    ) -> Float32[Tensor, "*batch n_out"]:
        """x times the matrix turned."""
        rows = x.reshape(-1, x.shape[-1])
        if len(rows) == 1:
            return one_row(x, self.values, self.room)
        if 0 < len(rows) <= FEW:
            few = torch.split(rows, 1)
            found = [one_row(row, self.values, self.room) for row in few]
            return torch.cat(found).view(*x.shape[:-1], len(self.values))
        found_of_all = product_by_pieces(rows, self.values, WIDENED_AT_ONCE)
        return found_of_all.view(*x.shape[:-1], len(self.values))

    def prepared(
        self, bias: Float32[Tensor, " n_out"], out: Float32[Tensor, " n_out"]
    ) -> Callable[[Float32[Tensor, " n_in"]], None]:
        """A function that writes one row's product, plus the bias, into `out`."""
        values, room = self.values, self.room
        row, found = values.new_empty(values.shape[1]), values.new_empty(len(values))

        def product(x: Tensor) -> None:
            scale = scale_of(x, room)
            torch.mv(values, row.copy_(x / scale), out=found)
            torch.addcmul(bias, found, scale, out=out)

        return product

    def rows(self, ids: Int[Tensor, "*ids"]) -> Float32[Tensor, "*ids n_in"]:
        """The rows of these numbers, widened."""
        return self.values[ids].float()

    def widened(self) -> Float32[Tensor, "n_out n_in"]:
        """The whole matrix in float32."""
        return self.values.float()


def one_row(
    x: Float32[Tensor, "*batch n_in"],
    values: Float16[Tensor, "n_out n_in"],
    room: float | None = None,
) -> Float32[Tensor, "*batch n_out"]:
    """One row in float16, scaled so that neither it nor a result leaves the range.

    It holds for rows below 1e35: those of a model are far below. What is lost by the
    scale are digits of numbers some hundred times smaller than the row's largest, where
    they count for little. room: that of the matrix, where it is known (room_for).

    >>> one_row(torch.tensor([1e6, 0.0]), torch.eye(2, dtype=torch.float16))
    tensor([1000000.,       0.])
    """
    scale = scale_of(x, room_for(values) if room is None else room)
    return (x / scale).half().matmul(values.T).float() * scale


def room_for(values: Float16[Tensor, "n_out n_in"]) -> float:
    """How many times its largest number a row is divided by: room for the sums.

    A power of two, about the root of n_in: a sum of n_in products then stays below the
    root times the largest weight, and small numbers keep their digits. More only where
    that may leave the range, with weights of some hundred and above.

    >>> room_for(torch.eye(4, dtype=torch.float16))
    2.0
    >>> room_for(torch.full((1, 4), 60_000, dtype=torch.float16))
    8.0
    """
    n_in = values.shape[-1]
    low, high = torch.aminmax(values)
    largest_sum = n_in * max(-float(low), float(high))
    room = max(n_in**0.5, largest_sum / HALF_THE_RANGE)
    return 2.0 ** ceil(log2(room if isfinite(room) else n_in**0.5))


def scale_of(x: Float32[Tensor, "*batch n_in"], room: float) -> Float32[Tensor, ""]:
    """What a row is divided by, never 0: its largest number, with room for the sum.

    >>> scale_of(torch.tensor([2.0, -4.0, 0.0, 0.0]), room=2.0)
    tensor(8.)
    """
    return torch.add(TINY, x.abs().max(), alpha=room)


def pieces(
    matrix: Num[Tensor, "n_out n_in"], at_once: int
) -> tuple[Num[Tensor, "_ n_in"], ...]:
    """The matrix in pieces of whole rows, of `at_once` weights at most, or one row.

    >>> [len(piece) for piece in pieces(torch.zeros(5, 2), at_once=4)]
    [2, 2, 1]
    """
    return torch.split(matrix, max(1, at_once // matrix.shape[-1]))


def product_by_pieces(
    x: Float32[Tensor, "n_rows n_in"],
    values: Num[Tensor, "n_out n_in"],
    at_once: int,
) -> Float32[Tensor, "n_rows n_out"]:
    """x times the matrix turned, of which a piece at a time is widened to float32.

    >>> product_by_pieces(torch.ones(1, 2), torch.eye(2).to(torch.int8), at_once=2)
    tensor([[1., 1.]])
    """
    product = product_of_many()
    parts = [product(x, piece.float()) for piece in pieces(values, at_once)]
    return torch.cat(parts, dim=-1)
