"""A model with its matrices in the fast form: every rule of the taught one holds."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gpt2hw.bags
from checkpoints import SMALL, as_on_x86, random_ids, random_tensors, write_folder
from gpt2hw import GPT2, GPT2Config, Tokenizer, fast_block, generate, trace
from gpt2hw.bags import BagMatrix
from gpt2hw.batches import PaddedCache
from gpt2hw.fast import FastTransformer, MatrixLinear, taught
from gpt2hw.generation import next_logits
from gpt2hw.linear import Linear
from gpt2hw.loader import assemble
from gpt2hw.model import Transformer
from gpt2hw.precisions import Precision
from gpt2hw.properties import kv_cache as cache_rules
from gpt2hw.properties import model as rules
from gpt2hw.properties.closeness import agree
from gpt2hw.properties.drawn import SEEDS, batch_shapes, configs, ids_for, splits
from gpt2hw.rows import RowMatrix
from gpt2hw.safetensors import read_safetensors, write_safetensors

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _every_matrix_counts_as_large(monkeypatch):
    monkeypatch.setattr(gpt2hw.bags, "MANY", 1)
    as_on_x86(monkeypatch)


def fast_model(
    config: GPT2Config = SMALL, seed: int = 0, precision: Precision = "float32"
) -> GPT2:
    tensors = random_tensors(config, seed).items()
    parts = assemble(config, tensors, CPU, precision=precision)
    model = GPT2._wrap(config, parts)
    assert model.head is not None
    assert isinstance(model.h[0].mlp.c_fc, MatrixLinear)
    return model


def taught_model(config: GPT2Config = SMALL, seed: int = 0) -> Transformer:
    return taught(GPT2.from_tensors(config, random_tensors(config, seed)))


def model_without_forms() -> FastTransformer:
    t = taught_model()
    return FastTransformer(wte=t.wte, wpe=t.wpe, h=t.h, ln_f=t.ln_f, lm_head=t.lm_head)


@given(configs(), batch_shapes(), SEEDS, st.data())
@settings(deadline=None, max_examples=40)
def test_the_logits_are_those_of_the_taught_path(config, batch, seed, data):
    ids = data.draw(ids_for(config, *batch))
    right = taught_model(config, seed).forward(ids)
    # Sums in another order; a norm over two or three numbers makes more of their
    # rounding.
    agree(fast_model(config, seed)(ids), right, 5e-5, "logits")


@given(configs(), batch_shapes(), SEEDS, st.data())
@settings(deadline=None, max_examples=40)
def test_any_split_of_any_sequence_gives_the_logits_of_one_pass(
    config, batch, seed, data
):
    ids = data.draw(ids_for(config, *batch))
    chunks = data.draw(splits(ids.shape[-1]))
    cache_rules.cache_equals_no_cache(fast_model(config, seed), ids, chunks, 1e-4)


def test_the_rules_of_the_forward_pass_hold():
    model, ids = fast_model(), random_ids(SMALL, 2, 9)
    rules.each_id_gets_a_row_of_logits(model, ids, SMALL.n_vocab)
    rules.later_ids_change_nothing(model, ids[0], at=5, other=3)
    rules.a_prefix_gives_the_first_rows(model, ids, 1)
    rules.sequences_of_a_batch_are_apart(model, ids)


def test_a_failed_call_leaves_the_cache_as_it_was():
    model = fast_model()
    seen, rest = random_ids(SMALL, 4), random_ids(SMALL, 3, seed=1)
    cache_rules.a_failed_call_leaves_no_trace(
        model, seen, lambda cache: model([99], cache), rest
    )
    cache_rules.copies_are_independent(model, seen, rest, rest[:1])


@pytest.mark.parametrize("n_seen", [0, 3])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_the_last_row_alone_is_the_last_row(batch, n_seen):
    model, ids = fast_model(), random_ids(SMALL, *batch, 7)
    cache = model.new_cache()
    if n_seen:
        model.last_logits(ids[..., :n_seen], cache)
    agree(model.last_logits(ids[..., n_seen:], cache), model(ids)[..., -1, :], 1e-5)
    assert len(cache) == 7
    agree(model.last_logits(ids), model(ids)[..., -1, :], 1e-5)


@given(configs(), batch_shapes(), SEEDS, st.data())
@settings(deadline=None, max_examples=40)
def test_the_last_row_alone_leaves_the_cache_that_all_rows_leave(
    config, batch, seed, data
):
    model, ids = fast_model(config, seed), data.draw(ids_for(config, *batch))
    caches = model.new_cache(), model.new_cache()
    at = 0
    for n in data.draw(splits(ids.shape[-1])):
        new_ids = ids[..., at : at + n]
        right = model(new_ids, caches[0])[..., -1, :]
        agree(model.last_logits(new_ids, caches[1]), right, 5e-5)
        at += n
    assert len(caches[0]) == len(caches[1]) == ids.shape[-1]
    both = (cache.layers(ids.shape[:-1]) for cache in caches)
    for layer, other in zip(*both, strict=True):
        agree(other.k[..., :at, :], layer.k[..., :at, :], 5e-5)
        agree(other.v[..., :at, :], layer.v[..., :at, :], 5e-5)


PADDED = [[0, 0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1], [0, 1, 1, 1, 1, 0, 1]]


@pytest.mark.parametrize("mask", [PADDED, *PADDED])
@pytest.mark.parametrize("n_seen", [0, 1, 4])
def test_the_last_row_alone_is_the_last_row_beside_padding_too(mask, n_seen):
    model, mask = fast_model(), torch.tensor(mask)
    ids, cache = random_ids(SMALL, *mask.shape), model.new_cache()
    right = model(ids, mask=mask)[..., -1, :]
    agree(model.last_logits(ids, mask=mask), right, 1e-5)
    if n_seen:
        model.last_logits(ids[..., :n_seen], cache, mask=mask[..., :n_seen])
    rest = ids[..., n_seen:]
    agree(model.last_logits(rest, cache, mask=mask[..., n_seen:]), right, 1e-5)
    again = random_ids(SMALL, *mask.shape[:-1], 2, seed=1)  # the cache is right, too
    whole = torch.cat([ids, again], -1), torch.nn.functional.pad(mask, (0, 2), value=1)
    agree(model(again, cache), model(whole[0], mask=whole[1])[..., -2:, :], 1e-5)


@pytest.mark.parametrize("n_seen", [0, 3])
@pytest.mark.parametrize("padded", [False, True])
def test_of_all_but_the_last_token_the_last_block_makes_keys_and_values_alone(
    monkeypatch, n_seen, padded
):
    model, ids, seen = fast_model(), random_ids(SMALL, 7), []
    names = {}
    for block in model.h:
        for name in ("c_attn", "c_proj"):
            names[id(getattr(block.attn, name).matrix)] = f"attn.{name}"
        for name in ("c_fc", "c_proj"):
            names[id(getattr(block.mlp, name).matrix)] = f"mlp.{name}"
    whole, inner = BagMatrix.__call__, fast_block.fast_inner

    def watched(self, x):
        seen.append((names[id(self)], x.numel() // x.shape[-1]))
        return whole(self, x)

    def watched_inner(mlp, x):
        if x.numel() > x.shape[-1]:  # they are done in one call, with their gelu
            seen.append(("mlp.c_fc", x.numel() // x.shape[-1]))
        return inner(mlp, x)

    cache = model.new_cache()
    if n_seen:
        model.last_logits(ids[:n_seen], cache)
    monkeypatch.setattr(BagMatrix, "__call__", watched)
    monkeypatch.setattr(fast_block, "fast_inner", watched_inner)
    new_ids = ids[n_seen:]
    n, parts = len(new_ids), ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")
    mask = torch.ones_like(new_ids) if padded else None
    if padded:
        mask[0] = 0
    model.last_logits(new_ids, cache, mask=mask)
    assert seen[:-4] == [(part, n) for part in parts] * (SMALL.n_layer - 1)
    assert seen[-4:] == list(zip(parts, (n, 1, 1, 1), strict=True))
    seen.clear()
    model(ids)
    assert seen == [(part, len(ids)) for part in parts] * SMALL.n_layer


def test_a_block_that_stands_in_two_places_is_the_last_only_in_the_last():
    model, ids = fast_model(), random_ids(SMALL, 7)
    model = replace(model, h=(model.h[0],) * 3)
    agree(model.last_logits(ids), model(ids)[-1], 1e-5)


def test_generation_asks_for_one_row_of_logits_alone(monkeypatch):
    model, n_rows = fast_model(), []
    whole = type(model.head).__call__

    def watched(self, x):
        if self is model.head:
            n_rows.append(x.numel() // x.shape[-1])
        return whole(self, x)

    monkeypatch.setattr(type(model.head), "__call__", watched)
    cache = model.new_cache()
    next_logits(model, [1, 2, 3, 4, 5], cache)
    next_logits(model, [1, 2, 3, 4, 5, 6], cache)
    assert n_rows == [1, 1]


def test_trace_and_taught_have_the_taught_forms_and_the_same_numbers():
    model = fast_model()
    plain = taught(model)
    assert type(plain) is Transformer
    for block in plain.h:
        parts = (block.attn.c_attn, block.attn.c_proj, block.mlp.c_fc, block.mlp.c_proj)
        assert [type(part) for part in parts] == [Linear] * 4
    assert plain.wte is model.wte
    assert plain.lm_head is model.wte
    assert plain.h[0].mlp.c_fc.weight.data_ptr() == (
        model.h[0].mlp.c_fc.weight.data_ptr()
    )
    found = trace(model, [3, 1, 4])["logits"]
    assert torch.equal(found, plain.forward(torch.tensor([3, 1, 4])))


# In int8 the rows that come in are rounded, too.
@pytest.mark.parametrize(
    ("make", "within"),
    [
        (model_without_forms, 1e-5),
        (fast_model, 1e-5),
        (lambda: fast_model(precision="int8"), 0.06),
    ],
)
def test_every_way_to_the_logits_gives_those_of_the_taught_model(make, within):
    model, ids = make(), random_ids(SMALL, 7)
    right, cache = taught(model).forward(ids), PaddedCache(model)
    agree(model.forward(ids), right, within)
    agree(model.logits(model.final_state(ids)), right, within)
    agree(model.last(ids), right[-1], within)
    agree(model.last(ids[:4], cache), right[3], within)
    agree(model.cached(ids[4:], cache), right[4:], within)
    assert len(cache) == 7


@pytest.mark.parametrize("tied", [True, False])
def test_the_taught_model_of_whole_numbers_is_wide_and_its_tied_head_one_tensor(tied):
    config = replace(SMALL, tie_word_embeddings=tied)
    model = fast_model(config, precision="int8")
    plain, tensors = taught(model), random_tensors(config)
    agree(plain.wte, tensors["wte.weight"], 0.01)
    agree(plain.lm_head, tensors["wte.weight" if tied else "lm_head.weight"], 0.01)
    assert (plain.lm_head is plain.wte) == tied


def test_one_token_more_of_each_text_asks_for_no_mask(monkeypatch):
    model, ids = fast_model(), random_ids(SMALL, 2, 5)
    right, cache = model.last_logits(ids), model.new_cache()
    model.last_logits(ids[:, :4], cache)
    monkeypatch.setattr("gpt2hw.fast.causal_mask", None)
    agree(model.last_logits(ids[:, 4:], cache), right, 1e-5)


def test_a_user_s_default_device_has_no_say():
    model, ids = fast_model(), random_ids(SMALL, 7)
    right = model(ids)
    with torch.device("meta"):
        assert torch.equal(model(ids), right)


def test_a_models_names_and_shapes_are_those_of_the_checkpoint():
    tensors = random_tensors(SMALL)
    model = fast_model()
    for layer, block in enumerate(model.h):
        for name, found in (
            ("attn.c_attn", block.attn.c_attn),
            ("attn.c_proj", block.attn.c_proj),
            ("mlp.c_fc", block.mlp.c_fc),
            ("mlp.c_proj", block.mlp.c_proj),
        ):
            assert torch.equal(found.weight, tensors[f"h.{layer}.{name}.weight"])
    assert torch.equal(model.wte, tensors["wte.weight"])


def test_tensors_that_are_given_are_shared_and_stay_as_they_are():
    tensors = random_tensors(SMALL)
    before = {name: tensor.clone() for name, tensor in tensors.items()}
    model = GPT2.from_tensors(SMALL, tensors)
    assert model.h[0].mlp.c_fc.weight.data_ptr() == (
        tensors["h.0.mlp.c_fc.weight"].data_ptr()
    )
    assert all(torch.equal(tensors[name], before[name]) for name in tensors)
    assert model.head is not None  # wte lies right as it is
    agree(model([3]), taught(model).forward(torch.tensor([3])), 1e-5)


def test_an_untied_head_is_its_own(tmp_path):
    config = GPT2Config(
        n_vocab=11, n_ctx=8, n_embd=8, n_head=2, n_layer=1, tie_word_embeddings=False
    )
    model = fast_model(config)
    assert model.head is not model.table
    right = taught_model(config).forward(torch.tensor([3, 1]))
    agree(model([3, 1]), right, 1e-5)


def test_a_loaded_model_and_a_random_one_are_in_the_fast_form(tmp_path):
    folder = write_folder(tmp_path, SMALL, random_tensors(SMALL))
    for model in (GPT2.from_pretrained(folder), GPT2.random(SMALL)):
        assert isinstance(model, FastTransformer)
        assert isinstance(model.h[0].attn.c_attn, MatrixLinear)
        assert isinstance(model.h[0].attn.c_attn.matrix, BagMatrix)
        assert model.h[0].attn.c_attn.weight.is_contiguous()  # as the file has it
        assert model.head is model.table
        assert isinstance(model.head, BagMatrix)  # laid anew: by inputs
        assert model.wte is model.lm_head
        assert model.wte.T.is_contiguous()
        ids = torch.tensor([3, 1, 3])
        agree(model(ids), taught(model).forward(ids), 1e-5)


@pytest.mark.parametrize("tied", [True, False])
def test_the_head_is_laid_anew_where_it_may_be_and_pays(tied):
    config = replace(SMALL, tie_word_embeddings=tied)
    tensors = random_tensors(config)
    model = assemble(config, tensors.items(), CPU, may_lay=True)
    assert isinstance(model.head, BagMatrix)
    assert (model.head is model.table) == tied
    assert tied or isinstance(model.table, RowMatrix)  # nothing is multiplied with it
    assert torch.equal(model.wte, tensors["wte.weight"])
    assert torch.equal(
        model.lm_head, tensors["wte.weight" if tied else "lm_head.weight"]
    )
    ids = torch.tensor([[3, 1], [2, 2]])
    agree(model.forward(ids), taught_model(config).forward(ids), 1e-5)


def test_a_head_that_was_laid_anew_is_shared_by_a_model_of_its_tensors(tmp_path):
    tensors = random_tensors(SMALL)
    first = assemble(SMALL, tensors.items(), CPU, may_lay=True)
    again = GPT2.from_tensors(SMALL, tensors | {"wte.weight": first.wte})
    assert isinstance(again.head, BagMatrix)
    assert again.wte.data_ptr() == first.wte.data_ptr()
    folder = write_folder(tmp_path, SMALL, tensors)
    read = GPT2.from_pretrained(folder)
    path = tmp_path / "again.safetensors"
    write_safetensors(path, {"wte.weight": read.wte})
    assert torch.equal(read_safetensors(path)["wte.weight"], tensors["wte.weight"])


def test_a_head_by_outputs_has_a_derivative_asked_for_after_it_was_cut():
    tensors = random_tensors(SMALL)
    fast = GPT2.from_tensors(SMALL, tensors)
    assert isinstance(fast.head, RowMatrix)
    fast.wte.requires_grad_()
    fast([3]).square().sum().backward()
    found, fast.wte.grad = fast.wte.grad, None
    taught(fast).forward(torch.tensor([3])).square().sum().backward()
    agree(found, fast.wte.grad, 1e-4)


def test_a_small_head_stays_as_it_is(monkeypatch):
    monkeypatch.undo()
    assert GPT2.random(SMALL).head is None


@pytest.mark.parametrize("precision", ["float16", "int8"])
def test_in_fewer_bytes_the_head_lies_by_outputs(precision):
    head = GPT2.random(SMALL, precision=precision).head
    assert head is not None
    assert head.values.is_contiguous()


def test_the_tiny_model_writes_the_same_text_in_either_form(monkeypatch):
    tokenizer = Tokenizer.from_pretrained("tiny")
    fast = GPT2.from_pretrained("tiny")
    monkeypatch.undo()
    plain = GPT2.from_pretrained("tiny")
    assert fast.head is not None
    assert plain.head is None  # small: the taught form is the faster one
    texts = [generate(m, tokenizer, "Once upon a time").text for m in (fast, plain)]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("mask", [[[1, 1, 1], [1, 1, 0]], [0, 1, 0]])
def test_a_text_that_ends_with_padding_has_no_last_logits(mask):
    model, mask = fast_model(), torch.tensor(mask)
    ids, cache = random_ids(SMALL, *mask.shape), model.new_cache()
    with pytest.raises(ValueError, match="mask: a text ends with padding"):
        model.last_logits(ids, cache, mask=mask)
    assert len(cache) == 0
    assert model(ids, mask=mask).shape == (*mask.shape, SMALL.n_vocab)


@pytest.mark.parametrize(("name", "form"), [("wte", "table"), ("lm_head", "head")])
@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
def test_an_end_of_the_model_is_replaced_with_its_form_or_not_at_all(
    name, form, precision
):
    model, ids = fast_model(precision=precision), random_ids(SMALL, 5)
    other = torch.randn(SMALL.n_vocab, SMALL.n_embd)
    with pytest.raises(ValueError, match=f"{name}: `{form}`"):
        replace(model, **{name: other})
    changed = replace(model, **{name: other, form: None})
    right = replace(taught(model), **{name: other})
    within = {"float32": 1e-5, "float16": 5e-3, "int8": 0.1}[precision]
    agree(changed(ids), right.forward(ids), within)
    agree(taught(changed).forward(ids), right.forward(ids), 0)
    cache = changed.new_cache()
    for n in (4, 1):
        found = changed.last_logits(ids[len(cache) :][:n], cache)
    agree(found, right.forward(ids)[-1], within)


@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
def test_a_map_takes_no_weight_that_its_matrix_does_not_hold(precision):
    linear = fast_model(precision=precision).h[0].mlp.c_fc
    with pytest.raises(ValueError, match="weight: "):
        replace(linear, weight=torch.zeros(linear.weight.shape))
    twin = replace(linear, bias=torch.ones_like(linear.bias))
    x = torch.ones(1, SMALL.n_embd)
    agree(twin(x) - 1, linear(x) - linear.bias, 1e-5)
