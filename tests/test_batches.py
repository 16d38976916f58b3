"""Several texts at once: each gets what it gets alone."""

import sys
import threading
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpoints import SMALL, random_ids, random_model
from gpt2hw import GPT2, ContextError, GPT2Config, Sampler, Tokenizer, generate
from gpt2hw.batches import (
    PaddedCache,
    allowed,
    left_padded,
    padded_state,
    positions,
)
from gpt2hw.kv_cache import KVCache
from gpt2hw.properties import batches as rules
from gpt2hw.properties.closeness import agree
from gpt2hw.properties.drawn import SEEDS, configs

quickly = settings(deadline=None, max_examples=30)
MODEL = random_model()
N_CTX = SMALL.n_ctx
MASK = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])


def texts_of(lengths, config=SMALL, seed=0):
    return [
        random_ids(config, n, seed=seed + i).tolist() for i, n in enumerate(lengths)
    ]


def only_real(logits, mask):
    """The logits of the real tokens, row by row."""
    return [row[real] for row, real in zip(logits, mask.bool(), strict=True)]


# --- the mask ---


def test_positions_count_the_real_tokens_before():
    assert positions(MASK.bool()).tolist() == [[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]]


def test_a_token_looks_at_real_ones_up_to_itself_and_padding_at_itself():
    assert allowed(MASK.bool(), 5)[0, 0].int().tolist() == [
        [1, 0, 0, 0, 0],
        [0, 1, 0, 0, 0],
        [0, 0, 1, 0, 0],
        [0, 0, 1, 1, 0],
        [0, 0, 1, 1, 1],
    ]
    assert allowed(MASK.bool(), 1)[0, 0].int().tolist() == [[0, 0, 1, 1, 1]]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), SEEDS)
@quickly
def test_the_rules_of_padding_hold_for_texts_of_any_length(lengths, seed):
    texts = texts_of(lengths, seed=seed)
    rules.every_text_ends_in_the_last_place(left_padded, texts)
    _, mask = left_padded(texts)
    rules.positions_come_from_the_mask(positions, mask)
    rules.nobody_looks_at_padding(allowed, mask)
    rules.every_token_looks_at_something(allowed, mask)
    rules.padded_rows_equal_their_single_runs(padded_state, MODEL, texts)


@given(configs(), SEEDS, st.data())
@quickly
def test_every_row_of_a_padded_batch_gets_the_logits_it_gets_alone(config, seed, data):
    length = st.integers(1, config.n_ctx)
    lengths = data.draw(st.lists(length, min_size=1, max_size=4))
    model, texts = random_model(config, seed), texts_of(lengths, config, seed)
    ids, mask = left_padded(texts)
    found = only_real(model(ids, mask=mask), mask)
    for text, logits in zip(texts, found, strict=True):
        agree(logits, model(text), 1e-5, f"logits of {len(text)} ids")


@given(SEEDS, st.data())
@quickly
def test_with_a_cache_any_split_gives_the_logits_of_one_pass(seed, data):
    texts = texts_of(data.draw(st.lists(st.integers(1, 8), min_size=1, max_size=4)))
    ids, mask = left_padded(texts)
    cuts = data.draw(st.sets(st.integers(1, 7)))
    cache, parts = MODEL.new_cache(), []
    edges = [0, *sorted(cut for cut in cuts if cut < ids.shape[-1]), ids.shape[-1]]
    for start, end in pairwise(edges):
        part = slice(start, end)
        parts.append(MODEL(ids[:, part], cache, mask=mask[:, part]))
    found = only_real(torch.cat(parts, dim=-2), mask)
    for text, logits in zip(texts, found, strict=True):
        agree(logits, MODEL(text), 1e-5)
    assert torch.equal(cache.mask, mask)


@pytest.mark.parametrize("whole", [False, True])
def test_padding_is_remembered_when_a_token_comes_later(whole):
    """The later call may say nothing, or, as transformers has it, the whole mask."""
    texts = texts_of([3, 6])
    ids, mask = left_padded(texts)
    cache = MODEL.new_cache()
    MODEL(ids, cache, mask=mask)
    new = torch.tensor([[5], [7]])
    later = torch.cat([mask, torch.ones(2, 1).bool()], -1) if whole else None
    found = MODEL(new, cache, mask=later)
    for row, text in enumerate(texts):
        right = MODEL([*text, int(new[row])])[-1:]
        agree(found[row], right, 1e-5)
    assert cache.mask.shape == (2, 7)


@pytest.mark.parametrize("axes", [(), (2,), (2, 3)])
def test_a_mask_of_any_axes_grows_by_the_tokens_that_come_later(axes):
    mask = torch.ones(*axes, 3).bool()
    mask[..., 0] = False
    cache = MODEL.new_cache()
    MODEL(random_ids(SMALL, *axes, 3), cache, mask=mask)
    MODEL(random_ids(SMALL, *axes, 2), cache)
    assert cache.mask.shape == (*axes, 5)
    assert torch.equal(cache.mask[..., :3], mask)
    assert cache.mask[..., 3:].all()


def test_a_mask_may_come_after_a_part_without_one():
    ids = random_ids(SMALL, 2, 3)
    cache = MODEL.new_cache()
    MODEL(ids, cache)
    MODEL(torch.tensor([[0], [4]]), cache, mask=[[0], [1]])
    found = MODEL(torch.tensor([[5], [5]]), cache)
    agree(found[0], MODEL([*ids[0].tolist(), 5])[-1:], 1e-5)
    agree(found[1], MODEL([*ids[1].tolist(), 4, 5])[-1:], 1e-5)


def test_what_stands_under_the_padding_has_no_say():
    ids, mask = left_padded(texts_of([2, 5]))
    other = ids.masked_fill(~mask, 9)
    for found, right in zip(
        only_real(MODEL(other, mask=mask), mask),
        only_real(MODEL(ids, mask=mask), mask),
        strict=True,
    ):
        assert torch.equal(found, right)


def test_no_id_is_taken_for_padding_without_a_mask():
    """End-of-text at the front is a real token, in a batch as well as alone."""
    model, eot = GPT2.from_pretrained("tiny"), Tokenizer.from_pretrained("tiny").eot_id
    ids = torch.tensor([[eot, 464, 329]])
    agree(model(ids)[0], model([eot, 464, 329]), 1e-5)
    gap = model(ids)[0, -1] - model([464, 329])[-1]
    assert float(gap.abs().max()) > 0.01


def test_a_mask_of_ones_changes_nothing():
    ids = random_ids(SMALL, 2, 3, 5)
    agree(MODEL(ids, mask=torch.ones_like(ids)), MODEL(ids), 1e-6)
    agree(MODEL(ids[0, 0], mask=[1] * 5), MODEL(ids[0, 0]), 1e-6)
    agree(
        MODEL.last_logits(ids, mask=torch.ones_like(ids)), MODEL(ids)[..., -1, :], 1e-6
    )


def test_every_logit_of_padding_is_finite():
    ids, mask = left_padded(texts_of([1, 9]))
    assert MODEL(ids, mask=mask).isfinite().all()


@pytest.mark.parametrize(
    ("mask", "says"),
    [
        ([[1, 1]], r"the ids' shape, \[2, 2\], not \[1, 2\]"),
        ([1, 1], r"not \[2\]"),
        ([[1, 2], [1, 1]], "zeros .* and ones"),
        ([[0.5, 1], [1, 1]], "zeros .* and ones"),
        ([[1], [1, 1]], "zeros and ones"),
        ("ones", "zeros and ones"),
    ],
)
def test_a_mask_that_does_not_fit_is_refused_by_name(mask, says):
    with pytest.raises(ValueError, match=f"mask: .*{says}"):
        MODEL(random_ids(SMALL, 2, 2), mask=mask)


def test_a_mask_that_contradicts_the_cache_is_refused_and_leaves_it():
    ids, mask = left_padded(texts_of([1, 3]))
    cache = MODEL.new_cache()
    MODEL(ids, cache, mask=mask)
    with pytest.raises(ValueError, match="differs from what the cache holds"):
        MODEL(torch.tensor([[1], [1]]), cache, mask=torch.ones(2, 4))
    with pytest.raises(ValueError, match=r"or \[2, 4\] with the cache's"):
        MODEL(torch.tensor([[1], [1]]), cache, mask=torch.ones(2, 3))
    assert len(cache) == 3
    assert torch.equal(cache.mask, mask)


def test_a_mask_needs_a_cache_that_can_keep_it():
    with pytest.raises(ValueError, match=r"model.new_cache\(\)"):
        MODEL(torch.tensor([[1]]), KVCache(MODEL), mask=[[1]])


def test_a_copy_of_a_cache_has_its_mask_and_goes_on_by_itself():
    texts = texts_of([2, 4])
    ids, mask = left_padded(texts)
    cache = MODEL.new_cache()
    MODEL(ids, cache, mask=mask)
    twin = cache.copy()
    assert isinstance(twin, PaddedCache)
    MODEL(torch.tensor([[1], [1]]), cache)
    found = MODEL(torch.tensor([[2], [2]]), twin)
    for row, text in zip(found, texts, strict=True):
        agree(row, MODEL([*text, 2])[-1:], 1e-5)


def test_rows_can_leave_a_cache():
    texts = texts_of([2, 4, 3])
    ids, mask = left_padded(texts)
    cache = MODEL.new_cache()
    MODEL(ids, cache, mask=mask)
    cache.keep([2, 0])
    found = MODEL(torch.tensor([[5], [6]]), cache)
    agree(found[0], MODEL([*texts[2], 5])[-1:], 1e-5)
    agree(found[1], MODEL([*texts[0], 6])[-1:], 1e-5)


@pytest.mark.parametrize("rows", [[], [3], [0, -1]])
def test_rows_that_are_not_there_are_refused_and_the_cache_stays(rows):
    cache = MODEL.new_cache()
    MODEL(torch.tensor([[1, 2], [3, 4], [5, 6]]), cache)
    right = MODEL(torch.tensor([[7], [8], [9]]), cache.copy())
    with pytest.raises(ValueError, match="rows of 0 to 2 are needed, not "):
        cache.keep(rows)
    assert torch.equal(MODEL(torch.tensor([[7], [8], [9]]), cache), right)


def test_rows_that_an_interrupt_kept_from_leaving_are_all_there(monkeypatch):
    cache = MODEL.new_cache()
    ids, mask = left_padded(texts_of([2, 4, 3]))
    MODEL(ids, cache, mask=mask)
    three = torch.tensor([[7], [8], [9]])
    right, whole = MODEL(three, cache.copy()), torch.Tensor.index_select

    for n in range(2 * SMALL.n_layer + 1):  # keys, values, and the mask
        left = iter(range(n))

        def interrupted(*given, left=left):
            if next(left, None) is None:
                raise KeyboardInterrupt
            return whole(*given)

        with monkeypatch.context() as patch:
            patch.setattr(torch.Tensor, "index_select", interrupted)
            with pytest.raises(KeyboardInterrupt):
                cache.keep([2, 0])
        assert torch.equal(MODEL(three, cache.copy()), right)


@pytest.mark.parametrize("precision", ["float16", "int8"])
def test_a_padded_batch_runs_in_every_precision(precision):
    model = GPT2.from_pretrained("tiny", precision=precision)
    texts = texts_of([3, 5])
    ids, mask = left_padded(texts)
    found = only_real(model(ids, mask=mask), mask)
    for text, logits in zip(texts, found, strict=True):
        agree(logits, model(text), {"float16": 0.002, "int8": 1e-4}[precision])


# --- generate ---

TINY, TOKENIZER = GPT2.from_pretrained("tiny"), Tokenizer.from_pretrained("tiny")
PROMPTS = [
    "Once upon a time",
    "The king",
    "",
    "There was a poor man who had three sons",
]


def test_each_of_several_greedy_texts_is_the_one_it_is_alone():
    alone = [generate(TINY, TOKENIZER, p, max_new_tokens=40) for p in PROMPTS]
    assert generate(TINY, TOKENIZER, PROMPTS, max_new_tokens=40) == alone


def test_prompts_of_ids_go_together_too():
    prompts = [TOKENIZER.encode(p) for p in PROMPTS if p]
    alone = [generate(TINY, TOKENIZER, p, max_new_tokens=9) for p in prompts]
    assert generate(TINY, TOKENIZER, prompts, max_new_tokens=9) == alone


def test_the_rule_of_drawing_as_if_alone_holds():
    sampler = Sampler(temperature=0.9, top_k=50, seed=5)
    rules.rows_draw_as_if_alone(generate, TINY, TOKENIZER, PROMPTS, sampler)


@pytest.mark.parametrize("ids", [None, [1, 2], [[[1, 2]]]])
def test_only_a_batch_with_one_axis_can_lose_rows(ids):
    cache = MODEL.new_cache()
    if ids is not None:
        MODEL.last_logits(torch.tensor(ids), cache)
    with pytest.raises(ValueError, match=r"keep: needs the cache of a batch \[n\]"):
        cache.keep([0])


def test_each_row_draws_from_its_own_copy_of_the_sampler():
    sampler = Sampler(temperature=0.9, top_k=50, seed=5)
    sampler(torch.zeros(9))  # as passed: it has moved on
    alone = [
        generate(TINY, TOKENIZER, p, max_new_tokens=20, sampler=sampler.copy())
        for p in PROMPTS
    ]
    before = sampler.copy()
    found = generate(TINY, TOKENIZER, PROMPTS, max_new_tokens=20, sampler=sampler)
    assert found == alone
    row = torch.zeros(100)
    assert [sampler(row) for _ in range(9)] == [before(row) for _ in range(9)]


def test_rows_end_by_themselves_and_do_not_stop_the_others():
    """One meets a stop string early, one end-of-text, one the limit."""
    done = generate(TINY, TOKENIZER, PROMPTS, max_new_tokens=60, stop=iter([" was"]))
    alone = [
        generate(TINY, TOKENIZER, p, max_new_tokens=60, stop=" was") for p in PROMPTS
    ]
    assert done == alone
    assert len({len(one.ids) for one in done}) > 1


class Script:
    """Chooses what it is told; its copy begins where it is."""

    def __init__(self, ids):
        self.ids = list(ids)

    def __call__(self, logits):
        return self.ids.pop(0)


def test_a_row_at_its_end_leaves_and_the_last_one_ends_the_loop(monkeypatch):
    """Row 0 meets end-of-text at step 2, row 1 at step 5: two rows, then one."""
    eot, tokenizer, n_rows = 256, Tokenizer([]), []
    model = random_model(
        GPT2Config(n_vocab=257, n_ctx=16, n_embd=4, n_head=2, n_layer=1)
    )
    scripts = iter([Script([72, eot]), Script([73, 74, 75, 76, eot])])
    monkeypatch.setattr("gpt2hw.continuing.deepcopy", lambda _: next(scripts))
    whole = GPT2.last_logits

    def watched(self, ids, cache=None, *, mask=None):
        n_rows.append(len(ids))
        return whole(self, ids, cache, mask=mask)

    monkeypatch.setattr(GPT2, "last_logits", watched)
    found = generate(
        model, tokenizer, ["a", "bc"], max_new_tokens=9, sampler=Script([])
    )
    assert [done.ids for done in found] == [[72, eot], [73, 74, 75, 76, eot]]
    assert {done.finish_reason for done in found} == {"end_of_text"}
    assert n_rows == [2, 2, 1, 1, 1]


@pytest.mark.parametrize("overflow", ["stop", "slide"])
def test_at_the_end_of_the_context_each_row_does_what_it_does_alone(overflow):
    prompts = texts_of([N_CTX - 2, 3, N_CTX, 9, 1])
    untied = random_model(replace(SMALL, tie_word_embeddings=False, n_vocab=257))
    ways = {"max_new_tokens": 12, "overflow": overflow}
    alone = [generate(untied, Tokenizer([]), p, **ways) for p in prompts]
    assert generate(untied, Tokenizer([]), prompts, **ways) == alone
    assert len({done.finish_reason for done in alone}) == (
        2 if overflow == "stop" else 1
    )


def test_too_long_a_prompt_is_refused_and_told_by_its_number():
    with pytest.raises(ContextError, match="prompt 1 of the list: the prompt alone"):
        generate(TINY, TOKENIZER, [[1], [1] * 300])


@pytest.mark.parametrize("wrong", [["a", [1]], [[1], []], [[]], [[1], 2], ["a", None]])
def test_a_list_of_unlike_prompts_is_refused_by_name(wrong):
    with pytest.raises(ValueError, match="prompt: several are a list of str, or of"):
        generate(TINY, TOKENIZER, wrong)


def test_an_empty_list_is_the_empty_prompt():
    found = generate(TINY, TOKENIZER, [], max_new_tokens=2)
    assert found == generate(TINY, TOKENIZER, "", max_new_tokens=2)


def test_no_new_tokens_are_none_for_each():
    found = generate(TINY, TOKENIZER, ["a", "b"], max_new_tokens=0)
    assert [(done.ids, done.text, done.finish_reason) for done in found] == [
        ([], "", "length")
    ] * 2


def test_ids_that_the_tokenizer_does_not_know_are_never_chosen_in_a_batch():
    config = GPT2Config(n_vocab=300, n_ctx=16, n_embd=4, n_head=2, n_layer=1)
    found = generate(random_model(config), Tokenizer([]), ["a", "bc"], max_new_tokens=9)
    assert all(new_id < 257 for done in found for new_id in done.ids)


def test_a_model_of_your_own_takes_several_prompts_one_by_one():
    class AfterEachComesTheNext:
        config = GPT2Config(n_vocab=257)

        def new_cache(self):
            return []

        def __call__(self, ids, cache=None):
            if cache is not None:
                cache.extend(ids)
            return torch.eye(257).roll(1, 1)[torch.tensor(ids)]

    found = generate(
        AfterEachComesTheNext(), Tokenizer([]), ["a", "k"], max_new_tokens=3
    )
    assert [done.text for done in found] == ["bcd", "lmn"]


def test_every_prompt_is_checked_before_anything_is_computed(monkeypatch):
    monkeypatch.setattr(GPT2, "last_logits", None)
    with pytest.raises(ValueError, match="prompt: must be ids"):
        generate(TINY, TOKENIZER, [[1], [9999]])


def test_what_stays_of_a_batch_takes_memory_for_its_tokens_alone():
    cache = MODEL.new_cache()
    MODEL(random_ids(SMALL, 3, 5), cache)
    for layer in cache.layers(torch.Size([3])):
        for store in (layer.k, layer.v):
            store[..., 5:, :] = torch.nan  # what stands there is of no use
    with pytest.MonkeyPatch.context() as patch:
        empty = torch.Tensor.new_empty
        patch.setattr(
            torch.Tensor, "new_empty", lambda self, *n: empty(self, *n).fill_(7)
        )
        cache.keep([2, 0])
    for layer in cache.layers(torch.Size([2])):
        for store in (layer.k, layer.v):
            assert (store[..., 5:, :] == 7).all()
            assert not (store[..., :5, :] == 7).any()


@pytest.mark.parametrize("at", ["advance", "remember"])
def test_an_interrupt_leaves_tokens_and_mask_as_they_were(at):
    ids, mask = random_ids(SMALL, 2, 6), torch.ones(2, 6, dtype=torch.bool)
    cache = MODEL.new_cache()
    MODEL(ids[:, :4], cache, mask=mask[:, :4])

    def interrupt(frame, event, argument):
        if frame.f_code.co_name == at:
            sys.settrace(None)
            raise KeyboardInterrupt

    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            MODEL(ids[:, 4:], cache, mask=mask[:, 4:])
    finally:
        sys.settrace(before)
    assert (len(cache), cache.mask.shape) == (4, (2, 4))
    agree(MODEL(ids[:, 4:], cache), MODEL(ids)[:, 4:], 1e-5)


@pytest.mark.parametrize(
    "rows", [[0.5], ["0"], "01", [True], None, 5, [None], [torch.inf], ["a"]]
)
def test_rows_to_keep_are_integers(rows):
    cache = MODEL.new_cache()
    MODEL(random_ids(SMALL, 2, 3), cache)
    with pytest.raises(ValueError, match="keep: rows of 0 to 1 are needed"):
        cache.keep(rows)


def test_rows_to_keep_may_stand_in_a_tensor():
    cache = MODEL.new_cache()
    MODEL(random_ids(SMALL, 3, 3), cache)
    cache.keep(torch.tensor([2, 0]))
    assert repr(cache) == "KVCache(3 of 16 tokens, batch torch.Size([2]))"


@pytest.mark.parametrize(
    "mask",
    [
        torch.ones(2, 3).to_sparse(),
        torch.ones(2, 3, device="meta"),
    ],
)
def test_a_mask_is_a_plain_tensor(mask):
    with pytest.raises(ValueError, match="mask: must be a plain tensor"):
        MODEL(random_ids(SMALL, 2, 3), mask=mask)


class WithALock:
    """A sampler that cannot be copied."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __call__(self, logits: torch.Tensor) -> int:
        return int(logits.argmax())


def test_a_sampler_that_cannot_be_copied_writes_one_text_alone():
    model, tokenizer = random_model(replace(SMALL, n_vocab=257)), Tokenizer([])
    done = generate(model, tokenizer, "Hm", sampler=WithALock(), max_new_tokens=2)
    assert len(done.ids) == 2
    with pytest.raises(ValueError, match=r"sampler: each text takes a copy.*lock"):
        generate(model, tokenizer, ["Hm"], sampler=WithALock(), max_new_tokens=2)
