"""From a folder to a model, and the model's door: what comes in is checked there."""

import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
import transformers

import gpt2hw.loader
import gpt2hw.pretrained
from checkpoints import (
    SMALL,
    random_ids,
    random_model,
    random_tensors,
    settings_of,
    write_folder,
)
from gpt2hw import (
    GPT2,
    CheckpointError,
    ContextError,
    GPT2Config,
    KVCache,
    SafetensorsError,
)
from gpt2hw.config import PUBLISHED
from gpt2hw.folder import read_config
from gpt2hw.header import read_header
from gpt2hw.hub import find
from gpt2hw.layout import parameter_shapes
from gpt2hw.pretrained import warn_if_logits_differ
from gpt2hw.properties.closeness import agree
from reference import reference_logits, reference_model

UNTIED = replace(SMALL, tie_word_embeddings=False)
IDS = random_ids(SMALL, 2, 16)


def prefixed(tensors):
    return {f"transformer.{name}": tensor for name, tensor in tensors.items()}


def logits_of(folder: Path) -> torch.Tensor:
    return GPT2.from_pretrained(folder)(IDS)


def logits_by_transformers(folder: Path) -> torch.Tensor:
    """What transformers computes from the same folder."""
    model = transformers.GPT2LMHeadModel.from_pretrained(folder, dtype=torch.float32)
    return reference_logits(model.eval(), IDS)


# --- the layouts that exist ---


def test_a_file_without_prefix_and_head_loads_as_published(tmp_path):
    tensors = random_tensors(SMALL)
    folder = write_folder(tmp_path, SMALL, tensors)
    assert torch.equal(logits_of(folder), random_model()(IDS))


def test_a_file_with_prefix_loads_the_same(tmp_path):
    folder = write_folder(tmp_path, SMALL, prefixed(random_tensors(SMALL)))
    assert torch.equal(logits_of(folder), random_model()(IDS))


@pytest.mark.parametrize("prefix", ["", "transformer."])
def test_a_tied_head_that_is_stored_all_the_same_is_dropped(tmp_path, prefix):
    tensors = random_tensors(SMALL)
    named = {f"{prefix}{name}": tensor for name, tensor in tensors.items()}
    named["lm_head.weight"] = tensors["wte.weight"].clone()
    model = GPT2.from_pretrained(write_folder(tmp_path, SMALL, named))
    assert model.lm_head is model.wte
    assert torch.equal(model(IDS), random_model()(IDS))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_a_stored_head_that_is_not_the_tied_one_is_refused(tmp_path, dtype):
    tensors = random_tensors(SMALL)
    head = (tensors["wte.weight"] + 1).to(dtype)
    folder = write_folder(tmp_path, SMALL, tensors | {"lm_head.weight": head})
    names = list(read_header(folder / "model.safetensors").tensors)
    head_comes_first = names.index("lm_head.weight") < names.index("wte.weight")
    assert head_comes_first == (dtype == torch.float32)  # wider types stand before
    said = r"lm_head\.weight differs from wte\.weight, though the config ties them"
    with pytest.raises(CheckpointError, match=said):
        GPT2.from_pretrained(folder)


def test_an_untied_head_is_used(tmp_path):
    folder = write_folder(tmp_path, UNTIED, prefixed_but_head(random_tensors(UNTIED)))
    agree(logits_of(folder), logits_by_transformers(folder), 1e-5)
    assert not torch.allclose(logits_of(folder), random_model()(IDS))


def prefixed_but_head(tensors):
    head = {"lm_head.weight": tensors.pop("lm_head.weight")}
    return prefixed(tensors) | head


def test_an_untied_head_that_is_missing_is_refused(tmp_path):
    folder = write_folder(tmp_path, UNTIED, random_tensors(SMALL))
    with pytest.raises(CheckpointError, match=r"missing: lm_head\.weight \[37, 12\]"):
        GPT2.from_pretrained(folder)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_any_precision_becomes_float32_as_transformers_has_it(tmp_path, dtype):
    tensors = {name: t.to(dtype) for name, t in random_tensors(SMALL).items()}
    folder = write_folder(tmp_path, SMALL, prefixed(tensors))
    model = GPT2.from_pretrained(folder)
    assert model.wte.dtype == torch.float32
    assert torch.equal(model.wte, tensors["wte.weight"].float())
    agree(model(IDS), logits_by_transformers(folder), 1e-5)


def test_a_folder_that_transformers_saved_is_read(tmp_path):
    reference = reference_model(SMALL, random_tensors(SMALL))
    reference.save_pretrained(tmp_path)
    agree(logits_of(tmp_path), reference_logits(reference, IDS), 1e-5)


def test_the_tiny_model_gives_the_logits_that_transformers_computes():
    model = GPT2.from_pretrained()
    reference = transformers.GPT2LMHeadModel.from_pretrained(
        find("tiny"), dtype=torch.float32
    )
    ids = random_ids(model.config, 3, 40)
    agree(model(ids), reference_logits(reference.eval(), ids), 1e-4)


def test_stored_masks_are_ignored_and_never_read(tmp_path, monkeypatch):
    masks = {}
    for layer in range(SMALL.n_layer):
        masks[f"h.{layer}.attn.bias"] = torch.full((1, 1, 16, 16), torch.nan)
        masks[f"h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    folder = write_folder(tmp_path, SMALL, random_tensors(SMALL) | masks)
    read = []

    def watched(path, header, names):
        for name, tensor in iter_tensors(path, header, names):
            read.append(name)
            yield name, tensor

    iter_tensors = gpt2hw.loader.iter_tensors
    monkeypatch.setattr(gpt2hw.loader, "iter_tensors", watched)
    assert torch.equal(logits_of(folder), random_model()(IDS))
    assert sorted(read) == sorted(parameter_shapes(SMALL))


def test_masks_of_bools_are_ignored_too(tmp_path):
    masks = {"transformer.h.0.attn.bias": torch.ones(1, 1, 16, 16, dtype=torch.bool)}
    folder = write_folder(tmp_path, SMALL, prefixed(random_tensors(SMALL)) | masks)
    assert torch.equal(logits_of(folder), random_model()(IDS))


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_sizes_names_and_shapes_are_accepted(name):
    config = PUBLISHED[name]
    with torch.device("meta"):  # shapes without numbers
        tensors = {n: torch.empty(s) for n, s in parameter_shapes(config).items()}
    model = GPT2.from_tensors(config, tensors)
    assert len(model.h) == config.n_layer
    assert model.h[-1].attn.c_attn.weight.shape == (config.n_embd, 3 * config.n_embd)


# --- what does not fit ---


def refused(folder: Path) -> str:
    with pytest.raises(CheckpointError) as refusal:
        GPT2.from_pretrained(folder)
    return str(refusal.value)


def test_every_tensor_that_does_not_fit_is_named_with_its_file(tmp_path):
    tensors = random_tensors(SMALL)
    del tensors["h.1.ln_2.bias"]
    tensors["h.2.ln_1.bias"] = torch.zeros(12)
    tensors["wpe.weight"] = torch.zeros(15, 12)
    tensors["h.0.mlp.c_fc.weight"] = torch.zeros(20, 12)
    said = refused(write_folder(tmp_path, SMALL, tensors))
    assert str(tmp_path / "model.safetensors") in said
    assert "missing: h.1.ln_2.bias [12]" in said
    assert "surplus: h.2.ln_1.bias [12]" in said
    assert "shape: wpe.weight is [15, 12], expected [16, 12]" in said
    transposed = "shape: h.0.mlp.c_fc.weight is [20, 12], expected [12, 20] (transposed"
    assert transposed in said


def test_no_tensor_is_read_where_one_does_not_fit(tmp_path, monkeypatch):
    tensors = random_tensors(SMALL)
    del tensors["ln_f.bias"]
    folder = write_folder(tmp_path, SMALL, tensors)

    def read(*args):
        raise AssertionError("a tensor was read")

    monkeypatch.setattr(gpt2hw.loader, "iter_tensors", read)
    assert "missing: ln_f.bias [12]" in refused(folder)


def test_names_in_two_manners_are_refused(tmp_path):
    tensors = random_tensors(SMALL)
    tensors["transformer.wpe.weight"] = tensors.pop("wpe.weight")
    assert "'transformer.wpe.weight' with the prefix" in refused(
        write_folder(tmp_path, SMALL, tensors)
    )


@pytest.mark.parametrize("name", ["int8", "int64", "bool", "complex64"])
def test_weights_that_are_no_real_numbers_are_named(tmp_path, name):
    dtype = getattr(torch, name)
    tensors = random_tensors(SMALL)
    tensors["ln_f.bias"] = torch.zeros(12, dtype=dtype)
    said = refused(write_folder(tmp_path, SMALL, tensors))
    assert f"ln_f.bias holds {dtype}, not floating point" in said


def test_only_a_pickle_is_refused_with_the_reason(tmp_path):
    folder = write_folder(tmp_path, SMALL, random_tensors(SMALL))
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    said = refused(folder)
    assert "a pickle, which can run code" in said
    assert "take the model.safetensors of the same model, or convert it" in said


def test_a_pickle_beside_the_safetensors_does_no_harm(tmp_path):
    folder = write_folder(tmp_path, SMALL, random_tensors(SMALL))
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04garbage")
    assert torch.equal(logits_of(folder), random_model()(IDS))


def test_a_folder_without_weights_or_without_config_says_so(tmp_path):
    folder = write_folder(tmp_path, SMALL, random_tensors(SMALL))
    (folder / "model.safetensors").unlink()
    assert "has no model.safetensors" in refused(folder)
    (folder / "config.json").unlink()
    assert "has no config.json" in refused(folder)


def test_a_broken_weights_file_is_a_safetensors_error(tmp_path):
    folder = write_folder(tmp_path, SMALL, random_tensors(SMALL))
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(SafetensorsError, match=r"model\.safetensors"):
        GPT2.from_pretrained(folder)


# --- config.json ---


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "cannot be read: not JSON"),
        (b"{", "cannot be read: not JSON"),
        (b"not JSON", "cannot be read: not JSON"),
        (b"\xff\xfe{\x00}\x00", "cannot be read: not UTF-8 at byte 0"),
        (b"\xef\xbb\xbf{}", "n_positions is missing"),
        (b"[" * 100_000, "cannot be read: nested deeper"),
        (b'{"n_embd": ' + b"9" * 5000 + b"}", "cannot be read: an integer of 5000"),
        (b'{"n_embd": 8, "n_embd": 9}', "cannot be read: the key 'n_embd' appears"),
        (b'{"layer_norm_epsilon": NaN}', "cannot be read: NaN is not JSON"),
        (b"[]", "cannot be read: a JSON list, not an object"),
        (b"null", "cannot be read: a JSON NoneType, not an object"),
        (b'"gpt2"', "cannot be read: a JSON str, not an object"),
        (b"{}", "n_positions is missing"),
    ],
    ids=lambda value: repr(value[:12]) if isinstance(value, bytes) else None,
)
def test_a_config_that_cannot_be_used_is_named_with_its_file(tmp_path, raw, said):
    (tmp_path / "config.json").write_bytes(raw)
    with pytest.raises(CheckpointError, match=rf"config\.json.*{said}"):
        read_config(tmp_path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("n_head", True),
        ("n_layer", 2.0),
        ("vocab_size", -37),
        ("n_positions", 0),
        ("n_embd", {"a": 1}),
        ("activation_function", "relu"),
        ("scale_attn_by_inverse_layer_idx", True),
        ("layer_norm_epsilon", -1e-5),
    ],
)
def test_a_refused_setting_is_named_with_its_file(tmp_path, key, value):
    folder = write_folder(tmp_path, SMALL, random_tensors(SMALL), **{key: value})
    said = refused(folder)
    assert str(folder / "config.json") in said
    assert key in said


def test_a_config_in_utf_8_is_read_whatever_the_system_prefers(tmp_path):
    settings = settings_of(SMALL, description="Ġ é 日本")
    text = json.dumps(settings, ensure_ascii=False)
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    assert read_config(tmp_path) == SMALL


def test_a_billion_layers_in_a_config_are_refused_at_once(tmp_path):
    folder = write_folder(tmp_path, SMALL, random_tensors(SMALL), n_layer=10**9)
    assert "n_layer=1000000000" in refused(folder)


# --- from tensors, and at random ---


def test_tensors_with_gradients_are_taken_without_them():
    tensors = {n: t.requires_grad_() for n, t in random_tensors(SMALL).items()}
    model = GPT2.from_tensors(SMALL, tensors)
    assert not model.wte.requires_grad
    assert not model(IDS).requires_grad
    as_parameters = {n: torch.nn.Parameter(t) for n, t in random_tensors(SMALL).items()}
    assert type(GPT2.from_tensors(SMALL, as_parameters).wte) is torch.Tensor


def test_float32_tensors_are_shared_and_others_converted():
    tensors = random_tensors(SMALL)
    assert GPT2.from_tensors(SMALL, tensors).wte.data_ptr() == (
        tensors["wte.weight"].data_ptr()
    )
    doubles = {name: tensor.double() for name, tensor in tensors.items()}
    model = GPT2.from_tensors(SMALL, doubles)
    assert model.wte.dtype == torch.float32
    assert torch.equal(model(IDS), random_model()(IDS))


def test_from_tensors_checks_names_as_the_loader_does():
    tensors = random_tensors(SMALL)
    assert torch.equal(
        GPT2.from_tensors(SMALL, prefixed(tensors))(IDS), random_model()(IDS)
    )
    del tensors["wpe.weight"]
    with pytest.raises(CheckpointError, match=r"missing: wpe\.weight \[16, 12\]"):
        GPT2.from_tensors(SMALL, tensors)
    with pytest.raises(CheckpointError, match="missing"):
        GPT2.from_tensors(SMALL, {})


def test_from_tensors_ignores_stored_masks():
    mask = torch.ones(1, 1, 16, 16, dtype=torch.bool)
    tensors = {"h.0.attn.bias": mask} | random_tensors(SMALL)
    assert torch.equal(GPT2.from_tensors(SMALL, tensors)(IDS), random_model()(IDS))


def test_a_random_model_is_the_same_for_the_same_seed():
    one, same, other = (GPT2.random(SMALL, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(one(IDS), same(IDS))
    assert not torch.equal(one(IDS), other(IDS))


def test_a_random_model_leaves_the_global_random_state_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    GPT2.random(SMALL, seed=1)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_random_model_begins_as_gpt2_did():
    config = GPT2Config(n_vocab=800, n_ctx=64, n_embd=128, n_head=4, n_layer=8)
    model = GPT2.random(config)
    assert model.wte.std() == pytest.approx(0.02, rel=0.02)
    block = model.h[3]
    assert block.mlp.c_fc.weight.std() == pytest.approx(0.02, rel=0.02)
    for writes in (block.attn.c_proj, block.mlp.c_proj):  # 0.02 / sqrt(2 * 8)
        assert writes.weight.std() == pytest.approx(0.005, rel=0.02)
        assert writes.bias.count_nonzero() == 0
    assert torch.equal(block.ln_1.weight, torch.ones(128))


# --- the door ---


@pytest.mark.parametrize(
    ("ids", "named"),
    [
        ([], "at least one id"),
        ((), "at least one id"),
        (torch.zeros(0, dtype=torch.int64), "at least one id"),
        (torch.zeros(3, 0, dtype=torch.int64), "at least one id"),
        (torch.tensor(3), "at least one id"),
        ([True, False], "True is not an integer id"),
        (torch.tensor([True]), r"must be integers, not torch\.bool"),
        ([1.0], "1.0 is not an integer id"),
        (torch.tensor([1.0]), r"must be integers, not torch\.float32"),
        (torch.tensor([1j]), r"must be integers, not torch\.complex64"),
        ([[1, 2], [3, 4]], r"\[1, 2\] is not an integer id"),
        ([None], "None is not an integer id"),
        ("12", "are integers; a text is encoded first"),
        ([torch.tensor(1)], r"tensor\(1\) is not an integer id"),
        (5, "must be ints or a tensor, not int"),
        (None, "must be ints or a tensor, not NoneType"),
        ({1, 2}, "must be ints or a tensor, not set"),
        ([3, -1], "-1 is outside the vocabulary"),
        (torch.tensor([[3], [-7]]), "-7 is outside the vocabulary"),
        ([36, 37], r"37 is outside the vocabulary \(0 to 36\)"),
        (torch.tensor([99]), "99 is outside the vocabulary"),
        ([2**63], f"{2**63} is outside"),
        ([-(2**70)], f"{-(2**70)} is outside"),
    ],
)
def test_what_is_no_id_is_a_value_error_that_names_it(ids, named):
    with pytest.raises(ValueError, match=f"^ids: {named}"):
        random_model()(ids)


@pytest.mark.parametrize(
    "ids",
    [[1, 2, 3], (1, 2, 3), range(1, 4), torch.tensor([1, 2, 3])],
    ids=["list", "tuple", "range", "tensor"],
)
def test_lists_and_tensors_of_ids_are_taken(ids):
    assert torch.equal(random_model()(ids), random_model().forward(torch.arange(1, 4)))


@pytest.mark.parametrize(
    "name", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
)
def test_integers_of_every_width_are_taken_whatever_the_vocabularys_size(name):
    config = GPT2Config(n_vocab=70_000, n_ctx=4, n_embd=4, n_head=1, n_layer=1)
    model = GPT2.random(config)
    ids = torch.tensor([7, 100]).to(getattr(torch, name))
    assert torch.equal(model(ids), model([7, 100]))


def test_the_callers_ids_are_left_as_they_are():
    ids = IDS.clone()
    random_model()(ids)
    assert torch.equal(ids, IDS)


@pytest.mark.parametrize("batch", [(), (1,), (2, 3)])
def test_more_ids_than_positions_are_refused_before_anything_is_computed(
    monkeypatch, batch
):
    def computed(*args):
        raise AssertionError("it was computed")

    model = random_model()
    monkeypatch.setattr("gpt2hw.model.embed", computed)
    with pytest.raises(ContextError, match=r"17 ids are more than .* 16 positions"):
        model(random_ids(SMALL, *batch, 17))


# --- devices ---


@pytest.mark.parametrize(
    "device", ["", "nonsense", "meta", "privateuseone", "cuda:999", "hpu", None, 3.5]
)
def test_a_device_that_cannot_be_used_here_is_a_value_error(device):
    with pytest.raises(ValueError, match=r"^device: .* cannot be used here"):
        GPT2.from_pretrained("tiny", device=device)


def test_the_device_is_asked_for_before_anything_is_read():
    with pytest.raises(ValueError, match=r"^device: "):
        GPT2.from_pretrained("./no-such-folder", device="nonsense")


def test_the_default_device_is_the_cpu():
    assert GPT2.from_pretrained().wte.device.type == "cpu"


def test_a_device_that_computes_wrong_logits_is_warned_of():
    right = random_model()
    for wrong in (random_model(seed=1), with_one_wrong_number(torch.nan)):
        with pytest.warns(RuntimeWarning, match="differ from the CPU's by .*cannot be"):
            warn_if_logits_differ(wrong, right)


def test_a_device_that_rounds_otherwise_is_not_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_logits_differ(with_one_wrong_number(1e-4), random_model())


def with_one_wrong_number(added: float) -> GPT2:
    tensors = random_tensors(SMALL)
    tensors["ln_f.bias"][0] += added
    return GPT2.from_tensors(SMALL, tensors)


def test_the_first_logits_on_mps_are_compared_with_the_cpus(tmp_path, monkeypatch):
    """Without such a machine: a device that calls itself mps and is the CPU."""
    folder = write_folder(tmp_path, SMALL, random_tensors(SMALL))

    class FakeDevice:
        type = "mps"

    seen = []

    def assemble(config, pairs, device, **forms):
        seen.append(device)
        return whole_assemble(config, pairs, gpt2hw.pretrained.CPU, **forms)

    whole_assemble = gpt2hw.pretrained.assemble
    monkeypatch.setattr(gpt2hw.pretrained, "assemble", assemble)
    monkeypatch.setattr(gpt2hw.pretrained, "_usable_device", lambda name: FakeDevice)
    compared = []
    monkeypatch.setattr(
        gpt2hw.pretrained, "warn_if_logits_differ", lambda *both: compared.append(both)
    )
    model = GPT2.from_pretrained(folder, device="mps")
    assert seen == [FakeDevice, gpt2hw.pretrained.CPU]
    assert [both[0] for both in compared] == [model]


# --- files ---


def test_loading_needs_no_tokenizer(tmp_path):
    folder = write_folder(tmp_path, SMALL, random_tensors(SMALL))
    assert len(list(folder.iterdir())) == 2  # config.json and model.safetensors
    assert GPT2.from_pretrained(str(folder)).config == SMALL


def test_the_model_does_not_change_with_its_file(tmp_path):
    folder = write_folder(tmp_path, SMALL, random_tensors(SMALL))
    model = GPT2.from_pretrained(folder)
    before = model(IDS)
    other = random_tensors(SMALL, seed=1)
    safetensors.torch.save_file(other, folder / "model.safetensors")
    assert torch.equal(model(IDS), before)


def test_a_model_shows_its_size_and_not_its_numbers():
    shown = repr(random_model())
    assert shown.startswith("GPT2(")
    assert "parameters, GPT2Config(n_vocab=37" in shown
    assert "tensor" not in shown


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_a_random_model_depends_on_its_seed_alone(dtype):
    right = GPT2.random(SMALL, seed=3)
    torch.set_default_dtype(dtype)
    torch.set_default_device("meta")
    try:
        found = GPT2.random(SMALL, seed=3)
        logits = found([1, 2, 3], found.new_cache())
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_default_device("cpu")
    assert torch.equal(found.wte, right.wte)
    assert torch.equal(logits, right([1, 2, 3], right.new_cache()))


@pytest.mark.parametrize("cache", [[], True, 5, "x", KVCache])
def test_what_is_no_cache_is_named(cache):
    with pytest.raises(ValueError, match=r"^cache: must be a KVCache"):
        random_model()([1], cache)


@pytest.mark.parametrize("seed", [None, "x", 1.5, True, 2**64])
def test_what_is_no_seed_is_named(seed):
    with pytest.raises(ValueError, match=r"^seed: must be"):
        GPT2.random(SMALL, seed)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("config", (None, {})),
        ("config", ({}, {})),
        ("tensors", (SMALL, None)),
        ("tensors", (SMALL, {"wte.weight": [1.0]})),
        ("tensors", (SMALL, {1: torch.ones(1)})),
    ],
)
def test_what_is_no_config_or_no_dict_of_tensors_is_named(name, arguments):
    with pytest.raises(ValueError, match=f"^{name}: must be"):
        GPT2.from_tensors(*arguments)


@pytest.mark.parametrize("name", [None, 5, ["gpt2"], ""])
def test_what_is_no_name_of_a_model_is_a_checkpoint_error(name):
    with pytest.raises(CheckpointError, match="a model is a name or a folder"):
        GPT2.from_pretrained(name)


def test_ids_without_numbers_in_them_are_refused():
    for ids in (
        torch.ones(2, dtype=torch.int64, device="meta"),
        torch.ones(2, dtype=torch.int64).to_sparse(),
    ):
        with pytest.raises(ValueError, match=r"^ids: must be a plain tensor"):
            random_model()(ids)


def test_numpys_integers_are_ids_too():
    model = random_model()
    assert torch.equal(model([np.int64(1), np.uint8(2)]), model([1, 2]))


def test_sparse_tensors_are_refused() -> None:
    config = GPT2Config(n_vocab=5, n_ctx=4, n_embd=6, n_head=2, n_layer=1)
    tensors = {n: torch.zeros(s) for n, s in parameter_shapes(config).items()}
    tensors["wte.weight"] = tensors["wte.weight"].to_sparse()
    with pytest.raises(ValueError, match="tensors: must be a dict of names to tensors"):
        GPT2.from_tensors(config, tensors)
