"""The judge of the forward pass: transformers' GPT2LMHeadModel, on our tensors."""

import torch
import transformers
from torch import Tensor

from checkpoints import settings_of
from gpt2hw import GPT2Config


def reference_config(config: GPT2Config) -> transformers.GPT2Config:
    """The same shape in transformers' words."""
    settings = settings_of(config, bos_token_id=0, eos_token_id=0)
    return transformers.GPT2Config(**settings)


def reference_model(
    config: GPT2Config, tensors: dict[str, Tensor], attention: str = "eager"
) -> transformers.GPT2LMHeadModel:
    """transformers' model around these very tensors; attention: "eager" or "sdpa"."""
    with torch.device("meta"):  # no memory for weights that are replaced at once
        model = transformers.AutoModelForCausalLM.from_config(
            reference_config(config), attn_implementation=attention, dtype=torch.float32
        )
    state = {f"transformer.{name}": tensor for name, tensor in tensors.items()}
    state["lm_head.weight"] = tensors.get("lm_head.weight", tensors["wte.weight"])
    state.pop("transformer.lm_head.weight", None)
    model.load_state_dict(state, assign=True)
    assert not [n for n, t in model.state_dict().items() if t.is_meta]
    return model.eval()


@torch.no_grad()
def reference_logits(model: transformers.GPT2LMHeadModel, ids: Tensor) -> Tensor:
    """Its logits for [*batch, n_seq] ids, which it wants in one batch axis."""
    logits = model(ids.reshape(-1, ids.shape[-1]), use_cache=False).logits
    return logits.view(*ids.shape, -1)
