"""One token more, with all that can be done before it done before."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

import gpt2hw.rows
from checkpoints import SMALL, random_ids, random_tensors
from gpt2hw import GPT2, GPT2Config, Tokenizer, generate
from gpt2hw.fast import taught
from gpt2hw.half import HalfMatrix
from gpt2hw.int8 import Int8Matrix
from gpt2hw.kv_cache import cached_forward
from gpt2hw.linear import Linear
from gpt2hw.loader import assemble
from gpt2hw.one_token import FastCache, OneToken, prepared
from gpt2hw.properties import kv_cache as rules
from gpt2hw.properties.closeness import agree
from gpt2hw.properties.drawn import SEEDS, configs, ids_for

CPU = torch.device("cpu")
PRECISIONS = ("float32", "float16", "int8")


@pytest.fixture(autouse=True)
def _every_matrix_counts_as_large(monkeypatch):
    monkeypatch.setattr(gpt2hw.rows, "MANY", 1)
    monkeypatch.setattr("gpt2hw.rows.torch.backends.mkl.is_available", lambda: True)


def fast_model(config=SMALL, seed=0, precision="float32") -> GPT2:
    tensors = random_tensors(config, seed).items()
    parts = assemble(config, tensors, CPU, precision=precision, may_move=True)
    return GPT2._wrap(config, parts)


def after(model: GPT2, n_past: int) -> FastCache:
    cache = model.new_cache()
    if n_past:
        model.last_logits(random_ids(model.config, n_past, seed=1), cache)
    return cache


@pytest.mark.parametrize("precision", PRECISIONS)
@given(configs(), SEEDS, st.data())
@settings(deadline=None, max_examples=30)
def test_token_after_token_gives_the_logits_of_one_pass(precision, config, seed, data):
    model, ids = fast_model(config, seed, precision), data.draw(ids_for(config))
    cache = model.new_cache()
    found = torch.stack(
        [model.last_logits(ids[i : i + 1], cache) for i in range(len(ids))]
    )
    # In int8 a rounding that falls the other way moves a number by a whole step.
    within = {"float32": 1e-4, "float16": 2e-3, "int8": 5e-2}[precision]
    agree(found, model(ids), within)
    assert len(cache) == len(ids)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_way_of_one_token_is_taken(precision, monkeypatch):
    model, seen = fast_model(precision=precision), []
    whole = OneToken.__call__
    monkeypatch.setattr(
        OneToken, "__call__", lambda self, x, n: seen.append(n) or whole(self, x, n)
    )
    cache = after(model, 3)
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
    cache = after(model, 3)
    write(model, cache)  # what is made once is made
    with Counting() as counting:
        write(model, cache)
    return counting.n_calls


def test_a_block_is_22_calls_where_the_taught_pieces_make_more_than_80():
    def fast(model, cache):
        model.last_logits([5], cache)

    def by_hand(model, cache):
        cached_forward(taught(model), torch.tensor([5]), cache)

    one_token, pieces = (
        calls_of_a_token(3, write) - calls_of_a_token(2, write)
        for write in (fast, by_hand)
    )
    assert one_token == 22
    assert pieces > 80


def test_what_was_given_out_is_not_written_over():
    model = fast_model()
    cache = after(model, 2)
    first = model.last_logits([5], cache)
    kept = first.clone()
    model.last_logits([6], cache)
    assert torch.equal(first, kept)


def test_two_caches_of_a_model_do_not_share_their_room():
    model = fast_model()
    alone = after(model, 3)
    right = [model.last_logits([i], alone) for i in (4, 5)]
    one, other = after(model, 3), after(model, 2)
    found = []
    for i in (4, 5):
        found.append(model.last_logits([i], one))
        model.last_logits([7], other)
    for a, b in zip(found, right, strict=True):
        assert torch.equal(a, b)


def test_a_copy_goes_on_apart():
    model = fast_model()
    rules.copies_are_independent(
        model, random_ids(SMALL, 3), torch.tensor([4]), torch.tensor([6])
    )
    cache = after(model, 3)
    model.last_logits([4], cache)  # its way exists now; the copy makes its own
    twin = cache.copy()
    agree(model.last_logits([5], twin), model.last_logits([5], cache), 0)


def test_a_copy_of_a_batch_that_lost_a_row_goes_on_too():
    model = fast_model()
    cache = model.new_cache()
    model.last_logits(random_ids(SMALL, 3, 4), cache)
    cache.keep([2, 0])
    twin, new_ids = cache.copy(), torch.tensor([[5], [6]])
    agree(model.last_logits(new_ids, twin), model.last_logits(new_ids, cache), 0)
    assert len(twin) == len(cache) == 5


def test_inference_mode_and_its_absence_may_alternate():
    model = fast_model()
    with torch.inference_mode():
        cache = after(model, 2)
        model.last_logits([4], cache)
    outside = model.last_logits([5], cache)
    with torch.inference_mode():
        model.last_logits([6], cache)
    assert not outside.requires_grad


def test_a_cache_takes_memory_only_as_it_is_filled():
    model = fast_model()
    cache = after(model, 1)
    assert cache._store.shape == (
        SMALL.n_layer,
        *(2, SMALL.n_head, SMALL.n_ctx, SMALL.n_embd // SMALL.n_head),
    )
    for layer, both in zip(cache.layers(torch.Size([])), cache._store, strict=True):
        assert layer.k.data_ptr() == both[0].data_ptr()
        assert layer.v.data_ptr() == both[1].data_ptr()


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
