"""Step 5: mistakes in the block."""

from math import sqrt

import torch
from torch import Tensor


def gelu_by_erf(x: Tensor) -> Tensor:
    """The exact GELU, torch's default: GPT-2 learned with the tanh form."""
    return 0.5 * x * (1 + torch.erf(x / sqrt(2)))


def gelu_by_sigmoid(x: Tensor) -> Tensor:
    """The short form x sigmoid(1.702 x): close, and not the one."""
    return x * torch.sigmoid(1.702 * x)


def normalize_by_sample_variance(x: Tensor, eps: float) -> Tensor:
    """torch.var's default divides by n - 1."""
    return (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True) + eps)


def normalize_with_eps_outside(x: Tensor, eps: float) -> Tensor:
    """Adds eps to the deviation, not to the variance."""
    centred = x - x.mean(-1, keepdim=True)
    return centred / (torch.sqrt((centred**2).mean(-1, keepdim=True)) + eps)


def normalize_without_mean(x: Tensor, eps: float) -> Tensor:
    """RMSNorm, as later models have it: the mean stays in."""
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps)


def normalize_in_half(x: Tensor, eps: float) -> Tensor:
    """Squares in the precision that came in: 3000 squared is infinity in half."""
    centred = x - x.mean(-1, keepdim=True)
    return centred / torch.sqrt((centred * centred).mean(-1, keepdim=True) + eps)


def block_with_post_norm(block, x: Tensor) -> Tensor:
    """The paper of 2017: the norm after the sum. GPT-2 has it before each part."""
    x = block.ln_1(x + block.attn(x))
    return block.ln_2(x + block.mlp(x))


def block_without_residual(block, x: Tensor) -> Tensor:
    """Hands on what the parts write, and forgets what they read."""
    return block.mlp(block.ln_2(block.attn(block.ln_1(x))))


def block_in_parallel(block, x: Tensor) -> Tensor:
    """Attention and MLP read the same stream, as in GPT-J: the MLP comes too early."""
    return x + block.attn(block.ln_1(x)) + block.mlp(block.ln_2(x))


def linear_transposed(linear, x: Tensor) -> Tensor:
    """torch.nn.Linear's way round, x @ W.T: it fits only where W is square."""
    return x @ linear.weight.T + linear.bias
