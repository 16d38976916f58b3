"""Weights before training: what a model of a given shape begins with.

Source: Radford et al. 2019, section 2.3 (the maps that write to the residual stream are
scaled down by the root of their number); Hugging Face's `initializer_range`, 0.02, also
for positions, where openai/gpt-2's `src/model.py` has 0.01.
"""

from collections.abc import Iterator
from math import sqrt

import torch
from torch import Tensor

from gpt2hw import huge_pages
from gpt2hw.config import GPT2Config
from gpt2hw.layout import parameter_shapes


def initial_weights(config: GPT2Config, seed: int) -> Iterator[tuple[str, Tensor]]:
    """Each parameter by its name, float32 on the CPU: normal, of deviation 0.02.

    Biases are 0 and norms 1. Each block writes to the residual stream twice, so what
    writes to it (c_proj) is divided by the root of 2 n_layer. The global random state
    is not touched.

    >>> name, wte = next(initial_weights(GPT2Config(n_vocab=9, n_embd=12), seed=0))
    >>> name, wte.shape
    ('wte.weight', torch.Size([9, 12]))
    """
    generator = torch.Generator().manual_seed(seed)
    for name, shape in parameter_shapes(config).items():
        weight = huge_pages.empty(shape, torch.float32).zero_()
        if name.endswith("weight") and len(shape) == 1:
            weight += 1
        elif name.endswith("weight"):
            scale = 1 / sqrt(2 * config.n_layer) if "c_proj" in name else 1
            weight.normal_(0, 0.02 * scale, generator=generator)
        yield name, weight
