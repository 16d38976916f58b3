"""Tensors, models and cuts to try the rules on, by hypothesis."""

import math

import torch
from torch import Tensor

from gpt2hw.config import GPT2Config
from gpt2hw.properties.strategies import st

SEEDS = st.integers(0, 2**32 - 1)


def rows(
    limit: float = 100.0, min_size: int = 1, max_size: int = 12
) -> st.SearchStrategy[Tensor]:
    """One row of float64 numbers from -limit to limit."""
    numbers = st.floats(-limit, limit)
    lists = st.lists(numbers, min_size=min_size, max_size=max_size)
    return lists.map(lambda row: torch.tensor(row, dtype=torch.float64))


@st.composite
def logit_rows(draw: st.DrawFn, max_size: int = 12) -> Tensor:
    """Rows [n_vocab] of float32 logits: plain, huge, tied, and now and then -inf."""
    plain = st.floats(-30, 30, width=32)
    huge = st.floats(-(2.0**126), 2.0**126, width=32)
    tied = st.sampled_from([0.0, -0.0, 1.0, -math.inf])
    row = draw(st.lists(plain | huge | tied, min_size=1, max_size=max_size))
    row[draw(st.integers(0, len(row) - 1))] = draw(plain)  # not all of them -inf
    return torch.tensor(row, dtype=torch.float32)


@st.composite
def distributions(draw: st.DrawFn, max_size: int = 12) -> Tensor:
    """Rows [n_vocab] of float64 probabilities, some of them 0."""
    weights = draw(
        st.lists(st.just(0.0) | st.floats(1e-12, 1.0), min_size=1, max_size=max_size)
    )
    weights[draw(st.integers(0, len(weights) - 1))] = draw(st.floats(1e-12, 1.0))
    row = torch.tensor(weights, dtype=torch.float64)
    return row / row.sum()


def batch_shapes() -> st.SearchStrategy[tuple[int, ...]]:
    """No batch axis, one, or two, each short."""
    return st.lists(st.integers(1, 3), max_size=2).map(tuple)


def splits(n: int) -> st.SearchStrategy[list[int]]:
    """A way to cut n tokens into chunks, as lengths."""
    cuts = st.lists(st.booleans(), min_size=n - 1, max_size=n - 1)
    return cuts.map(_lengths)


def _lengths(cuts: list[bool]) -> list[int]:
    """Chunk lengths from "is there a cut here?" between neighbours."""
    lengths = [1]
    for cut in cuts:
        if cut:
            lengths.append(1)
        else:
            lengths[-1] += 1
    return lengths


@st.composite
def configs(draw: st.DrawFn, max_n_ctx: int = 24) -> GPT2Config:
    """A small model's shape: every number free, nothing at GPT-2's proportions."""
    n_head = draw(st.integers(1, 5))
    # Two logits may be nearly equal, and what float32 rounds off is then a large share
    # of their range, by which results are compared. Ten are hardly ever all so close.
    return GPT2Config(
        n_vocab=draw(st.integers(10, 70)),
        n_ctx=draw(st.integers(1, max_n_ctx)),
        n_embd=n_head * draw(st.integers(1, 9)),
        n_head=n_head,
        n_layer=draw(st.integers(1, 3)),
        n_inner=draw(st.none() | st.integers(1, 40)),
        layer_norm_epsilon=draw(st.sampled_from([1e-12, 1e-6, 1e-5, 1e-3, 0.1])),
    )


@st.composite
def ids_for(
    draw: st.DrawFn, config: GPT2Config, *batch: int, min_n_seq: int = 1
) -> Tensor:
    """Ids that a model of this config takes, [*batch, n_seq] int64."""
    n_seq = draw(st.integers(min(min_n_seq, config.n_ctx), config.n_ctx))
    generator = torch.Generator().manual_seed(draw(SEEDS))
    return torch.randint(config.n_vocab, (*batch, n_seq), generator=generator)
