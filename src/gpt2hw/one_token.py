"""One token more, with all that can be done before it done before.

A text grows by one token at a time, and the shapes are the same each time. So the views
that cut a row into heads, and the memory that results are written to, are made once for
each text. In float32 a block is then 24 calls of torch, where the taught pieces make
over 80. It counts: a call costs about a thousandth of a millisecond.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from gpt2hw.bags import free_registers, has_kernel, shares, sums_of_bags
from gpt2hw.block import LayerNorm
from gpt2hw.fast import FastTransformer, MatrixLinear
from gpt2hw.fast_block import fast_gelu, fast_norm, in_bags
from gpt2hw.linear import Linear

LONG = 256  # keys: from here on the values are added up in bags
Product = Callable[[Float[Tensor, " n_in"]], None]
WeightedSum = Callable[
    [Float[Tensor, "n_head 1 n_kv"], Float[Tensor, "n_places d_head"]],
    Float[Tensor, " n_embd"],
]


def prepared(linear: Linear, out: Float[Tensor, " n_out"]) -> Product:
    """A function that writes one row's x W + b into `out`.

    >>> out = torch.empty(2)
    >>> prepared(Linear(weight=torch.eye(2), bias=torch.ones(2)), out)(torch.ones(2))
    >>> out
    tensor([2., 2.])
    """
    if isinstance(linear, MatrixLinear):
        return linear.matrix.prepared(linear.bias, out)
    weight, bias = linear.weight.T, linear.bias

    def product(x: Tensor) -> None:
        torch.addmv(bias, weight, x, out=out)

    return product


@dataclass(frozen=True, eq=False)
class PreparedBlock:
    """A block's norms, and its products with what they write to."""

    ln_1: LayerNorm
    c_attn: Product
    c_proj: Product
    ln_2: LayerNorm
    c_fc: Product
    mlp_c_proj: Product


class BagsOfHeads:
    """What each head takes of the values, as a sum of rows: a bag for each head.

    A table has all heads' values of a layer, each head's n_ctx places one after the
    other, of which n_kv are in use.
    """

    def __init__(self, store: Float[Tensor, "n_layer 2 n_head n_ctx d_head"]) -> None:
        n_head, n_ctx = store.shape[2:4]
        places = torch.arange(n_head * n_ctx, dtype=torch.int32, device=store.device)
        self.places = places.view(n_head, n_ctx)
        self.heads = torch.arange(n_head, dtype=torch.int32, device=store.device)
        self.shared = shares(torch.get_num_threads())

    def cut(self, n_kv: int) -> WeightedSum:
        """Once a token: weights @ v with n_kv keys, the heads side by side."""
        numbers = self.places[:, :n_kv].flatten()
        starts = self.heads * n_kv

        def weighted_sum(weights: Tensor, table: Tensor) -> Tensor:
            sums = sums_of_bags(weights.flatten(), table, numbers, starts)
            free_registers(self.shared)
            return sums.flatten()

        return weighted_sum


class OneToken:
    """The way of one token through all blocks, with room for each result."""

    def __init__(
        self,
        model: FastTransformer,
        store: Float[Tensor, "n_layer 2 n_head n_ctx d_head"],
    ) -> None:
        _, _, n_head, n_ctx, d_head = store.shape
        n_embd, n_inner = model.h[0].mlp.c_fc.weight.shape
        qkv = store.new_empty(3 * n_embd)
        thirds = qkv.view(3, n_head, 1, d_head)
        self.query = thirds[0].mT  # [n_head, d_head, 1]
        self.key_and_value = thirds[1:]  # [2, n_head, 1, d_head]
        self.found = store.new_empty(n_head, 1, d_head)
        self.merged = self.found.view(n_embd)
        self.inner, self.bent = store.new_empty(2, n_inner)
        self.added = store.new_empty(n_embd)
        self.looks = store.new_empty(2, n_head * n_ctx)  # scores, and their softmax
        self.store = store
        self.tables = [layer[1].flatten(end_dim=1) for layer in store]
        self.by_bags = BagsOfHeads(store) if has_kernel(store) else None
        maps = (
            linear
            for b in model.h
            for linear in (b.attn.c_attn, b.attn.c_proj, b.mlp.c_fc, b.mlp.c_proj)
        )
        self.shared = (
            shares(torch.get_num_threads()) if any(map(in_bags, maps)) else None
        )
        self.blocks = [
            PreparedBlock(
                ln_1=block.ln_1,
                c_attn=prepared(block.attn.c_attn, qkv),
                c_proj=prepared(block.attn.c_proj, self.added),
                ln_2=block.ln_2,
                c_fc=prepared(block.mlp.c_fc, self.inner),
                mlp_c_proj=prepared(block.mlp.c_proj, self.added),
            )
            for block in model.h
        ]

    def __call__(
        self, x: Float[Tensor, " n_embd"], n_past: int
    ) -> Float[Tensor, " n_embd"]:
        """x, which is written over, after all blocks."""
        n_head, n_kv = len(self.found), n_past + 1
        places = self.store.narrow(3, n_past, 1).unbind()
        keys, values = self.store.narrow(3, 0, n_kv).unbind(1)
        layers = zip(places, keys.unbind(), values.unbind(), self.tables, strict=True)
        scores, weights = self.looks[:, : n_head * n_kv].view(2, n_head, 1, n_kv)
        by_bags = self.by_bags if n_kv >= LONG else None
        weighted_sum = None if by_bags is None else by_bags.cut(n_kv)
        for block, (place, k, v, table) in zip(self.blocks, layers, strict=True):
            block.c_attn(fast_norm(block.ln_1, x))
            place.copy_(self.key_and_value)
            self.free()
            self.look(k, scores, weights)
            if weighted_sum is None:
                torch.bmm(weights, v, out=self.found)
                block.c_proj(self.merged)
            else:
                block.c_proj(weighted_sum(weights, table))
            x.add_(self.added)
            block.c_fc(fast_norm(block.ln_2, x))
            block.mlp_c_proj(fast_gelu(self.inner, out=self.bent))
            x.add_(self.added)
        self.free()
        return x

    def free(self) -> None:
        """Bags leave registers in use, and MKL may share out what comes now."""
        if self.shared is not None:
            free_registers(self.shared)

    def look(
        self,
        k: Float[Tensor, "n_head n_kv d_head"],
        scores: Float[Tensor, "n_head 1 n_kv"],
        weights: Float[Tensor, "n_head 1 n_kv"],
    ) -> None:
        """How much the new query takes of each value: it looks at all keys."""
        d_head = k.shape[-1]
        torch.bmm(k, self.query.mul_(d_head**-0.5), out=scores.mT)
        torch.softmax(scores, dim=-1, out=weights)
