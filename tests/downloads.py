"""What the tests of downloads share: repositories, clean machines, processes."""

import json
import os
import random
import ssl
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import hub_faults as faults
from checkpoints import SMALL, settings_of
from gpt2hw import DownloadError, download
from hub_server import Hub

NAME = "someone/gpt2-small"
WEIGHTS = "model.safetensors"
TOKEN = "hf_abcdefSECRETghijkl"
WAITS: dict[str, Any] = {
    "first_delay": 0.01,
    "longest_delay": 0.02,
    "longest_retry_after": 2,
    "connect": 5,
    "stalled": 2,
}
CLEANED = (
    "HF_",
    "HUGGING",
    "GPT2HW",
    "XDG_",
    "NETRC",
    "TRANSFORMERS",
    "REQUESTS_",
    "CURL_",
)
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


def weights(size: int, seed: int = 0) -> bytes:
    """A .safetensors file of this many bytes, of noise."""
    about: dict[str, Any] = {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}
    for _ in range(2):  # the numbers of the first round tell how long the header is
        header = json.dumps({"noise": about}).encode()
        n_bytes = size - 8 - len(header) - (len(str(size)) - 1) * 2
        about |= {"shape": [n_bytes], "data_offsets": [0, n_bytes]}
    header = json.dumps({"noise": about}).encode().ljust(size - 8 - n_bytes)
    noise = random.Random(seed).randbytes(min(n_bytes, 2**24 - 3))
    noise = (noise * (n_bytes // max(len(noise), 1) + 1))[:n_bytes]
    return struct.pack("<Q", len(header)) + header + noise


def repository(size: int = 300_000, seed: int = 0) -> dict[str, bytes | Path]:
    """The files of a model with `size` bytes of weights; the seed changes them all."""
    config = json.dumps(settings_of(SMALL, comment=f"{seed} " + "padding " * 40))
    return {
        "config.json": config.encode(),
        "merges.txt": f"#version: 0.2\nĠ {seed}\n".encode(),
        WEIGHTS: weights(size, seed),
    }


def clean_environment(hub: Hub, root: Path) -> dict[str, str]:
    """The environment of a machine that has no model, no proxy and no token."""
    kept = {n: v for n, v in os.environ.items() if not n.startswith(CLEANED)}
    kept = {n: v for n, v in kept.items() if n.lower() not in PROXIES}
    own = {"HF_ENDPOINT": hub.url, "GPT2HW_CACHE": str(root / "cache")}
    return kept | own | dict.fromkeys(("HOME", "USERPROFILE"), str(root / "home"))


@contextmanager
def machine(
    monkeypatch: pytest.MonkeyPatch, root: Path, tls: ssl.SSLContext | None = None
) -> Iterator[Hub]:
    """A clean machine, where nobody waits long, and a hub that it can reach."""
    for folder in ("work", "home"):
        (root / folder).mkdir()
    with Hub(tls=tls) as hub:
        environment = clean_environment(hub, root)
        for name in set(os.environ) - set(environment):
            monkeypatch.delenv(name)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(root / "work")
        monkeypatch.setattr("gpt2hw.hub.patience.PATIENCE", impatient())
        yield hub
    assert hub.errors == []


def hub_with(files: dict[str, bytes | Path], *, keeps_rules: bool = False) -> Any:
    """A fixture for all tests of a module: a clean machine, and a hub with `files`.

    With `keeps_rules`, what holds after whatever fault is looked at after each test.
    """

    @pytest.fixture(autouse=True)
    def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
        with machine(monkeypatch, tmp_path) as hub:
            hub.put(NAME, files)
            yield hub
            if keeps_rules:
                keeps_the_rules(hub)

    return hub


def refused(*arguments: Any, error: Any = DownloadError, **options: Any) -> str:
    """What is said of a download that is refused."""
    with pytest.raises(error) as refusal:
        download(*arguments, **options)
    return str(refusal.value)


def impatient() -> Any:
    """Tries as many as ever, with waits of a blink."""
    from gpt2hw.hub.patience import Patience

    return Patience(**WAITS)


def files_in(folder: Path) -> dict[str, bytes]:
    """The files under their final names, with their bytes."""
    found = {} if not folder.exists() else {p.name: p for p in folder.iterdir()}
    return {name: p.read_bytes() for name, p in found.items() if p.is_file()}


def holds_nothing_wrong(folder: Path, *published: dict[str, bytes | Path]) -> None:
    """Every file under a final name is whole, and from one of these states."""
    for name, content in files_in(folder).items():
        assert content in [state.get(name) for state in published], name


def drafts(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.part"))


def settle(folder: Path, size: int) -> None:
    """Waits until the draft has what was sent, but for the last piece."""
    for _ in range(6000):
        if drafts(folder) and drafts(folder)[0].stat().st_size >= 0.99 * size:
            return
        time.sleep(0.01)
    raise AssertionError(f"of {size:,} bytes that were sent not 99% came in a minute")


# --- one fault at a time ---

SIZE = 3_000_000
FILES = repository(SIZE)
OTHER = repository(SIZE, seed=1)
FOLDER = Path("mine")
CDN = {"host": "cdn"}


def keeps_the_rules(hub: Hub) -> None:
    """What holds after whatever fault; then a run without one, which ends well."""
    holds_nothing_wrong(FOLDER, *hub.published)
    assert {seen.authorization for seen in hub.requests(host="cdn")} <= {None}
    hub.faults.clear()
    folder = download(NAME, FOLDER, token=TOKEN)
    holds_nothing_wrong(FOLDER, *hub.published)
    assert set(files_in(folder)) == set(FILES)
    if len(hub.published) == 1:
        assert files_in(folder) == FILES
    assert not drafts(folder)


def fetch() -> Path:
    """Downloads into the folder, with a token."""
    return download(NAME, FOLDER, token=TOKEN)


def failure(error: Any = DownloadError) -> str:
    """What is said where the download cannot end well."""
    with pytest.raises(error) as caught:
        fetch()
    said = str(caught.value)
    assert TOKEN not in said
    assert "Signature" not in said
    assert "<h1>" not in said
    return said


def left_at(hub: Hub, part: float) -> Path:
    """A draft that a failed download left, of this part of the weights."""
    hub.fault(faults.cut(part), **CDN)
    hub.fault(faults.no_answer, times=None, **CDN)
    failure()
    assert WEIGHTS not in files_in(FOLDER)
    hub.faults.clear()
    [draft] = drafts(FOLDER)
    hub.log.clear()
    return draft


# --- the command line, in a process of its own ---

COMMAND = f"""
import sys
import gpt2hw.hub.patience as patience
patience.PATIENCE = patience.Patience(**{WAITS})
from gpt2hw.cli import main
sys.exit(main(sys.argv[1:]))
"""


def start(*arguments: str | Path, code: str = COMMAND, **options: Any) -> Any:
    """`gpt2hw download ...` as a process, in the environment of this one."""
    environment = os.environ | options.pop("environment", {})
    command = [sys.executable, "-c", code, "download", *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command,
        env=environment,
        text=True,
        **{"stdout": pipe, "stderr": pipe} | options,
    )


def finish(process: Any) -> tuple[int, str, str]:
    """Its status, standard output and standard error."""
    try:
        out, errors = process.communicate(timeout=180)
    finally:
        process.kill()
    return process.returncode, out, errors


def run(*arguments: str | Path, **options: Any) -> tuple[int, str, str]:
    return finish(start(*arguments, **options))


def said_as_one_line(errors: str) -> str:
    """The last line of standard error, once nothing there is a traceback."""
    assert "Traceback" not in errors, errors
    last = errors.splitlines()[-1]
    assert last.startswith("gpt2hw: error: "), errors
    return last
