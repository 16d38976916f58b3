"""Plain files: read up to a limit, replaced whole, and everything else told by name."""

import os
import socket
import stat
import sys
import tempfile
from pathlib import Path

import pytest

from gpt2hw.files import (
    file_path,
    not_a_file,
    read_plain,
    replacing,
    why_not_writable,
)

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX files and links")


def write(path, content=b"new"):
    with replacing(path) as file:
        file.write(content)


def put_pipe(path):
    os.mkfifo(path)
    return "a pipe"


def put_link_to_device(path):
    path.symlink_to("/dev/zero")
    return "a device"


def put_link_to_pipe(path):
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to("pipe")
    return "a pipe"


def put_folder(path):
    path.mkdir()
    return "a folder"


def put_loop(path):
    path.symlink_to(path.name)
    return "out of reach"


def put_broken_link(path):
    path.symlink_to("nothing")
    return "a link to nothing"


# No test writes to a link to a device: where the rule is broken, it would be replaced.
NO_FILES = [put_pipe, put_link_to_pipe, put_folder, put_loop]


@posix
@pytest.mark.parametrize("put", [*NO_FILES, put_broken_link, put_link_to_device])
def test_what_stands_at_a_path_is_told_without_waiting(tmp_path, put):
    what = put(tmp_path / "it")
    assert not_a_file(tmp_path / "it").startswith(what)
    with pytest.raises(ValueError, match=f"^{what}.*, not a file$"):
        read_plain(tmp_path / "it", 10)


@posix
def test_a_socket_is_told():
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.socket(socket.AF_UNIX) as server,
    ):
        server.bind(f"{folder}/s")
        assert not_a_file(f"{folder}/s") == "a socket"


@pytest.mark.parametrize("name", ["absent", "absent/file", "a\0b"])
def test_nothing_is_told_too(tmp_path, name):
    assert not_a_file(tmp_path / name) == "not there"
    with pytest.raises(FileNotFoundError, match="No such file"):
        read_plain(tmp_path / name, 10)


def test_a_file_is_read_whole_up_to_the_limit(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    assert not_a_file(path) is None
    assert read_plain(path, 10) == b"0123456789"
    with pytest.raises(ValueError, match=r"^larger than 9 bytes$"):
        read_plain(path, 9)


NO_PATHS = [None, 5, b"bytes", "", "a\0b", [], True]


@pytest.mark.parametrize("path", NO_PATHS)
def test_what_can_be_no_path_is_named_as_the_argument(path):
    for ask in (file_path, write):
        with pytest.raises(ValueError, match=r"^path: must be the path of a file"):
            ask(path)
    assert why_not_writable(path).startswith("must be the path of a file")


@posix
@pytest.mark.parametrize("put", NO_FILES)
def test_only_a_plain_file_is_replaced(tmp_path, put):
    path = tmp_path / "it"
    what = put(path)
    before = path.lstat()
    with pytest.raises(
        ValueError, match=f"^path: .*it cannot be written: it is {what}"
    ):
        write(path)
    assert path.lstat().st_ino == before.st_ino
    assert why_not_writable(path).startswith(f"it is {what}")


@posix
def test_a_device_is_not_to_be_written(tmp_path):
    put_link_to_device(tmp_path / "it")
    assert why_not_writable(tmp_path / "it") == "it is a device"


@pytest.mark.parametrize("end", ["", "/", "/.", "/new/"])
def test_a_folder_is_not_written(tmp_path, end):
    with pytest.raises(ValueError, match="cannot be written: it is a folder"):
        write(f"{tmp_path}{end}")
    assert why_not_writable(f"{tmp_path}{end}") == "it is a folder"
    assert list(tmp_path.iterdir()) == []


@posix
@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path, is_there):
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "target", tmp_path / "link"
    if is_there:
        target.write_bytes(b"old")
    (tmp_path / "between").symlink_to(Path("far", "target"))
    link.symlink_to("between")
    assert why_not_writable(link) is None
    write(link)
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert not target.is_symlink()


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield
    os.umask(before)


@posix
@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o755, 0o400])
def test_the_old_files_permissions_stay(tmp_path, mode):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(mode)
    with replacing(path) as file:
        draft = os.fstat(file.fileno())
        assert not stat.S_IMODE(draft.st_mode) & ~mode, "others could read the draft"
    assert stat.S_IMODE(path.stat().st_mode) == mode


@posix
@pytest.mark.usefixtures("umask")
def test_a_new_files_permissions_are_those_of_the_umask(tmp_path):
    write(tmp_path / "file")
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


@posix
def test_a_name_may_be_as_long_as_the_system_has_it(tmp_path):
    longest = tmp_path / ("n" * 255)
    write(longest)
    assert longest.read_bytes() == b"new"
    with pytest.raises(ValueError, match=r"it is out of reach \(File name too long\)"):
        write(tmp_path / ("n" * 256))


def test_an_error_names_the_path_and_not_the_draft(tmp_path):
    path = tmp_path / "absent" / "file"
    with pytest.raises(FileNotFoundError) as refusal:
        write(path)
    assert refusal.value.filename == str(path)
    assert ".part" not in str(refusal.value)
    assert why_not_writable(path) == "its folder is not there"


def test_a_full_disk_is_told_with_the_path_and_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(OSError, match="No space left") as refusal, replacing(path):
        raise OSError(28, "No space left on device")
    assert refusal.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError, OSError])
def test_whatever_stops_the_writing_leaves_the_old_file_alone(tmp_path, error):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(error), replacing(path) as file:  # noqa: PT012 -- two steps
        file.write(b"half")
        raise error
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_may_not_be_written_is_told(tmp_path, monkeypatch):
    assert why_not_writable(tmp_path / "file") is None
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert why_not_writable(tmp_path / "file") == "its folder cannot be written to"
