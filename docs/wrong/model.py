"""Step 6: mistakes in the forward pass."""

import torch
from torch import Tensor

from gpt2hw import GPT2
from gpt2hw.embeddings import embed
from gpt2hw.model import unembed
from gpt2hw.properties.tracing import each_part_runs_once_and_in_order
from wrong.entry import entry


def forward_without_final_norm(model: GPT2, ids: Tensor) -> Tensor:
    """Leaves ln_f out: the logits come out of a stream of any size."""
    x = embed(ids, model.wte, model.wpe)
    for block in model.h:
        x = block(x)
    return unembed(x, model.lm_head)


def forward_with_blocks_reversed(model: GPT2, ids: Tensor) -> Tensor:
    """Takes the blocks from the last to the first."""
    x = embed(ids, model.wte, model.wpe)
    for block in reversed(model.h):
        x = block(x)
    return unembed(model.ln_f(x), model.lm_head)


def forward_with_names_in_text_order(model: GPT2, ids: Tensor) -> Tensor:
    """Sorts the layers as texts: "10" stands before "2"."""
    x = embed(ids, model.wte, model.wpe)
    for index in sorted(range(len(model.h)), key=str):
        x = model.h[index](x)
    return unembed(model.ln_f(x), model.lm_head)


# What catches them

IDS = torch.tensor([3, 1, 4, 1, 5, 9, 2, 6])


ENTRIES = [
    entry(wrong, GPT2.forward, each_part_runs_once_and_in_order, IDS)
    for wrong in (
        forward_without_final_norm,
        forward_with_blocks_reversed,
        forward_with_names_in_text_order,
    )
]
