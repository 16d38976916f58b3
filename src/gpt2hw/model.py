"""The whole forward pass: ids in, a row of logits per id out.

Source: openai/gpt-2, `src/model.py`; Radford et al. 2019, section 2.3 (one more layer
norm after the last block). The output matrix is the token embedding itself (tied, as
in Radford et al. 2018), without any factor.
"""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from gpt2hw.block import LayerNorm, TransformerBlock
from gpt2hw.embeddings import embed


def unembed(
    x: Float[Tensor, "*batch n_embd"], lm_head: Float[Tensor, "n_vocab n_embd"]
) -> Float[Tensor, "*batch n_vocab"]:
    """The logit of each token: its vector's dot product with the final state.

    >>> from torch import eye, tensor
    >>> unembed(tensor([3.0, 4.0]), eye(2))
    tensor([3., 4.])
    """
    return x @ lm_head.T  # [n_embd] @ [n_embd, n_vocab]


@dataclass(frozen=True, eq=False)
class Transformer:
    """GPT-2 as mathematics: embeddings, n_layer blocks, a final norm, the head.

    Where the head is tied, lm_head is wte: the same tensor, not a copy.

    >>> from gpt2hw import GPT2, GPT2Config
    >>> model = GPT2.random(
    ...     GPT2Config(n_vocab=7, n_ctx=8, n_embd=4, n_head=2, n_layer=1))
    >>> model.lm_head is model.wte, len(model.h)
    (True, 1)
    """

    wte: Float[Tensor, "n_vocab n_embd"]
    wpe: Float[Tensor, "n_ctx n_embd"]
    h: tuple[TransformerBlock, ...]
    ln_f: LayerNorm
    lm_head: Float[Tensor, "n_vocab n_embd"]

    def forward(
        self, ids: Int[Tensor, "*batch n_seq"]
    ) -> Float[Tensor, "*batch n_seq n_vocab"]:
        """[*batch, n_seq] -> [*batch, n_seq, n_vocab]: row i predicts token i + 1."""
        x = embed(ids, self.wte, self.wpe)
        for block in self.h:
            x = block(x)
        return unembed(self.ln_f(x), self.lm_head)
