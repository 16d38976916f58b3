"""Step 7: mistakes in choosing the next token."""

import math

import torch
from torch import Tensor

from gpt2hw import Sampler
from gpt2hw.sampling import apply_temperature, keep_top_p


def top_k_with_all_ties(logits: Tensor, k: int) -> Tensor:
    """Keeps all that reach the k-th logit: on a tie more than k survive."""
    threshold = logits.topk(min(k, len(logits))).values[-1]
    return logits.masked_fill(logits < threshold, -math.inf)


def top_k_beyond_the_vocabulary(logits: Tensor, k: int) -> Tensor:
    """Hands k to torch.topk as it is: k above n_vocab raises."""
    kept = logits.topk(k).indices
    return torch.full_like(logits, -math.inf).index_copy(0, kept, logits[kept])


def top_p_without_the_crossing_token(logits: Tensor, p: float) -> Tensor:
    """Keeps tokens while the sum WITH them is at most p: the one that crosses is lost."""
    ordered = logits.double().sort(descending=True, stable=True)
    running = torch.softmax(ordered.values, -1).cumsum(-1)
    return logits.index_fill(0, ordered.indices[running > p], -math.inf)


def top_p_from_the_unlikely_end(logits: Tensor, p: float) -> Tensor:
    """Sorts ascending and keeps until p is reached: the unlikely half of the tokens."""
    ordered = logits.double().sort(stable=True)
    probabilities = torch.softmax(ordered.values, -1)
    before = probabilities.cumsum(-1) - probabilities
    return logits.index_fill(0, ordered.indices[before >= p], -math.inf)


def top_p_before_temperature(logits: Tensor, temperature: float, p: float) -> Tensor:
    """Filters first and heats afterwards: another nucleus than the one asked for."""
    return apply_temperature(keep_top_p(logits, p), temperature)


def temperature_as_a_factor(logits: Tensor, temperature: float) -> Tensor:
    """Multiplies: hot is cold."""
    return logits * temperature


def greedy_takes_the_last_tie(logits: Tensor) -> int:
    """Of equal logits the last: `>=` where `>` is meant."""
    best = 0
    for i, logit in enumerate(logits.tolist()):
        if logit >= logits[best]:
            best = i
    return best


class SamplerOnGlobalState(Sampler):
    """Seeds torch's global generator: any other draw in the program changes the text."""

    def __call__(self, logits_row: Tensor) -> int:
        if self.seed is not None:
            torch.manual_seed(self.seed)
        return int(torch.multinomial(self.probabilities(logits_row), 1))
