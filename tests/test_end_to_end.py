"""From a hub to text at GPT-2's full size: download, interrupt, resume, load, generate.

The checkpoint has random weights and the published file's layout: names without
prefix, 12 mask buffers, and data that begin at byte 14291, which no number's size
divides. It is as large as the published one, byte for byte, and takes its name and its
place in the table of pinned files.
"""

import hashlib
import json
import random
import signal
import sys
import tempfile
from pathlib import Path

import pytest
import torch

from checkpoints import random_tensors, settings_of, write_as_published
from downloads import (
    COMMAND,
    WEIGHTS,
    drafts,
    files_in,
    finish,
    machine,
    run,
    settle,
    start,
)
from gpt2hw import GPT2, GPT2Config, Tokenizer, download, generate
from gpt2hw.header import read_header
from gpt2hw.hub import SHIPPED
from gpt2hw.hub.pinned import PINNED, Pinned
from gpt2hw.properties.closeness import agree
from hub_faults import paused
from hub_messages import Pause
from hub_server import COMMIT
from reference import reference_logits, reference_model

REPOSITORY = "openai-community/gpt2"
CONFIG = GPT2Config()
N_BYTES = 548_105_171
PROMPT = "Hello, I'm a language model,"
PREFACE = """
from gpt2hw.hub.pinned import PINNED, Pinned
PINNED[{repository!r}] = Pinned({commit!r}, {files!r})
"""


def with_masks(tensors):
    """The parameters, and each layer's causal mask, as the conversion stored it."""
    mask = torch.ones(CONFIG.n_ctx, CONFIG.n_ctx).tril().view(1, 1, CONFIG.n_ctx, -1)
    masks = {f"h.{layer}.attn.bias": mask for layer in range(CONFIG.n_layer)}
    return tensors | masks


def pinned(files: dict[str, bytes | Path]) -> dict[str, tuple[int, str]]:
    """Size and SHA-256 of each, as they stand in the table."""
    found = {}
    for name, content in files.items():
        raw = content if isinstance(content, bytes) else content.read_bytes()
        found[name] = (len(raw), hashlib.sha256(raw).hexdigest())
    return found


@pytest.fixture
def folder():
    """A folder that is gone at once, as more than a gigabyte should be."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def interrupt(process) -> None:
    """Ctrl-C, or the end where there is none."""
    if sys.platform == "win32":
        process.kill()
        finish(process)
    else:
        process.send_signal(signal.SIGINT)
        status, _, errors = finish(process)
        assert (status, "Traceback" in errors) == (130, False), errors


def test_gpt2_is_downloaded_resumed_verified_loaded_and_generates(folder, monkeypatch):
    tensors = random_tensors(CONFIG, seed=1, deviation=0.05)
    source = folder / WEIGHTS
    write_as_published(source, with_masks(tensors))
    assert source.stat().st_size == N_BYTES
    ids = torch.tensor(Tokenizer.from_pretrained("gpt2").encode(PROMPT))
    reference = reference_model(CONFIG, tensors)
    expected, greedy = reference_logits(reference, ids), ids
    for _ in range(5):
        last = reference_logits(reference, greedy)[-1]
        greedy = torch.cat([greedy, last.argmax(-1, keepdim=True)])
    del tensors, reference

    files = {"config.json": json.dumps(settings_of(CONFIG)).encode(), WEIGHTS: source}
    table = pinned(files)
    preface = PREFACE.format(repository=REPOSITORY, commit=COMMIT, files=table)
    monkeypatch.setitem(PINNED, REPOSITORY, Pinned(COMMIT, table))
    with machine(monkeypatch, folder) as hub:
        hub.put(REPOSITORY, files)
        pause = Pause(random.randrange(N_BYTES // 10, N_BYTES * 9 // 10))
        hub.fault(paused(pause), host="cdn")
        process = start("gpt2", code=preface + COMMAND)
        assert pause.reached.wait(120)
        settle(folder, pause.at)
        interrupt(process)
        pause.go.set()
        [draft] = drafts(folder)
        had = draft.stat().st_size
        assert had > 0.9 * pause.at, pause.at
        assert WEIGHTS not in files_in(draft.parent.parent)

        status, out, errors = run("gpt2", code=preface + COMMAND)
        assert status == 0, errors
        assert hub.requests(host="cdn")[-1].sent == N_BYTES - had
        found = Path(out.strip())
        assert (found / WEIGHTS).stat().st_size == N_BYTES
        with (found / WEIGHTS).open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        assert sha256 == table[WEIGHTS][1]

        n_requests = len(hub.log)
        assert download("gpt2") == found
        assert len(read_header(found / WEIGHTS).tensors) == 160
        model = GPT2.from_pretrained("gpt2")
        tokenizer = Tokenizer.from_pretrained("gpt2")
        assert len(hub.log) == n_requests
        assert found != SHIPPED / "gpt2"

    agree(model(ids), expected, 1e-4)
    done = generate(model, tokenizer, PROMPT, max_new_tokens=5)
    assert done.ids == greedy[len(ids) :].tolist()
