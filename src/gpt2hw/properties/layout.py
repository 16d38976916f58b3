"""The rules of a checkpoint's names: what is a parameter, and how many there are."""

# ruff: noqa: S101

from collections.abc import Callable

from gpt2hw.config import GPT2Config
from gpt2hw.layout import parameter_shapes

Shapes = dict[str, tuple[int, ...]]


def masks_alone_are_buffers(is_buffer: Callable[[str], bool]) -> None:
    """`attn.bias` is a stored mask; `attn.c_attn.bias`, which ends alike, is trained.

    >>> masks_alone_are_buffers(
    ...     lambda name: name.endswith(("attn.bias", "attn.masked_bias")))
    Traceback (most recent call last):
    AssertionError: h.0.attn.c_attn.bias is a parameter, but is taken for a mask
    """
    for name in ("h.0.attn.bias", "h.11.attn.masked_bias"):
        assert is_buffer(name), f"{name} is a mask, but is taken for a parameter"
    for name in parameter_shapes(GPT2Config(n_layer=1)):
        assert not is_buffer(name), f"{name} is a parameter, but is taken for a mask"


def gpt2_has_124439808_parameters(count: Callable[[Shapes], int]) -> None:
    """Of the 160 tensors in GPT-2's file, 148 are parameters: 124,439,808 numbers.

    >>> from math import prod
    >>> gpt2_has_124439808_parameters(lambda shapes: sum(map(prod, shapes.values())))
    Traceback (most recent call last):
    AssertionError: 137,022,720 counted, expected 124,439,808: 12,582,912 too many
    """
    shapes: Shapes = dict(parameter_shapes(GPT2Config()))
    shapes |= {f"h.{layer}.attn.bias": (1, 1, 1024, 1024) for layer in range(12)}
    found, right = count(shapes), 124_439_808
    assert found == right, (
        f"{found:,} counted, expected {right:,}: {found - right:,} too many"
    )
