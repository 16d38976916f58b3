"""The same model with its matrices in another form: faster, or in fewer bytes.

The taught functions do not know which form a matrix has: attention, MLP and block call
c_attn, c_proj and c_fc, and get x W + b. So a linear map that multiplies in a form of
its own takes the place of the taught one, and nothing that is taught changes. The two
ends of the model, which take rows of wte and multiply with it, are done anew here.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from jaxtyping import Bool, Float, Int, Num
from torch import Tensor

from gpt2hw.attention import causal_mask
from gpt2hw.bags import BagMatrix
from gpt2hw.block import TransformerBlock
from gpt2hw.fast_block import fast_cached_block, fast_norm
from gpt2hw.half import HalfMatrix
from gpt2hw.int8 import Int8Matrix
from gpt2hw.kv_cache import KVCache, cached_forward
from gpt2hw.linear import Linear
from gpt2hw.model import Transformer, unembed
from gpt2hw.rows import RowMatrix

# [n_out, n_in] in some form: `values` as stored, `matrix(x)`, `rows(ids)`, `widened()`.
Matrix = BagMatrix | RowMatrix | HalfMatrix | Int8Matrix


@dataclass(frozen=True, eq=False)
class MatrixLinear(Linear):
    """A linear map whose product is done by a matrix of another form.

    `weight` is what the matrix stores, seen as [n_in, n_out].

    >>> import torch
    >>> matrix = RowMatrix(torch.tensor([[1.0, 3.0], [2.0, 4.0]]))
    >>> MatrixLinear.of(matrix, bias=torch.tensor([0.5, 0.5]))(torch.tensor([1.0, 0.0]))
    tensor([1.5000, 2.5000])
    """

    weight: Num[Tensor, "n_in n_out"]
    bias: Float[Tensor, " n_out"]
    matrix: Matrix

    def __post_init__(self) -> None:
        """ValueError where a weight was put in that the matrix does not hold."""
        if not _is_same_memory(self.weight, self.matrix.values.T):
            raise ValueError(
                "weight: the matrix that multiplies holds another; use a Linear"
            )

    @classmethod
    def of(cls, matrix: Matrix, bias: Float[Tensor, " n_out"]) -> "MatrixLinear":
        """The map of this matrix and bias."""
        return cls(weight=matrix.values.T, bias=bias, matrix=matrix)

    def __call__(
        self, x: Float[Tensor, "*batch n_in"]
    ) -> Float[Tensor, "*batch n_out"]:
        """[*batch, n_in] -> [*batch, n_out]."""
        return self.matrix(x).add_(self.bias)  # a matrix gives a tensor of its own

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and pickled as matrix and bias: the weight is a view again."""
        return MatrixLinear.of, (self.matrix, self.bias)

    def taught(self) -> Linear:
        """The taught map of the same numbers, in float32."""
        return Linear(weight=self.matrix.widened().T, bias=self.bias)


@dataclass(frozen=True, eq=False)
class FastTransformer(Transformer):
    """A Transformer whose wte and head may have another form; None is the taught one.

    `wte` and `lm_head` are the numbers as they are stored, by rows or (a head that was
    laid anew) by columns; `.contiguous()` gives a copy by rows.
    """

    wte: Num[Tensor, "n_vocab n_embd"]
    lm_head: Num[Tensor, "n_vocab n_embd"]
    table: Matrix | None = field(default=None, kw_only=True)
    head: Matrix | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        """ValueError where wte or lm_head was put in, and not its form."""
        for name, form in (("wte", "table"), ("lm_head", "head")):
            numbers, matrix = getattr(self, name), getattr(self, form)
            if matrix is not None and not _is_same_memory(numbers, matrix.values):
                raise ValueError(
                    f"{name}: `{form}`, which is used, holds another; {form}=None"
                )

    @property
    def is_taught(self) -> bool:
        """Whether both ends have the taught form."""
        return self.table is None and self.head is None

    def vectors(
        self, ids: Int[Tensor, "*batch n_seq"]
    ) -> Float[Tensor, "*batch n_seq n_embd"]:
        """The rows of wte, in float32."""
        return self.wte[ids] if self.table is None else self.table.rows(ids)

    def logits(
        self, x: Float[Tensor, "*batch n_embd"]
    ) -> Float[Tensor, "*batch n_vocab"]:
        """The logits of final states."""
        return unembed(x, self.lm_head) if self.head is None else self.head(x)

    def forward(
        self, ids: Int[Tensor, "*batch n_seq"]
    ) -> Float[Tensor, "*batch n_seq n_vocab"]:
        """[*batch, n_seq] -> [*batch, n_seq, n_vocab]: row i predicts token i + 1."""
        if self.is_taught:
            return super().forward(ids)
        return self.logits(self.final_state(ids))

    def cached(
        self, ids: Int[Tensor, "*batch n_seq"], cache: KVCache
    ) -> Float[Tensor, "*batch n_seq n_vocab"]:
        """The same for new ids alone, whose positions follow the cache's."""
        if self.is_taught:
            return cached_forward(self, ids, cache)
        logits = self.logits(self.final_state(ids, cache))
        cache.advance(ids.shape[:-1], ids.shape[-1])
        return logits

    def last(
        self, ids: Int[Tensor, "*batch n_seq"], cache: KVCache | None = None
    ) -> Float[Tensor, "*batch n_vocab"]:
        """The last row of logits alone: each of a prompt's costs n_vocab products."""
        if self.is_taught:
            logits = self.forward(ids) if cache is None else self.cached(ids, cache)
            return logits[..., -1, :]
        state = self.final_state(ids, cache, last_only=True)
        logits = self.logits(state[..., -1, :])
        if cache is not None:
            cache.advance(ids.shape[:-1], ids.shape[-1])
        return logits

    def final_state(
        self,
        ids: Int[Tensor, "*batch n_seq"],
        cache: KVCache | None = None,
        *,
        last_only: bool = False,
    ) -> Float[Tensor, "*batch n_out n_embd"]:
        """What the head is given: as Transformer.forward, or cached_forward.

        The cache holds the new tokens then, but does not count them yet: the head may
        still fail, and a call that fails leaves the cache as it was.
        """
        n_seq, n_past = ids.shape[-1], 0 if cache is None else len(cache)
        x = self.vectors(ids) + self.wpe[n_past : n_past + n_seq]
        may_look = causal_mask(n_seq, n_past + n_seq, ids.device) if n_seq > 1 else None
        return self.after_blocks(x, may_look, cache, last_only=last_only)

    def after_blocks(
        self,
        x: Float[Tensor, "*batch n_seq n_embd"],
        may_look: Bool[Tensor, "*heads n_seq n_kv"] | None,
        cache: KVCache | None,
        *,
        last_only: bool,
    ) -> Float[Tensor, "*batch n_out n_embd"]:
        """Embedded tokens through all blocks and the final norm; all, or the last only.

        Of the others, the last block then makes keys and values, which the last token
        needs, and nothing else, which nobody needs.
        """
        n_past = 0 if cache is None else len(cache)
        layers = [None] * len(self.h) if cache is None else cache.layers(x.shape[:-2])
        for place, (block, layer) in enumerate(zip(self.h, layers, strict=True), 1):
            if last_only and place == len(self.h) and may_look is not None:
                may_look = may_look[..., -1:, :]
            x = fast_cached_block(block, x, layer, n_past, may_look)
        return fast_norm(self.ln_f, x)


def _is_same_memory(one: Tensor, other: Tensor) -> bool:
    """Whether both are views of the same numbers, in the same shape."""
    same_place = one.data_ptr() == other.data_ptr()
    return same_place and one.shape == other.shape and one.stride() == other.stride()


def taught(model: FastTransformer) -> Transformer:
    """The same numbers in the taught forms, all of them widened to float32.

    Of a float32 model nothing is copied.
    """
    wte = model.wte if model.table is None else model.table.widened()
    if model.head is None:
        lm_head = model.lm_head
    else:
        lm_head = wte if model.head is model.table else model.head.widened()
    blocks = tuple(_taught_block(block) for block in model.h)
    return Transformer(
        wte=wte, wpe=model.wpe, h=blocks, ln_f=model.ln_f, lm_head=lm_head
    )


def _taught_block(block: TransformerBlock) -> TransformerBlock:
    attn, mlp = block.attn, block.mlp
    attn = replace(attn, c_attn=_taught(attn.c_attn), c_proj=_taught(attn.c_proj))
    mlp = replace(mlp, c_fc=_taught(mlp.c_fc), c_proj=_taught(mlp.c_proj))
    return replace(block, attn=attn, mlp=mlp)


def _taught(linear: Linear) -> Linear:
    return linear.taught() if isinstance(linear, MatrixLinear) else linear
