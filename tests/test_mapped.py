"""Tensors that are the file's own bytes: the same numbers, and the file stays as it is.

Where a file cannot be mapped, it is read: then nothing here may differ but the place.
"""

import ctypes
import gc
import json
import mmap
import os
import pickle
import struct
import sys
import weakref
from dataclasses import replace
from pathlib import Path

import pytest
import safetensors.torch
import torch
from hypothesis import given
from torch import Tensor

from checkpoints import SMALL, as_on_x86, random_ids, random_tensors, write_folder
from gpt2hw import GPT2, SafetensorsError, bags, mapped
from gpt2hw.bags import BagMatrix
from gpt2hw.cli import main
from gpt2hw.folder import read_config
from gpt2hw.header import read_header
from gpt2hw.loader import read_parameters
from gpt2hw.mapped import iter_mapped, view
from gpt2hw.properties.closeness import agree
from gpt2hw.properties.drawn_files import NAMED_TENSORS
from gpt2hw.properties.header import file_bytes
from gpt2hw.properties.safetensors import bits
from gpt2hw.rows import RowMatrix
from gpt2hw.safetensors import iter_tensors, read_safetensors, write_safetensors
from reference import reference_model

REALLY_X86 = mapped.IS_X86
# On Windows no file is mapped, and there these rules have nothing to say.
posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX files and links")
IDS = random_ids(SMALL, 2, 16)
TWO = {"a": torch.arange(6.0).view(2, 3), "b": torch.arange(1000.0)}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.safetensors"
    write_safetensors(path, TWO)
    return path


@pytest.fixture
def folder(tmp_path):
    return write_folder(tmp_path / "model", SMALL, random_tensors(SMALL))


@pytest.fixture
def watched(monkeypatch):
    """The names that are read, not mapped."""
    read = []

    def watched(path, header, names):
        for name, tensor in iter_tensors(path, header, names):
            read.append(name)
            yield name, tensor

    monkeypatch.setattr(mapped, "iter_tensors", watched)
    return read


def all_of(path: Path) -> dict[str, Tensor]:
    header = read_header(path)
    return dict(iter_mapped(path, header, header.tensors))


def address_of(memory: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


# The numbers


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    return tmp_path_factory.mktemp("mapped") / "model.safetensors"


@given(NAMED_TENSORS)
def test_any_file_gives_what_is_read_from_it(drawn, tensors):
    drawn.unlink(missing_ok=True)
    write_safetensors(drawn, tensors)
    found, right = all_of(drawn), read_safetensors(drawn)
    assert found.keys() == right.keys()
    for name, tensor in found.items():
        assert (tensor.dtype, tensor.shape) == (right[name].dtype, right[name].shape)
        assert bits(tensor) == bits(right[name])
        assert tensor.is_contiguous()


OF_EVERY_KIND = {
    "half": torch.ones(3, dtype=torch.float16),
    "brain": torch.full((2, 2), 0.5, dtype=torch.bfloat16),
    "double": torch.ones(2, dtype=torch.float64),
    "whole": torch.arange(5),
    "bytes": torch.arange(3, dtype=torch.uint8),
    "none": torch.empty(0),
    "none_of_four": torch.empty(4, 0),
    "one": torch.tensor(2.5),
    "wide": torch.randn(3, 1, 2),
}


def test_tensors_are_those_that_the_reference_reads(tmp_path, watched):
    path = tmp_path / "kinds.safetensors"
    safetensors.torch.save_file(OF_EVERY_KIND, path)
    found, right = all_of(path), safetensors.torch.load_file(path)
    assert found.keys() == right.keys()
    for name, tensor in right.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)
    if sys.platform != "win32":
        assert set(OF_EVERY_KIND) - set(watched) == {"one", "wide"}


def test_a_name_that_comes_twice_gives_one_tensor_and_others_none(path, watched):
    found = list(iter_mapped(path, read_header(path), ["b", "b"]))
    assert [name for name, _ in found] == ["b"]
    assert watched in ([], ["b"])  # the latter on Windows


# Whose memory it is


@posix
def test_tensors_lie_where_the_mapped_file_lies(path):
    header, memory = read_header(path), mapped.map_file(path)
    assert memory is not None
    for name, right in TWO.items():
        tensor = view(memory, header, name)
        place = header.data_start + header[name].start
        assert tensor.data_ptr() == address_of(memory) + place
        assert tensor.untyped_storage().nbytes() == header[name].n_bytes
        assert torch.equal(tensor, right)


@posix
def test_tensors_of_a_file_share_one_mapping_and_nothing_is_read(path, watched):
    header, found = read_header(path), all_of(path)
    apart = found["b"].data_ptr() - found["a"].data_ptr()
    assert apart == header["b"].start - header["a"].start
    assert watched == []


def test_a_change_in_a_tensor_stays_out_of_the_file(path):
    before, found = path.read_bytes(), all_of(path)
    for tensor in found.values():
        tensor.fill_(-1)
        assert (tensor == -1).all()
    del found, tensor
    gc.collect()
    assert path.read_bytes() == before
    assert torch.equal(all_of(path)["b"], TWO["b"])


@posix
def test_the_mapping_lives_as_long_as_a_tensor_of_it(path):
    header, memory = read_header(path), mapped.map_file(path)
    tensors = {name: view(memory, header, name) for name in TWO}
    is_there = weakref.ref(memory)
    del memory, tensors["a"]
    gc.collect()
    assert is_there() is not None
    assert torch.equal(tensors["b"], TWO["b"])
    tensors.clear()
    gc.collect()
    assert is_there() is None


@posix
def test_a_file_that_another_takes_the_place_of_stays_as_it_was(path):
    found = all_of(path)
    other = path.with_name("other")
    write_safetensors(other, {"a": torch.zeros(1)})
    os.replace(other, path)  # noqa: PTH105 -- the call that the rule is of
    for name, right in TWO.items():
        assert torch.equal(found[name], right)
    write_safetensors(path, {"a": torch.zeros(2)})  # as this package writes
    assert torch.equal(found["b"], TWO["b"])
    assert all_of(path)["a"].tolist() == [0, 0]


# What does not lie well


def with_a_header_of(n_bytes: int, tensors: dict[str, Tensor]) -> bytes:
    """A file whose JSON is so long, padded with spaces, as the format allows."""
    info, at, data = {}, 0, b""
    for name, tensor in tensors.items():
        raw = bits(tensor)
        place = [at, at + len(raw)]
        info[name] = {"dtype": "F32", "shape": [*tensor.shape], "data_offsets": place}
        data, at = data + raw, at + len(raw)
    text = json.dumps(info).encode().ljust(n_bytes)
    assert len(text) == n_bytes
    return file_bytes(text, data)


ODD = [14_283, 401, 402, 403]  # the first is GPT-2's own


@posix
@pytest.mark.parametrize("n_bytes", ODD)
def test_numbers_at_odd_places_are_mapped_on_x86(path, watched, monkeypatch, n_bytes):
    monkeypatch.setattr(mapped, "IS_X86", True)
    path.write_bytes(with_a_header_of(n_bytes, TWO))
    if not REALLY_X86:
        assert mapped.can_be_viewed(read_header(path), "a")
        return
    for name, tensor in all_of(path).items():
        assert torch.equal(tensor, TWO[name])
        assert tensor.data_ptr() % 4 == (8 + n_bytes) % 4
    assert watched == []


@posix
@pytest.mark.skipif(not REALLY_X86, reason="only x86 uses numbers at odd places")
@pytest.mark.parametrize("n_bytes", [14_283, 14_282])
@pytest.mark.parametrize("many", [1, 2**19])
def test_a_model_at_odd_places_is_the_model(tmp_path, monkeypatch, n_bytes, many):
    as_on_x86(monkeypatch)
    monkeypatch.setattr(bags, "MANY", many)
    folder = write_folder(tmp_path / "model", SMALL, random_tensors(SMALL))
    right = GPT2.from_pretrained(folder)
    raw = with_a_header_of(n_bytes, random_tensors(SMALL))
    (folder / "model.safetensors").write_bytes(raw)
    model = GPT2.from_pretrained(folder, mmap=True)
    assert model.wte.data_ptr() % 4 == (8 + n_bytes) % 4
    agree(model(IDS), right(IDS), 1e-5)
    cache = model.new_cache()
    for one in IDS[0].split(1):
        found = model.last_logits(one, cache)
    agree(found, right(IDS[0])[-1], 1e-5)
    twin = pickle.loads(pickle.dumps(model))
    agree(twin(IDS), right(IDS), 1e-5)


@pytest.mark.parametrize("n_bytes", ODD)
def test_elsewhere_numbers_at_odd_places_are_read(path, watched, monkeypatch, n_bytes):
    monkeypatch.setattr(mapped, "IS_X86", False)
    path.write_bytes(with_a_header_of(n_bytes, TWO))
    for name, tensor in all_of(path).items():
        assert torch.equal(tensor, TWO[name])
        assert tensor.data_ptr() % 4 == 0
    assert watched == ["a", "b"]


@posix
@pytest.mark.parametrize("n_bytes", [400, 404])
def test_numbers_that_lie_at_multiples_of_four_are_mapped(path, watched, n_bytes):
    path.write_bytes(with_a_header_of(n_bytes, TWO))
    for name, tensor in all_of(path).items():
        assert torch.equal(tensor, TWO[name])
    assert watched == []


@posix
def test_each_tensor_is_looked_at_for_itself(path, watched, monkeypatch):
    monkeypatch.setattr(mapped, "IS_X86", False)
    raw = bits(TWO["a"])
    infos = {
        "first": {"dtype": "F32", "shape": [6], "data_offsets": [0, 24]},
        "odd": {"dtype": "U8", "shape": [1], "data_offsets": [24, 25]},
        "last": {"dtype": "F32", "shape": [6], "data_offsets": [25, 49]},
    }
    text = json.dumps(infos).encode().ljust(240)
    path.write_bytes(file_bytes(text, raw + b"\7" + raw))
    found = all_of(path)
    assert list(found) == ["first", "odd", "last"]  # those that are mapped come first
    assert watched == ["odd", "last"]
    assert found["first"].tolist() == found["last"].tolist() == [0, 1, 2, 3, 4, 5]
    assert found["odd"].tolist() == [7]


# What goes wrong


@pytest.mark.parametrize("n_left", [100, 24, 3999 + 24])
def test_a_file_that_was_cut_after_its_header_was_read_is_refused(path, n_left):
    header = read_header(path)
    with path.open("r+b") as file:
        file.truncate(header.data_start + n_left)
    said = f"ends inside tensor 'b': {n_left - 24} of its 4000"
    with pytest.raises(SafetensorsError, match=said):
        dict(iter_mapped(path, header, ["a", "b"]))
    ((_, tensor),) = iter_mapped(path, header, ["a"])  # it is there, whole
    assert torch.equal(tensor, TWO["a"])


@pytest.mark.parametrize("n_left", [0, 5])
def test_a_file_of_which_nothing_is_left_is_refused(path, n_left):
    header = read_header(path)
    path.write_bytes(bytes(n_left))
    with pytest.raises(SafetensorsError, match="ends inside tensor 'a'"):
        dict(iter_mapped(path, header, ["a"]))


def test_a_file_that_is_gone_is_missed(path):
    header = read_header(path)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        dict(iter_mapped(path, header, ["a"]))


def test_a_name_that_is_not_there_is_refused_before_any_tensor_comes(path):
    found = iter_mapped(path, read_header(path), ["a", "bb"])
    with pytest.raises(SafetensorsError, match=r"named 'bb'; near names: 'b'"):
        next(found)


# Where nothing is mapped


def test_where_the_system_has_no_room_for_a_mapping_all_is_read(
    path, watched, monkeypatch
):
    def refused(*_, **__):
        raise OSError("ENODEV")

    monkeypatch.setattr(mapped.mmap, "mmap", refused)
    found = all_of(path)
    assert watched == ["a", "b"]
    assert all(torch.equal(found[name], right) for name, right in TWO.items())


@pytest.mark.parametrize(
    ("name", "value"), [("platform", "win32"), ("byteorder", "big")]
)
def test_where_mapped_bytes_would_not_do_nothing_is_mapped(
    path, monkeypatch, name, value
):
    monkeypatch.setattr(mapped.sys, name, value)
    assert mapped.map_file(path) is None


def test_what_is_no_file_or_empty_is_not_mapped(tmp_path):
    empty = tmp_path / "empty"
    empty.touch()
    for path in (empty, tmp_path, tmp_path / "nowhere", "no\0path"):
        assert mapped.map_file(path) is None


if hasattr(mmap, "MADV_HUGEPAGE"):  # Linux

    def test_large_pages_are_asked_for_and_all_of_the_file(path, monkeypatch):
        asked = []

        class Memory(mmap.mmap):
            def madvise(self, option: int) -> None:
                asked.append(option)

        monkeypatch.setattr(mapped.mmap, "mmap", Memory)
        assert len(mapped.map_file(path)) == path.stat().st_size
        assert asked == [mmap.MADV_HUGEPAGE, mmap.MADV_WILLNEED]

    def test_advice_that_the_kernel_refuses_costs_nothing(path, watched, monkeypatch):
        def refused(*_):
            raise OSError("EINVAL")

        class Memory(mmap.mmap):
            madvise = refused

        monkeypatch.setattr(mapped.mmap, "mmap", Memory)
        assert torch.equal(all_of(path)["b"], TWO["b"])
        assert watched == []


@posix
def test_a_system_that_takes_no_advice_maps_all_the_same(path, watched, monkeypatch):
    for advice in ("MADV_HUGEPAGE", "MADV_WILLNEED"):
        monkeypatch.delattr(mmap, advice, raising=False)
    assert torch.equal(all_of(path)["b"], TWO["b"])
    assert watched == []


# A model


@pytest.fixture(params=["small", "every matrix counts as large"])
def _of_either_form(request, monkeypatch):
    if request.param != "small":
        monkeypatch.setattr(bags, "MANY", 1)
        as_on_x86(monkeypatch)


def logits_of(folder: Path, **how: object) -> list[Tensor]:
    """Those of a prompt, of a batch and of one token more."""
    model = GPT2.from_pretrained(folder, **how)
    cache = model.new_cache()
    prompt = model.last_logits(IDS[0, :9], cache)
    return [prompt, model.last_logits(IDS[0, 9:10], cache), model(IDS)]


def matrices_of(model: GPT2) -> list[Tensor]:
    linears = [
        linear
        for block in model.h
        for linear in (
            *(block.attn.c_attn, block.attn.c_proj),
            *(block.mlp.c_fc, block.mlp.c_proj),
        )
    ]
    both = [tensor for linear in linears for tensor in (linear.weight, linear.bias)]
    return [model.wte, model.lm_head, model.wpe, model.ln_f.weight, *both]


def is_the_same_model(folder: Path) -> None:
    """Mapped or read: the numbers to the bit, and what is computed with them.

    Of that the last bit may differ: kernels add up in another order where a matrix
    begins elsewhere.
    """
    one, other = (GPT2.from_pretrained(folder, mmap=mmap) for mmap in (False, True))
    for part, right in zip(matrices_of(other), matrices_of(one), strict=True):
        assert bits(part) == bits(right)
    for found, right in zip(
        logits_of(folder, mmap=True), logits_of(folder), strict=True
    ):
        agree(found, right, 1e-6)


@pytest.mark.usefixtures("_of_either_form")
@pytest.mark.parametrize("tied", [True, False])
def test_a_mapped_model_is_the_one_that_is_read(tmp_path, tied):
    config = replace(SMALL, tie_word_embeddings=tied)
    is_the_same_model(write_folder(tmp_path, config, random_tensors(config)))


@pytest.mark.usefixtures("_of_either_form")
def test_a_model_in_shards_is_mapped_shard_by_shard(tmp_path, watched):
    reference_model(SMALL, random_tensors(SMALL)).save_pretrained(
        tmp_path, max_shard_size="4KB"
    )
    assert len(list(tmp_path.glob("*.safetensors"))) == 4
    is_the_same_model(tmp_path)
    if sys.platform != "win32":
        assert watched == []


def test_a_model_in_16_bits_in_its_file_is_read(tmp_path):
    halves = {name: tensor.half() for name, tensor in random_tensors(SMALL).items()}
    folder = write_folder(tmp_path, SMALL, halves)
    assert all(map(torch.equal, logits_of(folder, mmap=True), logits_of(folder)))


@posix
def test_the_matrices_of_a_mapped_model_are_the_file_s(folder, monkeypatch):
    memories, whole = [], mapped.map_file

    def watched(path):
        memories.append(whole(path))
        return memories[-1]

    monkeypatch.setattr(mapped, "map_file", watched)
    monkeypatch.setattr(bags, "MANY", 1)
    as_on_x86(monkeypatch)
    model = GPT2.from_pretrained(folder, mmap=True)
    assert isinstance(model.h[0].mlp.c_fc.matrix, BagMatrix)
    assert isinstance(model.head, RowMatrix)
    (memory,) = memories
    start = address_of(memory)
    for tensor in matrices_of(model):
        assert start < tensor.data_ptr() < start + len(memory)


if sys.platform == "linux":

    def mapped_from(path: Path) -> list[range]:
        """The addresses at which this process has the file's bytes."""
        found = []
        for line in Path("/proc/self/maps").read_text().splitlines():
            if line.endswith(f" {path}"):
                first, last = line.split()[0].split("-")
                found.append(range(int(first, 16), int(last, 16)))
        return found

    def test_the_system_says_that_a_mapped_model_lies_in_its_file(folder):
        path = (folder / "model.safetensors").resolve()
        read = GPT2.from_pretrained(folder)
        assert mapped_from(path) == []
        model = GPT2.from_pretrained(folder, mmap=True)
        places = mapped_from(path)
        for tensor in matrices_of(model):
            assert any(tensor.data_ptr() in place for place in places)
        del model, tensor
        gc.collect()
        assert mapped_from(path) == []
        assert read.wpe.isfinite().all()


def test_a_mapped_model_is_pickled_at_its_size_and_free_of_its_file(folder):
    model = GPT2.from_pretrained(folder, mmap=True)
    n_numbers = sum(t.numel() for t in random_tensors(SMALL).values())
    stored = pickle.dumps(model)
    assert len(stored) < 4 * n_numbers + 20_000
    right = model(IDS)
    assert torch.equal(pickle.loads(stored)(IDS), right)


def test_a_mapped_model_may_be_changed_and_its_file_stays(folder):
    path = folder / "model.safetensors"
    before, model = path.read_bytes(), GPT2.from_pretrained(folder, mmap=True)
    right = model(IDS)
    model.wte.zero_()
    model.h[0].mlp.c_fc.weight.mul_(2)
    assert not torch.equal(model(IDS), right)
    del model
    gc.collect()
    assert path.read_bytes() == before
    assert torch.equal(GPT2.from_pretrained(folder, mmap=True)(IDS), right)


def test_parameters_are_mapped_only_where_they_may_be(folder, monkeypatch):
    config = read_config(folder)
    right = dict(read_parameters(folder, config))
    found = dict(read_parameters(folder, config, may_map=True))
    assert found.keys() == right.keys()
    assert all(torch.equal(found[name], right[name]) for name in right)

    def refused(*_):
        raise AssertionError("mapped")

    monkeypatch.setattr(mapped, "map_file", refused)
    assert dict(read_parameters(folder, config)).keys() == right.keys()
    assert dict(read_parameters(folder, config, may_map=False)).keys() == right.keys()
    with pytest.raises(AssertionError, match="mapped"):
        dict(read_parameters(folder, config, may_map=True))


@pytest.mark.parametrize("precision", ["float16", "int8"])
def test_what_is_kept_in_other_numbers_is_not_mapped(folder, monkeypatch, precision):
    right = logits_of(folder, precision=precision)

    def refused(*_):
        raise AssertionError("mapped")

    monkeypatch.setattr(mapped, "map_file", refused)
    found = logits_of(folder, precision=precision, mmap=True)
    assert all(map(torch.equal, found, right))
    GPT2.from_pretrained(folder)  # nor where nobody asked
    GPT2.from_pretrained(folder, mmap=False)


@pytest.mark.parametrize("wrong", ["yes", 1, None, 0.0, torch.tensor(True)])
def test_mmap_is_true_or_false(folder, wrong):
    with pytest.raises(ValueError, match="mmap: must be True or False, not "):
        GPT2.from_pretrained(folder, mmap=wrong)


def test_a_broken_file_is_refused_mapped_or_not(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(SafetensorsError, match=r"model\.safetensors: truncated"):
        GPT2.from_pretrained(folder, mmap=True)


@pytest.mark.parametrize(
    ("command", "is_mapped"),
    [
        (("generate", "Once", "--max-new-tokens", "1"), True),
        (("generate", "Once", "--max-new-tokens", "1", "--precision", "int8"), True),
        (("evaluate", "{text}"), False),
    ],
)
def test_what_starts_to_write_at_once_maps_its_model(
    monkeypatch, tmp_path, capsys, command, is_mapped
):
    asked, load = [], GPT2.from_pretrained

    def watched(*args, mmap=False, **kwargs):
        asked.append(mmap)
        return load(*args, mmap=mmap, **kwargs)

    text = tmp_path / "text.txt"
    text.write_text("Once upon a time.", encoding="utf-8")
    monkeypatch.setattr(GPT2, "from_pretrained", watched)
    assert main([part.format(text=text) for part in command]) == 0
    assert asked == [is_mapped]
    assert capsys.readouterr().out


@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
def test_generate_writes_the_same_text_where_nothing_can_be_mapped(
    monkeypatch, capsys, precision
):
    arguments = ["generate", "Once", "--greedy", "--max-new-tokens", "20"]
    arguments += ["--precision", precision]
    written = []
    for _ in range(2):
        assert main(arguments) == 0
        written.append(capsys.readouterr().out)
        monkeypatch.setattr(mapped, "map_file", lambda path: None)
    assert written[0] == written[1]


@posix
def test_what_is_written_into_the_file_as_it_lies_is_in_the_tensors(path):
    """The price that the room names: so nobody may write into it."""
    header, tensors = read_header(path), all_of(path)
    with path.open("r+b") as file:
        file.seek(header.data_start + header["b"].start)
        file.write(struct.pack("<f", 5.0))
    assert tensors["b"][:2].tolist() == [5.0, 1.0]


def test_a_file_of_which_nothing_can_be_viewed_is_not_mapped(tmp_path, monkeypatch):
    path = tmp_path / "halves.safetensors"
    write_safetensors(path, {"a": torch.ones(3, dtype=torch.float16)})

    def refused(path):
        raise AssertionError("mapped")

    monkeypatch.setattr(mapped, "map_file", refused)
    assert all_of(path)["a"].tolist() == [1, 1, 1]
