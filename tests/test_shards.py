"""Weights in several files: read as transformers reads them, and refused when unsound.

Every fault is put into a sound folder that transformers itself wrote in shards.
"""

import json
import os
import shutil
import sys
import tempfile
import weakref
from pathlib import Path

import pytest
import safetensors.torch
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpoints import SMALL, random_ids, random_tensors
from gpt2hw import GPT2, CheckpointError, SafetensorsError
from gpt2hw.cli import main
from gpt2hw.config import PUBLISHED
from gpt2hw.folder import INDEX, read_config, weights_file
from gpt2hw.inspection import inspect_checkpoint
from gpt2hw.layout import n_parameters, parameter_shapes
from gpt2hw.loader import read_parameters
from gpt2hw.properties.closeness import agree
from gpt2hw.safetensors import iter_tensors
from gpt2hw.shards import (
    MAX_INDEX_BYTES,
    parse_weight_map,
    read_headers,
    read_weight_map,
)
from reference import reference_logits, reference_model

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX files and links")
IDS = random_ids(SMALL, 2, 16)
SHARDS = [f"model-0000{n}-of-00004.safetensors" for n in range(1, 5)]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder as transformers writes it, the weights in four files."""
    folder = tmp_path_factory.mktemp("sharded") / "model"
    model = reference_model(SMALL, random_tensors(SMALL))
    model.save_pretrained(folder, max_shard_size="4KB")
    assert sorted(p.name for p in folder.glob("*.safetensors")) == SHARDS
    return folder


@pytest.fixture
def folder(written, tmp_path):
    return shutil.copytree(written, tmp_path / "model")


def index_of(folder):
    return json.loads((folder / INDEX).read_text(encoding="utf-8"))


def write_index(folder, weight_map):
    text = json.dumps({"metadata": {}, "weight_map": weight_map})
    (folder / INDEX).write_text(text, encoding="utf-8")


def change_shard(folder, shard, change):
    """Rewrites a shard after `change` has been applied to its tensors."""
    tensors = safetensors.torch.load_file(folder / shard)
    change(tensors)
    safetensors.torch.save_file(tensors, folder / shard, metadata={"format": "pt"})


def refused(folder):
    """What both the loader and the inspection say of a folder; no tensor is read."""
    with pytest.raises(CheckpointError) as by_inspection:
        inspect_checkpoint(folder)
    with pytest.raises(CheckpointError) as by_loader:
        GPT2.from_pretrained(folder)
    assert str(by_inspection.value) == str(by_loader.value)
    return str(by_loader.value)


# What is read


def test_shards_give_the_logits_that_transformers_computes_from_them(folder):
    theirs = transformers.GPT2LMHeadModel.from_pretrained(folder, dtype=torch.float32)
    agree(GPT2.from_pretrained(folder)(IDS), reference_logits(theirs.eval(), IDS), 1e-5)


def test_shards_give_the_very_weights_of_one_file(folder, tmp_path):
    one = tmp_path / "one"
    one.mkdir()
    shutil.copy(folder / "config.json", one)
    tensors = {}
    for shard in SHARDS:
        tensors |= safetensors.torch.load_file(folder / shard)
    safetensors.torch.save_file(tensors, one / "model.safetensors")
    assert torch.equal(
        GPT2.from_pretrained(folder)(IDS), GPT2.from_pretrained(one)(IDS)
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_shards_of_half_precision_become_float32(tmp_path, dtype):
    model = reference_model(SMALL, random_tensors(SMALL)).to(dtype)
    model.save_pretrained(tmp_path, max_shard_size="2KB")
    assert (tmp_path / INDEX).is_file()
    theirs = transformers.GPT2LMHeadModel.from_pretrained(tmp_path, dtype=torch.float32)
    agree(
        GPT2.from_pretrained(tmp_path)(IDS), reference_logits(theirs.eval(), IDS), 1e-5
    )


@pytest.mark.parametrize("is_tied", [True, False])
@pytest.mark.parametrize("shard", ["a.safetensors", "z.safetensors"])
def test_a_stored_head_may_lie_in_any_shard(folder, shard, is_tied):
    wte = random_tensors(SMALL)["wte.weight"]
    head = wte.clone() if is_tied else wte + 1
    safetensors.torch.save_file({"lm_head.weight": head}, folder / shard)
    write_index(folder, index_of(folder)["weight_map"] | {"lm_head.weight": shard})
    if is_tied:
        model = GPT2.from_pretrained(folder)
        assert model.lm_head is model.wte
    else:
        with pytest.raises(CheckpointError, match=r"lm_head\.weight differs from wte"):
            GPT2.from_pretrained(folder)


def test_masks_in_shards_are_not_read_and_not_counted(folder, monkeypatch):
    def add(tensors):
        tensors["transformer.h.0.attn.bias"] = torch.full((1, 1, 16, 16), float("nan"))

    change_shard(folder, SHARDS[3], add)
    said = {"transformer.h.0.attn.bias": SHARDS[3]}
    write_index(folder, index_of(folder)["weight_map"] | said)
    assert torch.isfinite(GPT2.from_pretrained(folder)(IDS)).all()
    report = inspect_checkpoint(folder)
    assert report.total("buffer").n_tensors == 1
    assert report.total("parameter").n_elements == 3028


def test_one_file_of_weights_counts_before_shards_as_with_transformers(folder):
    tensors = {f"transformer.{n}": t for n, t in random_tensors(SMALL, seed=1).items()}
    safetensors.torch.save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    assert weights_file(folder).name == "model.safetensors"
    theirs = transformers.GPT2LMHeadModel.from_pretrained(folder, dtype=torch.float32)
    agree(GPT2.from_pretrained(folder)(IDS), reference_logits(theirs.eval(), IDS), 1e-5)


def test_a_shard_that_the_index_does_not_name_is_left_alone(folder):
    (folder / "model-00005-of-00005.safetensors").write_bytes(b"of another download")
    assert GPT2.from_pretrained(folder)(IDS).isfinite().all()


@posix
def test_shards_may_be_links_as_in_the_hubs_cache(folder, tmp_path):
    """The hub's client puts a link to a blob under each name."""
    snapshot = tmp_path / "models--o--n" / "snapshots" / ("0" * 40)
    blobs = tmp_path / "models--o--n" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for number, path in enumerate(sorted(folder.iterdir())):
        path.rename(blobs / str(number))
        (snapshot / path.name).symlink_to(f"../../blobs/{number}")
    assert GPT2.from_pretrained(snapshot)(IDS).isfinite().all()


def test_one_stored_half_at_a_time_is_in_memory_while_shards_load(folder, monkeypatch):
    """So the peak is the model in float32 and one tensor, for every size."""
    for shard in SHARDS:
        change_shard(
            folder, shard, lambda t: t.update({k: v.half() for k, v in t.items()})
        )
    stored, most = weakref.WeakSet(), 0

    def watched(*arguments):
        nonlocal most
        for name, tensor in iter_tensors(*arguments):
            stored.add(tensor)
            most = max(most, len(stored))
            yield name, tensor
            del tensor

    monkeypatch.setattr("gpt2hw.loader.iter_tensors", watched)
    model = GPT2.from_pretrained(folder)
    assert model.wte.dtype == torch.float32
    assert most <= 2  # one that is handed on, and one that has just been read


def test_the_table_comes_first_since_it_may_be_needed_twice(folder):
    """Laid anew before the rest is there, it adds nothing to the peak."""
    config = read_config(folder)
    names = [name for name, _ in read_parameters(folder, config)]
    assert names[0] == "wte.weight"
    assert sorted(names) == sorted(parameter_shapes(config))


def test_gpt2_xl_takes_six_gigabytes_by_calculation():
    assert 4 * n_parameters(PUBLISHED["gpt2-xl"]) == 6_230_444_800


@posix
def test_the_folder_itself_may_be_a_link_and_a_shard_one_within_it(folder, tmp_path):
    (folder / "elsewhere").mkdir()
    (folder / SHARDS[1]).rename(folder / "elsewhere" / "b")
    (folder / SHARDS[1]).symlink_to("elsewhere/b")
    (tmp_path / "link").symlink_to(folder)
    assert GPT2.from_pretrained(tmp_path / "link")(IDS).isfinite().all()


def test_the_report_of_shards_is_that_of_the_whole(folder):
    report = inspect_checkpoint(folder)
    assert report.path == folder / INDEX
    assert report.total("parameter").n_elements == 3028
    assert report.total().n_bytes == 4 * 3028
    assert [file.name for file in report.files] == SHARDS
    assert sum(file.n_tensors for file in report.files) == 28
    assert {row.name: row.file for row in report.rows} == index_of(folder)["weight_map"]
    assert inspect_checkpoint(folder / INDEX) == report
    found = report.to_json()
    assert found["data_start"] is None
    assert len(found["files"]) == 4


def test_inspect_shows_all_shards_together(folder, capsys):
    assert main(["inspect", str(folder)]) == 0
    out = capsys.readouterr().out
    first, path = out.splitlines()[:2]
    assert first.startswith("28 tensors: 3,028 parameters, 0 buffers; F32, 12.1 kB")
    assert first.endswith("in 4 shards")
    assert path.endswith(INDEX)
    for shard in SHARDS:
        assert f"\n{shard} " in out
    assert main(["inspect", "--json", str(folder)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["parameters"]["n_elements"] == 3028
    assert {t["file"] for t in found["tensors"]} == set(SHARDS)
    assert main(["inspect", str(folder / INDEX)]) == 0
    assert capsys.readouterr().out == out


# What is refused


def test_a_missing_shard_is_named(folder):
    (folder / SHARDS[1]).unlink()
    said = refused(folder)
    assert f"{INDEX} names 4 shards, of which 1 cannot be found: '{SHARDS[1]}'" in said
    assert "download" in said


@posix
@pytest.mark.parametrize(
    ("put", "what"),
    [
        (os.mkfifo, "a pipe"),
        (os.mkdir, "a folder"),
        (lambda path: path.symlink_to("/dev/zero"), "a device"),
        (lambda path: path.symlink_to("nothing"), "a link to nothing"),
    ],
)
def test_what_stands_in_a_shards_place_is_told_without_waiting(folder, put, what):
    (folder / SHARDS[1]).unlink()
    put(folder / SHARDS[1])
    assert f"{SHARDS[1]} is {what}, not a shard of weights" in refused(folder)


def test_a_tensor_in_two_shards_is_refused(folder):
    name = "transformer.ln_f.bias"
    assert index_of(folder)["weight_map"][name] == SHARDS[3]
    change_shard(folder, SHARDS[0], lambda t: t.update({name: torch.ones(12)}))
    said = refused(folder)
    assert f"{name!r} lies both in {SHARDS[0]} and in {SHARDS[3]}" in said


@posix
@pytest.mark.parametrize("way", ["link", "link to a link", "link through a folder"])
def test_a_link_out_of_the_folder_is_refused(folder, tmp_path, way):
    outside = tmp_path / "outside.safetensors"
    (folder / SHARDS[1]).rename(outside)
    target = outside
    if way == "link to a link":
        target = folder / "inside"
        target.symlink_to(outside)
    elif way == "link through a folder":
        (folder / "up").symlink_to(tmp_path)
        target = "up/outside.safetensors"
    (folder / SHARDS[1]).symlink_to(target)
    said = refused(folder)
    assert f"{SHARDS[1]} is a link out of its folder, to {outside}" in said


@posix
def test_two_names_of_one_file_are_refused(folder):
    (folder / "again.safetensors").symlink_to(SHARDS[3])
    moved = {"transformer.ln_f.bias": "again.safetensors"}
    write_index(folder, index_of(folder)["weight_map"] | moved)
    assert f"lies both in again.safetensors and in {SHARDS[3]}" in refused(folder)


def test_a_tensor_that_no_shard_holds_is_named(folder):
    name = "transformer.ln_f.bias"
    change_shard(folder, SHARDS[3], lambda t: t.pop(name))
    assert f"no shard holds {name!r}, by the index in {SHARDS[3]}" in refused(folder)


def test_a_tensor_in_another_shard_than_the_index_says_is_named(folder):
    name = "transformer.ln_f.bias"
    write_index(folder, index_of(folder)["weight_map"] | {name: SHARDS[0]})
    said = refused(folder)
    assert f"{name!r} lies in {SHARDS[3]}, by the index in {SHARDS[0]}" in said


def test_a_tensor_that_the_index_lacks_is_named(folder):
    weight_map = index_of(folder)["weight_map"]
    name = "transformer.ln_f.bias"
    del weight_map[name]
    write_index(folder, weight_map)
    assert f"{SHARDS[3]} holds {name!r}, which the index lacks" in refused(folder)


def test_many_faults_are_counted_and_the_first_named(folder):
    change_shard(folder, SHARDS[2], lambda t: (t.clear(), t.update(x=torch.ones(1))))
    said = refused(folder)
    assert "(and 7 more), by the index" in said
    assert "holds 'x', which the index lacks" in said


def test_tensors_that_do_not_fit_the_config_are_named_with_the_index(folder):
    weight_map = index_of(folder)["weight_map"]
    del weight_map["transformer.ln_f.bias"]
    write_index(folder, weight_map)
    change_shard(folder, SHARDS[3], lambda t: t.pop("transformer.ln_f.bias"))
    with pytest.raises(CheckpointError) as error:
        GPT2.from_pretrained(folder)
    assert str(folder / INDEX) in str(error.value)
    assert "missing: ln_f.bias [12]" in str(error.value)


def test_a_broken_shard_is_a_safetensors_error_that_names_it(folder):
    path = folder / SHARDS[2]
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(SafetensorsError, match=f"{SHARDS[2]}: truncated"):
        GPT2.from_pretrained(folder)
    path.write_bytes(b"<!DOCTYPE html><html>a page</html>")
    with pytest.raises(SafetensorsError, match=f"{SHARDS[2]}: this is an HTML"):
        inspect_checkpoint(folder)


def test_no_tensor_is_read_before_every_header_is_sound(folder, monkeypatch):
    def read(*_):
        raise AssertionError("a tensor was read")

    monkeypatch.setattr("gpt2hw.loader.iter_tensors", read)
    path = folder / SHARDS[3]
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(SafetensorsError):
        GPT2.from_pretrained(folder)


# The index


OUTSIDE = [
    *(
        "../a.safetensors",
        "/tmp/a.safetensors",
        "sub/a.safetensors",
        "..\\a.safetensors",
    ),
    *(
        "C:\\a.safetensors",
        "C:a.safetensors",
        "\\\\host\\a.safetensors",
        "~/a.safetensors",
    ),
    *("a.safetensors:stream", "http://host/a.safetensors", "./a.safetensors"),
    *("..", ".", "", "a.bin", "a.safetensors/", "a.safetensors\0", "a\n.safetensors"),
    *("a.safetensors?x", ".safetensors", "-a.safetensors", "%2e%2e%2fa.safetensors"),
    *("pytorch_model.bin", None, 7, ["a.safetensors"], {"a": "b"}),
]


@pytest.mark.parametrize("name", OUTSIDE, ids=repr)
def test_an_index_names_only_plain_files_beside_itself(folder, name):
    for outside in (folder.parent, folder / "sub"):
        outside.mkdir(exist_ok=True)
        shutil.copy(folder / SHARDS[3], outside / "a.safetensors")
    write_index(folder, index_of(folder)["weight_map"] | {"transformer.x": name})
    said = refused(folder)
    assert "puts 'transformer.x' into" in said
    assert "no plain file name" in said


@given(st.text(st.sampled_from("a./\\:~%\0\n 0-")))
def test_a_file_name_that_is_accepted_stays_in_its_folder(name):
    text = json.dumps({"weight_map": {"x": f"{name}.safetensors"}}).encode()
    try:
        (accepted,) = parse_weight_map(text).values()
    except ValueError:
        return
    for flavour in (os.path, __import__("ntpath"), __import__("posixpath")):
        assert flavour.basename(accepted) == accepted
        assert flavour.splitdrive(accepted)[0] == ""
    assert accepted[0] not in ".~-"


@settings(max_examples=60)
@given(st.data())
def test_an_index_that_tells_another_story_is_refused(written, data):
    """Any other map than the true one is refused, whatever it says."""
    true = index_of(written)["weight_map"]
    names = st.sampled_from([*true, "x"])
    files = st.sampled_from([*SHARDS, "y.safetensors", "../a.safetensors"])
    said = true | data.draw(st.dictionaries(names, files, max_size=3))
    for name in data.draw(st.sets(names, max_size=2)):
        said.pop(name, None)
    with tempfile.TemporaryDirectory() as folder:
        for path in written.iterdir():
            shutil.copy(path, folder)
        write_index(Path(folder), said)
        if said == true:
            assert GPT2.from_pretrained(folder)(IDS).isfinite().all()
        else:
            refused(Path(folder))


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "not JSON"),
        (b"[]", "a JSON list, not an object"),
        (b"<html>", "not JSON"),
        (b"\xff{}", "not UTF-8"),
        (b"{}", "weight_map must map"),
        (b'{"weight_map": {}}', "weight_map must map"),
        (b'{"weight_map": ["a.safetensors"]}', "weight_map must map"),
        (b'{"weight_map": {"a": "a.safetensors", "a": "b.safetensors"}}', "twice"),
        (b'{"weight_map": {"a": "b.safetensors"}' + b" " * MAX_INDEX_BYTES, "larger"),
    ],
    ids=range(9),
)
def test_an_index_that_cannot_be_used_is_told(folder, raw, said):
    (folder / INDEX).write_bytes(raw)
    told = refused(folder)
    assert str(folder / INDEX) in told
    assert said in told


def test_a_byte_order_mark_before_an_index_does_not_matter(folder):
    path = folder / INDEX
    before = read_weight_map(path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_weight_map(path) == before


def test_shards_without_their_index_are_told_what_is_missing(folder):
    (folder / INDEX).unlink()
    said = refused(folder)
    assert "not the index that names them" in said
    assert INDEX in said


def test_an_index_that_is_gone_is_a_checkpoint_error(tmp_path):
    with pytest.raises(CheckpointError, match="cannot be read"):
        read_headers(tmp_path / INDEX)
