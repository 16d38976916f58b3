"""Download in processes that are killed, interrupted, and short of disk or rights."""

import os
import re
import signal
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

import hub_faults as faults
from downloads import (
    NAME,
    TOKEN,
    WEIGHTS,
    drafts,
    files_in,
    finish,
    holds_nothing_wrong,
    hub_with,
    repository,
    run,
    said_as_one_line,
    settle,
    start,
)
from hub_messages import Pause

SIZE = 32_000_000
FILES = repository(SIZE)
FOLDER = Path("mine")
SMALLER = repository(3_000_000)

posix = pytest.mark.skipif(
    sys.platform == "win32", reason="needs POSIX signals or terminals"
)


hub = hub_with(FILES)


@contextmanager
def paused(hub, at: int):
    """A process that waits in mid-download, at this byte of the weights."""
    pause = Pause(at)
    hub.fault(faults.paused(pause), host="cdn")
    process = start(NAME, "--directory", FOLDER)
    assert pause.reached.wait(120)
    settle(FOLDER, at)
    try:
        yield process
    finally:
        pause.go.set()
        process.kill()
        process.communicate()


# --- killed and interrupted ---


def test_killed_at_60_per_cent_it_resumes_with_at_most_41_per_cent(hub):
    with paused(hub, int(0.6 * SIZE)) as process:
        process.kill()
        process.wait()
    assert WEIGHTS not in files_in(FOLDER)
    holds_nothing_wrong(FOLDER, FILES)
    status, out, _ = run(NAME, "--directory", FOLDER)
    assert (status, out.strip()) == (0, str(FOLDER.absolute()))
    assert files_in(FOLDER) == FILES
    assert hub.requests(host="cdn")[-1].sent <= 0.41 * SIZE
    assert not drafts(FOLDER)


@posix
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_it_at_once_and_keeps_the_draft(hub, number):
    with paused(hub, SIZE // 2) as process:
        process.send_signal(number)
        status, out, errors = finish(process)
    assert status == (130 if number == signal.SIGINT else -number)
    assert "Traceback" not in errors
    assert out == ""
    assert WEIGHTS not in files_in(FOLDER)
    assert drafts(FOLDER)[0].stat().st_size >= 0.49 * SIZE


def test_two_processes_at_once_end_with_one_good_file(hub):
    hub.fault(faults.slow(30e6), host="cdn")
    both = [start(NAME, "--directory", FOLDER) for _ in range(2)]
    assert [finish(process)[0] for process in both] == [0, 0]
    assert files_in(FOLDER) == FILES
    assert hub.sent(host="cdn") == SIZE


def test_one_goes_on_where_the_other_is_killed(hub):
    with paused(hub, SIZE // 2) as process:
        other = start(NAME, "--directory", FOLDER)
        assert "another process downloads" in other.stderr.readline()
        process.kill()
        assert finish(other)[0] == 0
    assert files_in(FOLDER) == FILES
    assert hub.requests(host="cdn")[-1].sent <= 0.51 * SIZE


# --- what is printed ---


def test_off_a_terminal_each_file_is_one_plain_line(hub):
    hub.put(NAME, SMALLER)
    status, out, errors = run(NAME, "--directory", FOLDER)
    assert status == 0
    assert out == f"{FOLDER.absolute()}\n"
    assert not re.search(r"[\r\x1b]", errors)
    lines = errors.splitlines()
    assert [name for name in SMALLER if not any(name in line for line in lines)] == []
    assert len(lines) <= len(SMALLER) + 1


def test_off_a_terminal_each_wait_says_why_and_how_long(hub):
    hub.put(NAME, SMALLER)
    hub.fault(faults.status(503, Retry_After="1"), host="cdn")
    hub.fault(faults.cut(0.5), host="cdn")
    status, _, errors = run(NAME, "--directory", FOLDER)
    assert status == 0
    asked, chosen = [line for line in errors.splitlines() if "next try" in line]
    assert re.fullmatch("gpt2hw: status 503: .*; next try in 1 s", asked)
    assert re.fullmatch(r"gpt2hw: .*; next try in \d+ s", chosen)


@posix
@pytest.mark.parametrize("has_length", [True, False])
def test_on_a_terminal_a_bar_tells_rate_and_remaining_time(hub, has_length):
    hub.put(NAME, SMALLER)
    hub.fault(faults.slow(2e6), host="cdn")
    if not has_length:
        names = ["X-Linked-Size", "Content-Length"]
        hub.fault(faults.without(names), file=WEIGHTS, times=None)
    errors = on_a_terminal(NAME, "--directory", FOLDER)
    assert files_in(FOLDER) == SMALLER
    assert WEIGHTS in errors
    assert "B/s" in errors
    if has_length:
        assert re.search(r"0:00:0\d", errors)


@posix
@pytest.mark.parametrize("size", ["0", "²", "-1", "9" * 30])
def test_a_size_of_the_terminal_that_is_none_keeps_nothing_off(hub, size):
    hub.put(NAME, SMALLER)
    hub.fault(faults.slow(2e6), host="cdn")
    errors = on_a_terminal(NAME, "--directory", FOLDER, COLUMNS=size, LINES=size)
    assert WEIGHTS in errors
    assert files_in(FOLDER) == SMALLER


def on_a_terminal(*arguments, **variables: str) -> str:
    """What the command writes to a terminal as standard error."""
    master, terminal = os.openpty()
    environment = {"TERM": "xterm", "COLUMNS": "100"} | variables
    process = start(*arguments, stderr=terminal, environment=environment)
    os.close(terminal)
    written = b""
    try:
        while piece := os.read(master, 65536):
            written += piece
    except OSError:  # how Linux says that the other end is closed
        pass
    os.close(master)
    assert finish(process)[0] == 0, written
    return written.decode()


@pytest.mark.parametrize(
    "change",
    [faults.status(401), faults.status(500), faults.no_answer, faults.loop,
     faults.damaged(1000), faults.redirect("http://127.0.0.1:9/x")],
)  # fmt: skip
def test_the_token_and_signed_addresses_are_in_no_output(hub, change):
    hub.put(NAME, SMALLER)
    hub.fault(change, file=WEIGHTS, times=None)
    environment = {"HF_TOKEN": TOKEN}
    status, out, errors = run(NAME, "--directory", FOLDER, environment=environment)
    assert status == 1
    said_as_one_line(errors)
    assert TOKEN not in out + errors
    assert "Signature" not in out + errors


def test_every_refusal_is_one_line_and_a_status(hub):
    refused = {
        (NAME, "--offline"): 1,
        ("../x",): 1,
        ("tiny", "--directory", "x"): 1,
        ("tiny", "--revision", "x"): 1,
        (): 2,
    }
    for arguments, status in refused.items():
        found, out, errors = run(*arguments)
        assert (found, out) == (status, ""), errors
        said_as_one_line(errors)
