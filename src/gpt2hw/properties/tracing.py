"""The rule of the trace: it tells of the very pass that the model makes."""

from collections.abc import Callable

import torch
from torch import Tensor

from gpt2hw.config import GPT2Config
from gpt2hw.layout import parameter_shapes
from gpt2hw.pretrained import GPT2
from gpt2hw.properties.closeness import agree
from gpt2hw.tracing import trace

Forward = Callable[[GPT2, Tensor], Tensor]


def each_part_runs_once_and_in_order(forward: Forward, ids: Tensor) -> None:
    """The logits of a pass are those of the trace, which goes part by part.

    The model here is large in its numbers and has twelve blocks, so that a part left
    out, or two that change places, cannot hide.

    >>> each_part_runs_once_and_in_order(GPT2.forward, torch.tensor([3, 1, 4, 1]))
    """
    model = loud_model(n_layer=12)
    agree(forward(model, ids), trace(model, ids)["logits"], 1e-5, "logits")


def loud_model(n_layer: int, seed: int = 0) -> GPT2:
    """A small random model whose every parameter, norms and biases too, counts."""
    config = GPT2Config(n_vocab=11, n_ctx=16, n_embd=12, n_head=3, n_layer=n_layer)
    generator = torch.Generator().manual_seed(seed)
    shapes = parameter_shapes(config)
    tensors = {n: torch.randn(s, generator=generator) * 0.5 for n, s in shapes.items()}
    return GPT2.from_tensors(config, tensors)
