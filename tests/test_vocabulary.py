"""Step 2's files: merges.txt and vocab.json, whole and broken."""

import codecs
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpt2hw import Tokenizer, TokenizerError, vocabulary
from gpt2hw.tokenizer_files import GPT2_MERGES, find_files
from gpt2hw.vocabulary import (
    BYTE_TO_CHAR,
    CHAR_TO_BYTE,
    derive_vocabulary,
    made_tokens,
    read_merges,
    read_vocabulary,
    spell,
    unspell,
)

MERGES = [("t", "h"), ("th", "e")]
LINES = "#version: 0.2\nt h\nth e\n"
WEB_PAGE = "is an HTML page: the download was answered by a web page"


def merges_file(folder: Path, content: str | bytes) -> Path:
    path = folder / "merges.txt"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def files(folder: Path, vocab: object, merges: str = LINES) -> tuple[Path, Path]:
    """A merges.txt and a vocab.json; `vocab` is JSON text or what becomes it."""
    path = folder / "vocab.json"
    text = vocab if isinstance(vocab, str) else json.dumps(vocab)
    path.write_text(text, encoding="utf-8")
    return merges_file(folder, merges), path


def test_the_vocabulary_that_follows_from_gpt2s_merges_is_openais() -> None:
    """The digest is that of OpenAI's encoder.json."""
    text = json.dumps(derive_vocabulary(read_merges(GPT2_MERGES)))
    assert hashlib.sha256(text.encode()).hexdigest() == (
        "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783"
    )


def test_the_merges_that_ship_are_openais() -> None:
    assert hashlib.sha256(GPT2_MERGES.read_bytes()).hexdigest() == (
        "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5"
    )
    assert len(read_merges(GPT2_MERGES)) == 50_000


def test_the_merges_carry_their_licence() -> None:
    notice = (GPT2_MERGES.parent / "NOTICE").read_text(encoding="utf-8")
    assert "Software Copyright (c) 2019 OpenAI" in notice
    assert "this permission notice shall be included\nin all copies" in notice


@pytest.mark.parametrize(
    ("byte", "index"),
    [
        *((0x21, 0), (0x7E, 93), (0xA1, 94), (0xFF, 187), (0x00, 188)),
        *((0x0A, 198), (0x20, 220), (0x7F, 221), (0xAD, 255)),
    ],
)
def test_single_bytes_have_the_ids_of_openais_order(byte: int, index: int) -> None:
    vocab = derive_vocabulary([])
    assert vocab[BYTE_TO_CHAR[byte]] == index


@given(st.binary())
def test_spelling_and_reading_a_spelling_are_inverse(data: bytes) -> None:
    assert unspell(spell(data)) == data
    assert spell(data).isprintable()


def test_the_tiny_vocabulary_follows_from_its_merges() -> None:
    merges_path, vocab_path = find_files("tiny")
    assert vocab_path is not None
    assert read_vocabulary(vocab_path) == derive_vocabulary(read_merges(merges_path))


READ_AND_ENCODE = """
import json, locale, sys
from gpt2hw import Tokenizer
text = json.loads(sys.argv[1])
ids = [Tokenizer.from_pretrained(name).encode(text) for name in ("tiny", "gpt2")]
print(json.dumps([locale.getencoding(), *ids]))
"""


def test_the_files_are_utf8_whatever_the_system_prefers() -> None:
    """Windows prefers a code page by itself; elsewhere the C locale prefers ASCII."""
    text = " the Ġ née 地"  # " the" is spelt "Ġthe" in the files
    prefer = {"PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-c", READ_AND_ENCODE, json.dumps(text)]
    done = subprocess.run(
        command, env=os.environ | prefer, capture_output=True, check=True
    )
    encoding, *ids = json.loads(done.stdout)
    if sys.platform != "win32":
        assert codecs.lookup(encoding).name != "utf-8", "nothing was shown"
    here = [Tokenizer.from_pretrained(name).encode(text) for name in ("tiny", "gpt2")]
    assert ids == here
    assert here[1][0] == 262


# merges.txt


def test_only_a_version_in_the_first_line_is_passed_over(tmp_path: Path) -> None:
    content = "#version: 0.2\n# #\n## ##\n#version x\n"
    pairs = [("#", "#"), ("##", "##"), ("#version", "x")]
    assert read_merges(merges_file(tmp_path, content)) == pairs


def test_a_version_line_may_be_absent(tmp_path: Path) -> None:
    assert read_merges(merges_file(tmp_path, "# #\nt h\n")) == [("#", "#"), ("t", "h")]


@pytest.mark.parametrize(
    "content",
    [
        *(LINES, LINES.rstrip(), LINES + "\n", LINES.replace("\n", "\r\n")),
        *("\ufeff" + LINES, LINES.replace("\n", "\r\n") + "\r\n"),
    ],
    ids=["plain", "no last LF", "blank line", "CR LF", "BOM", "CR LF, blank line"],
)
def test_line_ends_and_byte_order_mark_do_not_matter(tmp_path, content: str) -> None:
    assert read_merges(merges_file(tmp_path, content)) == MERGES


def test_gpt2s_merges_with_crlf_are_gpt2s(tmp_path: Path) -> None:
    crlf = GPT2_MERGES.read_bytes().replace(b"\n", b"\r\n")
    assert read_merges(merges_file(tmp_path, crlf)) == read_merges(GPT2_MERGES)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (LINES.replace("\n", "\r"), 1),
        (LINES.replace("\n", "\r\r\n"), 1),
        (LINES.replace("\n", "\n\r"), 2),
        (LINES + "a\r b\n", 4),
        (LINES.removeprefix("#version: 0.2\n").replace("\n", "\r"), 1),
    ],
)
def test_a_lone_cr_ends_no_line_and_is_named(tmp_path, content, line) -> None:
    with pytest.raises(
        TokenizerError, match=rf"merges\.txt, line {line}: a CR without"
    ):
        read_merges(merges_file(tmp_path, content))


def test_a_version_that_has_swallowed_the_merges_is_refused(tmp_path: Path) -> None:
    longest = "#version: 0.2 - Trained by `huggingface/tokenizers`"
    assert read_merges(merges_file(tmp_path, f"{longest}\nt h\n")) == [("t", "h")]
    joined = GPT2_MERGES.read_text(encoding="utf-8").replace("\n", " ")
    with pytest.raises(TokenizerError, match=r"line 1: the version takes \d+ charac"):
        read_merges(merges_file(tmp_path, joined))


@pytest.mark.parametrize("last", ["X", "h\u0085", "\u3000", "h\xa0"])
def test_the_last_token_is_read_to_its_end(tmp_path: Path, last: str) -> None:
    """Also where Python takes its end for white space."""
    for end in ("", "\n"):
        path = merges_file(tmp_path, f"t h\nX {last}{end}")
        assert read_merges(path) == [("t", "h"), ("X", last)]


def test_a_version_takes_at_most_200_characters(tmp_path: Path) -> None:
    longest = "#version: ".ljust(200, "0")
    assert read_merges(merges_file(tmp_path, f"{longest}\nt h\n")) == [("t", "h")]
    with pytest.raises(TokenizerError, match="line 1: the version takes 201 charac"):
        read_merges(merges_file(tmp_path, f"{longest}0\nt h\n"))


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (["x" * 99], f"line 2: .*, not '{'x' * 80}'$"),
        (["x" * 99 + " b"] * 2, f"line 3: .* '{'x' * 80}' stands in line 2 already$"),
    ],
)
def test_of_a_long_line_the_first_80_characters_are_shown(
    tmp_path: Path, lines: list[str], fault: str
) -> None:
    with pytest.raises(TokenizerError, match=fault):
        read_merges(merges_file(tmp_path, "\n".join(["t h", *lines])))


@pytest.mark.parametrize("line", ["a b c", "a", "a ", " a", "a  b", "", " ", "a\tb"])
def test_a_line_that_is_no_merge_is_named(tmp_path: Path, line: str) -> None:
    path = merges_file(tmp_path, f"#version: 0.2\nt h\n{line}\nth e\n")
    with pytest.raises(TokenizerError, match=r"merges\.txt, line 3: .*two tokens"):
        read_merges(path)


def test_a_merge_that_stands_twice_is_named_with_both_lines(tmp_path: Path) -> None:
    path = merges_file(tmp_path, "t h\nth e\nt h\n")
    with pytest.raises(TokenizerError, match=r"line 3: .*'t h'.* in line 1"):
        read_merges(path)


def test_two_merges_that_make_one_token_need_a_vocabulary(tmp_path: Path) -> None:
    content = "a a\naa a\na aa\n"
    with pytest.raises(TokenizerError, match=r"merges\.txt: .*'aaa'.*vocab\.json"):
        Tokenizer.from_files(merges_file(tmp_path, content))
    tokens = [*BYTE_TO_CHAR.values(), "aa", "aaa"]
    vocab = {token: index for index, token in enumerate(tokens)}
    assert Tokenizer.from_files(*files(tmp_path, vocab, content)).encode("aaa") == [257]


@pytest.mark.parametrize("line", ["th x", "的 a", "a\u0085 b"])
def test_a_merge_of_what_no_merge_makes_is_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(TokenizerError, match=r"merges\.txt: the .*not in the vocab"):
        Tokenizer.from_files(merges_file(tmp_path, f"#version: 0.2\n{line}\n"))


def test_without_merges_each_byte_is_a_token(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_files(merges_file(tmp_path, "#version: 0.2\n"))
    assert tokenizer.decode_bytes(tokenizer.encode("é!")) == "é!".encode()
    assert len(tokenizer.encode("é!")) == 3


@pytest.mark.parametrize("read", [read_merges, read_vocabulary])
@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "is empty: it is no tokenizer's file"),
        (b"<!DOCTYPE html><html lang=en>", WEB_PAGE),
        (b"\n  <html><head>", WEB_PAGE),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
            "is a Git LFS pointer: fetch the file, git lfs pull",
        ),
        (b'{"a": 0, \x81', "is not UTF-8 at byte 9"),
    ],
)
def test_a_file_that_is_something_else_is_named_as_such(
    tmp_path: Path, read, content: bytes, what: str
) -> None:
    path = merges_file(tmp_path, content)
    with pytest.raises(TokenizerError, match=rf"merges\.txt {what}$"):
        read(path)


@pytest.mark.parametrize("read", [read_merges, read_vocabulary])
def test_a_file_far_too_large_is_refused_unread(tmp_path, monkeypatch, read) -> None:
    monkeypatch.setattr(vocabulary, "MAX_FILE_BYTES", 1000)
    with pytest.raises(TokenizerError, match=r"merges\.txt is larger than 1000 bytes"):
        read(merges_file(tmp_path, b"\xff" * 1001))


@pytest.mark.parametrize("read", [read_merges, read_vocabulary])
@pytest.mark.parametrize(
    ("place", "what"),
    [
        ("absent.txt", "absent.txt is not there"),
        ("absent/merges.txt", "is not there"),
        (".", "is a folder, not a file"),
        ("a\0b", "path: must be the path of a file"),
    ],
)
def test_a_file_that_is_not_there_is_a_tokenizer_error(
    tmp_path, read, place, what
) -> None:
    with pytest.raises(TokenizerError, match=what):
        read(tmp_path / place)


@pytest.mark.parametrize("read", [read_merges, read_vocabulary])
def test_a_file_that_fails_while_it_is_read_is_named(tmp_path, monkeypatch, read):
    def read_plain(path, n_most):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(vocabulary, "read_plain", read_plain)
    fault = "merges.txt cannot be read: Input/output error$"
    with pytest.raises(TokenizerError, match=fault):
        read(merges_file(tmp_path, LINES))


@pytest.mark.parametrize("read", [read_merges, read_vocabulary])
@pytest.mark.parametrize("path", [None, 5, b"merges.txt", ""])
def test_what_can_be_no_path_is_named_as_the_argument(read, path) -> None:
    with pytest.raises(TokenizerError, match=r"^path: must be the path of a file"):
        read(path)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no FIFOs")
@pytest.mark.parametrize("read", [read_merges, read_vocabulary])
def test_a_pipe_is_refused_without_waiting_for_a_writer(tmp_path, read) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TokenizerError, match="pipe is a pipe, not a file"):
        read(tmp_path / "pipe")


@given(st.binary(max_size=200))
def test_no_bytes_make_the_readers_fail_otherwise(tmp_path_factory, data) -> None:
    folder = tmp_path_factory.getbasetemp()
    for start in (b"", b"#version: 0.2\n", b'{"a": '):
        path = merges_file(folder, start + data)
        for read in (Tokenizer.from_files, lambda p: Tokenizer.from_files(p, p)):
            try:
                read(path)
            except TokenizerError as error:
                assert "merges.txt" in str(error)  # noqa: PT017


# vocab.json


def test_a_vocabulary_gives_the_ids_whatever_their_order(tmp_path: Path) -> None:
    tokens = ["the", "th", *BYTE_TO_CHAR.values(), "<|endoftext|>", "<a b>"]
    shuffled = {token: index for index, token in reversed([*enumerate(tokens)])}
    tokenizer = Tokenizer.from_files(*files(tmp_path, shuffled))
    assert tokenizer.encode("thethe") == [0, 0]
    assert tokenizer.n_vocab == 260
    assert tokenizer.eot_id == 258
    assert tokenizer.decode([0, 1, 259, 258]) == "theth<a b><|endoftext|>"


def test_a_token_that_no_merge_makes_is_decoded_and_never_encoded(tmp_path) -> None:
    vocab = {**derive_vocabulary(MERGES), "hello": 259}
    tokenizer = Tokenizer.from_files(*files(tmp_path, vocab))
    assert tokenizer.decode([259]) == "hello"
    assert 259 not in tokenizer.encode("hello")


def test_gpt2s_merges_with_a_further_token_do_not_make_it_either(tmp_path) -> None:
    lines = GPT2_MERGES.read_text(encoding="utf-8")
    vocab = derive_vocabulary(read_merges(GPT2_MERGES))
    vocab["tokenization"] = len(vocab)
    tokenizer = Tokenizer.from_files(*files(tmp_path, vocab, lines))
    assert tokenizer.encode("tokenization") == [30001, 1634]
    assert tokenizer.decode([50257]) == "tokenization"


def test_a_byte_order_mark_before_a_vocabulary_does_not_matter(tmp_path: Path) -> None:
    text = "\ufeff" + json.dumps(derive_vocabulary(MERGES))
    assert Tokenizer.from_files(*files(tmp_path, text)).encode("the") == [257]


@pytest.mark.parametrize("missing", ["th", "the", "t", "Ġ", "Ā"])
def test_a_vocabulary_that_lacks_a_token_is_refused_by_its_name(
    tmp_path: Path, missing: str
) -> None:
    tokens = [t for t in made_tokens(MERGES) if t != missing]
    vocab = {token: index for index, token in enumerate(tokens)}
    what = "byte" if missing in CHAR_TO_BYTE else "token of the merges"
    fault = f"the {what} '{missing}' is not in the vocabulary"
    with pytest.raises(TokenizerError, match=rf"vocab\.json: {fault}$"):
        Tokenizer.from_files(*files(tmp_path, vocab))


def test_a_token_that_a_merge_joins_must_have_an_id_too(tmp_path: Path) -> None:
    vocab = {token: index for index, token in enumerate(made_tokens([("th", "e")]))}
    fault = "the token of the merges 'th' is not in the vocabulary"
    with pytest.raises(TokenizerError, match=rf"vocab\.json: {fault}$"):
        Tokenizer.from_files(*files(tmp_path, vocab, "th e\n"))


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ('"x1": 7', r"the tokens '\(' and 'x1' have one id, 7$"),
        ('"x1": 300', "no token has the id 259"),
        ('"x1": -1', "the id of 'x1' .* not -1"),
        ('"x1": 259.0', "the id of 'x1' .* not 259.0"),
        ('"x1": true', "the id of 'x1' .* not True"),
        ('"x1": null', "the id of 'x1' .* not None"),
        ('"x1": "259"', "the id of 'x1' .* not '259'"),
        ('"x1": [259]', r"the id of 'x1' .* not \[259\]"),
        (f'"x1": "{"y" * 99}"', f"the id of 'x1' .* not '{'y' * 39}$"),
        ('"x1": NaN', "NaN"),
        ('"x1": 1e999', "too large"),
        (f'"x1": {"9" * 5000}', "5000 digits"),
        (f'"x1": {"[" * 100_000}', "nested|depth"),
        (r'"\ud800": 259', "surrogate"),
        ('"a": 259', "'a' appears twice"),
        ('"x1": 259,', "not JSON"),
    ],
    ids=lambda value: str(value)[:16],
)
def test_a_vocabulary_with_a_bad_entry_is_refused(tmp_path, more, what) -> None:
    whole = json.dumps(derive_vocabulary(MERGES))
    with pytest.raises(TokenizerError, match=rf"vocab\.json: .*{what}"):
        Tokenizer.from_files(*files(tmp_path, f"{whole[:-1]}, {more}}}"))


@pytest.mark.parametrize("text", ["[]", "3", '"a"', "null", "not JSON", "{", "{}x"])
def test_a_vocabulary_that_is_no_object_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(TokenizerError, match=r"vocab\.json: .*JSON"):
        Tokenizer.from_files(*files(tmp_path, text))


def test_a_vocabulary_without_end_of_text_has_no_such_id(tmp_path: Path) -> None:
    vocab = {token: index for index, token in enumerate(made_tokens(MERGES))}
    tokenizer = Tokenizer.from_files(*files(tmp_path, vocab))
    assert tokenizer.eot_id is None
    text = "<|endoftext|>"
    assert tokenizer.encode(text, allow_special=True) == tokenizer.encode(text)
