"""The ids that a model is given, checked before anything is computed."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from gpt2hw.config import GPT2Config
from gpt2hw.doors import is_dense, no_type_check
from gpt2hw.errors import ContextError


@no_type_check
def checked_ids(ids: Any, config: GPT2Config) -> Int[Tensor, "*batch n_seq"]:
    """The ids as int64, where they lie; ints become a tensor on the CPU.

    Raises ValueError for what are no ids of the vocabulary, and ContextError for more
    than n_ctx.

    >>> checked_ids([3, 1], GPT2Config(n_vocab=3))
    Traceback (most recent call last):
    ValueError: ids: 3 is outside the vocabulary (0 to 2)
    """
    found = _checked_tensor(ids) if isinstance(ids, Tensor) else _as_tensor(ids)
    if found.ndim == 0 or found.numel() == 0:
        raise ValueError("ids: at least one id is needed ([*batch, n_seq])")
    ends = torch.aminmax(found) if isinstance(ids, Tensor) else (min(ids), max(ids))
    least, most = map(int, ends)
    if least < 0 or most >= config.n_vocab:
        raise ValueError(
            f"ids: {least if least < 0 else most} is outside the vocabulary "
            f"(0 to {config.n_vocab - 1})"
        )
    if found.shape[-1] > config.n_ctx:
        raise ContextError(
            f"{found.shape[-1]} ids are more than the model's {config.n_ctx} "
            "positions (n_ctx)"
        )
    return found


@no_type_check
def _checked_tensor(ids: Tensor) -> Int[Tensor, "*batch n_seq"]:
    if ids.is_floating_point() or ids.is_complex() or ids.dtype is torch.bool:
        raise ValueError(f"ids: must be integers, not {ids.dtype}")
    if ids.is_meta or not is_dense(ids):
        raise ValueError("ids: must be a plain tensor with numbers in it")
    return ids.to(torch.int64)  # n_vocab need not fit into a narrower type


@no_type_check
def _as_tensor(ids: Sequence[int]) -> Int[Tensor, " n_seq"]:
    if isinstance(ids, str):
        raise ValueError("ids: are integers; a text is encoded first, by a Tokenizer")  # noqa: TRY004
    if not isinstance(ids, Sequence):
        kind = type(ids).__name__
        raise ValueError(f"ids: must be ints or a tensor, not {kind}")  # noqa: TRY004
    for number in ids:
        if isinstance(number, bool) or not isinstance(number, Integral):
            hint = "; several texts come as a tensor" * isinstance(number, Sequence)
            raise ValueError(f"ids: {number!r:.80} is not an integer id{hint}")  # noqa: TRY004
        if not -(2**63) <= number < 2**63:
            raise ValueError(f"ids: {number} is outside every vocabulary")
    return torch.tensor([int(i) for i in ids], dtype=torch.int64, device="cpu")
