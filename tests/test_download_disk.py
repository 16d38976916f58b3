"""Download onto disks that are full, and into folders that cannot be written."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

import hub_faults as faults
from downloads import (
    COMMAND,
    NAME,
    WEIGHTS,
    files_in,
    hub_with,
    repository,
    run,
    said_as_one_line,
)
from gpt2hw import DownloadError, download
from hub_server import COMMIT

SIZE = 32_000_000
FILES = repository(SIZE)
FOLDER = Path("mine")
SMALLER = repository(3_000_000)

posix = pytest.mark.skipif(
    sys.platform == "win32", reason="needs POSIX signals or terminals"
)


hub = hub_with(FILES)


ON_A_SMALL_DISK = """
set -e
mount -t tmpfs -o size=2m none small
status=0
"$@" || status=$?
find small -type f -printf '%s %P\\n'
mount -o remount,size=20m small
"$@" >&2
cp -r small/. big
exit $status
"""


def can_mount() -> bool:
    """Whether this process may have a file system of its own."""
    if not shutil.which("unshare"):
        return False
    command = ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"]
    return subprocess.run(command, capture_output=True).returncode == 0


@posix
@pytest.mark.parametrize("has_length", [True, False])
@pytest.mark.parametrize("by", ["file system", "limit"])
def test_a_full_disk_says_so_and_room_is_all_it_needs(hub, by, has_length):
    hub.put(NAME, SMALLER)
    if not has_length:  # nothing warns before the disk is full
        names = ["X-Linked-Size", "Content-Length"]
        hub.fault(faults.without(names), file=WEIGHTS, times=None)
    small = by == "file system" and can_mount()
    status, out, errors = (on_a_small_disk if small else under_a_limit)()
    assert status == 1
    said = next(line for line in errors.splitlines() if "error: " in line)
    assert "Traceback" not in errors
    assert ("bytes free" in said) if small else ("cannot be written" in said)
    assert WEIGHTS not in out.split()
    assert files_in(Path("big")) == SMALLER


def on_a_small_disk():
    """Runs twice on a file system of 2 MB, which has 20 MB the second time."""
    for folder in ("small", "big"):
        Path(folder).mkdir()
    command = [sys.executable, "-c", COMMAND, "download", NAME, "--directory", "small"]
    shell = ["unshare", "-m", "sh", "-c", ON_A_SMALL_DISK, "sh", *command]
    done = subprocess.run(shell, capture_output=True, text=True, timeout=180)
    return done.returncode, done.stdout, done.stderr


def under_a_limit():
    """Runs where no file may be larger than 2 MB, then where it may."""
    limit = (
        "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (2**21, 2**30))\n"
    )
    first = run(NAME, "--directory", "big", code=limit + COMMAND)
    names = " ".join(files_in(Path("big")))
    assert run(NAME, "--directory", "big")[0] == 0
    return first[0], names, first[2]


# --- rights ---


@contextmanager
def without_rights():
    """A folder that this process may read and not write, also where it is root's."""
    is_root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as folder:
        try:
            yield Path(folder), (lambda: _seal(Path(folder), is_root))
        finally:
            if is_root:
                os.seteuid(0)
            for path in [Path(folder), *Path(folder).rglob("*")]:
                path.chmod(0o755)


def _seal(folder: Path, is_root: bool) -> None:
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    if is_root:
        os.seteuid(65534)


@posix
def test_a_cache_that_cannot_be_written_is_named(hub, monkeypatch):
    hub.put(NAME, SMALLER)
    download(NAME, FOLDER)  # so that all that is imported late is imported
    with without_rights() as (folder, seal):
        monkeypatch.setenv("GPT2HW_CACHE", str(folder))
        monkeypatch.setenv("HOME", str(folder))
        monkeypatch.chdir(folder)
        seal()
        with pytest.raises(DownloadError, match=re.escape(str(folder))):
            download(NAME)


def put_in_own_cache(root: Path) -> None:
    shutil.copytree(FOLDER, root / "cache" / NAME.replace("/", "--"))


def put_in_the_hubs_cache(root: Path) -> None:
    hub = root / ".cache" / "huggingface" / "hub" / f"models--{NAME.replace('/', '--')}"
    shutil.copytree(FOLDER, hub / "snapshots" / COMMIT)
    (hub / "refs").mkdir()
    (hub / "refs" / "main").write_text(COMMIT, encoding="ascii")


@posix
@pytest.mark.parametrize("put", [put_in_own_cache, put_in_the_hubs_cache])
def test_a_whole_model_in_a_cache_that_cannot_be_written_is_used(hub, monkeypatch, put):
    hub.put(NAME, SMALLER)
    download(NAME, FOLDER)
    with without_rights() as (folder, seal):
        put(folder)
        monkeypatch.setenv("GPT2HW_CACHE", str(folder / "cache"))
        monkeypatch.setenv("HOME", str(folder))
        monkeypatch.chdir(folder)
        n_requests = len(hub.log)
        seal()
        found = download(NAME)
        assert files_in(found) == SMALLER
    assert len(hub.log) == n_requests


@posix
@pytest.mark.parametrize("what", ["a file", "a folder at the final name"])
def test_what_is_in_the_way_is_named(hub, what):
    hub.put(NAME, SMALLER)
    if what == "a file":
        FOLDER.write_text("mine", encoding="utf-8")
    else:
        (FOLDER / WEIGHTS).mkdir(parents=True)
    status, _, errors = run(NAME, "--directory", FOLDER)
    assert status == 1
    assert "mine" in said_as_one_line(errors)
    if what == "a file":
        assert FOLDER.read_text(encoding="utf-8") == "mine"
