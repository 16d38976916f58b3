"""Step 7: mistakes in choosing the next token."""

import math

import torch
from torch import Tensor

from gpt2hw import Sampler, sampling
from gpt2hw.properties import sampling as rules
from gpt2hw.sampling import apply_temperature, keep_top_p
from wrong.entry import entry


def top_k_with_all_ties(logits: Tensor, k: int) -> Tensor:
    """Keeps all that reach the k-th logit: on a tie more than k survive."""
    threshold = logits.topk(min(k, len(logits))).values[-1]
    return logits.masked_fill(logits < threshold, -math.inf)


def top_p_without_the_crossing_token(logits: Tensor, p: float) -> Tensor:
    """Keeps tokens while the sum WITH them is at most p: the crossing one is lost."""
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
    """Filters before the temperature: another nucleus than the one asked for."""
    return apply_temperature(keep_top_p(logits, p), temperature)


def temperature_below_zero(logits: Tensor, temperature: float) -> Tensor:
    """Takes a sign along: the least likely token becomes the likeliest."""
    return logits / -temperature


class SamplerOfTheLastTie(Sampler):
    """Of equal logits the last: `>=` where `>` is meant."""

    def __call__(self, logits_row: Tensor) -> int:
        best = 0
        for i, logit in enumerate(logits_row.tolist()):
            if logit >= logits_row[best]:
                best = i
        return best


class SamplerOnGlobalState(Sampler):
    """Seeds torch's global generator: any other draw changes the text."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed=seed)
        torch.manual_seed(seed)

    def __call__(self, logits_row: Tensor) -> int:
        return int(torch.multinomial(self.probabilities(logits_row), 1))


# What catches them

ROW = torch.tensor([3.0, 1.0, 3.0, 2.0, -1.0])
EQUAL = torch.tensor([1.0, 3.0, 1.0, 1.0])
FOUR = torch.tensor([0.5, 0.3, 0.15, 0.05]).log()


def _right_order(logits: torch.Tensor, temperature: float, p: float) -> torch.Tensor:
    return sampling.keep_top_p(sampling.apply_temperature(logits, temperature), p)


ENTRIES = [
    entry(
        top_k_with_all_ties,
        sampling.keep_top_k,
        rules.exactly_k_survive,
        EQUAL,
        2,
    ),
    entry(
        top_p_without_the_crossing_token,
        sampling.keep_top_p,
        rules.nucleus_reaches_p,
        FOUR,
        0.6,
    ),
    entry(
        top_p_from_the_unlikely_end,
        sampling.keep_top_p,
        rules.the_likeliest_survive,
        FOUR,
        0.4,
    ),
    entry(
        top_p_before_temperature,
        _right_order,
        rules.temperature_comes_before_the_nucleus,
    ),
    entry(
        temperature_below_zero,
        sampling.apply_temperature,
        rules.temperature_keeps_the_order,
        ROW,
        0.5,
    ),
    entry(
        SamplerOfTheLastTie,
        Sampler,
        rules.one_choice_is_greedy,
        ROW,
    ),
    entry(
        SamplerOnGlobalState,
        Sampler,
        rules.same_seed_same_choices,
        ROW,
        7,
    ),
]
