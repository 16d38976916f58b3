"""What is here already is not downloaded again, and offline nothing is."""

import hashlib
import os
import shutil
import socket
from pathlib import Path

import pytest

from downloads import (
    NAME,
    WEIGHTS,
    files_in,
    hub_with,
    refused,
    repository,
)
from gpt2hw import CheckpointError, download
from hub_server import COMMIT

FILES = repository()
OTHER = repository(seed=1)


hub = hub_with(FILES)


@pytest.fixture
def no_network(monkeypatch):
    """A machine on which to open a connection is an error."""

    def connect(*_):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket, "getaddrinfo", connect)


def put_into_cache(hub) -> Path:
    """The folder in the package's cache, filled by hand."""
    folder = Path(os.environ["GPT2HW_CACHE"]) / NAME.replace("/", "--")
    folder.mkdir(parents=True)
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    return folder


def test_a_second_time_nothing_is_asked_for(hub, no_network):
    folder = put_into_cache(hub)
    n_requests = len(hub.log)
    assert download(NAME) == folder
    assert len(hub.log) == n_requests


@pytest.mark.parametrize("by", ["argument", "variable"])
def test_offline_opens_no_connection_and_lists_where_it_looked(
    hub, monkeypatch, no_network, by
):
    if by == "variable":
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    options = {"offline": True} if by == "argument" else {}
    said = refused(NAME, error=CheckpointError, **options)
    assert "offline" in said
    assert os.environ["GPT2HW_CACHE"] in said
    put_into_cache(hub)
    assert files_in(download(NAME, **options)) == FILES


def test_force_offline_says_that_the_two_exclude_each_other(hub, no_network):
    put_into_cache(hub)
    said = refused(NAME, error=CheckpointError, offline=True, force=True)
    assert "force" in said
    assert "not on this machine" not in said


def test_a_refused_port_says_that_nothing_answers(monkeypatch):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{unused.getsockname()[1]}"
        said = refused(NAME, endpoint=endpoint)
    assert "127.0.0.1" in said


def test_without_a_network_it_is_said_what_goes_without_one(hub, monkeypatch):
    def unknown(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    said = refused(NAME, endpoint="http://no.such.host")
    assert "is there a network?" in said
    assert "tiny needs no network" in said
    folder = Path(said.rsplit("can be put into ", 1)[1])
    folder.mkdir(exist_ok=True)
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    assert files_in(download(NAME)) == FILES


def put_in_hub_cache(home: Path, name: str = NAME, commit: str = COMMIT) -> Path:
    """As the hub's own client keeps them: links from a snapshot to blobs."""
    root = (
        home / ".cache" / "huggingface" / "hub" / f"models--{name.replace('/', '--')}"
    )
    snapshot = root / "snapshots" / commit
    for folder in (snapshot, root / "blobs", root / "refs"):
        folder.mkdir(parents=True)
    (root / "refs" / "main").write_text(commit, encoding="ascii")
    for file, content in FILES.items():
        blob = root / "blobs" / hashlib.sha256(content).hexdigest()
        blob.write_bytes(content)
        try:
            (snapshot / file).symlink_to(blob)
        except OSError:  # where links need a privilege, the client copies too
            shutil.copy(blob, snapshot / file)
    return snapshot


def state(folder: Path) -> dict[Path, tuple[float, int]]:
    return {p: (p.lstat().st_mtime_ns, p.lstat().st_size) for p in folder.rglob("*")}


def test_the_hub_clients_cache_is_used_and_left_as_it_is(hub, tmp_path, no_network):
    snapshot = put_in_hub_cache(tmp_path / "home")
    before = state(tmp_path / "home")
    assert download(NAME) == snapshot
    assert state(tmp_path / "home") == before
    assert not hub.log


@pytest.mark.parametrize("damage", ["dangling", "cut"])
def test_a_damaged_file_in_the_hub_clients_cache_is_passed_over(hub, tmp_path, damage):
    snapshot = put_in_hub_cache(tmp_path / "home")
    blob = (snapshot / WEIGHTS).resolve()
    if damage == "dangling":
        blob.unlink()
    else:
        blob.write_bytes(blob.read_bytes()[:-1])
    before = state(tmp_path / "home")
    folder = download(NAME)
    assert files_in(folder) == FILES
    assert folder.parent == tmp_path / "cache"
    assert state(tmp_path / "home") == before


@pytest.mark.parametrize("size", [0, 1, 100, 299_999])
def test_a_short_file_under_the_final_name_is_replaced(hub, size):
    folder = put_into_cache(hub)
    (folder / WEIGHTS).write_bytes(FILES[WEIGHTS][:size])
    assert files_in(download(NAME)) == FILES
