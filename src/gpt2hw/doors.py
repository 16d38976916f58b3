"""What the doors of the house share: arguments are checked where they come in."""

from collections.abc import Callable
from typing import Any, TypeVar

# What torch's generators take as a seed.
SEED_RULE: tuple[Callable[[Any], bool], str] = (
    lambda seed: -(2**63) <= seed < 2**64,
    "an integer from -2**63 to 2**64 - 1",
)

_Door = TypeVar("_Door", bound=Callable[..., Any])


def no_type_check(door: _Door) -> _Door:
    """Marks a door, which answers a wrong argument itself: a ValueError that names it.

    The checker of shapes that runs with the tests leaves a function under this name
    alone, so that the tests see the door's own answer. Nothing else changes.
    """
    return door


def is_dense(tensor: Any) -> bool:
    """Whether a tensor of torch is of the plain kind: neither sparse nor nested."""
    return str(tensor.layout) == "torch.strided" and not tensor.is_nested


def checked(
    name: str,
    value: Any,
    kind: type | tuple[type, ...],
    fits: Callable[[Any], bool],
    rule: str,
) -> Any:
    """The value, if it is of that kind and fits; else a ValueError says the rule.

    True and False are no numbers here.

    >>> checked("top_k", 0, int, lambda k: k > 0, "an integer from 1 up")
    Traceback (most recent call last):
    ValueError: top_k: must be an integer from 1 up, not 0
    """
    if isinstance(value, bool) or not isinstance(value, kind) or not fits(value):
        raise ValueError(f"{name}: must be {rule}, not {value!r:.80}")
    return value
