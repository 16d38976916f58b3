"""One token more, with all that can be done before it done before."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

import gpt2hw.bags
from checkpoints import SMALL, as_on_x86, cache_after, fast_model, random_ids
from gpt2hw import GPT2, GPT2Config, Tokenizer, generate, one_token
from gpt2hw.fast import taught
from gpt2hw.fast_cache import FastCache
from gpt2hw.half import HalfMatrix
from gpt2hw.int8 import Int8Matrix, integer_product
from gpt2hw.kv_cache import KVCache, cached_forward
from gpt2hw.linear import Linear
from gpt2hw.many_rows import gelu_of_many, product_of_many
from gpt2hw.one_token import OneToken, prepared
from gpt2hw.properties.closeness import agree
from gpt2hw.properties.drawn import SEEDS, configs, ids_for

CPU = torch.device("cpu")
PRECISIONS = ("float32", "float16", "int8")


@pytest.fixture(autouse=True)
def _every_matrix_counts_as_large(monkeypatch):
    monkeypatch.setattr(gpt2hw.bags, "MANY", 1)
    as_on_x86(monkeypatch)


@pytest.mark.parametrize("long", [1, 3, one_token.LONG])
@pytest.mark.parametrize("precision", PRECISIONS)
@given(configs(), SEEDS, st.data())
@settings(deadline=None, max_examples=30)
def test_token_after_token_gives_the_logits_of_the_pieces_and_of_one_pass(
    precision, long, config, seed, data
):
    model, ids = fast_model(config, seed, precision), data.draw(ids_for(config))
    cache, plain = model.new_cache(), KVCache(model)
    with pytest.MonkeyPatch.context() as patch:  # from here on, values in bags
        patch.setattr(one_token, "LONG", long)
        found = torch.stack([model.last_logits(one, cache) for one in ids.split(1)])
    pieces = torch.stack([model.last_logits(one, plain) for one in ids.split(1)])
    # In int8 a rounding that falls the other way moves a number by a whole step.
    within = {"float32": 1e-4, "float16": 2e-3, "int8": 5e-2}[precision]
    agree(found, pieces, within)
    if precision != "float16":  # there one row goes by another kernel: test_precision
        agree(found, model(ids), within)
    assert len(cache) == len(ids)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_way_of_one_token_is_taken(precision, monkeypatch):
    model, seen = fast_model(precision=precision), []
    whole = OneToken.__call__
    monkeypatch.setattr(
        OneToken, "__call__", lambda self, x, n: seen.append(n) or whole(self, x, n)
    )
    cache = cache_after(model, 3)
    model.last_logits([5], cache)
    model([5], cache)
    assert seen == [3, 4]


class Counting(TorchDispatchMode):
    """Counts the calls of torch below Python, views among them."""

    n_calls = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.n_calls += 1
        return function(*args, **(kwargs or {}))


def calls_of_a_token(n_layer: int, write) -> int:
    model = fast_model(replace(SMALL, n_layer=n_layer))
    cache = cache_after(model, 3)
    write(model, cache)  # what is made once is made
    with Counting() as counting:
        write(model, cache)
    return counting.n_calls


def test_a_block_is_24_calls_where_the_taught_pieces_make_more_than_80():
    def fast(model, cache):
        model.last_logits([5], cache)

    def by_hand(model, cache):
        cached_forward(taught(model), torch.tensor([5]), cache)

    one_token, pieces = (
        calls_of_a_token(3, write) - calls_of_a_token(2, write)
        for write in (fast, by_hand)
    )
    assert one_token == 24
    assert pieces > 80


@pytest.mark.parametrize("long", [1, one_token.LONG])
@pytest.mark.parametrize(
    ("precision", "many"), [("float32", 1), ("float32", 5 * 12 * 12), ("int8", 1)]
)
def test_no_product_on_all_cores_finds_registers_that_a_bag_left_in_use(
    precision, many, long, monkeypatch
):
    config = replace(SMALL, n_inner=5 * 12, n_vocab=5 * 12)
    monkeypatch.setattr(gpt2hw.bags, "MANY", many)  # of some, the MLP alone is in bags
    model = fast_model(config, precision=precision)
    cache = cache_after(model, 3)
    model.last_logits([5], cache)  # its way is made
    in_use, found = [], []

    def watched(module, name, note):
        whole = getattr(module, name)

        def watching(*given, **named):
            note()
            return whole(*given, **named)

        monkeypatch.setattr(module, name, watching)

    monkeypatch.setattr(one_token, "LONG", long)
    for room in (gpt2hw.bags, one_token):
        watched(room, "sums_of_bags", lambda: in_use.append("a bag"))
        watched(room, "free_registers", in_use.clear)
    for name in ("bmm", "_int_mm"):
        watched(torch, name, lambda: found.append(list(in_use)))
    model.last_logits([5], cache)
    assert found
    assert not any(found)
    assert not in_use  # the head may be one, too


def test_what_was_given_out_is_not_written_over():
    model = fast_model()
    cache = cache_after(model, 2)
    first = model.last_logits([5], cache)
    kept = first.clone()
    model.last_logits([6], cache)
    assert torch.equal(first, kept)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("many", [1, SMALL.n_vocab * SMALL.n_embd + 1, 2**19])
def test_autocast_changes_nothing(monkeypatch, precision, many):
    """With all matrices of the model cut, with some but not its head, and with none."""
    monkeypatch.setattr(gpt2hw.bags, "MANY", many)
    model, ids = fast_model(precision=precision), random_ids(SMALL, 9)
    right = model(ids)
    with torch.autocast("cpu"):
        cache = model.new_cache()
        found = [model(ids[:8], cache), model.last_logits(ids[8:], cache)[None]]
    assert {part.dtype for part in found} == {torch.float32}
    agree(torch.cat(found), right, 1e-4 if precision == "float32" else 5e-2)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_threads_with_caches_of_their_own_do_not_disturb_each_other(precision):
    model = fast_model(precision=precision)

    def written(seed: int) -> torch.Tensor:
        cache, ids = model.new_cache(), random_ids(SMALL, SMALL.n_ctx, seed=seed)
        return torch.stack([model.last_logits(one, cache) for one in ids.split(1)])

    right = [written(seed) for seed in range(4)]
    for _ in range(5):
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(written, range(4)))
        assert all(map(torch.equal, found, right))


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_user_s_default_device_and_dtype_change_nothing(
    monkeypatch, precision, dtype
):
    monkeypatch.setattr(one_token, "LONG", 1)
    config = replace(SMALL, n_vocab=257)
    model, ids = fast_model(config, 0, precision), list(range(12))
    tokenizer, prompts = Tokenizer([]), ["Hm", "Hmmm"]

    def all_ways():
        cache = model.new_cache()
        yield model(ids)
        yield model(ids[:8], cache)
        yield model.last_logits(ids[8:9], cache)
        yield model(ids[9:], cache)
        two = torch.tensor([ids[:4], ids[4:8]], device="cpu")
        yield model(two, mask=[[0, 1, 1, 1], [1, 1, 1, 1]])
        for done in generate(model, tokenizer, prompts, max_new_tokens=4):
            yield torch.tensor(done.ids, device="cpu")

    for choice in (product_of_many, gelu_of_many, integer_product):
        choice.cache_clear()
    right, before = list(all_ways()), torch.get_default_dtype()
    for choice in (product_of_many, gelu_of_many, integer_product):
        choice.cache_clear()
    torch.set_default_dtype(dtype)
    try:
        with torch.device("meta"):
            found = list(all_ways())
    finally:
        torch.set_default_dtype(before)
    for one, other in zip(found, right, strict=True):
        assert one.dtype == other.dtype
        assert torch.equal(one, other)


def test_a_plain_map_is_prepared_too():
    linear = Linear(weight=torch.arange(6.0).view(2, 3), bias=torch.ones(3))
    out = torch.full((3,), torch.nan)
    prepared(linear, out)(torch.tensor([1.0, -1.0]))
    assert torch.equal(out, linear(torch.tensor([1.0, -1.0])))


@pytest.mark.parametrize("form", [HalfMatrix, Int8Matrix])
@given(st.integers(2, 40), st.integers(1, 40), SEEDS)
@settings(deadline=None, max_examples=30)
def test_a_prepared_product_is_the_product_plus_the_bias(form, n_in, n_out, seed):
    generator = torch.Generator().manual_seed(seed % 2**31)
    weights, bias, x = (
        torch.randn(shape, generator=generator)
        for shape in ((n_out, n_in), n_out, n_in)
    )
    matrix, out = form.of(weights), torch.full((n_out,), torch.nan)
    matrix.prepared(bias, out)(x)
    agree(out, matrix(x) + bias, 1e-5)


def test_generation_is_the_same_as_without_a_cache():
    config = GPT2Config(n_vocab=257, n_ctx=32, n_embd=8, n_head=2, n_layer=2)
    model = fast_model(config)
    done = generate(model, Tokenizer([]), "Hm", max_new_tokens=20)
    ids = list(done.prompt_ids)
    for new_id in done.ids:
        logits = model(ids)[-1]
        assert float(logits[new_id]) >= float(logits.max()) - 1e-4
        ids.append(new_id)


def test_the_values_go_into_bags_where_there_are_many_keys_and_a_kernel(monkeypatch):
    seen = []

    def watched(*given):
        seen.append(len(given[3]))
        return sums(*given)

    sums = gpt2hw.bags.sums_of_bags
    monkeypatch.setattr(one_token, "sums_of_bags", watched)
    monkeypatch.setattr(one_token, "LONG", 5)
    model = fast_model()
    cache = cache_after(model, 3)
    for _ in range(3):  # the fourth, fifth and sixth token
        model.last_logits([1], cache)
    assert seen == [SMALL.n_head] * SMALL.n_layer * 2
    monkeypatch.setattr(one_token, "has_kernel", lambda table: False)
    other = cache_after(model, 5)
    found = model.last_logits([1], other)
    assert len(seen) == SMALL.n_layer * 2
    agree(found, model.last_logits([1], after_with_bags(monkeypatch, model)), 1e-4)


def after_with_bags(monkeypatch, model: GPT2) -> FastCache:
    monkeypatch.undo()
    monkeypatch.setattr(one_token, "LONG", 1)
    return cache_after(model, 5)
