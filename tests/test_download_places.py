"""Where a download may write, and what stands there before it."""

import hashlib
import os
import shutil
import stat
import sys
import threading
from pathlib import Path

import pytest

from downloads import (
    NAME,
    WEIGHTS,
    drafts,
    files_in,
    hub_with,
    repository,
    run,
    said_as_one_line,
)
from gpt2hw import CheckpointError, DownloadError, download
from gpt2hw.hub.places import SHIPPED

FILES = repository()
OTHER = repository(seed=1)
FOLDER = Path("mine")
MERGES = (SHIPPED / "gpt2" / "merges.txt").read_bytes()

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX files and links")


hub = hub_with(FILES)


def put(folder: Path, files) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


@pytest.mark.parametrize("name", ["a b", "é/深/ß", "x" * 100, "~/there", "a/../b", "."])
def test_any_folder_can_be_named(hub, name):
    folder = download(NAME, name)
    assert files_in(Path(name).expanduser()) == FILES
    assert files_in(folder) == FILES


@pytest.mark.parametrize("directory", ["", "a\0b", 5, b"x", [], True])
def test_what_is_no_folder_is_named(hub, directory):
    with pytest.raises(ValueError, match=r"^directory"):
        download(NAME, directory)
    assert not hub.log


def test_somebody_elses_whole_model_is_replaced_by_force_alone(hub):
    put(FOLDER, OTHER)
    with pytest.raises(CheckpointError, match="force"):
        download(NAME, FOLDER)
    assert files_in(FOLDER) == OTHER
    assert files_in(download(NAME, FOLDER, force=True)) == FILES


def test_merges_of_another_model_are_replaced_by_force_alone(hub):
    hub.put("openai-community/gpt2-medium", FILES)
    put(FOLDER, {"merges.txt": b"#version: 0.2\na b\n"})
    with pytest.raises(CheckpointError, match=r"merges.txt is whole.*force"):
        download("gpt2-medium", FOLDER)
    assert files_in(FOLDER)["merges.txt"] == b"#version: 0.2\na b\n"
    download("gpt2-medium", FOLDER, force=True)
    assert files_in(FOLDER)["merges.txt"] == MERGES


@pytest.mark.parametrize("there", [MERGES.rstrip(), MERGES.replace(b"\n", b"\r\n")])
def test_gpt2s_merges_are_kept_whatever_their_line_ends(hub, there):
    hub.put("openai-community/gpt2-medium", FILES)
    put(FOLDER, {"merges.txt": there})
    download("gpt2-medium", FOLDER)
    assert files_in(FOLDER)["merges.txt"] == there


@posix
def test_nothing_is_written_through_a_link_that_came_with_the_folder(hub, tmp_path):
    outside = tmp_path / "outside"
    outside.write_bytes(b"not yours")
    label = hashlib.sha256(FILES[WEIGHTS]).hexdigest()[:16]
    links = [WEIGHTS, f".gpt2hw/{WEIGHTS}.{label}.part", ".gpt2hw/config.json.json"]
    put(FOLDER / ".gpt2hw", {})
    for link in links:
        (FOLDER / link).symlink_to(outside)
    assert files_in(download(NAME, FOLDER, force=True)) == FILES
    assert outside.read_bytes() == b"not yours"
    assert not any(path.is_symlink() for path in FOLDER.rglob("*"))


@posix
@pytest.mark.parametrize("is_dangling", [True, False])
def test_merges_are_not_written_through_a_link(hub, tmp_path, is_dangling):
    hub.put("openai-community/gpt2-medium", FILES)
    outside = tmp_path / "outside"
    if not is_dangling:
        outside.write_bytes(b"not yours")
    put(FOLDER, {})
    (FOLDER / "merges.txt").symlink_to(outside)
    download("gpt2-medium", FOLDER, force=True)
    assert files_in(FOLDER)["merges.txt"] == MERGES
    assert outside.exists() is not is_dangling
    assert is_dangling or outside.read_bytes() == b"not yours"


@posix
def test_drafts_do_not_lie_behind_a_link(hub, tmp_path):
    put(FOLDER, {})
    (FOLDER / ".gpt2hw").symlink_to(tmp_path)
    with pytest.raises(DownloadError, match="is a link"):
        download(NAME, FOLDER)
    assert not list(tmp_path.glob("*.part"))


def test_the_same_model_put_there_by_hand_is_kept(hub):
    put(FOLDER, FILES)
    assert files_in(download(NAME, FOLDER)) == FILES
    assert hub.sent(host="cdn") == 0


def test_other_files_in_the_folder_stay_as_they_are(hub):
    put(FOLDER, {"notes.txt": b"mine", "model.safetensors.bak": b"old"})
    found = files_in(download(NAME, FOLDER))
    assert found == FILES | {"notes.txt": b"mine", "model.safetensors.bak": b"old"}


@posix
def test_what_a_link_leads_to_is_not_written_through_it(hub, tmp_path):
    blob = tmp_path / "blob"
    blob.write_bytes(FILES[WEIGHTS][:1000])
    FOLDER.mkdir()
    (FOLDER / WEIGHTS).symlink_to(blob)
    assert files_in(download(NAME, FOLDER)) == FILES
    assert blob.read_bytes() == FILES[WEIGHTS][:1000]
    assert not (FOLDER / WEIGHTS).is_symlink()


@posix
def test_files_get_the_permissions_that_the_umask_leaves(hub):
    before = os.umask(0o027)
    try:
        download(NAME, FOLDER)
    finally:
        os.umask(before)
    modes = {stat.S_IMODE((FOLDER / name).stat().st_mode) for name in FILES}
    assert modes == {0o640}


@pytest.mark.parametrize("what", [".gpt2hw", ".gpt2hw/lock", WEIGHTS, "config.json"])
def test_a_thing_of_another_kind_in_the_way_is_named(hub, what):
    (FOLDER / what).parent.mkdir(parents=True, exist_ok=True)
    if what == ".gpt2hw":
        (FOLDER / what).write_text("a file", encoding="utf-8")
    else:
        (FOLDER / what).mkdir()
    with pytest.raises(DownloadError, match="mine"):
        download(NAME, FOLDER)
    assert (FOLDER / what).exists()


@posix
def test_a_pipe_in_the_way_keeps_nobody_waiting(hub):
    FOLDER.mkdir()
    os.mkfifo(FOLDER / WEIGHTS)
    with pytest.raises(DownloadError, match="pipe"):
        download(NAME, FOLDER)


def test_on_the_command_line_an_empty_folder_is_none_too(hub):
    status, out, errors = run(NAME, "--directory", "")
    assert (status, out) == (1, "")
    assert "directory: must be a folder" in said_as_one_line(errors)
    assert not list(Path().iterdir())


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"size": -1}', b"\xff" * 99])
def test_a_damaged_record_is_passed_over(hub, damage):
    download(NAME, FOLDER)
    for record in (FOLDER / ".gpt2hw").glob("*.json"):
        record.write_bytes(damage)
    assert files_in(download(NAME, FOLDER)) == FILES


def test_the_working_directory_may_be_gone(hub, tmp_path):
    if sys.platform == "win32":
        pytest.skip("Windows keeps a folder that is in use")
    shutil.rmtree(tmp_path / "work")
    assert files_in(download(NAME)) == FILES
    with pytest.raises((DownloadError, CheckpointError)):
        download(NAME, FOLDER)
    os.chdir(tmp_path)


def test_threads_at_once_end_with_one_transfer(hub):
    threads = [threading.Thread(target=download, args=(NAME, FOLDER)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert files_in(FOLDER) == FILES
    assert hub.sent(host="cdn") == len(FILES[WEIGHTS])
    assert not drafts(FOLDER)
