"""A learned linear map, y = x W + b: the only kind of layer with matrices.

Source: GPT-2's `conv1d` (openai/gpt-2, `src/model.py`), Hugging Face's `Conv1D`. The
matrix is stored [in, out], so that no transpose stands in the product.
"""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Linear:
    """Each row of x times the matrix, plus the bias.

    >>> from torch import tensor
    >>> Linear(weight=tensor([[1.0, 2.0], [3.0, 4.0]]), bias=tensor([0.5, 0.5]))(
    ...     tensor([1.0, 0.0]))
    tensor([1.5000, 2.5000])
    """

    weight: Float[Tensor, "n_in n_out"]
    bias: Float[Tensor, " n_out"]

    def __call__(
        self, x: Float[Tensor, "*batch n_in"]
    ) -> Float[Tensor, "*batch n_out"]:
        """[*batch, n_in] -> [*batch, n_out]."""
        return x @ self.weight + self.bias
