"""From a name to a folder: what is a name or a path, and where names are sought."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpt2hw import GPT2, CheckpointError, Tokenizer, download
from gpt2hw.config import PUBLISHED
from gpt2hw.hub import find
from gpt2hw.hub.places import SHIPPED, hub_cache, is_path, package_cache

COMMIT = "607a30d783dfa663caf39e06633721c8d4cfcd7e"
HUB_VARIABLES = ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME")


@pytest.fixture(autouse=True)
def empty_machine(monkeypatch, tmp_path):
    """A machine without any model: an empty working directory, home and cache."""
    for folder in ("work", "home", "cache"):
        (tmp_path / folder).mkdir()
    for variable in (*HUB_VARIABLES, "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(variable, raising=False)
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(tmp_path / "home"))
    monkeypatch.setenv("GPT2HW_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def put_model(folder: str | Path, file: str = "model.safetensors") -> Path:
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / file).touch()
    return folder.absolute()


def put_in_hub_cache(cache: Path, repository: str, commit: str = COMMIT) -> Path:
    """As the hub client keeps it: refs/main names the commit, which has the files."""
    root = cache / f"models--{repository.replace('/', '--')}"
    (root / "refs").mkdir(parents=True)
    (root / "refs" / "main").write_text(commit, encoding="ascii")
    return put_model(root / "snapshots" / commit)


# --- names ---


def test_tiny_is_in_the_package():
    assert find("tiny") == SHIPPED / "tiny"
    assert (find("tiny") / "config.json").is_file()


def test_tiny_is_a_name_even_beside_a_folder_of_that_name():
    put_model("tiny")
    put_model("models/tiny")
    assert find("tiny") == SHIPPED / "tiny"


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_name_is_a_name_even_beside_a_folder_of_that_name(name):
    put_model(name)
    with pytest.raises(CheckpointError, match="is not on this machine"):
        find(name)
    there = put_model(f"models/{name}")
    assert find(name) == there


def test_a_published_name_is_sought_in_three_places_in_this_order(empty_machine):
    third = put_in_hub_cache(
        empty_machine / "home/.cache/huggingface/hub", "openai-community/gpt2"
    )
    assert find("gpt2") == third
    second = put_model(empty_machine / "cache/gpt2")
    assert find("gpt2") == second
    first = put_model("models/gpt2")
    assert find("gpt2") == first


@pytest.mark.parametrize(
    ("name", "repository"),
    [
        ("gpt2-medium", "openai-community/gpt2-medium"),
        ("gpt2-xl", "gpt2-xl"),  # as clients wrote it before names had owners
        ("distilgpt2", "distilbert/distilgpt2"),
        ("distilgpt2", "distilgpt2"),
        ("someone/their-gpt2", "someone/their-gpt2"),
    ],
)
def test_the_hubs_cache_keeps_a_name_under_its_owner(empty_machine, name, repository):
    there = put_in_hub_cache(empty_machine / "home/.cache/huggingface/hub", repository)
    assert find(name) == there


def test_owner_and_name_are_sought_like_any_name(empty_machine):
    second = put_model(empty_machine / "cache/someone--their.gpt2_1")
    assert find("someone/their.gpt2_1") == second
    first = put_model("models/someone/their.gpt2_1")
    assert find("someone/their.gpt2_1") == first


def test_a_folder_without_weights_is_passed_over(empty_machine):
    put_model("models/gpt2", file="vocab.json")
    there = put_model(empty_machine / "cache/gpt2")
    assert find("gpt2") == there


def test_safetensors_further_on_are_better_than_a_pickle_nearby(empty_machine):
    pickled = put_model("models/gpt2", file="pytorch_model.bin")
    assert find("gpt2") == pickled  # the loader says why it is not read
    there = put_model(empty_machine / "cache/gpt2")
    assert find("gpt2") == there


def test_a_missing_model_is_an_error_that_lists_every_place(empty_machine):
    with pytest.raises(CheckpointError) as refusal:
        find("gpt2")
    said = str(refusal.value)
    hub = empty_machine / "home" / ".cache" / "huggingface" / "hub"
    for place in (
        Path("models", "gpt2").absolute(),
        empty_machine / "cache" / "gpt2",
        hub / "models--openai-community--gpt2",
        hub / "models--gpt2",
    ):
        assert f"\n  {place}\n" in said
    assert "model.safetensors" in said  # what to put there


def put_whole_model(folder: str | Path) -> Path:
    """A model that loads: the tiny one's files."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for file in ("config.json", "model.safetensors"):
        shutil.copy(SHIPPED / "tiny" / file, folder)
    return folder.absolute()


def test_a_whole_model_further_on_is_better_than_a_part_of_one(empty_machine):
    part = put_model(empty_machine / "cache/gpt2")
    assert find("gpt2") == part  # its reader says what is wrong
    cache = empty_machine / "home/.cache/huggingface/hub"
    there = put_whole_model(put_in_hub_cache(cache, "openai-community/gpt2"))
    assert find("gpt2") == there
    whole = put_whole_model(part)
    assert find("gpt2") == whole
    weights = whole / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    assert find("gpt2") == there


def test_what_a_person_puts_into_models_is_taken_whole_or_not(empty_machine):
    put_whole_model(empty_machine / "cache/gpt2")
    own = put_whole_model("models/gpt2")
    (own / "model.safetensors").write_bytes(b"cut")
    assert find("gpt2") == own  # its reader says what is wrong


def test_a_snapshot_with_a_config_alone_is_no_model(empty_machine):
    cache = empty_machine / "home/.cache/huggingface/hub"
    there = put_in_hub_cache(cache, "openai-community/gpt2")
    (there / "model.safetensors").rename(there / "config.json")
    with pytest.raises(CheckpointError, match="is not on this machine"):
        find("gpt2")


def test_a_sharded_model_that_lacks_a_shard_is_not_whole(empty_machine):
    folder = put_model(empty_machine / "cache/gpt2", "model.safetensors.index.json")
    index = {"weight_map": {"wte.weight": "a.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    cache = empty_machine / "home/.cache/huggingface/hub"
    there = put_whole_model(put_in_hub_cache(cache, "openai-community/gpt2"))
    assert find("gpt2") == there


def test_the_owner_of_gpt2_may_be_named_or_not(empty_machine):
    there = put_whole_model(empty_machine / "cache/gpt2")
    assert find("openai-community/gpt2") == there


# --- not here, and offline ---


@pytest.fixture
def offline(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


LOADERS = (GPT2.from_pretrained, Tokenizer.from_pretrained, download)


@pytest.mark.parametrize("load", LOADERS, ids=["model", "tokenizer", "download"])
def test_offline_says_so_and_where_it_looked(empty_machine, offline, load):
    with pytest.raises(CheckpointError, match="offline") as refusal:
        load("someone/gpt2")
    for place in (
        Path("models", "someone", "gpt2").absolute(),
        empty_machine / "cache" / "someone--gpt2",
        empty_machine / "home/.cache/huggingface/hub/models--someone--gpt2",
    ):
        assert f"\n  {place}\n" in str(refusal.value)
    assert list((empty_machine / "cache").iterdir()) == []


def test_offline_a_model_that_is_here_is_used(empty_machine, offline):
    there = put_whole_model(empty_machine / "cache/someone--gpt2")
    assert download("someone/gpt2") == there
    assert GPT2.from_pretrained("someone/gpt2").config.n_layer == 4


def test_offline_a_part_of_a_model_is_named_for_what_it_is(empty_machine, offline):
    folder = put_model(empty_machine / "cache/gpt2", "pytorch_model.bin")
    shutil.copy(SHIPPED / "tiny" / "config.json", folder)
    with pytest.raises(CheckpointError, match="a pickle"):
        GPT2.from_pretrained("gpt2")
    with pytest.raises(CheckpointError, match="offline"):
        download("gpt2")


def test_what_lies_in_a_directory_counts_alone_where_one_is_named(
    empty_machine, offline
):
    put_whole_model(empty_machine / "cache/gpt2")
    with pytest.raises(CheckpointError, match=r"offline.*\n  .*elsewhere\n"):
        download("gpt2", "elsewhere")


@pytest.mark.parametrize("directory", ["", "a\0b", b"a", 5])
def test_a_directory_that_can_be_none_is_refused(directory):
    with pytest.raises(ValueError, match="directory: must be a folder"):
        download("gpt2", directory)


def test_tiny_is_here_already_and_nowhere_else():
    assert download("tiny") == SHIPPED / "tiny"
    with pytest.raises(ValueError, match="directory: tiny comes with the package"):
        download("tiny", "elsewhere")


@pytest.mark.parametrize("revision", ["main", "refs/pr/1", COMMIT])
@pytest.mark.parametrize("options", [{}, {"offline": True}, {"force": True}])
def test_a_revision_of_tiny_is_refused_for_there_are_none(revision, options):
    with pytest.raises(ValueError, match="revision: tiny comes with the package"):
        download("tiny", revision=revision, **options)


# --- the hub's cache ---


def test_the_snapshot_is_the_one_that_main_names(empty_machine):
    cache = empty_machine / "home/.cache/huggingface/hub"
    there = put_in_hub_cache(cache, "openai-community/gpt2")
    put_model(there.with_name("0" * 40))
    assert find("gpt2") == there
    (there.parent.parent / "refs" / "main").write_text("0" * 40, encoding="ascii")
    assert find("gpt2") == there.with_name("0" * 40)


@pytest.mark.parametrize(
    "commit", ["", "main", "../../../other", COMMIT[:39], COMMIT.upper(), "é", "\0"]
)
def test_a_reference_that_is_no_commit_is_not_followed(empty_machine, commit):
    cache = empty_machine / "home/.cache/huggingface/hub"
    there = put_in_hub_cache(cache, "openai-community/gpt2")
    put_model(cache / "other")
    put_model(there.parent)
    main = there.parent.parent / "refs" / "main"
    main.write_text(commit, encoding="utf-8")
    with pytest.raises(CheckpointError, match="is not on this machine"):
        find("gpt2")


def put_pipe(path):
    os.mkfifo(path)


def put_endless(path):
    path.symlink_to("/dev/zero")


def put_broken_link(path):
    path.symlink_to("nothing")


def put_too_long(path):
    path.write_text(COMMIT + " " * 10**6, encoding="ascii")


def put_no_commit(path):
    path.write_text("main", encoding="ascii")


@pytest.mark.skipif(os.name == "nt", reason="POSIX files and links")
@pytest.mark.parametrize(
    "put", [put_pipe, put_endless, put_broken_link, put_too_long, put_no_commit]
)
def test_a_reference_that_cannot_be_read_still_tells_where_it_was_sought(
    empty_machine, put
):
    cache = empty_machine / "home/.cache/huggingface/hub"
    there = put_in_hub_cache(cache, "openai-community/gpt2")
    repository = there.parent.parent
    (repository / "refs" / "main").unlink()
    put(repository / "refs" / "main")
    with pytest.raises(CheckpointError) as refusal:
        find("gpt2")
    assert f"\n  {repository}\n" in str(refusal.value)


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps a folder that is in use")
def test_without_a_working_directory_the_other_places_are_sought(
    empty_machine, monkeypatch
):
    gone = empty_machine / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.setenv("GPT2HW_CACHE", "mine")
    hub = empty_machine / "home" / ".cache" / "huggingface" / "hub"
    with pytest.raises(CheckpointError) as refusal:
        find("gpt2")
    for place in ("models/gpt2", "mine/gpt2", hub / "models--openai-community--gpt2"):
        assert f"\n  {place}\n" in str(refusal.value)
    there = put_in_hub_cache(hub, "openai-community/gpt2")
    assert find("gpt2") == there


def test_a_line_end_after_the_commit_does_no_harm(empty_machine):
    cache = empty_machine / "home/.cache/huggingface/hub"
    there = put_in_hub_cache(cache, "openai-community/gpt2")
    (there.parent.parent / "refs" / "main").write_text(f"{COMMIT}\n", encoding="ascii")
    assert find("gpt2") == there


@pytest.mark.skipif(os.name == "nt", reason="symbolic links need a privilege there")
def test_links_into_the_blobs_are_followed_and_broken_ones_passed_over(empty_machine):
    cache = empty_machine / "home/.cache/huggingface/hub"
    there = put_in_hub_cache(cache, "openai-community/gpt2")
    weights = there / "model.safetensors"
    weights.unlink()
    weights.symlink_to(Path("../../blobs/248dfc39"))
    with pytest.raises(CheckpointError, match="is not on this machine"):
        find("gpt2")
    put_model(there.parent.parent / "blobs", file="248dfc39")
    assert find("gpt2") == there


def test_the_hubs_cache_is_never_written(empty_machine):
    with pytest.raises(CheckpointError):
        find("gpt2")
    assert list((empty_machine / "home").iterdir()) == []


CHOICES = [
    {},
    {"XDG_CACHE_HOME": "/x"},
    {"HF_HOME": "~/h", "XDG_CACHE_HOME": "/x"},
    {"HF_HOME": "$XDG_CACHE_HOME/h", "XDG_CACHE_HOME": "/x"},
    {"HUGGINGFACE_HUB_CACHE": "/old", "HF_HOME": "/h"},
    {"HF_HUB_CACHE": "~/c", "HUGGINGFACE_HUB_CACHE": "/old", "HF_HOME": "/h"},
    {"HF_HUB_CACHE": "relative/c"},
]


def test_the_hubs_cache_is_where_its_own_client_has_it(monkeypatch):
    client = (
        "import os, sys, json, importlib\n"
        "import huggingface_hub.constants as constants\n"
        f"variables = {HUB_VARIABLES}\n"
        "for chosen in json.loads(sys.argv[1]):\n"
        "    for variable in variables: os.environ.pop(variable, None)\n"
        "    os.environ.update(chosen)\n"
        "    print(importlib.reload(constants).HF_HUB_CACHE)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", client, json.dumps(CHOICES)],
        capture_output=True,
        text=True,
        check=True,
    )
    for chosen, expected in zip(CHOICES, done.stdout.splitlines(), strict=True):
        with monkeypatch.context() as patch:
            for variable, value in chosen.items():
                patch.setenv(variable, value)
            assert hub_cache() == Path(expected), chosen


def test_the_packages_own_cache_can_be_named(monkeypatch, empty_machine):
    assert package_cache() == empty_machine / "cache"
    monkeypatch.setenv("GPT2HW_CACHE", "~/mine")
    assert package_cache() == empty_machine / "home" / "mine"
    monkeypatch.setenv("GPT2HW_CACHE", "here")
    assert package_cache() == empty_machine / "work" / "here"
    monkeypatch.delenv("GPT2HW_CACHE")
    assert package_cache().is_absolute()
    assert "gpt2hw" in package_cache().parts


# --- paths ---


def test_an_existing_folder_of_another_name_is_a_path():
    put_model("mine")
    put_model("someone/mine")
    assert find("mine") == Path("mine")
    assert find("someone/mine") == Path("someone/mine")


def test_what_begins_like_a_path_is_one(empty_machine):
    here, at_home = put_model("gpt2"), put_model(empty_machine / "home/tiny")
    assert find("./gpt2").absolute() == here
    assert find("../work/gpt2").resolve() == here.resolve()
    assert find(str(here)) == here
    assert find("~/tiny") == at_home
    assert find(".") == Path()


def test_a_path_object_is_a_path_whatever_its_name():
    with pytest.raises(CheckpointError, match="gpt2 is not there"):
        find(Path("./gpt2"))  # pathlib drops the "./"
    put_model("models/gpt2")
    there = put_model("gpt2")
    assert find(Path("gpt2")).absolute() == there


@pytest.mark.parametrize(
    "path", ["./no", "../no", "/no/such", "~/no", "~nobody-of-this-name/no", "a/b/c",
             "back\\slash", ".\\no", "./" + "n" * 5000]
)  # fmt: skip
def test_a_path_that_is_not_there_is_an_error_about_a_path(path):
    assert is_path(path)
    with pytest.raises(CheckpointError, match="is not there: a model is a folder"):
        find(path)


def test_a_path_to_a_file_is_refused_as_a_file():
    put_model("mine")
    with pytest.raises(CheckpointError, match="is a file, not a folder"):
        find("./mine/model.safetensors")


# --- what is neither ---


@pytest.mark.parametrize(
    "name",
    ["gpt3", "GPT2", "gpt2 ", " gpt2", "tiny\n", "a/..", "a/b..c", "a/b--c", "a--b/c",
     "-a/b", "a/-b", "a/b.", "a/.b", "a/", "a b/c", "é/b", "c:d", "n" * 5000,
     "https:", "hf:gpt2", "owner/name?download=true", "owner/name#main",
     "owner/name@v1", "owner/%2e%2e", "\udcff"]
)  # fmt: skip
def test_a_name_that_no_hub_would_give_is_refused(name):
    assert not is_path(name)
    with pytest.raises(CheckpointError, match="neither a folder nor a model's name"):
        find(name)


@pytest.mark.parametrize("name", ["", "gpt2\0", "\0", b"gpt2"])
def test_an_empty_name_and_one_with_a_nul_are_refused(name):
    with pytest.raises(CheckpointError, match="a model is a name or a folder"):
        find(name)


@pytest.mark.parametrize(
    "name", ["https://example.org/gpt2", "file:///etc", "../../etc/passwd", "a/../b"]
)
def test_addresses_and_climbing_paths_are_no_names(name):
    with pytest.raises(CheckpointError):
        find(name)
