"""Download: what comes, from where, where it lies, and what is refused."""

import hashlib
import json
import os
from pathlib import Path

import pytest

import hub_faults as faults
from checkpoints import SMALL, random_tensors, settings_of, write_folder
from downloads import (
    NAME,
    WEIGHTS,
    files_in,
    hub_with,
    refused,
    repository,
    weights,
)
from gpt2hw import GPT2, CheckpointError, DownloadError, download
from gpt2hw.hub import SHIPPED
from gpt2hw.hub.pinned import PINNED
from hub_server import COMMIT

FILES = repository()
OTHER = repository(seed=1)


hub = hub_with(FILES)


# --- what comes, and where it lies ---


def test_the_files_come_whole_into_the_packages_cache(tmp_path):
    folder = download(NAME)
    assert folder == tmp_path / "cache" / NAME.replace("/", "--")
    assert files_in(folder) == FILES


def test_a_named_directory_gets_the_files_and_no_other_place_does(tmp_path):
    folder = download(NAME, tmp_path / "mine")
    assert folder == tmp_path / "mine"
    assert files_in(folder) == FILES
    assert not (tmp_path / "cache").exists()


def test_no_link_is_made(monkeypatch, tmp_path):
    def symlink(*_, **__):
        raise OSError(1314, "A required privilege is not held by the client")

    monkeypatch.setattr(os, "symlink", symlink)
    monkeypatch.setattr(os, "link", symlink)
    folder = download(NAME)
    assert files_in(folder) == FILES
    assert not [path for path in folder.rglob("*") if path.is_symlink()]


def test_what_was_downloaded_loads_as_what_was_published(hub, tmp_path):
    made = write_folder(tmp_path / "made", SMALL, random_tensors(SMALL))
    hub.put(NAME, {path.name: path for path in made.iterdir()})
    model = GPT2.from_pretrained(NAME)
    assert model.wte.equal(GPT2.from_pretrained(made).wte)
    assert hub.requests(file=WEIGHTS)


def test_force_asks_anew_and_transfers_only_what_differs(hub):
    folder = download(NAME)
    hub.put(NAME, FILES | {WEIGHTS: OTHER[WEIGHTS]}, commit="1" * 40)
    assert files_in(download(NAME)) == FILES
    before = hub.sent(file="merges.txt")
    assert files_in(download(NAME, force=True))[WEIGHTS] == OTHER[WEIGHTS]
    assert hub.sent(file="merges.txt", host="hub", method="GET") <= before + 1000
    assert files_in(folder)["merges.txt"] == FILES["merges.txt"]


def test_all_files_are_of_one_commit_though_the_hub_moves_on(hub):
    def next_commit():
        hub.put(NAME, OTHER, commit="2" * 40)

    hub.fault(faults.meanwhile(next_commit, at=10), file="merges.txt")
    assert files_in(download(NAME)) in (FILES, OTHER)


def test_a_revision_is_asked_for_and_kept_apart(hub):
    hub.put(NAME, OTHER, commit="3" * 40)
    old = download(NAME, revision=COMMIT)
    assert files_in(old) == FILES
    new = download(NAME)
    assert new != old
    assert files_in(new) == OTHER


def test_a_sharded_model_comes_with_its_index_last(hub):
    shards = [f"model-0000{n}-of-00002.safetensors" for n in (1, 2)]
    index = {"weight_map": dict(zip(("a", "b"), shards, strict=True))}
    files = {
        "config.json": FILES["config.json"],
        "model.safetensors.index.json": json.dumps(index).encode(),
        shards[0]: weights(10_000, 1),
        shards[1]: weights(20_000, 2),
    }
    hub.put(NAME, files)
    assert files_in(download(NAME)) == files


@pytest.mark.parametrize(
    "shard",
    ["../evil.safetensors", "/tmp/evil.safetensors", "a/../../evil.safetensors", "..",
     "C:\\evil.safetensors", "..\\evil.safetensors", "config.json", "a\0.safetensors"],
)  # fmt: skip
def test_an_index_cannot_put_a_file_outside_the_folder(hub, tmp_path, shard):
    index = {"weight_map": {"wte.weight": shard}}
    hub.put(NAME, {
        "config.json": FILES["config.json"],
        "model.safetensors.index.json": json.dumps(index).encode(),
        shard: weights(1000),
    })  # fmt: skip
    before = {path for path in tmp_path.rglob("*") if "cache" not in path.parts}
    refused(NAME, error=(CheckpointError, DownloadError))
    assert {p for p in tmp_path.rglob("*") if "cache" not in p.parts} == before
    assert not list(tmp_path.rglob("*evil*"))


def test_a_pickle_alone_is_refused_with_the_reason_and_not_fetched(hub):
    files = {
        "config.json": FILES["config.json"],
        "pytorch_model.bin": b"\x80\x02" * 999,
    }
    hub.put(NAME, files)
    assert "can run code" in refused(NAME, error=CheckpointError)
    assert hub.sent(host="cdn", method="GET") == 0


def test_a_model_that_the_engine_cannot_run_is_refused_before_its_weights(hub):
    config = json.dumps(settings_of(SMALL, model_type="llama")).encode()
    hub.put(NAME, FILES | {"config.json": config})
    assert "llama" in refused(NAME, error=CheckpointError)
    assert not hub.requests(file=WEIGHTS)


# --- names ---


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../gpt2", "a/..", "../../etc", "a\\b", "https://huggingface.co/gpt2",
     "a/b?download=true", "a/b#c", "a/b/c", "a b/c", "a/b\n", "a/%2e%2e", "/etc", "~/x",
     "someone/", "/gpt2", "a//b", "a@b/c", "a:b/c", "gpt3", "a/b\0", "é/b", "a--b/c"],
)  # fmt: skip
def test_a_name_that_could_lead_elsewhere_is_refused_without_a_request(hub, name):
    assert refused(name, error=CheckpointError)
    assert not hub.log


@pytest.mark.parametrize("name", [None, 5, b"gpt2", [], True])
def test_a_name_of_another_type_is_refused(hub, name):
    refused(name, error=(CheckpointError, ValueError))
    assert not hub.log


@pytest.mark.parametrize(
    "revision",
    ["", "a b", "../main", "main?x=1", "main#x", "a\nb", "a\0", 5, "main/.."],
)
def test_a_revision_that_could_lead_elsewhere_is_refused(hub, revision):
    refused(NAME, revision=revision, error=ValueError)
    assert not hub.log


@pytest.mark.parametrize(
    "endpoint", ["", "huggingface.co", "ftp://x", "file:///etc", "http://", "a b", 7]
)
def test_an_endpoint_that_is_no_address_is_named(endpoint):
    said = refused(NAME, endpoint=endpoint, error=ValueError)
    assert said.startswith("endpoint")


# --- gpt2 is pinned ---

PUBLISHED_FILES = {  # several independent public files state these
    WEIGHTS: (
        548105171,
        "248dfc3911869ec493c76e65bf2fcf7f615828b0254c12b473182f0f81d3a707",
    ),
    "config.json": (
        665,
        "0daed7749b4f02b8f76240d5444551d7b08712dab4d0adb8239c56ba823bb7b4",
    ),
    "merges.txt": (
        456318,
        "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
    ),
    "vocab.json": (
        1042301,
        "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    ),
}
PUBLISHED_COMMIT = "607a30d783dfa663caf39e06633721c8d4cfcd7e"


def test_gpt2_is_pinned_to_what_is_published():
    pinned = PINNED["openai-community/gpt2"]
    assert pinned.commit == PUBLISHED_COMMIT
    assert {"config.json", WEIGHTS} <= set(pinned.files)
    assert pinned.files.items() <= PUBLISHED_FILES.items()


def test_the_merges_in_the_package_are_the_published_ones():
    content = (SHIPPED / "gpt2" / "merges.txt").read_bytes()
    found = (len(content), hashlib.sha256(content).hexdigest())
    assert found == PUBLISHED_FILES["merges.txt"]


def test_other_bytes_under_the_name_of_gpt2_are_refused(hub):
    hub.put("openai-community/gpt2", FILES, commit=PUBLISHED_COMMIT)
    folder = Path(os.environ["GPT2HW_CACHE"]) / "gpt2"
    said = refused("gpt2")
    assert "config.json" in said
    assert "config.json" not in files_in(folder)
    assert {s.path.split("/")[4] for s in hub.log if "/resolve/" in s.path} == {
        PUBLISHED_COMMIT
    }
