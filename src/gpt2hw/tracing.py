"""Every intermediate value of a forward pass, by name: the engine with its lid off.

The same pieces as in the rooms before, called one by one, so that a reader can compare
each number with another implementation's. Names follow TransformerLens' habit
(`resid_mid`, `resid_post`) and the checkpoint's.
"""

from collections.abc import Sequence

from jaxtyping import Float, Int
from torch import Tensor

from gpt2hw.attention import attention_scores, attention_weights, merge_heads
from gpt2hw.block import TransformerBlock, gelu
from gpt2hw.doors import no_type_check
from gpt2hw.embeddings import embed
from gpt2hw.fast import taught
from gpt2hw.model import unembed
from gpt2hw.pretrained import GPT2


@no_type_check
def trace(
    model: GPT2, ids: Int[Tensor, "*batch n_seq"] | Sequence[int]
) -> dict[str, Tensor]:
    """Runs the model and keeps each value, in the order in which it is computed.

    embed [*batch, n_seq, n_embd]; for each layer N: h.N.ln_1, h.N.attn.q, .k, .v
    [*batch, n_head, n_seq, d_head], .scores (scaled, before the mask) and .weights
    [*batch, n_head, n_seq, n_seq], .mixed (before merging the heads), .out,
    h.N.resid_mid, h.N.ln_2, h.N.mlp.inner, .act [*batch, n_seq, n_inner], .out,
    h.N.resid_post; then ln_f and logits. Raises as `model(ids)` does.

    >>> from gpt2hw import GPT2Config
    >>> model = GPT2.random(
    ...     GPT2Config(n_vocab=7, n_ctx=8, n_embd=4, n_head=2, n_layer=1))
    >>> list(trace(model, [3, 1]))[:3]
    ['embed', 'h.0.ln_1', 'h.0.attn.q']
    """
    checked, parts = model.checked(ids), taught(model)
    x = embed(checked, parts.wte, parts.wpe)
    seen = {"embed": x}
    for layer, block in enumerate(parts.h):
        x = _trace_block(block, x, f"h.{layer}", seen)
    seen["ln_f"] = parts.ln_f(x)
    seen["logits"] = unembed(seen["ln_f"], parts.lm_head)
    return seen


def _trace_block(
    block: TransformerBlock,
    x: Float[Tensor, "*batch n_seq n_embd"],
    at: str,
    seen: dict[str, Tensor],
) -> Float[Tensor, "*batch n_seq n_embd"]:
    """One block; puts its values into `seen` under `at` and returns resid_post."""
    ln_1 = block.ln_1(x)
    q, k, v = block.attn.project(ln_1)
    scores = attention_scores(q, k)
    weights = attention_weights(scores)
    mixed = weights @ v
    out = block.attn.c_proj(merge_heads(mixed))
    resid_mid = x + out
    ln_2 = block.ln_2(resid_mid)
    inner = block.mlp.c_fc(ln_2)
    act = gelu(inner)
    mlp_out = block.mlp.c_proj(act)
    values = {
        "ln_1": ln_1,
        "attn.q": q,
        "attn.k": k,
        "attn.v": v,
        "attn.scores": scores,
        "attn.weights": weights,
        "attn.mixed": mixed,
        "attn.out": out,
        "resid_mid": resid_mid,
        "ln_2": ln_2,
        "mlp.inner": inner,
        "mlp.act": act,
        "mlp.out": mlp_out,
        "resid_post": resid_mid + mlp_out,
    }
    seen |= {f"{at}.{name}": value for name, value in values.items()}
    return values["resid_post"]
