"""Where a tokenizer's files lie: names, folders, and folders without such files."""

import json
import sys
from pathlib import Path

import pytest

from gpt2hw import Tokenizer, TokenizerError
from gpt2hw.vocabulary import BYTE_TO_CHAR

LINES = "#version: 0.2\nt h\nth e\n"


@pytest.mark.parametrize(
    "name", ["gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl", "distilgpt2"]
)
def test_gpt2s_tokenizer_needs_no_weights_and_no_network(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("HOME", "USERPROFILE", "HF_HOME", "GPT2HW_CACHE"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert Tokenizer.from_pretrained(name).encode("Hello world") == [15496, 995]


def test_tiny_is_the_default() -> None:
    tiny, named = Tokenizer.from_pretrained(), Tokenizer.from_pretrained("tiny")
    assert tiny.n_vocab == named.n_vocab == 2048
    assert tiny.encode("Once upon a time") == named.encode("Once upon a time")


def test_a_folder_without_vocabulary_derives_it(tmp_path: Path) -> None:
    (tmp_path / "merges.txt").write_text(LINES, encoding="utf-8")
    assert Tokenizer.from_pretrained(tmp_path).encode("the") == [257]


def test_a_folder_with_a_vocabulary_uses_it(tmp_path: Path) -> None:
    tokens = ["the", "th", *BYTE_TO_CHAR.values()]
    vocab = {token: index for index, token in enumerate(tokens)}
    (tmp_path / "merges.txt").write_text(LINES, encoding="utf-8")
    (tmp_path / "vocab.json").write_text(json.dumps(vocab), encoding="utf-8")
    assert Tokenizer.from_pretrained(str(tmp_path)).encode("the") == [0]


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
@pytest.mark.parametrize("name", ["vocab.json", "merges.txt"])
@pytest.mark.parametrize("target", ["nothing", ".", "/dev/zero", "itself"])
def test_a_file_that_is_there_and_leads_nowhere_is_never_passed_over(
    tmp_path: Path, name: str, target: str
) -> None:
    """Without vocab.json the ids would be others, without merges.txt GPT-2's."""
    config(tmp_path, '{"vocab_size": 50257}')
    (tmp_path / "merges.txt").write_text(LINES, encoding="utf-8")
    path = tmp_path / name
    path.unlink(missing_ok=True)
    path.symlink_to(name if target == "itself" else target)
    with pytest.raises(TokenizerError, match=f"{name} is .*, not a file"):
        Tokenizer.from_pretrained(tmp_path)


def config(folder: Path, text: str) -> None:
    (folder / "config.json").write_text(text, encoding="utf-8")


def test_a_folder_of_gpt2s_size_without_merges_uses_gpt2s_and_says_so(tmp_path) -> None:
    config(tmp_path, '{"vocab_size": 50257}')
    with pytest.warns(UserWarning, match=r"no merges\.txt: GPT-2's is used"):
        tokenizer = Tokenizer.from_pretrained(tmp_path)
    assert tokenizer.encode("Hello world") == [15496, 995]


@pytest.mark.parametrize("text", ['{"vocab_size": 50258}', "{}", "", "[50257]"])
def test_a_folder_of_another_size_without_merges_is_refused(tmp_path, text) -> None:
    config(tmp_path, text)
    with pytest.raises(TokenizerError, match=r"has no merges\.txt"):
        Tokenizer.from_pretrained(tmp_path)


def test_a_folder_with_nothing_in_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match=r"has no merges\.txt"):
        Tokenizer.from_pretrained(tmp_path)


def test_merges_borrowed_for_another_vocabulary_are_refused(tmp_path: Path) -> None:
    """With its own 50,257 tokens, a model's merges are not GPT-2's."""
    tokens = [*BYTE_TO_CHAR.values(), *(f"Ġ{n}!" for n in range(50001))]
    vocab = {token: index for index, token in enumerate(tokens)}
    config(tmp_path, '{"vocab_size": 50257}')
    (tmp_path / "vocab.json").write_text(json.dumps(vocab), encoding="utf-8")
    with (
        pytest.warns(UserWarning, match="GPT-2's is used"),
        pytest.raises(TokenizerError, match=r"vocab\.json: .*not in the vocabulary"),
    ):
        Tokenizer.from_pretrained(tmp_path)
