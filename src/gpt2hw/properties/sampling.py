"""What holds for the filters, the draw, and the sampler that is made of them."""
# ruff: noqa: S101

import math
from collections.abc import Callable

import torch
from torch import Tensor

Filter = Callable[[Tensor, float], Tensor]
MakeSampler = Callable[..., Callable[[Tensor], int]]


def survivors(logits: Tensor) -> list[int]:
    """The ids that a filter let pass."""
    return [i for i, logit in enumerate(logits.tolist()) if logit > -math.inf]


def survivors_keep_their_logits(keep: Filter, logits: Tensor, limit: float) -> None:
    """A filter changes no logit but those that it makes -inf."""
    kept = keep(logits, limit)
    ids = survivors(kept)
    assert torch.equal(kept[ids], logits[ids]), "a survivor's logit was changed"


def exactly_k_survive(keep_top_k: Filter, logits: Tensor, k: int) -> None:
    """k tokens pass, or all that can be chosen if they are fewer."""
    n, n_possible = len(survivors(keep_top_k(logits, k))), len(survivors(logits))
    assert n == min(k, n_possible), f"{n} tokens survive top-k with k = {k}"


def the_likeliest_survive(keep: Filter, logits: Tensor, limit: float) -> None:
    """No token is ruled out in favour of a less likely one, or of a later equal one."""
    kept, row = survivors(keep(logits, limit)), logits.tolist()
    ranking = sorted(survivors(logits), key=lambda i: (-row[i], i))
    assert kept == sorted(ranking[: len(kept)]), f"{kept} of {ranking} survived"


def nucleus_reaches_p(keep_top_p: Filter, logits: Tensor, p: float) -> None:
    """The probabilities of the nucleus add up to p or more (within 1e-12)."""
    mass = _mass(logits, survivors(keep_top_p(logits, p)))
    assert mass >= p - 1e-12, f"the nucleus has mass {mass}, less than p = {p}"


def nucleus_is_minimal(keep_top_p: Filter, logits: Tensor, p: float) -> None:
    """Without its least likely token the nucleus would fall short of p (p below 1)."""
    kept, row = survivors(keep_top_p(logits, p)), logits.tolist()
    kept.sort(key=lambda i: (-row[i], i))
    mass = _mass(logits, kept[:-1])
    assert mass < p + 1e-12, f"{mass} >= p = {p} was reached before the last token"


def _mass(logits: Tensor, ids: list[int]) -> float:
    """The sum of these ids' probabilities, by Python's own exp and exact sum."""
    row = logits.tolist()
    most = max(row)
    shares = [math.exp(logit - most) for logit in row]
    return math.fsum(shares[i] for i in ids) / math.fsum(shares)


def temperature_keeps_the_order(
    apply_temperature: Filter, logits: Tensor, temperature: float
) -> None:
    """Whatever the temperature, a likelier token stays likelier."""
    order = logits.sort(descending=True, stable=True).indices
    scaled = apply_temperature(logits.double(), temperature)[order]
    assert bool((scaled[:-1] >= scaled[1:]).all()), "the order of the tokens changed"


def temperature_comes_before_the_nucleus(
    filter_both: Callable[[Tensor, float, float], Tensor],
) -> None:
    """Logits 3, 2, 1 at temperature 0.5 and top-p 0.8 leave one token, not two.

    Cooled, the first has 0.867 of the mass and is the nucleus alone; filtered before
    cooling it has 0.665, and the second, which crosses 0.8, stays too.
    """
    kept = survivors(filter_both(torch.tensor([3.0, 2.0, 1.0]), 0.5, 0.8))
    assert kept == [0], f"tokens {kept} survive, expected [0]: temperature comes first"


def never_draws_the_impossible(
    draw: Callable[[Tensor, float], int], probabilities: Tensor, u: float
) -> None:
    """Whatever number u in [0, 1) comes up, the token drawn has a chance above 0."""
    token = draw(probabilities, u)
    assert 0 <= token < len(probabilities), f"u = {u} drew {token}, which is no token"
    assert probabilities[token] > 0, f"u = {u} drew {token}, which has probability 0"


def draws_in_proportion(
    draw: Callable[[Tensor, float], int], probabilities: Tensor, n: int = 1000
) -> None:
    """n numbers spread evenly over [0, 1) draw each token in its share of n."""
    drawn = torch.tensor([draw(probabilities, (i + 0.5) / n) for i in range(n)])
    counts = torch.bincount(drawn, minlength=len(probabilities))
    worst = float((counts - n * probabilities).abs().max())
    assert worst <= 1 + 1e-6, f"a token was drawn {worst} times too often or too rarely"


def is_a_distribution(probabilities: Callable[[Tensor], Tensor], row: Tensor) -> None:
    """A row of logits becomes as many numbers, none negative, of sum 1."""
    found = probabilities(row)
    assert found.shape == row.shape, "there is not one probability per logit"
    assert bool((found >= 0).all()), "a probability is negative or NaN"
    total = math.fsum(found.tolist())
    assert abs(total - 1) < 1e-12, f"the probabilities add up to {total}"


def one_choice_is_greedy(make_sampler: MakeSampler, row: Tensor) -> None:
    """Temperature 0 and top_k=1 take the largest logit, of several the lowest id."""
    largest = max(range(len(row)), key=lambda i: float(row[i]))  # the first of equals
    for settings in (
        {"temperature": 0.0},
        {"top_k": 1},
        {"temperature": 5, "top_k": 1},
    ):
        token = make_sampler(**settings)(row)
        assert token == largest, f"{settings} chose {token}, greedy is {largest}"


def same_seed_same_choices(make_sampler: MakeSampler, row: Tensor, seed: int) -> None:
    """Two new samplers with one seed choose alike, whatever torch draws meanwhile."""
    one, other = make_sampler(seed=seed), make_sampler(seed=seed)
    first = [one(row) for _ in range(20)]
    torch.rand(3)
    second = [other(row) for _ in range(20)]
    assert first == second, f"seed {seed} gave {first}, then {second}"


def leaves_torchs_random_state(act: Callable[[], object]) -> None:
    """Whatever `act` does, torch's global generator stands where it stood."""
    before = torch.get_rng_state()
    act()
    assert torch.equal(before, torch.get_rng_state()), "the global state has moved"
