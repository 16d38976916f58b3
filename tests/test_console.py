"""The command line as a process: its streams, its encodings, its exit statuses.

Most of it is what other programs and people do to a command: close its pipe, press
Ctrl-C, run it in an old console, or feed it bytes that are no text.
"""

import gc
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpt2hw.cli import console, main
from gpt2hw.cli.screen import Output, plain_table, shortened, table
from gpt2hw.cli.text import (
    cell,
    dotted,
    in_a_line,
    json_text,
    legible,
    neutral,
    one_line,
    quoted,
    spelled,
)
from gpt2hw.hub import SHIPPED

COMMAND = (sys.executable, "-m", "gpt2hw")
CLEAN = {
    name: value
    for name, value in os.environ.items()
    if name not in {"NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM"}
    and name not in {"PYTHONIOENCODING", "PYTHONUNBUFFERED"}
}
posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals or terminals")
BARE_C = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}


def run(
    *arguments: str | bytes, given: bytes = b"", **environment: str
) -> tuple[int, bytes, str]:
    """Exit status, standard output, and standard error, which holds no traceback."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        input=given,
        capture_output=True,
        env=CLEAN | environment,
        timeout=60,
    )
    errors = done.stderr.decode("ascii", "backslashreplace")
    assert "Traceback" not in errors
    return done.returncode, done.stdout, errors


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that a test starts; they are ended with it."""
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def start(*arguments: str, **environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=CLEAN | environment,
    )


def start_long(folder: Path) -> subprocess.Popen[bytes]:
    """A process that writes more than any pipe holds."""
    long = folder / "long.txt"
    long.write_text("one two\n" * 50_000, encoding="utf-8")
    with long.open("rb") as text:
        return subprocess.Popen(
            [*COMMAND, "tokenize", "-"],
            stdin=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=CLEAN,
        )


def stream_of(process: subprocess.Popen[bytes], name: str) -> IO[bytes]:
    stream: IO[bytes] | None = getattr(process, name)
    assert stream is not None
    return stream


# Text made fit to be shown


@given(st.binary())
def test_what_is_spelt_out_can_be_seen_and_read_back(data: bytes) -> None:
    shown = spelled(data)
    assert shown.isprintable()
    assert read_back(shown) == data


def read_back(shown: str) -> bytes:
    """The bytes of what `spelled` wrote, read by its description alone."""
    token = re.compile(
        r"\\x(..)|\\u(....)|\\U(........)|\\([ntr\\])|([^\\])", re.DOTALL
    )
    data = b""
    for byte, short, long, letter, char in token.findall(shown):
        if byte:
            data += bytes([int(byte, 16)])
        elif short or long:
            data += chr(int(short or long, 16)).encode()
        else:
            data += {"n": b"\n", "t": b"\t", "r": b"\r", "\\": b"\\"}.get(
                letter, char.encode()
            )
    return data


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ("\u0301".encode(), r"\u0301"),  # would be drawn over what stands before it
        ("e\u0301".encode(), "e\u0301"),
        ("\u202e".encode(), r"\u202e"),  # would turn the rest of the line around
        ("\u00a0\u200b".encode(), r"\u00a0\u200b"),
        (b"\xc2\x85", r"\u0085"),
        (b"\x85", r"\x85"),
        (b"\x1b[31m", r"\x1b[31m"),
    ],
)
def test_an_invisible_character_is_told_from_a_byte(data: bytes, shown: str) -> None:
    assert spelled(data) == shown


@given(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.sampled_from(["ascii", "cp437"]),
)
def test_what_is_spelt_out_fits_the_encoding(text: str, encoding: str) -> None:
    for shown in (spelled, quoted, dotted):
        shown(text.encode(), encoding).encode(encoding)


def test_a_dot_in_the_text_is_told_from_a_space() -> None:
    assert dotted("a b·c".encode(), "utf-8") == r"a·b\u00b7c"


@given(st.text())
def test_no_control_character_reaches_a_terminal(text: str) -> None:
    controls = {*range(0x20), *range(0x7F, 0xA0)} - {ord("\n"), ord("\t")}
    assert not controls & {ord(char) for char in neutral(text)}


@given(st.text())
def test_a_message_is_one_line(message: str) -> None:
    assert len(one_line(message).splitlines()) <= 1


@given(st.text())
def test_a_cell_is_one_line_that_is_read_back(name: str) -> None:
    shown = cell(name, "utf-8")
    assert shown.isprintable()
    assert read_back(shown) == name.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_a_line_is_neither_ended_nor_turned_around(encoding: str) -> None:
    name = "a\nb\u2028c\u202ed\u2067e\rf\x85g\th"
    for shown in (cell(name, encoding), in_a_line(name), one_line(name)):
        assert len(shown.splitlines()) == 1
        assert not set(name[1::2]) & set(shown)
    assert in_a_line("עברית \\ é") == "עברית \\ é"


@given(st.binary())
def test_what_the_system_could_not_decode_can_be_shown(raw: bytes) -> None:
    path = raw.decode("utf-8", "surrogateescape")
    assert legible(path) == raw.decode("utf-8", "backslashreplace")
    legible(path + "\ud83d").encode("utf-8")


def test_json_is_read_back_as_it_was() -> None:
    found = {"a": [], "b": {}, "c": {"d": "naïve\n"}, "e": [{"f": [1, 2]}, {"g": None}]}
    assert json.loads(json_text(found)) == found
    assert json_text(found).isascii()
    assert json.loads(json_text(found, "utf-8")) == found
    assert "naïve" in json_text(found, "utf-8")


@given(st.text(), st.sampled_from(["ascii", "cp437", "utf-8"]))
def test_json_has_the_characters_that_fit_and_escapes_for_others(
    text: str, encoding: str
) -> None:
    written = json_text({"text": text}, encoding)
    written.encode(encoding)
    assert json.loads(written) == {"text": text}
    assert not re.search("[\x7f-\x9f\u2028\u2029\u202e]", written)


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "ascii"])
def test_json_in_a_pipe_is_utf8_whatever_the_encoding(encoding: str) -> None:
    arguments = ("tokenize", "--json", "na\u00efve")
    status, out, _ = run(*arguments, PYTHONIOENCODING=encoding)
    assert status == 0
    assert [row["text"] for row in json.loads(out.decode())] == ["na", "ïve"]
    assert ("ïve".encode() in out) == (encoding == "utf-8")


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (1, "..."),
        (10, "...tensors"),
        (20, "...model.safetensors"),
        (21, ".../model.safetensors"),
        (30, ".../tiny/model.safetensors"),
        (34, ".../more/tiny/model.safetensors"),
        (39, "/models/and/more/tiny/model.safetensors"),
    ],
)
def test_a_long_path_loses_its_first_folders(width: int, shown: str) -> None:
    assert shortened("/models/and/more/tiny/model.safetensors", width) == shown


def test_a_windows_path_is_shortened_at_its_own_separators() -> None:
    assert shortened(r"C:\models\tiny\model.safetensors", 30) == (
        r"...\tiny\model.safetensors"
    )


def test_columns_are_aligned_by_the_width_of_characters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [("日本", "1"), ("a", "10")]
    assert table(("x", "n"), rows, right=("n",)).plain == "x      n\n日本   1\na     10"


@given(
    st.lists(st.tuples(st.text("a日 b"), st.integers().map(str)), min_size=1),
    st.sampled_from([20, 30, 80]),
)
def test_a_plain_table_is_the_table_without_its_colours(
    rows: list[tuple[str, str]], columns: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        patch.setenv("FORCE_COLOR", "1")
        rows = [(f".{name}", number) for name, number in rows]
        plain = plain_table(("name", "n"), rows, right=("n",))
        assert plain == table(("name", "n"), rows, right=("n",)).plain


# Streams


class Terminal(io.StringIO):
    """A standard output that says it is a terminal, and counts what is flushed."""

    encoding = "utf-8"

    def __init__(self) -> None:
        super().__init__()
        self.flushed: list[str] = []

    def isatty(self) -> bool:
        return True

    def flush(self) -> None:
        self.flushed.append(self.getvalue())


def test_each_piece_is_flushed_and_the_last_line_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    with Output() as output:
        output.write("Once")
        output.write(" up\x1b]0;title\x07on")
    assert terminal.flushed == [
        "Once",
        r"Once up\x1b]0;title\x07on",
        "Once up\\x1b]0;title\\x07on\n",
    ]


def test_an_error_in_the_middle_of_a_line_begins_a_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    with suppress(MemoryError), Output() as output:
        output.write("Once")
        raise MemoryError
    assert terminal.getvalue() == "Once\n"


@pytest.mark.parametrize(
    ("word", "text"),
    [("naïve", "naïve"), ("na\udcc3\udcafve", "naïve"), ("", "")],
)
def test_an_argument_is_utf8_whatever_the_system_made_of_it(
    word: str, text: str
) -> None:
    assert console.decoded(word, "TEXT") == text


@pytest.mark.skipif(os.name == "nt", reason="arguments are no bytes on Windows")
@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("ab\udcff", "TEXT is not UTF-8: byte 0xff at position 2"),
        ("é\udcc3", "TEXT is not UTF-8: byte 0xc3 at position 2"),
        ("a\ud83d", "TEXT has half of a surrogate pair at position 1"),
    ],
)
def test_an_argument_that_is_no_text_is_refused_with_its_position(
    word: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tokenize", word]) == 1
    assert capsys.readouterr() == ("", f"gpt2hw: error: {told}\n")


def test_standard_input_that_is_no_text_is_refused_with_its_position(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = io.TextIOWrapper(io.BytesIO(b"caf\xc3\xa9 \xe9"))
    monkeypatch.setattr(sys, "stdin", broken)
    assert main(["tokenize", "-"]) == 1
    told = "standard input is not UTF-8: byte 0xe9 at position 6"
    assert capsys.readouterr() == ("", f"gpt2hw: error: {told}\n")


def test_a_standard_input_that_is_closed_is_an_error_of_ours(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["tokenize", "-"]) == 1
    assert "standard input is closed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (MemoryError(), "not enough memory"),
        (
            RuntimeError("[enforce fail] can't allocate memory: 9 bytes"),
            "not enough memory",
        ),
        (RuntimeError("could not create a primitive"), "not enough memory"),
        (
            PermissionError(13, "Permission denied", "a.safetensors"),
            "a.safetensors: Perm",
        ),
        (IsADirectoryError(21, "Is a folder", ".b.part", None, "b"), "b: Is a folder"),
        (OSError(28, "No space left on device"), "standard output: No space left"),
        (OSError(27, "Too large", "a.txt"), "a.txt: Too large"),
        (OSError(5, "Input/output error"), "Input/output error"),
        (ModuleNotFoundError("No module named 'torch'"), "No module named 'torch'"),
        (ValueError("two\nlines"), "two. lines"),
    ],
)
def test_an_error_that_can_be_expected_is_told_in_one_line(
    error: Exception,
    told: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("gpt2hw.cli._run", fail)
    assert main([]) == 1
    errors = capsys.readouterr().err
    assert errors.startswith(f"gpt2hw: error: {told}")
    assert errors.count("\n") == 1


def test_an_error_is_told_without_a_pattern_to_compile(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # That takes memory, of which there may be too little: it is what is to be told.
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("gpt2hw.cli._run", fail)
    monkeypatch.setattr(re, "sub", fail)
    monkeypatch.setattr(re, "compile", fail)
    assert main([]) == 1
    assert capsys.readouterr().err.startswith("gpt2hw: error: not enough memory")


def test_a_fault_of_this_program_keeps_its_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("CUDA error: an illegal memory access")

    monkeypatch.setattr("gpt2hw.cli._run", fail)
    with pytest.raises(RuntimeError):
        main([])


@pytest.mark.parametrize(
    ("error", "is_closed"),
    [
        (BrokenPipeError(32, "Broken pipe"), True),
        (OSError(28, "No space left on device"), False),
        (BrokenPipeError(32, "Broken pipe", "a/named/pipe"), False),
        (ValueError("32"), False),
    ],
)
def test_a_closed_pipe_is_told_from_other_errors(
    error: Exception, is_closed: bool
) -> None:
    assert console.is_closed_pipe(error) == is_closed


def test_on_windows_a_closed_pipe_is_an_invalid_argument_without_a_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed, bad_name = OSError(22, "Invalid argument"), OSError(22, "Invalid", "a?b")
    assert not console.is_closed_pipe(closed)
    monkeypatch.setattr(console.os, "name", "nt")
    assert console.is_closed_pipe(closed)
    assert not console.is_closed_pipe(bad_name)


COUNTS_GARBAGE = """
import gc
from gpt2hw.cli import main
{before}
main({argv})
main(["tokenize", "--ids", "Hi"])
print(gc.get_freeze_count(), gc.isenabled())
"""


def frozen_and_collecting(argv: list[str] | None, before: str = "") -> list[str]:
    """What a process of its own says after a command: here, torch is long imported."""
    program = COUNTS_GARBAGE.format(argv=argv, before=before)
    done = subprocess.run(
        [sys.executable, "-c", program, "tokenize", "--ids", "Hi"],
        capture_output=True,
        text=True,
        env=CLEAN,
    )
    return done.stdout.splitlines()[-1].split()


def test_in_a_process_of_ours_imports_are_left_out_of_the_search_for_garbage() -> None:
    frozen, collecting = frozen_and_collecting(None)
    assert int(frozen) > 10_000
    assert collecting == "True"


def test_in_a_user_s_process_nothing_is_left_out_of_the_search_for_garbage() -> None:
    assert frozen_and_collecting(["tokenize", "--ids", "Hi"]) == ["0", "True"]


def test_where_the_search_is_off_already_it_stays_off() -> None:
    assert frozen_and_collecting(None, "gc.disable()") == ["0", "False"]


@pytest.mark.parametrize("ours", [True, False])
def test_the_search_for_garbage_goes_on_after_an_import_that_fails(
    ours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "_process_is_ours", ours)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(gc, "freeze", lambda: None)

    def imports() -> None:
        with console.importing():
            assert gc.isenabled() is not ours
            raise ImportError

    with pytest.raises(ImportError):
        imports()
    assert gc.isenabled()


def test_a_file_that_an_interruption_leaves_open_is_no_warning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with console.warnings_in_one_line():
        warnings.warn("unclosed file", ResourceWarning, stacklevel=1)
    assert capsys.readouterr().err == ""


# Whole processes


def test_the_reader_may_leave_before_the_end(
    started: list[subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    process = start_long(tmp_path)
    started.append(process)
    assert stream_of(process, "stdout").readline().endswith(b'"one"\n')
    stream_of(process, "stdout").close()
    assert process.wait(60) == 0
    assert stream_of(process, "stderr").read() == b""


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["tokenize", "Hi"]])
def test_a_pipe_that_nobody_reads_is_no_error(arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*COMMAND, *arguments],
        stdout=writer,
        stderr=subprocess.PIPE,
        env=CLEAN,
        timeout=60,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


@posix
def test_standard_output_may_be_closed_or_refuse(tmp_path: Path) -> None:
    shell = ["sh", "-c", '"$0" -m gpt2hw --version >&-; "$0" -m gpt2hw inspect 2>&-']
    done = subprocess.run(
        [*shell, sys.executable], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert (done.returncode, done.stderr) == (0, b"")
    (tmp_path / "out.txt").touch()
    with (tmp_path / "out.txt").open("rb") as only_read:
        done = subprocess.run(
            [*COMMAND, "inspect"], stdout=only_read, stderr=subprocess.PIPE
        )
    told = b"gpt2hw: error: standard output: Bad file descriptor\n"
    assert (done.returncode, done.stderr) == (1, told)


@posix
def test_statuses_are_the_same_where_nobody_can_read_the_errors() -> None:
    for arguments, status in ([], 2), (["inspect", "nonesuch"], 1), (["--version"], 0):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(
            [*COMMAND, *arguments], stdout=subprocess.DEVNULL, stderr=writer
        )
        os.close(writer)
        assert done.returncode == status


@posix
def test_a_file_that_grows_too_large_is_named(tmp_path: Path) -> None:
    file = tmp_path / "trace.safetensors"
    limited = ["sh", "-c", 'ulimit -f 1; "$0" "$@"', *COMMAND]
    done = subprocess.run(
        [*limited, "trace", "Once", "--save", str(file)],
        capture_output=True,
        text=True,
        env=CLEAN | {"PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.stderr == f"gpt2hw: error: {file}: File too large\n"
    assert (done.returncode, done.stdout, [*tmp_path.iterdir()]) == (1, "", [])
    out = tmp_path / "out.txt"
    with out.open("wb") as stream:
        done = subprocess.run(
            [*limited, "inspect", "--json"], stdout=stream, stderr=subprocess.PIPE
        )
    assert done.stderr == b"gpt2hw: error: standard output: File too large\n"
    assert done.returncode == 1


def test_warnings_are_ours_by_their_module_and_not_by_their_folder(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with console.warnings_in_one_line():
        for text, module in (
            ("ours", "gpt2hw.pretrained"),
            ("another's", "torchless"),
            ("torch's", "torch"),
            ("torch's part's", "torch.cuda"),
        ):
            file = "/home/torch/gpt2hw/file.py"
            warnings.warn_explicit(text, UserWarning, file, 1, module)
    told = "gpt2hw: warning: ours\ngpt2hw: warning: another's\n"
    assert capsys.readouterr().err == told


@posix
def test_ctrl_c_in_the_middle_of_a_story_ends_it_quietly(
    started: list[subprocess.Popen[bytes]],
) -> None:
    options = ("--max-new-tokens", "1000000", "--overflow", "slide", "--only-new")
    process = start("generate", "Once upon a time", *options)
    started.append(process)
    assert stream_of(process, "stdout").read(1)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)  # an impatient user's second one
    assert process.wait(30) == 130
    assert stream_of(process, "stderr").read() == b""


@posix
def test_ctrl_c_does_not_wait_for_a_reader_who_is_stuck(
    started: list[subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writer, b"full")
    os.set_blocking(writer, True)
    # A folder without a tokenizer of its own: a warning tells that it has begun.
    (tmp_path / "config.json").write_text('{"vocab_size": 50257}', encoding="utf-8")
    command = [*COMMAND, "tokenize", "-m", str(tmp_path), "Hi"]
    process = subprocess.Popen(
        command, stdout=writer, stderr=subprocess.PIPE, env=CLEAN
    )
    started.append(process)
    assert b"warning" in stream_of(process, "stderr").readline()
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert stream_of(process, "stderr").read() == b""
    os.close(reader)
    os.close(writer)


@posix
def test_ctrl_c_while_torch_is_imported_ends_quietly(
    started: list[subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    # An import that swallows the interruption, as a part of a large library may.
    slow = tmp_path / "torch" / "__init__.py"
    slow.parent.mkdir()
    slow.write_text(
        "import time\n"
        "try:\n    print('importing', flush=True)\n    time.sleep(60)\n"
        "except BaseException:\n    time.sleep(60)\n",
        encoding="utf-8",
    )
    path = os.pathsep.join([str(tmp_path), CLEAN.get("PYTHONPATH", "")])
    process = start("generate", "Once", PYTHONPATH=path)
    started.append(process)
    assert stream_of(process, "stdout").readline() == b"importing\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert stream_of(process, "stderr").read() == b""


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "cp437", "utf-8"])
def test_any_text_can_be_shown_in_any_encoding(encoding: str) -> None:
    text = "naïve — ☃ 👍"
    status, out, errors = run("tokenize", text, PYTHONIOENCODING=encoding)
    assert (status, errors) == (0, "")
    if encoding == "cp1252":
        assert '"ïve"'.encode("cp1252") in out
        assert '" —"'.encode("cp1252") in out
    if encoding == "ascii":
        assert rb'"\u00efve"' in out


@posix
def test_the_c_locale_reads_arguments_as_utf8() -> None:
    for locale in ({"LC_ALL": "C"}, BARE_C):
        status, out, errors = run("tokenize", "--ids", "naïve 日".encode(), **locale)
        assert (status, out, errors) == (0, b"2616 38776 10545 245 98\n", "")
    status, out, errors = run("tokenize", b"na\xefve", **BARE_C)
    assert (status, out) == (1, b"")
    assert errors.endswith("TEXT is not UTF-8: byte 0xef at position 2\n")


@posix
@pytest.mark.parametrize("name", ["é".encode(), b"a\xff", "日".encode()])
@pytest.mark.parametrize("locale", [BARE_C, {"PYTHONUTF8": "1"}])
def test_a_path_stays_as_the_system_gives_it(
    name: bytes, locale: dict[str, str], tmp_path: Path
) -> None:
    folder = os.fsencode(tmp_path) + b"/" + name
    try:
        shutil.copytree(os.fsencode(SHIPPED / "tiny"), folder)
    except OSError:
        pytest.skip("the file system has no such name")
    for place in (folder, folder + b"/model.safetensors"):
        for options in ((), ("--json",)):
            status, out, errors = run("inspect", place, *options, **locale)
            assert (status, errors) == (0, "")
            assert b"h.0.ln_1.weight" in out
    save = folder + b"/new.safetensors"
    status, _, errors = run(
        *("trace", "naïve".encode(), "-m", folder, "--save", save), **locale
    )
    assert status == 0, errors
    assert os.path.isfile(save)  # noqa: PTH113 -- bytes
    shown = name.decode("utf-8", "backslashreplace")
    assert shown.encode("ascii", "backslashreplace").decode() in errors or (
        locale is not BARE_C
    )
    status, _, errors = run("inspect", folder + b"/none.safetensors", **locale)
    assert status == 1
    assert errors.endswith("none.safetensors: No such file or directory\n")
    assert "udc" not in errors


@posix
def test_a_story_in_an_old_console_loses_no_character() -> None:
    options = ("--max-new-tokens", "0", "--model", "tiny")
    status, out, errors = run("generate", "naïve ☃", *options, PYTHONIOENCODING="cp437")
    assert (status, out, errors) == (0, b"na\x8bve \\u2603\n", "")


# A terminal


def seen_on_a_terminal(*arguments: str, **environment: str) -> str:
    """What a terminal of 60 columns gets to see."""
    import pty
    import termios

    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 60))
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=CLEAN | {"TERM": "xterm-256color", "PYTHONUTF8": "1"} | environment,
    )
    os.close(theirs)
    seen = b""
    try:
        while block := os.read(ours, 4096):
            seen += block
    except OSError:  # Linux's way to say that the other end is closed
        pass
    os.close(ours)
    assert process.wait(60) == 0, seen
    return seen.decode().replace("\r\n", "\n")


@posix
def test_on_a_terminal_pieces_stand_above_their_ids_in_two_colours() -> None:
    seen = seen_on_a_terminal("tokenize", "Hello world")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", seen)
    assert plain == "Hello ·world\n15496 995\ntokenizer of gpt2: 2 tokens\n"
    grounds = re.findall(r"48;5;(\d+)mHello.*48;5;(\d+)m·world", seen)
    assert len({*grounds[0]}) == 2


@posix
def test_a_character_in_several_tokens_is_explained_once() -> None:
    seen = seen_on_a_terminal("tokenize", "’ ’", TERM="dumb")
    told = r"\xe2\x80 \x99: one character in two tokens" + "\n"
    assert seen.count("one character") == 1
    assert seen.endswith(told + "tokenizer of gpt2: 4 tokens\n")


@posix
def test_a_terminal_is_told_the_model_and_how_to_see_less() -> None:
    seen = seen_on_a_terminal("trace", "Once", "-n", "embed", TERM="dumb")
    assert seen.startswith("model tiny: 2 tokens, 1 value\n")
    assert "-n NAME" not in seen
    seen = seen_on_a_terminal("trace", "Once", NO_COLOR="1")
    seen = re.sub(r"\x1b\[[0-9;]*m", "", seen)
    assert seen.endswith("-n NAME shows fewer values: -n weights, or -n 'h.0.*'\n")
    assert max(map(len, seen.splitlines())) <= 60
    seen = seen_on_a_terminal("tokenize", "--decode", "1", TERM="dumb")
    assert seen == '"\ntokenizer of gpt2\n'
    for option in ("--ids", "--json"):
        seen = seen_on_a_terminal("tokenize", option, "Hi", TERM="dumb")
        assert "gpt2" not in seen


@posix
@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colours_can_be_refused(environment: dict[str, str]) -> None:
    seen = seen_on_a_terminal("tokenize", "Hi [red]there[/red]", **environment)
    assert not re.search(r"\x1b\[[0-9;]*[34][0-9]", seen)
    assert "red" in seen


@posix
def test_a_story_cannot_give_orders_to_a_terminal() -> None:
    prompt = "Once [b]\x1b]0;owned\x07\r\nmore"
    seen = seen_on_a_terminal("generate", prompt, "--max-new-tokens", "1", TERM="dumb")
    assert seen.startswith("Once [b]\\x1b]0;owned\\x07\nmore")
    assert "\x1b" not in seen


@posix
def test_a_narrow_terminal_gets_rows_in_two_lines() -> None:
    seen = seen_on_a_terminal("inspect", "tiny", COLUMNS="40", NO_COLOR="1")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", seen)
    assert "\nwte.weight\n  F16" in plain
    assert max(map(len, plain.splitlines())) <= 40
    assert plain.startswith("52 tensors: 2,222,208 parameters, 0\nbuffers; F16, 4.4 MB")
    assert "\n\n\n" not in plain
    piped = run("inspect", "tiny", COLUMNS="40")[1].decode()
    assert re.search(r"^wte\.weight +F16 +\[\d+, \d+\] +[\d,]+$", piped, re.MULTILINE)


@posix
@pytest.mark.parametrize("columns", ["0", "1", "6", "-5", "²", "", "x", "9" * 5000])
def test_a_width_that_is_none_hides_nothing(columns: str) -> None:
    environment = {"COLUMNS": columns, "LINES": columns, "NO_COLOR": "1"}
    seen = seen_on_a_terminal("inspect", "tiny", **environment)
    assert "wte.weight" in seen
    status, out, errors = run("inspect", FORCE_COLOR="1", **environment)
    assert (status, errors) == (0, "")
    assert b"wte.weight" in out


@pytest.mark.parametrize("columns", ["0", "1", "6", "-5", "²", "", "x", "9" * 5000])
@pytest.mark.parametrize("command", [[], ["generate"], ["trace"]])
def test_help_fits_a_width_that_is_none(
    columns: str,
    command: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert main([*command, "--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Usage: gpt2hw")
    assert "--help" in out
