"""The cache of the fast forms: copied, pickled, failed upon, and used in any mode."""

import pickle
from copy import copy, deepcopy

import pytest
import torch

import gpt2hw.bags
from checkpoints import (
    SMALL,
    as_on_x86,
    cache_after,
    fast_model,
    random_ids,
    random_tensors,
)
from gpt2hw.bags import BagMatrix
from gpt2hw.fast_cache import _usable
from gpt2hw.one_token import OneToken
from gpt2hw.properties import kv_cache as rules
from gpt2hw.properties.closeness import agree
from gpt2hw.rows import RowMatrix

PRECISIONS = ("float32", "float16", "int8")
WAYS = (deepcopy, lambda pair: pickle.loads(pickle.dumps(pair)))


@pytest.fixture(autouse=True)
def _every_matrix_counts_as_large(monkeypatch):
    monkeypatch.setattr(gpt2hw.bags, "MANY", 1)
    as_on_x86(monkeypatch)


def test_two_caches_of_a_model_do_not_share_their_room():
    model = fast_model()
    alone = cache_after(model, 3)
    right = [model.last_logits([i], alone) for i in (4, 5)]
    one, other = cache_after(model, 3), cache_after(model, 2)
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
    cache = cache_after(model, 3)
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
        cache = cache_after(model, 2)
        model.last_logits([4], cache)
    outside = model.last_logits([5], cache)
    with torch.inference_mode():
        model.last_logits([6], cache)
    assert not outside.requires_grad


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_model_and_cache_can_be_copied_and_pickled_at_any_time(way, precision):
    model = fast_model(precision=precision)
    cache = cache_after(model, 3)
    for new_id in (4, 5):  # before there is a way of one token, and after
        other_model, other = way((model, cache))
        right = model.last_logits([6], cache.copy())
        assert torch.equal(other_model.last_logits([6], other), right)
        assert torch.equal(model.last_logits([6], cache.copy()), right)
        model.last_logits([new_id], cache)


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_a_batch_goes_on_from_its_copied_layers_also_where_it_lost_a_row(way, lost):
    model = fast_model()
    cache, new_ids = model.new_cache(), random_ids(SMALL, 2, 3, seed=1)
    model.last_logits(random_ids(SMALL, 2, 4), cache)
    if lost:
        cache.keep([1, 0])
    other_model, other = way((model, cache))
    right = model.last_logits(new_ids, cache)
    assert torch.equal(other_model.last_logits(new_ids, other), right)


def test_a_cache_is_pickled_with_its_memory_once():
    model = fast_model()
    cache = cache_after(model, 3)
    model.last_logits([4], cache)
    n_bytes = len(pickle.dumps((model, cache))) - len(pickle.dumps(model))
    assert n_bytes < cache._store.nbytes + 2_000


def test_a_model_of_bags_and_row_blocks_is_pickled_at_its_size():
    model = fast_model()
    n_numbers = sum(t.numel() for t in random_tensors(SMALL).values())
    assert len(pickle.dumps(model)) < 4 * n_numbers + 20_000
    twin = pickle.loads(pickle.dumps(model))
    assert isinstance(twin.head, RowMatrix)
    assert isinstance(twin.h[0].mlp.c_fc.matrix, BagMatrix)


class HeadError(Exception):
    pass


def failing(*_: object) -> torch.Tensor:
    raise HeadError


@pytest.mark.parametrize("new_ids", [[5], [5, 6], [[5, 6], [6, 7]]])
@pytest.mark.parametrize("padded", [False, True])
def test_a_head_that_fails_leaves_the_cache_as_it_was(monkeypatch, new_ids, padded):
    model, ids = fast_model(), torch.tensor(new_ids)
    cache, twin = model.new_cache(), model.new_cache()
    mask = torch.ones_like(ids) if padded else None
    for one in (cache, twin):
        model.last_logits(ids, one, mask=mask)
    for call in (model, model.last_logits):
        with monkeypatch.context() as patch:
            patch.setattr(RowMatrix, "__call__", failing)
            with pytest.raises(HeadError):
                call(ids, cache, mask=mask)
        assert len(cache) == len(twin)
    agree(model(ids, cache, mask=mask), model(ids, twin, mask=mask), 1e-5)


def test_after_a_first_token_that_failed_the_way_is_made_anew(monkeypatch):
    model = fast_model()
    cache, right = model.new_cache(), cache_after(model, 3)
    with monkeypatch.context() as patch:
        patch.setattr(OneToken, "__call__", failing)
        with pytest.raises(HeadError):
            model.last_logits([4], cache)
    model.last_logits(random_ids(SMALL, 3, seed=1), cache)
    agree(model.last_logits([5], cache), model.last_logits([5], right), 1e-6)


def test_copies_and_kept_rows_outlive_inference_mode():
    model = fast_model()
    with torch.inference_mode():
        cache = cache_after(model, 2).copy()
        batch = model.new_cache()
        model.last_logits(random_ids(SMALL, 3, 2), batch)
        batch.keep([1, 2])
    model.last_logits([4], cache)
    model.last_logits(torch.tensor([[4], [5]]), batch)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rows", [None, [1, 0]])
def test_what_was_copied_in_inference_mode_goes_on_outside_of_it(way, rows):
    model, ids = fast_model(), random_ids(SMALL, 2, 4)
    with torch.inference_mode():
        cache = model.new_cache()
        model(ids if rows else ids[0], cache)
        if rows:
            cache.keep(rows)
        model, twin = way((model, cache))
    new_ids = torch.tensor([[3], [4]]) if rows else torch.tensor([3])
    right = model(new_ids, twin.copy())
    assert torch.equal(model(new_ids, twin), right)


def test_only_what_inference_mode_made_is_made_anew():
    plain = torch.ones(2)
    with torch.inference_mode():
        marked = torch.ones(2)
    assert _usable(plain) is plain
    with torch.inference_mode(False):
        assert not _usable(marked).is_inference()


def test_a_shallow_copy_has_memory_of_its_own_too():
    model = fast_model()
    cache = cache_after(model, 4)
    twin, right = copy(cache), model.last_logits([5], cache.copy())
    model.last_logits([6], twin)
    assert torch.equal(model.last_logits([5], cache), right)


def test_the_layers_of_a_cache_are_views_of_one_piece_of_memory():
    model = fast_model()
    cache = cache_after(model, 1)
    assert cache._store.shape == (
        SMALL.n_layer,
        *(2, SMALL.n_head, SMALL.n_ctx, SMALL.n_embd // SMALL.n_head),
    )
    for layer, both in zip(cache.layers(torch.Size([])), cache._store, strict=True):
        assert layer.k.data_ptr() == both[0].data_ptr()
        assert layer.v.data_ptr() == both[1].data_ptr()


def test_a_copy_takes_memory_for_its_tokens_alone(monkeypatch):
    model = fast_model()
    cache = cache_after(model, 3)
    cache._store[..., 3:, :] = torch.nan
    right = model.last_logits([5], cache_after(model, 3))
    empty = torch.empty_like
    monkeypatch.setattr(torch, "empty_like", lambda *given: empty(*given).fill_(7))
    twin = cache.copy()
    assert (twin._store[..., 3:, :] == 7).all()
    assert torch.equal(model.last_logits([5], twin), right)
