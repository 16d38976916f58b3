"""How far two results are apart, in a form that a reader can judge."""

# ruff: noqa: S101

from torch import Tensor, tensor, unravel_index


def relative_gap(found: Tensor, right: Tensor) -> float:
    """The largest difference, as a share of the range (max - min) of `right`.

    A range is fairer than the values: logits near -100 that differ by 0.01 may rank the
    tokens quite otherwise. Where all values of `right` are one, the difference itself.
    It takes some ten values to be fair: the range of two can be as small as rounding.

    >>> from torch import tensor
    >>> relative_gap(tensor([0.0, 1.5]), tensor([0.0, 2.0]))
    0.25
    """
    gap = float((found.double() - right.double()).abs().max())
    spread = float(right.double().max() - right.double().min())
    return gap / spread if spread > 0 else gap


def first_five(values: Tensor) -> str:
    """The first five numbers, as text.

    >>> from torch import arange
    >>> first_five(arange(9.0))
    '[0, 1, 2, 3, 4]'
    """
    return f"[{', '.join(f'{x:.5g}' for x in values.flatten()[:5].tolist())}]"


def worst_row(found: Tensor, right: Tensor) -> tuple[tuple[int, ...], str]:
    """Where the row (the last axis) with the largest gap stands, and that in words.

    Rows that agree would tell a reader nothing. A tensor of one row has no other.

    >>> from torch import tensor
    >>> worst_row(tensor([[0.0, 1.0], [2.0, 9.0]]), tensor([[0.0, 1.0], [2.0, 3.0]]))
    ((1,), ' (row 1)')
    """
    if found.ndim < 2 or not found.numel():
        return (), ""
    gaps = (found.double() - right.double()).abs().amax(dim=-1)
    flat = int(gaps.nan_to_num(nan=float("inf")).argmax())
    row = tuple(int(i) for i in unravel_index(tensor(flat), gaps.shape))
    return row, f" (row {', '.join(map(str, row))})"


def agree(found: Tensor, right: Tensor, within: float, what: str = "result") -> None:
    """`found` has the shape of `right`, and its values within a share of the range.

    >>> from torch import tensor
    >>> agree(tensor([0.0, 1.5]), tensor([0.0, 2.0]), within=1e-4)
    Traceback (most recent call last):
    AssertionError: result: off by 0.25 of the range (allowed: 0.0001)
      found:    [0, 1.5]
      expected: [0, 2]
    """
    assert found.shape == right.shape, (
        f"the {what} has shape {list(found.shape)}, expected {list(right.shape)}"
    )
    gap = relative_gap(found, right)
    if gap <= within:  # NaN is not
        return
    row, where = worst_row(found, right)
    raise AssertionError(
        f"{what}: off by {gap:.2g} of the range (allowed: {within:g})\n"
        f"  found:    {first_five(found[row])}{where}\n"
        f"  expected: {first_five(right[row])}"
    )
