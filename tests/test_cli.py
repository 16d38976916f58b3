"""What each command says, and what it refuses."""

import io
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import tiktoken
import torch
from hypothesis import given
from hypothesis import strategies as st

import gpt2hw
from gpt2hw import GPT2, Sampler, Tokenizer, generate, read_safetensors, trace
from gpt2hw.cli import main
from gpt2hw.cli.inspect_command import place_of
from gpt2hw.cli.tokenize_command import parse_ids
from gpt2hw.cli.writing import stats_lines, unescaped
from gpt2hw.hub import SHIPPED

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
        *("generate", "tokenize", "inspect", "trace")
    ]
    assert run(capsys, "-h")[0] == out


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("command", ["generate", "tokenize", "inspect", "trace"])
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
        ("write", "'write'"),
        ("generate", "PROMPT"),
        ("generate Once --words 3", "--words"),
        ("generate Once upon", "upon"),
        ("generate Once --max-new-tokens -1", "--max-new-tokens"),
        ("generate Once --max-new-tokens many", "--max-new-tokens"),
        ("generate Once --temperature -1", "--temperature"),
        ("generate Once --temperature nan", "--temperature"),
        ("generate Once --temperature inf", "--temperature"),
        ("generate Once --top-k 0", "--top-k"),
        ("generate Once --top-k 1.5", "--top-k"),
        ("generate Once --top-p 0", "--top-p"),
        ("generate Once --top-p 1.1", "--top-p"),
        ("generate Once --top-p nan", "--top-p"),
        ("generate Once --seed -1", "--seed"),
        ("generate Once --overflow wrap", "--overflow"),
        ("generate Once --stop=", "--stop"),
        ("generate Once --greedy --top-k 4", "--top-k"),
        ("generate Once --greedy --temperature 0.5", "--temperature"),
        ("generate Once --threads 0", "--threads"),
        ("generate Once --threads two", "--threads"),
        ("trace Once --threads 0", "--threads"),
        ("trace Once --save .", "--save"),
        ("trace Once --save nonesuch/trace.safetensors", "--save"),
        ("tokenize", "TEXT"),
        ("tokenize --ids --json Once", "--json"),
        ("tokenize --decode one", "'one' is not an id"),
        ("inspect tiny gpt2", "gpt2"),
    ],
)
def test_a_wrong_use_is_named_in_one_line_with_status_2(
    line: str, named: str, capsys: Captured
) -> None:
    _, errors = run(capsys, *line.split(" "), status=2)
    assert named in errors
    assert re.search("see gpt2hw( [a-z]+)? --help[;)]", errors)


def test_a_text_that_begins_with_a_dash_is_told_its_place(capsys: Captured) -> None:
    _, errors = run(capsys, "tokenize", "-nonsense", status=2)
    assert "a text that begins with - stands after --" in errors
    assert run(capsys, "tokenize", "--ids", "--", "--ids") == ("438 2340\n", "")


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("generate Once --model nonesuch", "'nonesuch'"),
        ("generate Once --model gpt2-xl", "'gpt2-xl' is not on this machine"),
        ("generate Once --model ./nonesuch", "nonesuch"),
        ("generate Once --device nonesuch", "device"),
        ("generate Once --overflow error --max-new-tokens 999", "n_ctx"),
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
    assert [words[0] for words in lines] == ["prompt", "written", "first", "then"]
    assert re.fullmatch("5 tokens, ended by --max-new-tokens", lines[1][1])
    assert re.fullmatch(r"token +\d+\.\d{3} s", lines[2][1])
    assert re.fullmatch(r"\d+\.\d tokens per second", lines[3][1])


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
    assert errors == "gpt2hw: the context is full; --overflow slide would go on\n"
    _, errors = run(capsys, "generate", long, "--greedy", "--overflow", "stop")
    assert errors == ""
    long += "the " * 5
    options = ("--overflow", "slide", "--max-new-tokens", "4", "--stats")
    _, errors = run(capsys, "generate", long, *options)
    assert "4 tokens, ended by --max-new-tokens" in errors


def test_threads_are_torchs(capsys: Captured) -> None:
    before = torch.get_num_threads()
    try:
        run(capsys, "generate", "Once", "--max-new-tokens", "1", "--threads", "1")
        assert torch.get_num_threads() == 1
        run(capsys, "trace", "Once", "--threads", "2")
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


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
def test_ids_are_tiktokens_and_decode_back(
    text: str, capsys: Captured, gpt2_encoding: tiktoken.Encoding
) -> None:
    ids, _ = run(capsys, "tokenize", "--ids", "--", text)
    assert ids == " ".join(map(str, gpt2_encoding.encode_ordinary(text))) + "\n"
    assert run(capsys, "tokenize", "--decode", "--", ids)[0] == text


@pytest.fixture(scope="module")
def gpt2_encoding() -> tiktoken.Encoding:
    tokenizer = Tokenizer.from_pretrained("gpt2")
    ranks = {tokenizer.token_bytes(i): i for i in range(tokenizer.n_vocab - 1)}
    pattern = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    return tiktoken.Encoding(
        "gpt2", pat_str=pattern, mergeable_ranks=ranks, special_tokens={}
    )


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


# inspect


def test_inspect_lists_tensors_and_totals(capsys: Captured) -> None:
    out, _ = run(capsys, "inspect")
    assert out.splitlines()[0] == str(TINY / "model.safetensors")
    config = json.loads((TINY / "config.json").read_text(encoding="utf-8"))
    assert f"n_embd {config['n_embd']}  n_head {config['n_head']}" in out
    tensors = read_safetensors(TINY / "model.safetensors")
    for name, tensor in tensors.items():
        shape = re.escape(str(list(tensor.shape)))
        line = rf"^{re.escape(name)} +F16 +{shape} +{tensor.numel():,}$"
        assert re.search(line, out, re.MULTILINE)
    total = sum(tensor.numel() for tensor in tensors.values())
    assert re.search(rf"^parameters +{len(tensors)} +{total:,} ", out, re.MULTILINE)
    assert (
        out == run(capsys, "inspect", "tiny")[0] == run(capsys, "inspect", str(TINY))[0]
    )


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
        first = value.flatten()[0]
        expected = [float(number) for number in (value.double().mean(), norm, first)]
        assert [float(x) for x in found.groups()] == pytest.approx(expected, abs=1e-4)
    chances = torch.nn.functional.softmax(values["logits"][-1], dim=-1)
    best = int(chances.argmax())
    following = out.rpartition("\n\n")[2].splitlines()
    assert following[0].split() == ["next", "id", "token"]
    chance, token_id, token = following[1].split(maxsplit=2)
    assert float(chance.rstrip("%")) == pytest.approx(
        100 * float(chances[best]), abs=0.06
    )
    assert (token_id, token) == (str(best), f'"{tokenizer.decode([best])}"')


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
