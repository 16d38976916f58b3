"""`gpt2hw evaluate`: its scores against transformers', and what it refuses."""

import io
import json
import math
import os
import re
import sys
from pathlib import Path

import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st

from checkpoints import random_tensors, write_folder
from gpt2hw import GPT2, GPT2Config, Tokenizer
from gpt2hw.cli import main
from gpt2hw.cli.evaluate_command import as_dict, checked, method
from gpt2hw.cli.usage import WrongUse
from gpt2hw.evaluation import Evaluation, evaluate
from gpt2hw.hub import SHIPPED
from test_console import posix, seen_on_a_terminal

no_windows = pytest.mark.skipif(os.name == "nt", reason="POSIX files and links")
Captured = pytest.CaptureFixture[str]
TINY = SHIPPED / "tiny"
TALE = (
    "Once upon a time there lived a king who had three daughters. The youngest was so "
    "fair that the sun itself wondered whenever it shone upon her face.\r\n\r\n"
    "“Father,” said she, “the well is dry.” Ä é 你 👍\n"
) * 12


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "tale.txt"
    path.write_bytes(TALE.encode())
    return path


def run(capsys: Captured, *arguments: str | Path, status: int = 0) -> str:
    """Standard output of `evaluate`, or its one line of error where it fails."""
    found = main(["evaluate", *map(str, arguments)])
    out, errors = capsys.readouterr()
    assert found == status, errors
    if not status:
        assert errors == ""
        return out
    assert out == ""
    assert errors.startswith("gpt2hw: error: ")
    assert errors.count("\n") == 1
    return errors


def scores(capsys: Captured, *arguments: str | Path) -> dict[str, object]:
    return json.loads(run(capsys, "--json", *arguments))


class Judge:
    """transformers' model and tokenizer on the tiny model's folder."""

    def __init__(self) -> None:
        self.model = transformers.GPT2LMHeadModel.from_pretrained(
            TINY, dtype=torch.float32
        )
        tokenizer = transformers.GPT2Tokenizer.from_pretrained(TINY)
        self.ids = torch.tensor([tokenizer(TALE)["input_ids"]])

    @torch.no_grad()
    def window_losses(self, window: int, stride: int) -> list[tuple[float, int, bool]]:
        """Of each window: its mean loss, its new labels, and whether others are there.

        As transformers' page on perplexity has it: the window's ids are its labels,
        those that a window before it had are masked, and the model shifts the rest.
        """
        found, seen = [], 0
        for begin in range(0, self.ids.shape[1], stride):
            end = min(begin + window, self.ids.shape[1])
            ids = self.ids[:, begin:end]
            labels = torch.full_like(ids, -100)
            n_new = end - seen
            labels[:, -n_new:] = ids[:, -n_new:]
            if ids.shape[1] > 1:
                loss = float(self.model(ids, labels=labels).loss)
                found.append((loss, n_new, n_new < ids.shape[1]))
            seen = end
            if end == self.ids.shape[1]:
                break
        return found

    def perplexity(self, window: int, stride: int, each_once: bool) -> float:
        """By the page's weights, one less than a window's new labels, or by each once.

        A window without context loses one label to the shift, so there both agree.
        """
        rows = [
            (loss, n_new if each_once and has_context else n_new - 1)
            for loss, n_new, has_context in self.window_losses(window, stride)
        ]
        return math.exp(sum(loss * n for loss, n in rows) / sum(n for _, n in rows))


@pytest.fixture(scope="module")
def judge():
    return Judge()


# Its scores


@pytest.mark.parametrize(
    ("window", "stride"), [(256, 256), (256, 128), (100, 100), (100, 30), (64, 9)]
)
def test_the_command_scores_as_transformers_does(capsys, file, judge, window, stride):
    found = scores(capsys, file, "--window", str(window), "--stride", str(stride))
    right = judge.perplexity(window, stride, each_once=True)
    assert found["perplexity"] == pytest.approx(right, rel=1e-4)


@pytest.mark.parametrize("window", [256, 100, 33])
def test_side_by_side_the_perplexity_is_that_of_transformers_page(
    capsys, file, judge, window
):
    """So 19.44 can be had for gpt2-large with --stride 1024."""
    found = scores(capsys, file, "--window", str(window), "--stride", str(window))
    right = judge.perplexity(window, window, each_once=False)
    assert found["perplexity"] == pytest.approx(right, rel=1e-4)


@pytest.mark.parametrize(("window", "stride"), [(256, 128), (100, 50), (64, 60)])
def test_overlapping_windows_come_close_to_transformers_page(judge, window, stride):
    """There each window counts by one token less; with more windows it matters less."""
    once = math.log(judge.perplexity(window, stride, each_once=True))
    page = math.log(judge.perplexity(window, stride, each_once=False))
    rows = judge.window_losses(window, stride)
    spread = max(loss for loss, *_ in rows) - min(loss for loss, *_ in rows)
    n_scored = sum(n_new for _, n_new, _ in rows)
    assert 0 < abs(once - page) < spread * (window / stride + 1) / n_scored


def test_defaults_are_all_positions_and_half_of_them(capsys, file):
    found = scores(capsys, file)
    assert (found["window"], found["stride"]) == (256, 128)
    assert found == scores(capsys, file, "--window", "256", "--stride", "128")


def test_the_command_says_what_the_library_finds(capsys, file):
    model, tokenizer = GPT2.from_pretrained("tiny"), Tokenizer.from_pretrained("tiny")
    right = evaluate(model, tokenizer, TALE, window=64)
    found = scores(capsys, file, "--window", "64")
    assert found["perplexity"] == right.perplexity
    assert found["bits_per_byte"] == right.bits_per_byte
    assert found["n_tokens"] == right.n_tokens == len(tokenizer.encode(TALE)) - 1
    assert found["n_bytes"] == right.n_bytes == len(TALE.encode())
    assert found["model"] == "tiny"
    assert found["file"] == str(file)
    out = run(capsys, file, "--window", "64")
    rows = dict(re.findall(r"^(\S[a-z ]*?) +([\d.,]+) ", out, re.MULTILINE))
    assert rows["perplexity"] == f"{right.perplexity:,.2f}"
    assert rows["bits per byte"] == f"{right.bits_per_byte:,.4f}"
    assert rows["scored"] == f"{right.n_tokens:,}"
    assert rows["text"] == f"{right.n_bytes:,}"
    assert out.endswith(f"{method(64, 32)}\n")


def test_standard_input_is_scored_byte_for_byte(capsys, file, monkeypatch):
    raw = io.BytesIO(TALE.encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw))
    found = scores(capsys, "-")
    assert found == scores(capsys, file) | {"file": "standard input"}


@no_windows
def test_a_pipe_is_read_to_its_end(capsys, file):
    reading, writing = os.pipe()
    os.write(writing, b"Once upon a time")
    os.close(writing)
    found = scores(capsys, f"/dev/fd/{reading}")
    os.close(reading)
    assert found["n_bytes"] == 16


def test_an_infinite_perplexity_is_null_in_json(capsys, file, tmp_path):
    config = GPT2Config(n_vocab=2048, n_ctx=32, n_embd=8, n_head=2, n_layer=1)
    folder = write_folder(
        tmp_path / "wild", config, random_tensors(config, deviation=1e4)
    )
    for name in ("vocab.json", "merges.txt"):
        (folder / name).write_bytes((TINY / name).read_bytes())
    assert scores(capsys, file, "--model", folder)["perplexity"] is None
    assert re.search(r"^perplexity +inf ", run(capsys, file, "--model", folder))


def test_no_score_in_json_is_more_than_json_can_hold():
    scored = as_dict(Evaluation(math.inf, math.inf, 1, 1), 2, 1)
    assert (scored["perplexity"], scored["bits_per_byte"]) == (None, None)


# Its windows


@given(st.integers(2, 300), st.data())
def test_what_the_command_accepts_the_library_accepts(n_ctx, data):
    window = data.draw(st.none() | st.integers(2, 310))
    stride = data.draw(st.none() | st.integers(1, 310))
    try:
        found, step = checked(window, stride, n_ctx)
    except WrongUse:
        assert (window or 0) > n_ctx or (stride or 0) > (window or n_ctx)
        return
    assert 2 <= found <= n_ctx
    assert 1 <= step <= found


# What it refuses


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "is empty: there is nothing to score"),
        (b"a", "has one token"),
        (b"caf\xe9 au lait", "is not UTF-8: byte 0xe9 at position 3"),
        ("ﬀ".encode("utf-16"), "is not UTF-8: byte 0xff at position 0"),
    ],
)
def test_a_text_that_cannot_be_scored_is_told_with_its_file(
    capsys, file, raw, said, monkeypatch
):
    file.write_bytes(raw)
    assert f"{file} {said}" in run(capsys, file, status=1)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
    assert f"standard input {said}" in run(capsys, "-", status=1)


def test_a_file_that_is_none_is_named(capsys, tmp_path):
    missing = tmp_path / "missing.txt"
    assert f"{missing}: No such file" in run(capsys, missing, status=1)
    assert f"{tmp_path} is a folder, not a text" in run(capsys, tmp_path, status=1)


def test_a_name_that_can_be_no_files_is_told_as_such(capsys):
    assert "path: must be the path of a file, not ''" in run(capsys, "", status=1)


@no_windows
def test_a_name_of_two_lines_is_spelt_out(capsys, tmp_path):
    assert r"a\nb: No such file" in run(capsys, tmp_path / "a\nb", status=1)


@no_windows
def test_a_file_that_fails_while_it_is_read_is_named(capsys):
    assert "/proc/self/mem: " in run(capsys, "/proc/self/mem", status=1)


@no_windows
def test_what_never_ends_is_not_read(capsys):
    assert "is a device, not a text" in run(capsys, "/dev/zero", status=1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--window", "1"], "--window must be an integer from 2 up, not 1"),
        (["--window", "257"], "--window must be an integer from 2 to 256"),
        (["--stride", "0"], "--stride must be an integer from 1 up, not 0"),
        (["--stride", "257"], "--stride must be an integer from 1 to 256, the window"),
        (
            ["--window", "9", "--stride", "10"],
            "--stride must be an integer from 1 to 9",
        ),
        (["another"], "one file is expected, but there are two"),
        (["--windows", "9"], "did you mean --window?"),
    ],
)
def test_a_wrong_use_is_told_with_status_2(capsys, file, options, said):
    assert said in run(capsys, file, *options, status=2)


def test_the_file_may_not_be_left_out(capsys):
    said = run(capsys, status=2)
    assert "the FILE is missing; put - to read it from standard input" in said


# The bar


@posix
def test_on_a_terminal_a_bar_shows_how_far_it_is_and_goes(file):
    seen = seen_on_a_terminal("evaluate", str(file))
    assert "scoring" in seen
    assert "100%" in seen
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen).replace("\r", "\n")
    after = plain[plain.rindex("scoring") :]
    assert re.search(r"^perplexity +[\d.,]+ per token$", after, re.MULTILINE)
