"""From a row of logits to the next id: temperature, top-k, top-p, and the draw.

The filters work in this order, which is Hugging Face's too (`generation/utils.py`):
temperature, top-k, top-p. Each takes logits and gives logits; a token that is ruled
out gets -inf, the logit of probability 0. Everything is computed in float64, on the
CPU: a running sum of 50,257 small numbers needs the digits.

Source: openai/gpt-2, `src/sample.py` (temperature, top-k); Fan, Lewis and Dauphin 2018
(top-k); Holtzman et al. 2020, section 3.1 (top-p, or nucleus). Both OpenAI's top-k and
Hugging Face's keep every token that ties with the k-th; here exactly k survive.
"""

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, TypeVar

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from gpt2hw.attention import softmax
from gpt2hw.doors import SEED_RULE, checked, no_type_check

FLOAT32 = torch.finfo(torch.float32)


def apply_temperature(
    logits: Float[Tensor, " n_vocab"], temperature: float
) -> Float[Tensor, " n_vocab"]:
    """Logits divided by the temperature: below 1 the likely gain, above 1 they lose.

    >>> apply_temperature(torch.tensor([3.0, 1.0]), 0.5)
    tensor([6., 2.])
    """
    return logits / temperature


def keep_top_k(logits: Float[Tensor, " n_vocab"], k: int) -> Float[Tensor, " n_vocab"]:
    """The k largest logits; the others become -inf. Ties go to the lowest id.

    >>> keep_top_k(torch.tensor([1.0, 3.0, 1.0, 2.0]), 3)
    tensor([1., 3., -inf, 2.])
    """
    k = min(k, len(logits))
    smallest_kept = logits.topk(k).values[-1]
    above = logits > smallest_kept
    tied = logits == smallest_kept
    n_places = k - above.sum()  # those left for the tied, lowest id first
    kept = above | (tied & (tied.cumsum(-1) <= n_places))
    return logits.masked_fill(~kept, -math.inf)


def keep_top_p(
    logits: Float[Tensor, " n_vocab"], p: float
) -> Float[Tensor, " n_vocab"]:
    """The nucleus: the fewest, likeliest tokens whose probabilities reach p together.

    A token is in it if the mass of those before it is below p, so the one that crosses
    p is kept. Tokens of equal probability stand in the order of their ids. p = 1 keeps
    every token, whatever the running sum rounds to.

    >>> keep_top_p(torch.tensor([0.05, 0.5, 0.3, 0.15]).log(), 0.6).exp()
    tensor([0.0000, 0.5000, 0.3000, 0.0000])
    """
    if p == 1:
        return logits
    likeliest_first = logits.sort(descending=True, stable=True)
    running = softmax(likeliest_first.values.double()).cumsum(-1)
    mass_before = running.roll(1)
    mass_before[0] = 0.0
    ruled_out = likeliest_first.indices[mass_before >= p]
    return logits.index_fill(0, ruled_out, -math.inf)


def greedy(logits: Float[Tensor, " n_vocab"]) -> int:
    """The id of the largest logit; of several, the lowest.

    >>> greedy(torch.tensor([1.0, 3.0, 3.0]))
    1
    """
    return int(logits.argmax())


def draw(probabilities: Float64[Tensor, " n_vocab"], u: float) -> int:
    """The token in whose share of [0, 1) the number u falls: the inverse of the CDF.

    The shares lie end to end in the order of the ids. A token of probability 0 has a
    share of no width: its running sum is not above the one before it, and the first
    sum above u is never there. (u is below 1, so the last token's end is not reached.)

    >>> draw(torch.tensor([0.0, 0.25, 0.75], dtype=torch.float64), 0.2)
    1
    """
    running = probabilities.cumsum(-1)
    point = u * running[-1]  # the sum may differ from 1 in its last digit
    return int(torch.searchsorted(running, point, right=True))


class Sampler:
    """Chooses the next id from a row of logits; its settings, and its own generator.

    temperature (0 or more), top_k (None, or at least 1; more than the vocabulary is all
    of it) and top_p (None, or 0 < top_p <= 1) filter in this order. Temperature 0 is
    greedy: always the largest logit, of several the lowest id. So is one too small to
    divide by, below float32's smallest normal number (1.2e-38), and so is top_k=1.

    seed: None draws anew each time; with an int (torch takes -2**63 to 2**64 - 1, and
    its CPU generator tells seeds apart by their lowest 32 bits) two new samplers choose
    alike. The generator moves on with each call, so one sampler used twice does not
    repeat itself (`generate` gives each prompt of a list a copy). torch's global random
    state is neither read nor changed. What a seed gives is stable for equal logits
    under one release of torch; logits from another machine differ in their last digits,
    and a draw close to a border may then differ.

    Raises ValueError, naming the setting, for one that is out of range.

    >>> sampler = Sampler(temperature=0.5, top_k=2, seed=7)
    >>> sampler.probabilities(torch.tensor([2.0, 1.0, 0.0]))
    tensor([0.8808, 0.1192, 0.0000], dtype=torch.float64)
    >>> Sampler.greedy()(torch.tensor([2.0, 1.0, 0.0]))
    0
    """

    @no_type_check
    def __init__(
        self,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
    ) -> None:
        self.temperature = _setting("temperature", temperature, float)
        self.top_k = None if top_k is None else _setting("top_k", top_k, int)
        self.top_p = None if top_p is None else _setting("top_p", top_p, float)
        self.seed = None if seed is None else _setting("seed", seed, int)
        self._generator = torch.Generator()
        if self.seed is None:
            self._generator.seed()  # from the operating system
        else:
            self._generator.manual_seed(self.seed)

    @classmethod
    def greedy(cls) -> "Sampler":
        """A sampler that always takes the likeliest token."""
        return cls(temperature=0.0)

    @property
    def is_greedy(self) -> bool:
        """Whether the settings leave one choice."""
        return self.temperature < FLOAT32.tiny or self.top_k == 1

    @no_type_check
    def probabilities(
        self, logits_row: Float[Tensor, " n_vocab"]
    ) -> Float64[Tensor, " n_vocab"]:
        """Each token's chance after all filters: float64, of sum 1.

        A logit of -inf is a token that is never chosen. Raises ValueError where the row
        is not one axis of finite numbers: NaN, +inf, or -inf everywhere.
        """
        return self._filtered(_checked_row(logits_row))

    def _filtered(
        self, logits: Float64[Tensor, " n_vocab"]
    ) -> Float64[Tensor, " n_vocab"]:
        if self.is_greedy:
            return torch.zeros_like(logits).index_fill(0, logits.argmax(), 1.0)
        logits = apply_temperature(logits, self.temperature)
        if self.top_k is not None:
            logits = keep_top_k(logits, self.top_k)
        if self.top_p is not None:
            logits = keep_top_p(logits, self.top_p)
        return softmax(logits)

    @no_type_check
    def __call__(self, logits_row: Float[Tensor, " n_vocab"]) -> int:
        """Draws the next id; raises as `probabilities` does."""
        logits = _checked_row(logits_row)
        if self.is_greedy:
            return greedy(logits)
        u = torch.rand((), dtype=torch.float64, device="cpu", generator=self._generator)
        return draw(self._filtered(logits), float(u))

    def copy(self) -> "Sampler":
        """A sampler that goes on as this one does, and apart from it."""
        twin = Sampler(self.temperature, self.top_k, self.top_p, self.seed)
        twin._generator.set_state(self._generator.get_state())
        return twin

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, object]) -> "Sampler":
        """As `copy`."""
        return self.copy()

    def __repr__(self) -> str:
        """The settings, as they would be typed."""
        return f"Sampler({', '.join(f'{n}={getattr(self, n)}' for n in _RULES)})"


def _is_finite_from_0(number: Any) -> bool:
    try:
        return 0 <= float(number) < math.inf
    except OverflowError:  # an integer that no float can hold
        return False


_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "temperature": (_is_finite_from_0, "a finite number from 0 up"),
    "top_k": (lambda k: k >= 1, "None or an integer from 1 up"),
    "top_p": (lambda p: 0 < p <= 1, "None or a number p, 0 < p <= 1"),
    "seed": (SEED_RULE[0], f"None or {SEED_RULE[1]}"),
}
Number = TypeVar("Number", int, float)


def _setting(name: str, value: Any, as_type: type[Number]) -> Number:
    """The setting as a plain number; ValueError where it breaks its rule.

    It must hold before and after: a fraction may be too small for a float.
    """
    kind = Integral if as_type is int else Real
    plain = as_type(checked(name, value, kind, *_RULES[name]))
    return as_type(checked(name, plain, kind, *_RULES[name]))


def _checked_row(row: object) -> Float64[Tensor, " n_vocab"]:
    """The row in float64 on the CPU; ValueError where it cannot be sampled from."""
    if not isinstance(row, Tensor) or row.ndim != 1 or row.numel() == 0:
        what = [*row.shape] if isinstance(row, Tensor) else type(row).__name__
        raise ValueError(f"logits_row: must be a tensor [n_vocab], not {what}")
    if row.is_complex():
        raise ValueError(f"logits_row: must be real numbers, not {row.dtype}")
    logits = row.detach().cpu().double()
    largest = float(logits.max())  # NaN, if there is any
    if not abs(largest) <= FLOAT32.max:
        raise ValueError(
            f"logits_row: the largest logit is {largest}, which no choice can rest on; "
            "look at the model's weights and its inputs"
        )
    return logits
