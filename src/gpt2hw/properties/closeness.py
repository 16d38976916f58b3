"""How far two results are apart, in a form that a reader can judge."""

# ruff: noqa: S101

from torch import Tensor


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


def agree(found: Tensor, right: Tensor, within: float, what: str = "result") -> None:
    """`found` has the shape of `right`, and its values within a share of the range.

    >>> from torch import tensor
    >>> agree(tensor([0.0, 1.5]), tensor([0.0, 2.0]), within=1e-4)
    Traceback (most recent call last):
    AssertionError: the result differs by 0.25 of the range, allowed are 0.0001
      found:    [0, 1.5]
      expected: [0, 2]
    """
    assert found.shape == right.shape, (
        f"the {what} has shape {list(found.shape)}, expected {list(right.shape)}"
    )
    gap = relative_gap(found, right)
    assert gap <= within, (  # NaN fails here too
        f"the {what} differs by {gap:.2g} of the range, allowed are {within:g}\n"
        f"  found:    {first_five(found)}\n  expected: {first_five(right)}"
    )
