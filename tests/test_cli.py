"""What each command says, and what it refuses."""

import io
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gpt2hw
from gpt2hw import (
    GPT2,
    GPT2Config,
    Sampler,
    Tokenizer,
    generate,
    read_safetensors,
    trace,
)
from gpt2hw.cli import main
from gpt2hw.cli.inspect_command import place_of
from gpt2hw.cli.options import usual_threads
from gpt2hw.cli.token_views import first_split
from gpt2hw.cli.tokenize_command import parse_ids
from gpt2hw.cli.trace_view import summary
from gpt2hw.cli.writing import stats_lines, threads_told, unescaped
from gpt2hw.hub import SHIPPED
from tokenizer_judges import ids_by_tiktoken

Captured = pytest.CaptureFixture[str]
Give = Callable[[bytes], None]
TINY = SHIPPED / "tiny"


def run(capsys: Captured, *arguments: str, status: int = 0) -> tuple[str, str]:
    """Standard output and standard error of a command that ends with `status`."""
    found = main(arguments)
    out, errors = capsys.readouterr()
    assert found == status, errors
    if status:
        assert out == ""
        assert errors.startswith("gpt2hw: error: ")
        assert errors.count("\n") == 1
    return out, errors


@pytest.fixture
def give(monkeypatch: pytest.MonkeyPatch) -> Give:
    """Puts bytes on standard input."""

    def put(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return put


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """A model as small as tiny gains nothing from more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def tiny() -> tuple[GPT2, Tokenizer]:
    return GPT2.from_pretrained("tiny"), Tokenizer.from_pretrained("tiny")


# The program


def test_the_version_is_the_packages(capsys: Captured) -> None:
    assert run(capsys, "--version") == (f"gpt2hw {gpt2hw.__version__}\n", "")


def test_help_names_every_command(capsys: Captured) -> None:
    out, _ = run(capsys, "--help")
    assert re.findall("^  ([a-z]+)  ", out, re.MULTILINE) == [
        *("generate", "tokenize", "inspect", "trace", "download", "evaluate", "bench")
    ]
    assert run(capsys, "-h")[0] == run(capsys, "help")[0] == out
    page = run(capsys, "help", "trace")[0]
    assert page == run(capsys, "trace", "--help")[0]


@pytest.mark.parametrize(
    ("command", "default"),
    [
        *(("generate", "tiny"), ("tokenize", "gpt2; "), ("trace", "tiny")),
        *(("inspect", ""), ("evaluate", "tiny")),
    ],
)
def test_help_names_the_model_that_is_used_by_default(
    command: str, default: str, capsys: Captured
) -> None:
    page = " ".join(run(capsys, command, "--help")[0].split())
    option = re.search(r"--model .*?(\[default: [^\]]*|$)", page)
    assert option
    assert default in option[1]
    if command == "inspect":
        assert "[default: tiny]" in page


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize(
    "command", ["generate", "tokenize", "inspect", "trace", "download", "evaluate"]
)
def test_a_page_of_help_fits_the_terminal(
    command: str, columns: int, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    out, errors = run(capsys, command, "--help")
    assert errors == ""
    assert out.startswith(f"Usage: gpt2hw {command} [OPTIONS]")
    assert max(map(len, out.splitlines()[1:])) <= min(columns, 88)
    assert out.isascii()


def test_without_a_command_the_help_is_an_error_of_usage(capsys: Captured) -> None:
    assert main([]) == 2
    out, errors = capsys.readouterr()
    assert out == ""
    assert errors.startswith("Usage: gpt2hw [OPTIONS] COMMAND")


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("write", "no command 'write'; there are generate, tokenize, inspect,"),
        ("gen", "no command 'gen'; did you mean generate?"),
        ("help gen", "did you mean generate?"),
        ("--words", "no option --words"),
        ("--seed 3 generate", "no option --seed; options stand after the command"),
        ("generate", "the PROMPT is missing; put - to read it from standard input"),
        ("generate Once --words 3", "no option --words"),
        ("generate Once --temp 3", "no option --temp; did you mean --temperature?"),
        ("generate Once --seed", "--seed needs a value: --seed N"),
        ("generate Once --greedy=1", "--greedy takes no value"),
        ("generate Once upon", "but there are two: put quotes around it"),
        ("generate Once upon a --seed 3 time", "but there are four: put quotes"),
        ("trace 1 2 3 4 5", "one text is expected, but there are 5: put quotes"),
        ("generate Once --max-new-tokens -1", "--max-new-tokens"),
        ("generate Once --max-new-tokens many", "--max-new-tokens"),
        ("generate Once --temperature -1", "--temperature"),
        ("generate Once --temperature nan", "--temperature"),
        ("generate Once --temperature inf", "--temperature"),
        ("generate Once --temperature x", "must be a number from 0 up, not 'x'"),
        ("generate Once --top-k 0", "--top-k must be an integer from 1 up, not 0"),
        ("generate Once --top-k 1.5", "--top-k must be an integer from 1 up, not 1.5"),
        ("generate Once --top-p 0", "--top-p"),
        ("generate Once --top-p 1.1", "--top-p"),
        ("generate Once --top-p nan", "--top-p"),
        ("generate Once --seed -1", "--seed"),
        ("generate Once --seed 18446744073709551616", "--seed"),
        (
            "generate Once --overflow foo",
            "--overflow must be one of error, stop, slide, not 'foo'",
        ),
        ("generate Once --stop=", "--stop must not be empty"),
        ("generate Once --greedy --top-k 4", "--top-k"),
        ("generate Once --greedy --temperature 0.5", "--temperature"),
        ("generate Once --threads 0", "--threads"),
        ("generate Once --threads 1025", "an integer from 1 to 1024, not 1025"),
        ("generate Once --threads two", "--threads"),
        ("trace Once --threads 0", "--threads"),
        ("trace Once --save .", "--save cannot write '.': it is a folder"),
        ("trace Once --save=", "--save"),
        ("trace Once --save -", "--save needs a file: - would be standard output"),
        ("trace Once --save nonesuch/trace.safetensors", "--save"),
        ("tokenize", "the TEXT is missing"),
        ("tokenize --ids --json Once", "--ids and --json do not go together"),
        ("tokenize --decode one", "'one' is not an id"),
        ("inspect tiny gpt2", "one model is expected, but there are two ("),
        ("inspect tiny -m gpt2", "named twice: tiny and --model gpt2"),
        ("inspect --modl tiny", "no option --modl; did you mean --model?"),
    ],
)
def test_a_wrong_use_is_named_in_one_line_with_status_2(
    line: str, named: str, capsys: Captured
) -> None:
    _, errors = run(capsys, *line.split(" "), status=2)
    assert named in errors
    words = line.split(" ")[line.startswith("help ") :]
    is_command = words[0] in ("generate", "tokenize", "inspect", "trace")
    place = f"gpt2hw {words[0]}" if is_command else "gpt2hw"
    assert errors.endswith(f" (see {place} --help)\n")
    for librarys in ("Invalid", "Input should", "Missing", "Got unexpected", "No such"):
        assert librarys not in errors


def test_a_text_that_begins_with_a_dash_is_told_its_place(capsys: Captured) -> None:
    _, errors = run(capsys, "tokenize", "-nonsense", status=2)
    told = "no option -nonsense; a text that begins with - stands after --"
    assert told in errors
    for line in ("tokenize Hi -x", "inspect -x", "-x", "generate --temp 3"):
        assert "stands after --" not in run(capsys, *line.split(), status=2)[1]
    assert run(capsys, "tokenize", "--ids", "--", "--ids") == ("438 2340\n", "")


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("generate Once --model nonesuch", "'nonesuch'"),
        ("generate Once --model gpt2-xl", "'gpt2-xl' is not on this machine"),
        ("generate Once --model ./nonesuch", "nonesuch"),
        ("generate Once --device nonesuch", "device"),
        ("generate Once --overflow error --max-new-tokens 999", "256 positions"),
        ("tokenize Once --model nonesuch", "'nonesuch'"),
        ("tokenize --decode 50257", "50257"),
        ("inspect nonesuch.safetensors", "nonesuch.safetensors: No such file"),
        ("trace Once --name nonesuch", "--name"),
    ],
)
def test_an_error_of_ours_is_one_line_with_status_1(
    line: str,
    named: str,
    capsys: Captured,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    for cache in ("GPT2HW_CACHE", "HF_HUB_CACHE"):
        monkeypatch.setenv(cache, str(tmp_path / cache))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    _, errors = run(capsys, *line.split(" "), status=1)
    assert named in errors


# generate


def test_generate_prints_the_prompt_and_what_the_library_writes(
    capsys: Captured, tiny: tuple[GPT2, Tokenizer]
) -> None:
    sampler = Sampler(temperature=0.8, top_p=0.95, seed=3)
    done = generate(*tiny, "Once upon", max_new_tokens=20, sampler=sampler)
    options = ("--max-new-tokens", "20", "--seed", "3")
    out, errors = run(capsys, "generate", "Once upon", *options)
    assert out == f"Once upon{done.text}\n"
    assert errors == ""
    assert run(capsys, "generate", "Once upon", *options, "--only-new")[0] == (
        f"{done.text}\n"
    )


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (["--greedy"], {"temperature": 0.0}),
        (["--temperature", "0"], {"temperature": 0.0}),
        (["--temperature", "1.5"], {"temperature": 1.5, "top_p": 0.95}),
        (["--top-k", "3"], {"temperature": 0.8, "top_k": 3, "top_p": 0.95}),
        (["--top-p", "0.4"], {"temperature": 0.8, "top_p": 0.4}),
        (["--top-p", "1"], {"temperature": 0.8, "top_p": 1.0}),
    ],
)
def test_each_setting_reaches_the_sampler(
    options: list[str],
    settings: dict[str, float],
    capsys: Captured,
    tiny: tuple[GPT2, Tokenizer],
) -> None:
    sampler = Sampler(**settings, seed=11)  # type: ignore[arg-type]
    done = generate(*tiny, "The", max_new_tokens=12, sampler=sampler)
    options = [*options, "--seed", "11", "--max-new-tokens", "12", "--only-new"]
    assert run(capsys, "generate", "The", *options)[0] == f"{done.text}\n"


def test_without_a_seed_each_run_is_another(capsys: Captured) -> None:
    options = ("--temperature", "3", "--max-new-tokens", "8", "--top-p", "1")
    texts = {run(capsys, "generate", "The", *options)[0] for _ in range(3)}
    assert len(texts) > 1


def test_the_seed_that_stats_tell_gives_the_same_text(capsys: Captured) -> None:
    options = ("--max-new-tokens", "8", "--stats")
    out, errors = run(capsys, "generate", "The", *options)
    seed = re.search(r"^seed +(\d+)$", errors, re.MULTILINE)
    assert seed
    assert run(capsys, "generate", "The", *options, "--seed", seed[1])[0] == out


def test_stats_tell_counts_and_times(capsys: Captured) -> None:
    options = ("--max-new-tokens", "5", "--greedy", "--stats")
    _, errors = run(capsys, "generate", "Once upon a time", *options)
    lines = [line.split(maxsplit=1) for line in errors.splitlines()]
    assert [words[0] for words in lines] == [
        *("prompt", "written", "first", "then", "threads")
    ]
    assert re.fullmatch("5 tokens, ended by --max-new-tokens", lines[1][1])
    assert re.fullmatch(r"token +\d+\.\d{3} s", lines[2][1])
    assert re.fullmatch(r"\d+\.\d tokens per second", lines[3][1])
    assert lines[4][1] == "1 for a small model; --threads N sets it"
    options = ("--max-new-tokens", "1", "--stats", "--threads", "1")
    _, errors = run(capsys, "generate", "", *options)
    assert re.search("^prompt +1 token$", errors, re.MULTILINE)
    assert re.search("^written +1 token, ended by", errors, re.MULTILINE)
    assert re.search("^threads +1$", errors, re.MULTILINE)


def test_the_speed_leaves_out_the_first_token(tiny: tuple[GPT2, Tokenizer]) -> None:
    done = generate(*tiny, "The", max_new_tokens=3)
    lines = stats_lines(done, [2.0, 2.25, 2.5], None)
    assert lines[2].endswith("2.000 s")
    assert lines[3].endswith("4.0 tokens per second")
    nothing = generate(*tiny, "The", max_new_tokens=0)
    assert len(stats_lines(nothing, [], None)) == 2


def test_a_stop_string_ends_the_text_before_it(capsys: Captured) -> None:
    options = ("--greedy", "--max-new-tokens", "30", "--only-new")
    whole, _ = run(capsys, "generate", "Once upon a time", *options)
    stop = whole.split()[3]
    cut, _ = run(
        capsys, "generate", "Once upon a time", *options, "--stop", "~", "--stop", stop
    )
    assert cut == whole[: whole.index(stop)] + "\n"


@given(st.text(st.sampled_from("a\n\t\\n t"), min_size=1))
def test_a_stop_string_can_be_written_with_escapes(text: str) -> None:
    escapes = {"\\": r"\\", "\n": r"\n", "\t": r"\t"}
    assert unescaped("".join(escapes.get(char, char) for char in text)) == text


def test_other_backslashes_in_a_stop_string_are_themselves() -> None:
    assert unescaped(r"C:\dir \" ") == r"C:\dir \" "


def test_the_prompt_may_be_empty(
    capsys: Captured, tiny: tuple[GPT2, Tokenizer]
) -> None:
    done = generate(*tiny, "", max_new_tokens=5)
    options = ("--greedy", "--max-new-tokens", "5")
    assert run(capsys, "generate", "", *options)[0] == f"{done.text}\n"


@pytest.mark.parametrize(
    ("given_", "prompt"),
    [
        (b"Once\n", "Once"),
        (b"Once\r\n", "Once"),
        (b"Once", "Once"),
        (b"Once\n\n", "Once\n"),
        (b"a\r\nb\r\n", "a\r\nb"),
        (b" Once ", " Once "),
        (b"", ""),
    ],
)
def test_one_line_end_of_a_prompt_from_standard_input_is_dropped(
    given_: bytes, prompt: str, capsys: Captured, give: Give
) -> None:
    give(given_)
    options = ("--greedy", "--max-new-tokens", "2")
    text, _ = run(capsys, "generate", "-", *options)
    assert text == run(capsys, "generate", prompt, *options)[0]


def test_a_full_context_ends_the_text_with_a_notice(capsys: Captured) -> None:
    long = "the " * 250
    out, errors = run(capsys, "generate", long, "--greedy")
    assert out.startswith(long)
    told = "stopped: the model's 256 positions are used up; --overflow slide goes on"
    assert errors == f"gpt2hw: {told}\n"
    _, errors = run(capsys, "generate", long, "--greedy", "--overflow", "stop")
    assert errors == ""
    long += "the " * 5
    options = ("--overflow", "slide", "--max-new-tokens", "4", "--stats")
    _, errors = run(capsys, "generate", long, *options)
    assert "4 tokens, ended by --max-new-tokens" in errors


@pytest.mark.parametrize("way", ["error", "stop"])
def test_a_prompt_that_is_too_long_alone_is_told_in_options(
    way: str, capsys: Captured
) -> None:
    long = "the " * 300
    options = ("--overflow", way, "--max-new-tokens", "5")
    _, errors = run(capsys, "generate", long, *options, status=1)
    assert re.search("the prompt alone has 30[0-9] tokens, more than .* 256", errors)
    assert "--overflow slide" in errors
    assert "max" not in errors
    _, traced = run(capsys, "trace", long, status=1)
    assert re.search("the prompt has 30[0-9] tokens, .* 256 positions: short", traced)
    for told in (errors, traced):
        assert not re.search("max_new_tokens|overflow '|n_ctx", told)


def test_too_many_new_tokens_are_told_in_options(capsys: Captured) -> None:
    options = ("--overflow", "error", "--max-new-tokens", "999")
    _, errors = run(capsys, "generate", "", *options, status=1)
    assert "after 1 token of prompt there is room for 256 new in" in errors
    for option in ("--max-new-tokens", "--overflow stop", "--overflow slide"):
        assert option in errors
    fits = ("--overflow", "error", "--max-new-tokens", "256", "--greedy")
    run(capsys, "generate", "", *fits)


def test_threads_are_torchs(capsys: Captured) -> None:
    before = torch.get_num_threads()
    try:
        run(capsys, "generate", "Once", "--max-new-tokens", "1", "--threads", "1")
        assert torch.get_num_threads() == 1
        run(capsys, "trace", "Once", "--threads", "2")
        assert torch.get_num_threads() == 2
        run(capsys, "trace", "Once")
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


def test_a_small_model_gets_one_thread_and_a_large_one_what_torch_chooses() -> None:
    width = {"n_ctx": 64, "n_embd": 64, "n_head": 4, "n_layer": 1}
    assert usual_threads(GPT2Config(n_vocab=100_000, **width)) == 1
    assert usual_threads(GPT2Config(n_vocab=160_000, **width)) is None
    assert usual_threads(GPT2Config(n_layer=10**15)) is None  # without counting them
    assert threads_told(None, GPT2Config())[1].startswith("by torch's choice")


def test_one_thread_and_two_compute_the_same(tiny: tuple[GPT2, Tokenizer]) -> None:
    model, _ = tiny
    before = torch.get_num_threads()
    logits = []
    try:
        for n in (1, 2):
            torch.set_num_threads(n)
            logits.append(model(list(range(64))))
    finally:
        torch.set_num_threads(before)
    spread = logits[0].max() - logits[0].min()
    assert (logits[0] - logits[1]).abs().max() < 1e-4 * spread


# tokenize


def test_tokenize_prints_a_line_for_each_token(capsys: Captured) -> None:
    out, _ = run(capsys, "tokenize", 'Hello "world"\n 日[b]')
    assert out.splitlines() == [
        r'15496  "Hello"',
        r'  366  " \""',
        r' 6894  "world"',
        r'    1  "\""',
        r'  198  "\n"',
        r'10545  " \xe6"',
        r'  245  "\x97"',
        r'   98  "\xa5"',
        r'   58  "["',
        r'   65  "b"',
        r'   60  "]"',
    ]


@pytest.mark.parametrize(
    "text", ["", "Hello world", " tab\tand\n\nlines \n", "日本 👍"]
)
def test_ids_are_tiktokens_and_decode_back(text: str, capsys: Captured) -> None:
    ids, _ = run(capsys, "tokenize", "--ids", "--", text)
    assert ids == " ".join(map(str, ids_by_tiktoken(text))) + "\n"
    assert run(capsys, "tokenize", "--decode", "--", ids)[0] == text


def test_bytes_that_are_no_text_are_decoded_as_they_are(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    assert main(["tokenize", "--decode", "28839"]) == 0
    assert capsysbinary.readouterr().out == b"\xe5\x9c"


@pytest.mark.parametrize("written", ["15496 995", "[15496, 995]", " 15496,995\n"])
def test_ids_are_read_with_commas_and_brackets_or_without(written: str) -> None:
    assert parse_ids(written) == [15496, 995]


def test_json_gives_ids_bytes_and_texts(capsys: Captured) -> None:
    out, _ = run(capsys, "tokenize", "--json", "日!")
    assert json.loads(out) == [
        {"id": 33768, "bytes": "e697", "text": None},
        {"id": 98, "bytes": "a5", "text": None},
        {"id": 0, "bytes": "21", "text": "!"},
    ]


def test_explain_shows_each_merge_and_then_the_tokens(capsys: Captured) -> None:
    out, _ = run(capsys, "tokenize", "--explain", " on it")
    assert out.splitlines() == [
        "rank  makes  parts",
        "             · o n",
        "   5  on     · on",
        "  63  ·on    ·on",
        "",
        "             · i t",
        "  14  it     · it",
        "  84  ·it    ·it",
        "",
        '319  " on"',
        '340  " it"',
    ]


def test_a_text_too_long_to_explain_is_refused(capsys: Captured) -> None:
    _, errors = run(capsys, "tokenize", "--explain", "a" * 2001, status=1)
    assert "--explain takes 2000 characters at most" in errors


def test_the_end_of_text_is_plain_unless_it_is_allowed(capsys: Captured) -> None:
    text = "<|endoftext|>"
    assert run(capsys, "tokenize", "--ids", text)[0] == "27 91 437 1659 5239 91 29\n"
    assert run(capsys, "tokenize", "--ids", "--allow-special", text)[0] == "50256\n"


def test_tokenize_takes_a_models_name_or_folder(
    capsys: Captured, tmp_path: Path, tiny: tuple[GPT2, Tokenizer]
) -> None:
    ids = " ".join(map(str, tiny[1].encode("Once upon"))) + "\n"
    for file in ("merges.txt", "vocab.json"):
        shutil.copy(TINY / file, tmp_path)
    for model in ("tiny", str(tmp_path)):
        assert run(capsys, "tokenize", "--ids", "-m", model, "Once upon")[0] == ids


def test_a_folder_without_a_tokenizer_uses_gpt2s_with_a_warning_in_one_line(
    capsys: Captured, tmp_path: Path
) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"vocab_size": 50257}', encoding="utf-8")
    out, errors = run(capsys, "tokenize", "--ids", "-m", str(tmp_path), "Hello world")
    assert out == "15496 995\n"
    assert errors.startswith("gpt2hw: warning: ")
    assert errors.count("\n") == 1


def test_tokenize_keeps_every_byte_of_standard_input(
    capsys: Captured, give: Give
) -> None:
    give(b"a\r\n\n")
    assert run(capsys, "tokenize", "--ids", "-")[0] == "64 201 628\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [("plain naïve", None), ("a ’", r"\xe2\x80 \x99"), ("本!日", r"\xe6\x9c \xac")],
)
def test_the_first_character_in_several_tokens_is_found(
    text: str, shown: str | None
) -> None:
    tokenizer = Tokenizer.from_pretrained("gpt2")
    ids = tokenizer.encode(text)
    assert first_split([(i, tokenizer.token_bytes(i)) for i in ids]) == shown


@given(st.text(st.characters(min_codepoint=0x80, exclude_categories=["Cs"])))
def test_bytes_one_by_one_split_the_first_character(text: str) -> None:
    found = first_split([(n, bytes([byte])) for n, byte in enumerate(text.encode())])
    expected = " ".join(f"\\x{byte:02x}" for byte in text[:1].encode())
    assert (found or "") == expected


# inspect


def test_inspect_lists_tensors_and_totals(capsys: Captured) -> None:
    out, _ = run(capsys, "inspect")
    assert out.splitlines()[0] == (
        "52 tensors: 2,222,208 parameters, 0 buffers; F16, 4.4 MB"
    )
    assert out.splitlines()[1] == str(TINY / "model.safetensors")
    config = json.loads((TINY / "config.json").read_text(encoding="utf-8"))
    assert f"n_embd {config['n_embd']}  n_head {config['n_head']}" in out
    tensors = read_safetensors(TINY / "model.safetensors")
    for name, tensor in tensors.items():
        shape = re.escape(str(list(tensor.shape)))
        line = rf"^{re.escape(name)} +F16 +{shape} +{tensor.numel():,}$"
        assert re.search(line, out, re.MULTILINE)
    total = sum(tensor.numel() for tensor in tensors.values())
    assert re.search(rf"^parameters +{len(tensors)} +{total:,} ", out, re.MULTILINE)
    for same in (["tiny"], [str(TINY)], ["--model", "tiny"], ["-m", str(TINY)]):
        assert run(capsys, "inspect", *same)[0] == out
    run(capsys, "inspect", "", status=1)


def test_buffers_and_a_tied_head_stand_apart(capsys: Captured, tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    tensors = {
        "wte.weight": torch.zeros(5, 4),
        "lm_head.weight": torch.zeros(5, 4),
        "h.0.attn.bias": torch.zeros(1, 1, 8, 8),
        "[bold].weight": torch.zeros(3),
    }
    gpt2hw.write_safetensors(file, tensors)
    out, _ = run(capsys, "inspect", str(file))
    summary = "4 tensors: 23 parameters, 1 buffer, a tied head; F32, 428 B\n"
    assert out.startswith(summary)
    assert re.search(r"^h\.0\.attn\.bias .* 64  buffer$", out, re.MULTILINE)
    assert re.search(r"^lm_head\.weight .* 20  tied head$", out, re.MULTILINE)
    assert re.search(r"^\[bold\]\.weight .* 3$", out, re.MULTILINE)
    assert re.search(r"^parameters +2 +23 +92$", out, re.MULTILINE)
    assert re.search(r"^buffers +1 +64 +256$", out, re.MULTILINE)
    assert "n_embd" not in out


def test_inspect_gives_json(capsys: Captured) -> None:
    found = json.loads(run(capsys, "inspect", "--json")[0])
    tensors = read_safetensors(TINY / "model.safetensors")
    assert {row["name"]: row["shape"] for row in found["tensors"]} == {
        name: list(tensor.shape) for name, tensor in tensors.items()
    }
    assert found["config"]["n_vocab"] == found["tensors"][-1]["shape"][0]


def test_a_name_forges_no_row(capsys: Captured, tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    forged = "a\nparameters\u2028b\u202ec"
    gpt2hw.write_safetensors(file, {forged: torch.zeros(3)})
    out, _ = run(capsys, "inspect", str(file))
    assert r"a\nparameters\u2028b\u202ec  F32" in out
    assert len(re.findall("^parameters", out, re.MULTILINE)) == 1


@pytest.mark.parametrize("text", ["{", "[]", '{"n_embd": "many"}', "\xff"])
def test_a_config_that_cannot_be_read_is_told(
    text: str, capsys: Captured, tmp_path: Path
) -> None:
    file = tmp_path / "model.safetensors"
    gpt2hw.write_safetensors(file, {"wte.weight": torch.zeros(5, 4)})
    for options in ([], ["--json"]):
        assert "not shown" not in "".join(run(capsys, "inspect", str(file), *options))
    (tmp_path / "config.json").write_text(text, encoding="latin-1")
    out, errors = run(capsys, "inspect", str(file))
    assert errors == ""
    assert (
        len(re.findall("^the model's shape is not shown: .*", out, re.MULTILINE)) == 1
    )
    out, errors = run(capsys, "inspect", str(file), "--json")
    assert json.loads(out)["config"] is None
    assert "config.json" in errors
    assert errors.count("\n") == 1


def test_a_long_table_is_plain_and_has_the_same_rows(
    capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "model.safetensors"
    tensors = {f"h.{n}.attn.bias": torch.zeros(n % 3) for n in range(3000)}
    gpt2hw.write_safetensors(file, tensors | {"wte": torch.zeros(2)})
    fast, _ = run(capsys, "inspect", str(file))
    assert re.search(
        r"^h\.2999\.attn\.bias +F32 +\[2\] +2  buffer$", fast, re.MULTILINE
    )
    monkeypatch.setattr("gpt2hw.cli.inspect_command.MANY", 9999)
    assert run(capsys, "inspect", str(file))[0] == fast


def test_a_known_name_is_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tiny").touch()
    Path("weights").touch()
    assert place_of("tiny") == TINY
    assert place_of("weights") == Path("weights")


# trace


def test_trace_prints_each_value_and_what_comes_next(
    capsys: Captured, tiny: tuple[GPT2, Tokenizer]
) -> None:
    model, tokenizer = tiny
    ids = tokenizer.encode("Once upon a time")
    out, _ = run(capsys, "trace", "Once upon a time")
    values = trace(model, ids)
    for name, value in values.items():
        shape = re.escape(str(list(value.shape)))
        found = re.search(
            rf"^{re.escape(name)} +{shape} +(\S+) +(\S+) +(\S+)", out, re.MULTILINE
        )
        assert found, name
        norm = value.double().square().sum().sqrt()
        first = value[0, -1, 0] if value.ndim > 2 else value[-1, 0]
        expected = [float(number) for number in (value.double().mean(), norm, first)]
        assert [float(x) for x in found.groups()] == pytest.approx(expected, abs=1e-4)
    chances = torch.nn.functional.softmax(values["logits"][-1], dim=-1)
    best = int(chances.argmax())
    following = out.rpartition("\n\n")[2].splitlines()
    assert following[0].split() == ["chance", "id", "next", "token"]
    chance, token_id, token = following[1].split(maxsplit=2)
    assert float(chance.rstrip("%")) == pytest.approx(
        100 * float(chances[best]), abs=0.06
    )
    assert (token_id, token) == (str(best), f'"{tokenizer.decode([best])}"')


def test_a_trace_shows_the_last_tokens_row_and_never_the_next_heads() -> None:
    value = torch.arange(24.0).reshape(2, 4, 3)  # [n_head, n_seq, d_head]
    assert summary(value)["last_token"] == [9, 10, 11]
    assert summary(value[0])["last_token"] == [9, 10, 11]


def test_trace_shows_the_values_that_a_filter_names(
    capsys: Captured, tiny: tuple[GPT2, Tokenizer]
) -> None:
    def names(*filters: str) -> list[str]:
        options = [word for pattern in filters for word in ("--name", pattern)]
        found = json.loads(run(capsys, "trace", "Once", "--json", *options)[0])
        return [value["name"] for value in found["values"]]

    everything = list(trace(tiny[0], [1]))
    assert names() == everything
    assert names("h.0.attn.*") == [n for n in everything if n.startswith("h.0.attn.")]
    assert names("weights") == [n for n in everything if n.endswith("weights")]
    assert names("logits", "embed") == ["embed", "logits"]


def test_trace_saves_whole_tensors(
    capsys: Captured, tmp_path: Path, tiny: tuple[GPT2, Tokenizer]
) -> None:
    file = tmp_path / "trace.safetensors"
    _, errors = run(capsys, "trace", "Once upon", "--save", str(file))
    assert (
        errors
        == f"gpt2hw: wrote {len(trace(tiny[0], [1]))} values and the ids to {file}\n"
    )
    ids = tiny[1].encode("Once upon")
    _, errors = run(capsys, "trace", "Once", "-n", "embed", "--save", str(file) + "1")
    assert "wrote 1 value and the ids" in errors
    saved = read_safetensors(file)
    assert saved.pop("ids").tolist() == ids
    values = trace(tiny[0], ids)
    assert saved.keys() == values.keys()
    for name, value in values.items():
        torch.testing.assert_close(saved[name], value)


def test_the_trace_of_an_empty_prompt_is_that_of_end_of_text(
    capsys: Captured, tiny: tuple[GPT2, Tokenizer]
) -> None:
    found = json.loads(run(capsys, "trace", "", "--json", "-n", "embed")[0])
    assert found["ids"] == [tiny[1].eot_id]
    assert sum(row["probability"] for row in found["next"]) <= 1


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """The folder of a model whose second block has a bias that is not finite."""
    folder = tmp_path / "broken"
    shutil.copytree(TINY, folder)
    tensors = read_safetensors(folder / "model.safetensors")
    name = next(name for name in tensors if name.endswith("h.1.attn.c_proj.bias"))
    tensors[name][0] = torch.nan
    gpt2hw.write_safetensors(folder / "model.safetensors", tensors)
    return folder


def test_logits_that_are_not_finite_are_told_with_where_that_begins(
    broken: Path, capsys: Captured
) -> None:
    told = (
        "gpt2hw: the logits are not finite, so no token is likeliest; this begins at"
        " h.1.attn.out\n"
    )
    out, errors = run(capsys, "trace", "Once", "-m", str(broken))
    assert errors == told
    assert "%" not in out
    assert re.search(r"^h\.1\.attn\.mixed +\S+ \S+ \S+ +-?\d", out, re.MULTILINE)
    assert re.search(r"^h\.1\.attn\.out .* nan ", out, re.MULTILINE)
    out, errors = run(capsys, "trace", "Once", "-m", str(broken), "--json")
    assert errors == told
    found = json.loads(out)
    assert found["next"] is None
    assert found["values"][-1]["norm"] is None
    options = ("--json", "-n", "embed")
    assert run(capsys, "trace", "Once", "-m", str(broken), *options)[1] == told


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_replaced_by_a_file(capsys: Captured, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    options = ("--save", str(tmp_path / "pipe"))
    assert "it is a pipe" in run(capsys, "trace", "Hi", *options, status=2)[1]
    assert (tmp_path / "pipe").is_fifo()
