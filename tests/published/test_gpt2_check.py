"""The check of the real GPT-2 is itself checked: on a small model whose facts we know.

The facts about it are computed by transformers. The model is served by a hub on the
loopback, or given as a folder.
"""

import hashlib
import json
import re
import socket
from pathlib import Path

import pytest
import torch
import transformers
from gpt2_check import main

from checkpoints import random_tensors, write_folder
from downloads import NAME, machine
from gpt2hw import GPT2Config, Tokenizer, read_header
from gpt2hw.hub import SHIPPED
from gpt2hw.layout import n_parameters

CONFIG = GPT2Config(n_vocab=2048, n_ctx=32, n_embd=12, n_head=3, n_layer=2)
PROMPT = "Once upon a time"
MASK = torch.ones(32, 32).tril()[None, None]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model in the layout of the real one: a mask in each block, no prefix."""
    tensors = random_tensors(CONFIG) | {
        f"h.{layer}.attn.bias": MASK.clone() for layer in range(CONFIG.n_layer)
    }
    folder = write_folder(tmp_path_factory.mktemp("small"), CONFIG, tensors)
    for name in ("vocab.json", "merges.txt"):
        (folder / name).write_bytes((SHIPPED / "tiny" / name).read_bytes())
    return folder


@pytest.fixture(scope="module")
def facts(folder):
    """What transformers says of it, in the form of tests/golden/gpt2.json."""
    tokenizer = Tokenizer.from_pretrained("tiny")
    model = transformers.GPT2LMHeadModel.from_pretrained(folder, dtype=torch.float32)
    ids = tokenizer.encode(PROMPT)
    with_end = [tokenizer.eot_id, *ids]
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0]
        loss = float(
            model(torch.tensor([with_end]), labels=torch.tensor([with_end])).loss
        )
        all_ids = list(ids)
        for _ in range(6):
            all_ids.append(int(model(torch.tensor([all_ids])).logits[0, -1].argmax()))
    greedy = {
        "model": NAME,
        "prompt": PROMPT,
        "prompt_ids": ids,
        "ids": all_ids[len(ids) :],
        "text": tokenizer.decode(all_ids[len(ids) :]),
    }
    path = folder / "model.safetensors"
    raw = path.read_bytes()
    start = read_header(path).data_start
    best = logits[-1].topk(5)
    rows = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    asked = {"model": NAME, "prompt": PROMPT, "prompt_ids": ids}
    return {
        "greedy": [greedy],
        "likeliest_logits": asked
        | {"last_row": [[i, "", x] for i, x in rows], "tolerance": 1e-4},
        "logits_after_hello": asked
        | {
            "first_row": {str(i): float(logits[0, i]) for i in (0, 1, 2047)},
            "first_row_likeliest": int(logits[0].argmax()),
            "tolerance": 1e-4,
            "mean_of_all_logits": float(logits.double().mean()),
            "mean_tolerance": 1e-5,
        },
        "mean_loss": {
            "model": NAME,
            "prompt": "<|endoftext|>" + PROMPT,
            "prompt_ids": with_end,
            "mean_loss": loss,
            "tolerance": 1e-4,
        },
        "files": {
            "model": NAME,
            "bytes_and_sha256": {
                "model.safetensors": [len(raw), hashlib.sha256(raw).hexdigest()],
                "pytorch_model.bin": [1, "0"],
            },
        },
        "structure": {
            "model": NAME,
            "header_bytes": start - 8,
            "data_bytes": len(raw) - start,
            "n_tensors": 30,
            "n_masks": 2,
            "n_parameters": n_parameters(CONFIG),
            "dtype": "F32",
            "metadata": {"format": "pt"},
            "first_name_parts": "h ln_f wpe wte",
        },
        "n_parameters": {NAME: n_parameters(CONFIG), "gpt2-xl": 1_557_611_200},
        "reported": [greedy | {"of": "on another machine", "ids": [0]}],
        "not_checked": [{"model": "gpt2", "what": "a thing", "why": "a reason"}],
    }


@pytest.fixture
def hub(tmp_path, monkeypatch):
    with machine(monkeypatch, tmp_path) as hub:
        yield hub


def check(capsys, tmp_path, facts, *names, status=0):
    """The table of a check that ends with this status, and what is said of errors."""
    file = tmp_path / "facts.json"
    file.write_text(json.dumps(facts), encoding="utf-8")
    found = main(["--facts", str(file), *map(str, names)])
    out, errors = capsys.readouterr()
    assert found == status, out + errors
    return out, errors


def verdicts(out: str) -> list[str]:
    return re.findall(r"^(OK|NOT OK|reported|not here)  ", out, re.MULTILINE)


def test_a_served_model_is_downloaded_and_every_fact_found(
    hub, folder, facts, capsys, tmp_path
):
    hub.put(NAME, {path.name: path for path in folder.iterdir()})
    out, _ = check(capsys, tmp_path, facts, NAME)
    assert hub.requests(file="model.safetensors")
    assert verdicts(out).count("OK") == 16
    assert "NOT OK" not in verdicts(out)
    assert out.endswith("16 OK, 0 NOT OK\n")
    assert re.search(r"^not here .*pytorch_model\.bin", out, re.MULTILINE)
    assert re.search(r"^not here +gpt2-xl .*nox -s gpt2 -- gpt2-xl", out, re.MULTILINE)
    assert "not checked: gpt2: a thing; why: a reason\n" in out


def test_what_is_only_reported_decides_nothing(hub, folder, facts, capsys, tmp_path):
    out, _ = check(capsys, tmp_path, of(folder, facts), folder)
    (line,) = re.findall(r"^reported .*on another machine.*", out, re.MULTILINE)
    assert "0 of them, then" in line


@pytest.mark.parametrize("precision", ["float16", "int8"])
def test_a_precision_is_reported_beside_float32(
    hub, folder, facts, capsys, tmp_path, precision
):
    out, _ = check(capsys, tmp_path, of(folder, facts), folder)
    (line,) = re.findall(rf"^reported .*{precision}, on .*", out, re.MULTILINE)
    wide, narrow, same = map(float, re.findall(r"\d+\.\d+", line))
    assert narrow == pytest.approx(wide, rel=0.01)
    assert 50 < same <= 100


def of(folder: Path, facts):
    """The same facts, about the folder."""
    return json.loads(json.dumps(facts).replace(NAME, str(folder)))


def weights_hash(facts):
    return facts["files"]["bytes_and_sha256"]["model.safetensors"]


def all_one(numbers):
    numbers.update(dict.fromkeys(numbers, 1))


WRONG = [
    ("greedy", lambda f: f["greedy"][0]["ids"].__setitem__(3, 7)),
    ("greedy", lambda f: f["greedy"][0]["prompt_ids"].__setitem__(0, 7)),
    ("five", lambda f: f["likeliest_logits"]["last_row"].reverse()),
    ("their", lambda f: f["likeliest_logits"].update(tolerance=-1)),
    ("logits", lambda f: f["logits_after_hello"]["first_row"].update({"5": 99.0})),
    ("logits", lambda f: f["logits_after_hello"].update(first_row_likeliest=3)),
    ("mean", lambda f: f["logits_after_hello"].update(mean_of_all_logits=0.0)),
    ("mean", lambda f: f["mean_loss"].update(mean_loss=float("nan"))),
    ("mean", lambda f: f["mean_loss"].update(prompt_ids=[1])),
    ("size", lambda f: weights_hash(f).__setitem__(0, 7)),
    ("size", lambda f: weights_hash(f).__setitem__(1, "0")),
    ("header_bytes", lambda f: f["structure"].update(header_bytes=1)),
    ("n_tensors", lambda f: f["structure"].update(n_tensors=28)),
    ("first_name_parts", lambda f: f["structure"].update(first_name_parts="h")),
    ("parameters", lambda f: all_one(f["n_parameters"])),
]


@pytest.mark.parametrize(("what", "change"), WRONG, ids=range(len(WRONG)))
def test_a_fact_that_does_not_hold_is_not_ok_and_the_status_is_1(
    hub, folder, facts, capsys, tmp_path, what, change
):
    changed = of(folder, facts)
    change(changed)
    out, _ = check(capsys, tmp_path, changed, folder, status=1)
    lines = re.findall(r"^NOT OK +\S+ +(\S+)", out, re.MULTILINE)
    assert lines
    assert {line.rstrip(",") for line in lines} == {what}


def test_a_model_that_cannot_be_opened_is_not_ok(hub, folder, facts, capsys, tmp_path):
    broken = tmp_path / "broken"
    broken.mkdir()
    for path in folder.iterdir():
        (broken / path.name).write_bytes(path.read_bytes()[:-1])
    out, _ = check(capsys, tmp_path, of(broken, facts), broken, status=1)
    assert "OK" not in verdicts(out)
    assert "truncated" in out
    assert "Traceback" not in out


def test_without_a_network_one_line_says_so_and_the_status_is_2(
    hub, facts, capsys, tmp_path, monkeypatch
):
    with socket.socket() as nobody:  # bound, and it does not listen
        nobody.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        monkeypatch.setenv("HF_ENDPOINT", address)
        out, errors = check(capsys, tmp_path, facts, "gpt2", status=2)
    assert out == ""
    *_, last = errors.splitlines()
    assert last.startswith("gpt2 cannot be checked: ")
    assert "127.0.0.1" in last
    assert "Traceback" not in errors


def test_offline_one_line_says_so_and_the_status_is_2(
    hub, facts, capsys, tmp_path, monkeypatch
):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    out, errors = check(capsys, tmp_path, facts, "gpt2", status=2)
    assert out == ""
    assert errors.count("\n") == 1
    assert "offline" in errors


def test_the_table_is_of_the_real_facts_unless_others_are_given(
    hub, folder, capsys, monkeypatch
):
    assert main([str(folder)]) == 0  # nothing is published about this folder
    out, _ = capsys.readouterr()
    assert re.search(r"^not here +gpt2 ", out, re.MULTILINE)
    assert out.count("not checked: ") == 6
