"""Step 5: mistakes in the block."""

from dataclasses import replace
from math import sqrt
from typing import Any

import torch
from torch import Tensor

from gpt2hw import GPT2, block
from gpt2hw.properties import block as rules
from gpt2hw.properties.seeded import normal
from gpt2hw.properties.tracing import each_part_runs_once_and_in_order, loud_model
from wrong.entry import Entry, Piece, entry


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


def block_without_the_first_norm(block, x: Tensor) -> Tensor:
    """Gives attention the raw stream: ln_1's shift and scale are skipped."""
    x = x + block.attn(x)
    return x + block.mlp(block.ln_2(x))


def block_without_residual(block, x: Tensor) -> Tensor:
    """Hands on what the parts write, and forgets what they read."""
    return block.mlp(block.ln_2(block.attn(block.ln_1(x))))


def block_in_parallel(block, x: Tensor) -> Tensor:
    """Side by side, as in GPT-J (with one norm for both): the MLP comes too early."""
    return x + block.attn(block.ln_1(x)) + block.mlp(block.ln_2(x))


# What catches them

STREAM = normal(6, 12, seed=2, deviation=2)
SMALL_SPREAD = torch.linspace(-0.02, 0.02, 12)
IDS = torch.tensor([3, 1, 4, 1, 5, 9, 2, 6])


def _blocks(call: Piece) -> Any:
    """A block of a loud model that runs as `call(block, x)` says."""
    kind = type("Block", (block.TransformerBlock,), {"__call__": call})
    parts = loud_model(n_layer=1).h[0]
    return kind(parts.ln_1, parts.attn, parts.ln_2, parts.mlp)


def _adds_only(call: Piece) -> None:
    rules.silent_parts_leave_the_stream_alone(_blocks(call), STREAM)


def _as_the_trace_has_it(call: Piece) -> None:
    def forward(model: GPT2, ids: torch.Tensor) -> torch.Tensor:
        kind = type("Block", (block.TransformerBlock,), {"__call__": call})
        h = tuple(kind(b.ln_1, b.attn, b.ln_2, b.mlp) for b in model.h)
        return replace(model, h=h).forward(ids)

    each_part_runs_once_and_in_order(forward, IDS)


ENTRIES = [
    *(
        entry(wrong, block.gelu, rules.gelu_is_the_tanh_form)
        for wrong in (gelu_by_erf, gelu_by_sigmoid)
    ),
    entry(
        normalize_by_sample_variance,
        block.normalize,
        rules.rows_have_the_variance_that_eps_leaves,
        STREAM,
        1e-5,
    ),
    entry(
        normalize_with_eps_outside,
        block.normalize,
        rules.rows_have_the_variance_that_eps_leaves,
        SMALL_SPREAD,
        1e-5,
    ),
    entry(
        normalize_without_mean,
        block.normalize,
        rules.rows_have_mean_0,
        STREAM,
    ),
    entry(
        normalize_in_half,
        block.normalize,
        rules.half_precision_stays_finite,
    ),
    Entry(
        block_with_post_norm,
        block.TransformerBlock.__call__,
        rules.silent_parts_leave_the_stream_alone,
        _adds_only,
    ),
    Entry(
        block_without_residual,
        block.TransformerBlock.__call__,
        rules.silent_parts_leave_the_stream_alone,
        _adds_only,
    ),
    *(
        Entry(
            wrong,
            block.TransformerBlock.__call__,
            each_part_runs_once_and_in_order,
            _as_the_trace_has_it,
        )
        for wrong in (block_in_parallel, block_without_the_first_norm)
    ),
]
