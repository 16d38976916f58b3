"""Which form each matrix of a model gets: chosen once, when it is loaded.

    float32   as the file has it; large matrices as row blocks (see `rows`)
    float16   half the bytes (see `half`)
    int8      a quarter of the bytes (see `int8`)

Norms, biases and positions are float32 in each.
"""

from typing import Literal, get_args

from torch import Tensor

from gpt2hw import rows
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
    name: str, tensor: Tensor, precision: Precision, *, may_move: bool
) -> Tensor | Matrix:
    """A parameter, in float32, in the form that it is kept in; it may be itself.

    `may_move`: whether its numbers may be put in another order in their memory.

    >>> import torch
    >>> weight = torch.ones(2, 3)  # [n_in, n_out]
    >>> kept("h.0.mlp.c_fc.weight", weight, "int8", may_move=True).values.shape
    torch.Size([3, 2])
    """
    if tensor.ndim < 2 or name == "wpe.weight":
        return tensor
    is_table = name in (WTE, HEAD)  # [n_vocab, n_embd]: it lies by outputs already
    if precision == "float16":
        return HalfMatrix.of(tensor if is_table else tensor.T)
    if precision == "int8":
        return Int8Matrix.of(tensor if is_table else tensor.T)
    if not rows.pays(tensor) or not (is_table or may_move):
        return tensor
    return RowMatrix(tensor if is_table else rows.lying_by_outputs(tensor).T)
