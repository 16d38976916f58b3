"""A block in fewer calls: the taught formulas, each by one kernel of torch.

A small call of torch costs about a thousandth of a millisecond, and a block by
hand makes over 80 of them for a token. So norm, GELU and softmax are done by torch's
own kernels here. And attention goes a few queries at a time, with the keys that they
may see: a prompt's scores never stand in memory all at once, and most of those that the
mask would strike out are not computed.
"""

from math import inf

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from gpt2hw.attention import CausalSelfAttention, merge_heads
from gpt2hw.bags import BagMatrix
from gpt2hw.block import MLP, LayerNorm, TransformerBlock
from gpt2hw.kv_cache import LayerCache
from gpt2hw.linear import Linear
from gpt2hw.many_rows import gelu_of_many

AT_ONCE = 64  # queries


def fast_norm(
    norm: LayerNorm, x: Float[Tensor, "*batch n_embd"]
) -> Float[Tensor, "*batch n_embd"]:
    """LayerNorm in one call."""
    return torch.layer_norm(x, norm.weight.shape, norm.weight, norm.bias, norm.eps)


def fast_gelu(
    x: Float[Tensor, "*shape"], out: Float[Tensor, "*shape"] | None = None
) -> Float[Tensor, "*shape"]:
    """Gelu, in its tanh form, in one call; written to `out` where that is given.

    >>> fast_gelu(torch.tensor([-1.0, 2.0]))
    tensor([-0.1588,  1.9546])
    """
    gelu = torch.ops.aten.gelu
    found: Tensor = (
        gelu.default(x, approximate="tanh")
        if out is None
        else gelu.out(x, approximate="tanh", out=out)
    )
    return found


def one_query(
    q: Float[Tensor, "*batch 1 d_head"],
    k: Float[Tensor, "*batch n_kv d_head"],
    v: Float[Tensor, "*batch n_kv d_head"],
    may_look: Bool[Tensor, "*#batch 1 n_kv"] | None = None,
) -> Float[Tensor, "*batch 1 d_head"]:
    """What attend gives for the last token alone, who may look at all but padding.

    The keys stand first in the product: so they are read as they lie.

    >>> one_query(torch.ones(1, 1), torch.ones(2, 1), torch.tensor([[2.0], [4.0]]))
    tensor([[3.]])
    """
    scores = (k @ (q * q.shape[-1] ** -0.5).mT).mT  # [1, n_kv]
    if may_look is not None:
        scores = scores.masked_fill(~may_look, -inf)
    return torch.softmax(scores, dim=-1) @ v


def many_queries(
    q: Float[Tensor, "*batch n_seq d_head"],
    k: Float[Tensor, "*batch n_kv d_head"],
    v: Float[Tensor, "*batch n_kv d_head"],
    may_look: Bool[Tensor, "*#batch n_seq n_kv"],
) -> Float[Tensor, "*batch n_seq d_head"]:
    """Each query's average of the values, some queries at a time.

    may_look: the causal mask, or with padding one for each text.
    """
    q = (q * q.shape[-1] ** -0.5).contiguous()
    n_seq, n_kv = may_look.shape[-2:]
    is_causal = may_look.ndim == 2
    parts = []
    for start in range(0, n_seq, AT_ONCE):
        end = min(start + AT_ONCE, n_seq)
        n_seen = n_kv - n_seq + end  # no query of this part may look further
        scores = q[..., start:end, :] @ k[..., :n_seen, :].mT
        first = n_seen - (end - start) if is_causal else 0  # all see what stands before
        hidden = ~may_look[..., start:end, first:n_seen]
        scores[..., first:].masked_fill_(hidden, -inf)
        parts.append(torch.softmax(scores, dim=-1) @ v[..., :n_seen, :])
    return torch.cat(parts, dim=-2)


def three_thirds(
    qkv: Float[Tensor, "*batch n_seq n_embd_3"], n_head: int
) -> tuple[Float[Tensor, "*batch n_head n_seq d_head"], ...]:
    """What split_heads makes of c_attn's three thirds, cut in one view."""
    cut = qkv.view(*qkv.shape[:-1], 3, n_head, -1)  # [*batch, n_seq, 3, n_head, d_head]
    q, k, v = cut.transpose(-4, -2).unbind(-3)
    return q, k, v


def fast_attention(
    attn: CausalSelfAttention,
    x: Float[Tensor, "*batch n_seq n_embd"],
    layer: LayerCache | None,
    n_past: int,
    may_look: Bool[Tensor, "*heads n_out n_kv"] | None,
) -> Float[Tensor, "*batch n_out n_embd"]:
    """CausalSelfAttention, with its past if there is one, of the last n_out tokens.

    may_look has a row for each of those; None where there is one, who sees all.
    """
    q, k, v = three_thirds(attn.c_attn(x), attn.n_head)
    if layer is not None:
        k, v = layer.extend(n_past, k, v)
    if may_look is None or may_look.shape[-2] == 1:
        found = one_query(q[..., -1:, :], k, v, may_look)
    else:
        found = many_queries(q, k, v, may_look)
    return attn.c_proj(merge_heads(found))


def in_bags(linear: Linear) -> bool:
    """Whether this map's matrix lies by inputs, in bags."""
    return isinstance(getattr(linear, "matrix", None), BagMatrix)


def fast_inner(
    mlp: MLP, x: Float[Tensor, "*batch n_embd"]
) -> Float[Tensor, "*batch n_inner"]:
    """Gelu of c_fc's map; of many rows in one call, where c_fc is in bags."""
    c_fc, n_rows = mlp.c_fc, x.numel() // x.shape[-1]
    if in_bags(c_fc) and n_rows > 1:
        return gelu_of_many()(x, c_fc.weight.T, c_fc.bias)
    return fast_gelu(mlp.c_fc(x))


def fast_cached_block(
    block: TransformerBlock,
    x: Float[Tensor, "*batch n_seq n_embd"],
    layer: LayerCache | None,
    n_past: int,
    may_look: Bool[Tensor, "*heads n_out n_kv"] | None,
) -> Float[Tensor, "*batch n_out n_embd"]:
    """TransformerBlock of the last n_out tokens, for which may_look has a row each.

    None stands for the last token alone, who sees all.
    """
    n_out = 1 if may_look is None else may_look.shape[-2]
    x = x[..., -n_out:, :] + fast_attention(
        block.attn, fast_norm(block.ln_1, x), layer, n_past, may_look
    )
    inner = fast_inner(block.mlp, fast_norm(block.ln_2, x))
    return block.mlp.c_proj(inner).add_(x)
