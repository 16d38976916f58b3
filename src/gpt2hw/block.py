"""A transformer block: attention, then an MLP, each added to the residual stream.

Source: Radford et al. 2019, section 2.3: the layer norm stands before each part
(pre-norm), not after the sum as in Vaswani et al. 2017, section 3.1; openai/gpt-2,
`src/model.py`. GELU is the tanh form of Hendrycks and Gimpel 2016, section 2.
"""

from dataclasses import dataclass
from math import pi, sqrt

import torch
from jaxtyping import Float
from torch import Tensor

from gpt2hw.attention import CausalSelfAttention
from gpt2hw.linear import Linear


def normalize(
    x: Float[Tensor, "*batch n_embd"], eps: float
) -> Float[Tensor, "*batch n_embd"]:
    """Each row shifted to mean 0 and scaled to variance 1 (nearly: see eps).

    The variance is the population's (divided by n_embd, not by n_embd - 1), and eps,
    inside the root, keeps a constant row from dividing by zero. Half precision is
    widened first: 300 squared no longer fits into it.

    >>> normalize(torch.tensor([1.0, 2.0, 3.0, 4.0]), eps=1e-5)
    tensor([-1.3416, -0.4472,  0.4472,  1.3416])
    """
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    n_embd = x.shape[-1]
    centred = wide - wide.sum(dim=-1, keepdim=True) / n_embd
    variance = (centred * centred).sum(dim=-1, keepdim=True) / n_embd
    return (centred / torch.sqrt(variance + eps)).to(x.dtype)


@dataclass(frozen=True, eq=False)
class LayerNorm:
    """A normalized row, stretched and shifted, column by column, by learned numbers.

    >>> norm = LayerNorm(weight=torch.ones(2), bias=torch.tensor([0.0, 5.0]), eps=1e-5)
    >>> norm(torch.tensor([0.0, 2.0]))
    tensor([-1.0000,  6.0000])
    """

    weight: Float[Tensor, " n_embd"]
    bias: Float[Tensor, " n_embd"]
    eps: float

    def __call__(
        self, x: Float[Tensor, "*batch n_embd"]
    ) -> Float[Tensor, "*batch n_embd"]:
        """[*batch, n_embd] -> the same shape; every row on its own."""
        return normalize(x, self.eps) * self.weight + self.bias


def gelu(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """A soft gate: large numbers pass, very negative ones become 0.

    GPT-2 was trained with this tanh form; the exact one, with erf, differs by up to
    4.7e-4, at about x = 2.7.

    >>> gelu(torch.tensor([-3.0, -1.0, 1.0, 2.0]))
    tensor([-0.0036, -0.1588,  0.8412,  1.9546])
    """
    return 0.5 * x * (1 + torch.tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x)))


@dataclass(frozen=True, eq=False)
class MLP:
    """Two linear maps with GELU between: n_embd to n_inner (768 to 3072) and back.

    >>> same = Linear(weight=torch.eye(2), bias=torch.zeros(2))
    >>> MLP(c_fc=same, c_proj=same)(torch.tensor([1.0, -1.0]))
    tensor([ 0.8412, -0.1588])
    """

    c_fc: Linear
    c_proj: Linear

    def __call__(
        self, x: Float[Tensor, "*batch n_embd"]
    ) -> Float[Tensor, "*batch n_embd"]:
        """[*batch, n_embd] -> the same shape; every token on its own."""
        return self.c_proj(gelu(self.c_fc(x)))


@dataclass(frozen=True, eq=False)
class TransformerBlock:
    """One of n_layer steps: tokens talk to each other, then each thinks alone.

    >>> from gpt2hw import GPT2, GPT2Config
    >>> model = GPT2.random(
    ...     GPT2Config(n_vocab=7, n_ctx=8, n_embd=4, n_head=2, n_layer=1))
    >>> model.h[0](torch.ones(3, 4)).shape
    torch.Size([3, 4])
    """

    ln_1: LayerNorm
    attn: CausalSelfAttention
    ln_2: LayerNorm
    mlp: MLP

    def __call__(
        self, x: Float[Tensor, "*batch n_seq n_embd"]
    ) -> Float[Tensor, "*batch n_seq n_embd"]:
        """[*batch, n_seq, n_embd] -> the same shape: x plus what the two parts add."""
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))
