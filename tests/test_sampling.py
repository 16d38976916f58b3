"""Sampling: the filters one by one, the draw, and the Sampler made of them."""

import copy
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, tensor
from transformers.generation.logits_process import TopKLogitsWarper, TopPLogitsWarper

from gpt2hw.properties import sampling as rules
from gpt2hw.properties.drawn import distributions, logit_rows
from gpt2hw.properties.sampling import survivors
from gpt2hw.sampling import (
    Sampler,
    apply_temperature,
    draw,
    greedy,
    keep_top_k,
    keep_top_p,
)

PS = st.floats(0.0, 1.0, exclude_min=True)
SEEDS = st.integers(-(2**63), 2**64 - 1)


def chances(*probabilities: float) -> Tensor:
    """A row of logits whose softmax is these probabilities."""
    return tensor(probabilities, dtype=torch.float64).log()


# Top-k


@given(logit_rows(), st.integers(1, 15))
def test_exactly_k_survive_and_they_are_the_likeliest(row: Tensor, k: int) -> None:
    rules.exactly_k_survive(keep_top_k, row, k)
    rules.the_likeliest_survive(keep_top_k, row, k)
    rules.survivors_keep_their_logits(keep_top_k, row, k)


def test_of_tied_tokens_the_lowest_ids_survive_top_k() -> None:
    assert survivors(keep_top_k(tensor([1.0, 2.0, 1.0, 1.0]), 2)) == [0, 1]
    assert survivors(keep_top_k(torch.zeros(50257), 40)) == list(range(40))


@pytest.mark.parametrize("k", [5, 6, 10**30])
def test_top_k_of_the_whole_vocabulary_or_more_keeps_all(k: int) -> None:
    row = tensor([0.3, 0.1, 0.2, 0.0, 0.4])
    assert torch.equal(
        Sampler(top_k=k).probabilities(row), Sampler().probabilities(row)
    )


@given(st.permutations(range(9)), st.integers(1, 9))
def test_top_k_is_that_of_transformers_where_nothing_ties(order: list, k: int) -> None:
    row = tensor(order, dtype=torch.float32)
    theirs = TopKLogitsWarper(k)(torch.zeros(1, 1), row[None])[0]
    assert torch.equal(keep_top_k(row, k), theirs)


# Top-p


@given(logit_rows(), PS)
def test_the_nucleus_is_the_smallest_likeliest_set_that_reaches_p(
    row: Tensor, p: float
) -> None:
    rules.nucleus_reaches_p(keep_top_p, row, p)
    if p < 1:
        rules.nucleus_is_minimal(keep_top_p, row, p)
    rules.the_likeliest_survive(keep_top_p, row, p)
    rules.survivors_keep_their_logits(keep_top_p, row, p)


@pytest.mark.parametrize(
    ("probabilities", "p", "kept"),
    [
        ([0.5, 0.3, 0.15, 0.05], 0.6, [0, 1]),
        ([0.5, 0.3, 0.15, 0.05], 0.85, [0, 1, 2]),
        ([0.5, 0.35, 0.1, 0.05], 0.9, [0, 1, 2]),
        ([0.4, 0.3, 0.2, 0.1], 0.8, [0, 1, 2]),
    ],
)
def test_the_token_that_crosses_p_is_in_the_nucleus(
    probabilities: list[float], p: float, kept: list[int]
) -> None:
    assert survivors(keep_top_p(chances(*probabilities), p)) == kept
    assert survivors(keep_top_p(chances(*probabilities).float(), p)) == kept


def test_a_token_that_reaches_p_exactly_is_the_last_of_the_nucleus() -> None:
    quarters = tensor([0.0, 0.0, 0.0, 0.0])  # 0.25 each, with no rounding
    assert survivors(keep_top_p(quarters, 0.5)) == [0, 1]
    assert survivors(keep_top_p(quarters, math.nextafter(0.5, 1))) == [0, 1, 2]


def test_the_nucleus_is_sought_from_the_likeliest_token_down() -> None:
    assert survivors(keep_top_p(chances(0.05, 0.05, 0.9), 0.85)) == [2]


@pytest.mark.parametrize("p", [1e-8, 1e-300, 5e-324])
def test_a_tiny_p_keeps_the_likeliest_token(p: float) -> None:
    row = chances(0.3, 0.5, 0.15, 0.05)
    assert survivors(keep_top_p(row, p)) == [1]
    assert Sampler(top_p=p).probabilities(row).tolist() == [0, 1, 0, 0]


@given(logit_rows())
def test_p_of_one_keeps_every_token(row: Tensor) -> None:
    assert torch.equal(keep_top_p(row, 1.0), row)


def test_p_of_one_keeps_a_tail_that_the_running_sum_does_not_feel() -> None:
    row = tensor([60.0, *[0.0] * 1000], dtype=torch.float64)
    kept = Sampler(top_p=1.0).probabilities(row)
    assert kept[0] == 1.0
    assert (kept > 0).all()


@pytest.mark.parametrize(("p", "n_in_float32"), [(0.5, 25124), (0.9, 45216)])
def test_the_nucleus_of_a_large_vocabulary_needs_float64(
    p: float, n_in_float32: int
) -> None:
    """A float32 sum of 50,257 equal shares drifts by several of them.

    NumPy adds one by one in the array's own type. (torch on the CPU adds float32 in
    float64 and rounds each sum, so that its drift would not show here.)
    """
    n_vocab = 50257
    running = np.cumsum(np.full(n_vocab, np.float32(1) / np.float32(n_vocab)))
    assert running.dtype == np.float32
    assert int((running < p).sum()) + 1 == n_in_float32
    n_exact = math.ceil(Fraction(p) * n_vocab)
    assert n_exact - n_in_float32 >= 5
    assert survivors(keep_top_p(torch.zeros(n_vocab), p)) == list(range(n_exact))


@pytest.mark.parametrize(("p", "before"), [(0.7, [0.7]), (0.8, [0.5, 0.3])])
def test_a_mass_that_misses_p_by_a_billionth_is_not_yet_p(
    p: float, before: list[float]
) -> None:
    """float32, of seven digits, takes it for p and ends the nucleus a token early."""
    short = [*before[:-1], before[-1] - 1e-9]
    assert sum(map(Fraction, short)) < Fraction(p)
    assert np.float32(sum(short)) == np.float32(p)
    row = chances(*short, 1 - sum(short))
    assert survivors(keep_top_p(row, p)) == list(range(len(before) + 1))


@given(st.lists(st.floats(-8, 8, width=16), min_size=2, max_size=9, unique=True), PS)
def test_top_p_is_that_of_transformers_away_from_the_border(
    logits: list[float], p: float
) -> None:
    row = tensor(logits)
    sums = row.double().softmax(-1).sort(descending=True).values.cumsum(-1)
    if float((sums - p).abs().min()) < 1e-6:
        return  # theirs is computed in float32, and from the other end
    theirs = TopPLogitsWarper(p)(torch.zeros(1, 1), row[None])[0]
    assert torch.equal(keep_top_p(row, p), theirs)


# Temperature, and the order of the filters


@given(logit_rows(), st.floats(1e-38, 1e38))
def test_temperature_does_not_change_the_order(row: Tensor, t: float) -> None:
    rules.temperature_keeps_the_order(apply_temperature, row, t)


def test_temperature_comes_before_top_p() -> None:
    """At 0.5 the first token alone has 0.8668; at 1 it would take two to reach 0.8."""
    found = Sampler(temperature=0.5, top_p=0.8).probabilities(tensor([3.0, 2.0, 1.0]))
    assert found.tolist() == [1, 0, 0]


def test_top_k_comes_before_top_p() -> None:
    """Of the two that top-k leaves the first has 0.625; of all it has 0.5."""
    row = chances(0.5, 0.3, 0.2)
    assert survivors(Sampler(top_k=2, top_p=0.6).probabilities(row).log()) == [0]


@pytest.mark.parametrize("temperature", [0, 0.0, -0.0, 1e-45, 1e-310, 5e-324, 1e-38])
def test_temperature_zero_or_too_small_to_divide_by_is_greedy(
    temperature: float,
) -> None:
    sampler = Sampler(temperature=temperature)
    for row in ([2.0, 1.0, 0.0], [0.0, 3.0, 3.0], [3e38, 3e38, -3e38], [0.0, 0.0]):
        largest = row.index(max(row))
        assert sampler(tensor(row)) == largest
        assert sampler.probabilities(tensor(row)).tolist() == [
            float(i == largest) for i in range(len(row))
        ]


def test_the_smallest_normal_number_of_float32_can_be_divided_by() -> None:
    tiny = torch.finfo(torch.float32).tiny
    assert not Sampler(temperature=tiny).is_greedy
    assert Sampler(temperature=math.nextafter(tiny, 0)).is_greedy


@given(logit_rows(), st.floats(1.2e-38, 1.7e308))
def test_every_other_temperature_gives_a_distribution(row: Tensor, t: float) -> None:
    rules.is_a_distribution(Sampler(temperature=t).probabilities, row)


def test_a_low_temperature_shares_among_tied_tokens() -> None:
    found = Sampler(temperature=1e-30).probabilities(tensor([7.0, 7.0, 1.0]))
    assert found.tolist() == [0.5, 0.5, 0]


# Greedy


@given(logit_rows())
def test_temperature_zero_and_top_k_of_one_are_greedy(row: Tensor) -> None:
    rules.one_choice_is_greedy(Sampler, row)
    assert Sampler.greedy()(row) == greedy(row)


def test_top_k_of_one_is_greedy_with_every_seed() -> None:
    row = tensor([3.0, 3.0, 1.0])
    assert {Sampler(top_k=1, seed=seed)(row) for seed in range(100)} == {0}
    assert Sampler.greedy()(tensor([1.0, 3.0, 3.0, 3.0])) == 1


def test_top_k_of_one_is_greedy_where_the_division_loses_the_difference() -> None:
    row = tensor([1e-20, 2e-20])  # both are 0 in float64 when divided by 1e308
    assert Sampler(temperature=1e308, top_k=1)(row) == 1


# The draw

LARGEST_U = 1 - 2**-53  # torch.rand in float64 gives multiples of 2**-53 below 1


@given(distributions(), st.floats(0, LARGEST_U))
def test_a_token_of_probability_zero_is_never_drawn(row: Tensor, u: float) -> None:
    rules.never_draws_the_impossible(draw, row, u)
    for border in row.cumsum(-1).tolist():
        for near in (math.nextafter(border, 0), border, math.nextafter(border, 1)):
            rules.never_draws_the_impossible(draw, row, min(near, LARGEST_U))


@pytest.mark.parametrize("u", [0.0, 5e-324, LARGEST_U])
@pytest.mark.parametrize("total", [1.0, 1 - 2**-53, 1 + 2**-52, 1 + 2**-51])
def test_not_even_at_the_ends_of_the_range(u: float, total: float) -> None:
    row = tensor([0.0, 0.0, total / 2, 0.0, total / 2, 0.0], dtype=torch.float64)
    rules.never_draws_the_impossible(draw, row, u)


@given(distributions())
def test_tokens_are_drawn_in_proportion(row: Tensor) -> None:
    rules.draws_in_proportion(draw, row, n=200)


def test_a_sampler_draws_each_token_about_as_often_as_its_probability_says() -> None:
    row = chances(0.5, 0.3, 0.15, 0.05)
    sampler, n = Sampler(seed=1), 4000
    counts = torch.bincount(tensor([sampler(row) for _ in range(n)]), minlength=4)
    spread = (n * row.exp() * (1 - row.exp())).sqrt()
    assert ((counts - n * row.exp()).abs() < 4 * spread).all()


@given(logit_rows(), st.integers(1, 5) | st.none(), PS | st.none(), SEEDS)
def test_only_tokens_with_a_probability_are_sampled(
    row: Tensor, k: int | None, p: float | None, seed: int
) -> None:
    sampler = Sampler(temperature=0.7, top_k=k, top_p=p, seed=seed)
    rules.is_a_distribution(sampler.probabilities, row)
    probabilities = sampler.probabilities(row)
    assert all(probabilities[sampler(row)] > 0 for _ in range(5))


# Seeds


@given(logit_rows(), SEEDS)
def test_the_same_seed_gives_the_same_choices(row: Tensor, seed: int) -> None:
    rules.same_seed_same_choices(Sampler, row, seed)


def test_a_sampler_used_twice_moves_on() -> None:
    row, sampler = torch.zeros(50257), Sampler(seed=7)
    first, second = sampler(row), sampler(row)
    assert first != second
    assert Sampler(seed=7)(row) == first


def test_other_seeds_choose_otherwise() -> None:
    row = torch.zeros(50257)
    assert len({Sampler(seed=seed)(row) for seed in range(20)}) > 15


def test_without_a_seed_each_sampler_is_new() -> None:
    row = torch.zeros(50257)
    torch.manual_seed(0)
    first = [Sampler()(row) for _ in range(4)]
    torch.manual_seed(0)
    assert first != [Sampler()(row) for _ in range(4)]


@pytest.mark.parametrize("seed", [None, 7])
def test_the_global_random_state_is_untouched(seed: int | None) -> None:
    rules.leaves_torchs_random_state(lambda: Sampler(seed=seed)(torch.zeros(9)))


def test_greedy_takes_no_random_number() -> None:
    sampler = Sampler(temperature=0, seed=3)
    before = sampler.copy()
    sampler(torch.zeros(5))
    assert torch.equal(sampler._generator.get_state(), before._generator.get_state())


@pytest.mark.parametrize(
    "duplicate",
    [
        Sampler.copy,
        copy.copy,
        copy.deepcopy,
        lambda sampler: pickle.loads(pickle.dumps(sampler)),
    ],
)
def test_a_copy_goes_on_as_its_original_and_apart_from_it(duplicate) -> None:
    row = torch.zeros(50257)
    sampler = Sampler(temperature=2, top_k=50000, top_p=0.9, seed=7)
    sampler(row)
    twin = duplicate(sampler)
    ahead = [twin(row) for _ in range(5)]
    assert [sampler(row) for _ in range(5)] == ahead
    assert repr(twin) == repr(sampler)


# What is refused

NO_NUMBERS = [True, "1", None, 1j, [1.0], tensor(1.0)]


@pytest.mark.parametrize(
    "temperature", [-1, -1e-300, math.nan, math.inf, -math.inf, 10**400, *NO_NUMBERS]
)
def test_a_temperature_is_a_finite_number_from_zero_up(temperature: object) -> None:
    with pytest.raises(ValueError, match="temperature: must be a finite number"):
        Sampler(temperature=temperature)


@pytest.mark.parametrize("k", [0, -1, 2.0, math.nan, *(n for n in NO_NUMBERS if n)])
def test_top_k_is_an_integer_from_one_up(k: object) -> None:
    with pytest.raises(ValueError, match="top_k: must be None or an integer"):
        Sampler(top_k=k)


@pytest.mark.parametrize(
    "p", [0, 0.0, -0.1, 1.0001, 2, math.nan, math.inf, 10**400, "0.9", True, [0.9]]
)
def test_top_p_lies_above_zero_and_not_above_one(p: object) -> None:
    with pytest.raises(ValueError, match="top_p: must be None or a number"):
        Sampler(top_p=p)


@pytest.mark.parametrize("seed", [1.0, "7", True, 2**64, -(2**63) - 1, 10**40])
def test_a_seed_is_an_integer_that_torch_takes(seed: object) -> None:
    with pytest.raises(ValueError, match="seed: must be None or an integer"):
        Sampler(seed=seed)


def test_numbers_of_numpy_are_numbers() -> None:
    sampler = Sampler(np.float32(0.5), np.int64(3), np.float64(0.75), np.uint8(7))
    assert repr(sampler) == "Sampler(temperature=0.5, top_k=3, top_p=0.75, seed=7)"


@pytest.mark.parametrize(
    "row",
    [
        [1.0, math.nan],
        [math.nan, math.nan],
        [math.nan, math.inf, 0.0],
        [0.0, math.inf],
        [-math.inf, math.inf],
        [-math.inf, -math.inf],
    ],
)
@pytest.mark.parametrize("sampler", [Sampler(), Sampler.greedy(), Sampler(top_k=1)])
def test_logits_that_are_not_finite_are_refused(row: list, sampler: Sampler) -> None:
    for use in (sampler, sampler.probabilities):
        with pytest.raises(ValueError, match="logits_row: the largest logit is"):
            use(tensor(row))


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ([1.0, 2.0], "list"),
        (3.0, "float"),
        (None, "NoneType"),
        (np.zeros(3), "ndarray"),
        (tensor(1.0), r"\[\]"),
        (torch.zeros(0), r"\[0\]"),
        (torch.zeros(2, 3), r"\[2, 3\]"),
    ],
)
def test_logits_are_one_row_in_a_tensor(row: object, what: str) -> None:
    for use in (Sampler(), Sampler().probabilities):
        with pytest.raises(
            ValueError, match=rf"logits_row: must be a tensor \[n_vocab\], not {what}$"
        ):
            use(row)
    with pytest.raises(ValueError, match="real numbers, not torch"):
        Sampler()(torch.zeros(2, dtype=torch.complex64))


def test_a_logit_may_be_as_large_as_float32_goes_and_no_larger() -> None:
    largest = torch.finfo(torch.float32).max
    for row in ([0.0, largest], [-largest, -math.inf]):
        assert Sampler.greedy()(tensor(row)) == row.index(max(row))
    beyond = tensor([0.0, math.nextafter(largest, math.inf)], dtype=torch.float64)
    with pytest.raises(ValueError, match="logits_row: the largest logit is"):
        Sampler()(beyond)


def test_a_logit_of_minus_infinity_is_a_token_that_is_never_chosen() -> None:
    row = tensor([-math.inf, 0.0, -math.inf, 0.0])
    for settings in ({}, {"top_k": 3}, {"top_p": 0.999}, {"top_p": 1}):
        found = Sampler(**settings).probabilities(row)
        assert found.tolist() == [0, 0.5, 0, 0.5]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int64])
def test_a_row_of_another_dtype_is_the_same_numbers(dtype: torch.dtype) -> None:
    row = tensor([2.0, 1.0, 0.0])
    found = Sampler(top_p=0.9).probabilities(row.to(dtype))
    assert found.dtype == torch.float64
    assert torch.equal(found, Sampler(top_p=0.9).probabilities(row))


def test_the_row_that_comes_in_is_not_changed() -> None:
    row = torch.linspace(-1, 1, 9, requires_grad=True)
    before = row.detach().clone()
    Sampler(0.5, 3, 0.5, 7)(row)
    assert torch.equal(row.detach(), before)


def test_a_fraction_too_small_for_a_float_is_no_top_p() -> None:
    with pytest.raises(ValueError, match="top_p"):
        Sampler(top_p=Fraction(1, 10**400))


def test_a_choice_does_not_depend_on_torchs_default_device_or_dtype() -> None:
    row = tensor([1.0, 2.0, 3.0])
    right = [Sampler(seed=s)(row) for s in range(9)]
    torch.set_default_device("meta")
    torch.set_default_dtype(torch.float64)
    try:
        found = [Sampler(seed=s)(row) for s in range(9)]
    finally:
        torch.set_default_device("cpu")
        torch.set_default_dtype(torch.float32)
    assert found == right
