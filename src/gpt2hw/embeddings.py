"""Ids become vectors: a row of wte for what the token is, a row of wpe for where.

Source: Radford et al. 2018, section 3.1 (h_0 = U W_e + W_p); openai/gpt-2,
`src/model.py`. GPT-2 learns a vector for each position; it does not use the sines of
Vaswani et al. 2017, section 3.5, nor rotations (RoPE).
"""

from jaxtyping import Float, Int
from torch import Tensor


def embed(
    ids: Int[Tensor, "*batch n_seq"],
    wte: Float[Tensor, "n_vocab n_embd"],
    wpe: Float[Tensor, "n_ctx n_embd"],
    n_past: int = 0,
) -> Float[Tensor, "*batch n_seq n_embd"]:
    """The first state of the residual stream: token vector plus position vector.

    Positions count from `n_past`, the number of tokens that came before these ids.

    >>> from torch import tensor
    >>> embed(tensor([1, 1]), tensor([[0.0], [5.0]]), tensor([[0.1], [0.2], [0.3]]))
    tensor([[5.1000],
            [5.2000]])
    """
    n_seq = ids.shape[-1]
    return wte[ids] + wpe[n_past : n_past + n_seq]  # [*batch, n_seq, n_embd]
