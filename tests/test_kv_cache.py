"""Step 8: with a cache the same logits, however the ids are cut; no trace of faults."""

from dataclasses import fields, is_dataclass, replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gpt2hw.fast
import gpt2hw.kv_cache
from checkpoints import SMALL, random_ids, random_model
from gpt2hw import ContextError, GPT2Config
from gpt2hw.kv_cache import KVCache, cached_forward
from gpt2hw.model import Transformer
from gpt2hw.properties import kv_cache as rules
from gpt2hw.properties.closeness import agree
from gpt2hw.properties.drawn import SEEDS, batch_shapes, configs, ids_for, splits

quickly = settings(deadline=None, max_examples=30)
MODEL = random_model()
N_CTX = SMALL.n_ctx


def as_type(model: Transformer, dtype: torch.dtype) -> Transformer:
    """The same model in another precision."""

    def cast(part):
        if isinstance(part, torch.Tensor):
            return part.to(dtype)
        if isinstance(part, tuple):
            return tuple(map(cast, part))
        if is_dataclass(part):
            kind = Transformer if isinstance(part, Transformer) else type(part)
            return kind(**{f.name: cast(getattr(part, f.name)) for f in fields(kind)})
        return part

    return cast(model)


# --- the same logits ---


@given(configs(), batch_shapes(), SEEDS, st.data())
@settings(deadline=None, max_examples=40)
def test_any_split_of_any_sequence_gives_the_logits_of_one_pass(
    config, batch, seed, data
):
    ids = data.draw(ids_for(config, *batch))
    chunks = data.draw(splits(ids.shape[-1]))
    rules.cache_equals_no_cache(random_model(config, seed), ids, chunks)


@pytest.mark.parametrize("n_seq", range(1, 8))
def test_every_split_of_a_short_sequence_gives_the_logits_of_one_pass(n_seq):
    ids = random_ids(SMALL, n_seq, seed=n_seq)
    for chunks in rules.every_split(n_seq):
        rules.cache_equals_no_cache(MODEL, ids, chunks)


def test_every_split_of_a_batch_gives_the_logits_of_one_pass():
    ids = random_ids(SMALL, 2, 3, 5)
    for chunks in rules.every_split(5):
        rules.cache_equals_no_cache(MODEL, ids, chunks)


def test_there_are_as_many_splits_as_there_are_sets_of_cuts():
    found = list(rules.every_split(6))
    assert len({tuple(chunks) for chunks in found}) == len(found) == 2**5
    assert all(sum(chunks) == 6 for chunks in found)


@pytest.mark.parametrize(
    "chunks", [[N_CTX], [1] * N_CTX, [N_CTX - 1, 1], [1, N_CTX - 1]]
)
def test_a_full_context_gives_the_logits_of_one_pass(chunks):
    rules.cache_equals_no_cache(MODEL, random_ids(SMALL, N_CTX), chunks)


def test_in_double_precision_only_the_last_digits_differ():
    double = as_type(MODEL, torch.float64)
    ids = random_ids(SMALL, 2, 9)
    cache = KVCache(double)
    found = torch.cat([cached_forward(double, i, cache) for i in ids.split(2, -1)], -2)
    agree(found, double.forward(ids), 1e-14)


def test_after_50_tokens_the_next_id_is_embedded_at_position_50(monkeypatch):
    config = GPT2Config(n_vocab=5, n_ctx=64, n_embd=4, n_head=2, n_layer=1)
    model, positions = random_model(config), []

    def watched(ids, wte, wpe, n_past=0):
        positions.append(n_past)
        return embed(ids, wte, wpe, n_past)

    embed = gpt2hw.kv_cache.embed
    monkeypatch.setattr(gpt2hw.kv_cache, "embed", watched)
    cache = model.new_cache()
    model(random_ids(config, 50), cache)
    model([3], cache)
    assert positions == [0, 50]


def test_the_likeliest_ids_are_the_same_with_and_without_the_cache():
    untied = replace(SMALL, tie_word_embeddings=False)  # tied, it would repeat itself
    model = random_model(untied, seed=3)
    ids, new, from_cache = [3], [3], []
    cache = model.new_cache()
    for _ in range(N_CTX - 1):
        ids = [*ids, int(model(ids)[-1].argmax())]
        new = [int(model(new, cache)[-1].argmax())]
        from_cache += new
    assert from_cache == ids[1:]
    assert len(set(ids)) > 3


# --- what a cache counts and keeps ---


@given(configs(), batch_shapes(), st.data())
@quickly
def test_len_is_the_number_of_ids_that_went_in(config, batch, data):
    ids = data.draw(ids_for(config, *batch))
    chunks = data.draw(splits(ids.shape[-1]))
    rules.cache_counts_its_tokens(random_model(config), ids, chunks)


def test_the_callers_own_cache_is_filled():
    cache = MODEL.new_cache()
    assert len(cache) == 0
    MODEL([1, 2, 3], cache)
    assert len(cache) == 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_store_has_the_models_precision_and_place(dtype):
    model = as_type(MODEL, dtype)
    cache = KVCache(model)
    cached_forward(model, random_ids(SMALL, 2, 3), cache)
    for layer in cache.layers(torch.Size([2])):
        assert layer.k.dtype == layer.v.dtype == dtype
        assert layer.k.device == layer.v.device == model.wte.device
        shape = (2, SMALL.n_head, N_CTX, SMALL.d_head)
        assert layer.k.shape == layer.v.shape == shape


@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 5), SEEDS)
@quickly
def test_a_copy_and_its_original_go_their_own_ways(n_seen, n_one, n_other, seed):
    ids = random_ids(SMALL, 2, n_seen + n_one + n_other, seed=seed)
    rules.copies_are_independent(MODEL, *ids.split([n_seen, n_one, n_other], -1))


def test_a_copy_of_an_empty_cache_is_an_empty_cache():
    cache = MODEL.new_cache()
    twin = cache.copy()
    MODEL([1, 2], twin)
    assert (len(cache), len(twin)) == (0, 2)
    batch = random_ids(SMALL, 2, 3)  # the copy's batch shape does not bind the original
    agree(MODEL(batch, cache), MODEL(batch), 1e-5)


def test_logits_that_were_handed_out_do_not_change_later():
    cache = MODEL.new_cache()
    first = MODEL([1, 2, 3], cache)
    kept = first.clone()
    MODEL([4, 5], cache)
    assert torch.equal(first, kept)


# --- what is refused, and leaves no trace ---


def raising(error):
    def call(*args, **kwargs):
        raise error

    return call


@pytest.mark.parametrize("n_seen", [0, 4])
@pytest.mark.parametrize("layer", range(SMALL.n_layer))
@pytest.mark.parametrize("error", [RuntimeError("memory"), KeyboardInterrupt()])
def test_a_call_that_breaks_off_in_any_layer_leaves_no_trace(
    monkeypatch, n_seen, layer, error
):
    """Also where it is the first call, and the next has another batch shape."""

    def breaks_off(cache):
        calls = []

        def sometimes(*args):
            calls.append(1)
            if len(calls) > layer:
                raise error
            return whole_block(*args)

        whole_block = gpt2hw.kv_cache.cached_block
        with monkeypatch.context() as patch:
            patch.setattr(gpt2hw.kv_cache, "cached_block", sometimes)
            try:
                MODEL(random_ids(SMALL, *((7,) if n_seen == 0 else ()), 3), cache)
            except KeyboardInterrupt as interrupt:
                raise RuntimeError from interrupt

    ids = random_ids(SMALL, n_seen + 5, seed=1)
    rules.a_failed_call_leaves_no_trace(MODEL, ids[:n_seen], breaks_off, ids[n_seen:])


@pytest.mark.parametrize("n_seen", [0, 4])
@pytest.mark.parametrize(
    ("ids", "error"),
    [
        ([1, SMALL.n_vocab], ValueError),
        ([-1], ValueError),
        ([], ValueError),
        ([True], ValueError),
        (torch.zeros(2, 0, dtype=torch.int64), ValueError),
        ([0] * (N_CTX + 1), ContextError),
    ],
)
def test_refused_ids_leave_no_trace(n_seen, ids, error):
    def refused(cache):
        with pytest.raises(error):
            MODEL(ids, cache)
        raise error

    seen, rest = random_ids(SMALL, n_seen), random_ids(SMALL, 3, seed=1)
    rules.a_failed_call_leaves_no_trace(MODEL, seen, refused, rest)


@pytest.mark.parametrize(
    ("n_seen", "n_new"), [(N_CTX, 1), (N_CTX - 1, 2), (1, N_CTX), (0, N_CTX + 1)]
)
def test_too_many_tokens_are_refused_before_anything_is_computed(
    monkeypatch, n_seen, n_new
):
    cache = MODEL.new_cache()
    if n_seen:
        MODEL(random_ids(SMALL, n_seen), cache)
    for room, piece in (
        (gpt2hw.kv_cache, "embed"),
        (gpt2hw.fast, "cached_forward"),
    ):
        monkeypatch.setattr(room, piece, raising(AssertionError("it was computed")))
    with pytest.raises(ContextError, match=rf"more than the model's {N_CTX} positions"):
        MODEL(random_ids(SMALL, n_new), cache)
    assert len(cache) == n_seen


def test_the_last_position_can_be_used():
    cache = MODEL.new_cache()
    MODEL(random_ids(SMALL, N_CTX - 1), cache)
    MODEL([1], cache)
    assert len(cache) == N_CTX


@pytest.mark.parametrize(
    ("first", "then"),
    [((2,), (1,)), ((), (1,)), ((2,), ()), ((2, 3), (3, 2)), ((6,), (2, 3))],
)
def test_another_batch_shape_is_refused_by_both_shapes(first, then):
    cache = MODEL.new_cache()
    ids = random_ids(SMALL, *first, 2)
    MODEL(ids, cache)
    with pytest.raises(ValueError, match="batch") as refusal:
        MODEL(random_ids(SMALL, *then, 2), cache)
    assert str(list(first)) in str(refusal.value)
    assert str(list(then)) in str(refusal.value)
    more = random_ids(SMALL, *first, 3, seed=1)
    whole = MODEL(torch.cat([ids, more], -1))
    agree(MODEL(more, cache), whole[..., 2:, :], 1e-5)


def test_another_models_cache_is_refused_though_its_shape_is_the_same():
    twin = random_model()
    with pytest.raises(ValueError, match="made by another model"):
        twin([1, 2], MODEL.new_cache())


@pytest.mark.parametrize("n_layer", [SMALL.n_layer - 1, SMALL.n_layer + 1])
def test_no_block_goes_without_a_store_and_no_store_without_a_block(n_layer):
    """The door refuses another model's cache; behind it, a wrong depth stands out."""
    other = random_model(replace(SMALL, n_layer=n_layer))
    cache = other.new_cache()
    with pytest.raises(ValueError, match="zip"):
        cached_forward(MODEL, random_ids(SMALL, 3), cache)
    assert len(cache) == 0


def test_a_cache_tells_how_full_it_is():
    cache = MODEL.new_cache()
    MODEL(random_ids(SMALL, 2, 5), cache)
    assert "5 of 16 tokens" in repr(cache)


def test_a_cache_filled_in_inference_mode_goes_on_outside_of_it():
    model = random_model()
    cache = model.new_cache()
    with torch.inference_mode():
        model([1, 2], cache)
    agree(model([3], cache), model([1, 2, 3])[-1:], 1e-5, "logits")


def test_a_plain_cache_copied_in_inference_mode_goes_on_outside_of_it():
    model = random_model()
    cache = KVCache(model)
    with torch.inference_mode():
        model([1, 2], cache)
        twin = cache.copy()
    agree(model([3], twin), model([1, 2, 3])[-1:], 1e-5, "logits")
