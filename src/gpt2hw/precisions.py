"""Which form each matrix of a model gets: chosen once, when it is loaded.

    float32   as the file has it, large matrices in bags or blocks (see `bags`, `rows`);
              or the head laid anew, by inputs, as the others lie
    float16   half the bytes (see `half`)
    int8      a quarter of the bytes (see `int8`)

Norms, biases and positions are float32 in each.
"""

from typing import Literal, get_args

from torch import Tensor

from gpt2hw import bags, rows
from gpt2hw.bags import BagMatrix
from gpt2hw.doors import checked
from gpt2hw.fast import Matrix
from gpt2hw.half import HalfMatrix
from gpt2hw.int8 import Int8Matrix
from gpt2hw.layout import HEAD
from gpt2hw.rows import RowMatrix

Precision = Literal["float32", "float16", "int8"]
WTE = "wte.weight"


def checked_precision(precision: object) -> Precision:
    """The precision; ValueError for what is none.

    >>> checked_precision("int4")
    Traceback (most recent call last):
    ValueError: precision: must be one of float32, float16, int8, not 'int4'
    """
    names = get_args(Precision)
    rule = f"one of {', '.join(names)}"
    found: Precision = checked("precision", precision, str, names.__contains__, rule)
    return found


def kept(
    name: str, tensor: Tensor, precision: Precision, *, may_lay: bool = False
) -> Tensor | Matrix:
    """A parameter, in float32, in the form that it is kept in; it may be itself.

    may_lay: whether it is the head, and may be laid anew, by inputs, in memory of its
    own.

    >>> import torch
    >>> weight = torch.ones(2, 3)  # [n_in, n_out]
    >>> kept("h.0.mlp.c_fc.weight", weight, "int8").values.shape
    torch.Size([3, 2])
    """
    if tensor.ndim < 2 or name == "wpe.weight":
        return tensor
    is_table = name in (WTE, HEAD)  # [n_vocab, n_embd]: it lies by outputs already
    if precision == "float16":
        return HalfMatrix.of(tensor if is_table else tensor.T)
    if precision == "int8":
        return Int8Matrix.of(tensor if is_table else tensor.T)
    if is_table and bags.pays(tensor.T):  # it was laid anew already
        return BagMatrix(tensor)
    if may_lay and bags.pays(tensor):
        return BagMatrix.of(tensor)
    if is_table:
        return RowMatrix(tensor) if rows.pays(tensor) else tensor
    return BagMatrix(tensor.T) if bags.pays(tensor) else tensor
