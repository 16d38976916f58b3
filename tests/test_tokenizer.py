"""Step 2: ids as GPT-2 has them, on every text, and text back from every id."""

import pickle
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from gpt2_ids import GPT2_IDS
from gpt2hw import Tokenizer, TokenizerError
from gpt2hw import tokenizer as room
from gpt2hw.hub import SHIPPED
from gpt2hw.properties.drawn_texts import nasty_texts, settled_characters
from gpt2hw.properties.tokenizer import (
    ids_equal,
    text_survives,
)
from gpt2hw.vocabulary import derive_vocabulary
from tokenizer_judges import (
    GPT2,
    MERGES,
    TIKTOKEN,
    TINY,
    TINY_BY_HUGGING_FACE,
    ids_by_tiktoken,
    ids_by_tokenizers,
)

BOTH = pytest.mark.parametrize("tokenizer", [GPT2, TINY], ids=["gpt2", "tiny"])
JUDGES = pytest.mark.parametrize("judge", [ids_by_tiktoken, ids_by_tokenizers])
gpt2_ids = st.lists(st.integers(0, GPT2.n_vocab - 1), max_size=30)


# Text to ids


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        pytest.param(text, ids, id=f"{rule}: {text[:30]!a}")
        for rule, table in GPT2_IDS.items()
        for text, ids in table.items()
    ],
)
def test_the_ids_are_those_of_gpt2(text: str, ids: list[int]) -> None:
    assert GPT2.encode(text) == ids


@JUDGES
@settings(max_examples=300)
@given(text=nasty_texts())
def test_nasty_texts_have_the_judges_ids(judge, text: str) -> None:
    ids_equal(GPT2.encode, judge, text)


@JUDGES
@settings(max_examples=300)
@given(text=st.text("a '\n\t\xa0stZ1!", max_size=60))
def test_spaces_and_apostrophes_have_the_judges_ids(judge, text: str) -> None:
    ids_equal(GPT2.encode, judge, text)


@given(text=nasty_texts())
def test_tinys_ids_are_those_of_tokenizers(text: str) -> None:
    ids_equal(TINY.encode, lambda text: TINY_BY_HUGGING_FACE.encode(text).ids, text)


@pytest.fixture(scope="module")
def tiny_by_transformers() -> PreTrainedTokenizerBase:
    """What transformers makes of the folder that ships; it asks no network."""
    return AutoTokenizer.from_pretrained(SHIPPED / "tiny", local_files_only=True)


@given(text=nasty_texts())
def test_tinys_folder_gives_transformers_the_same_ids(
    tiny_by_transformers: PreTrainedTokenizerBase, text: str
) -> None:
    """There the mark of the end counts wherever it stands."""

    def encode(text: str) -> list[int]:
        return TINY.encode(text, allow_special=True)

    assert len(tiny_by_transformers) == TINY.n_vocab
    ids_equal(encode, tiny_by_transformers.encode, text)


def test_every_settled_character_has_the_judges_ids_beside_others() -> None:
    """Of ideographs and Hangul syllables, which are 80,000 of one kind, one in 40."""
    many = regex.compile(r"[\p{Han}\p{Hangul}]")
    chars = [c for c in settled_characters() if ord(c) % 40 == 0 or not many.match(c)]
    texts = [f"a{c}1{c} {c}!{c}{c} \n{c}  {c}" for c in chars]
    assert len(texts) > 10_000
    for text, right in zip(texts, TIKTOKEN.encode_ordinary_batch(texts), strict=True):
        assert GPT2.encode(text) == right, f"{text!a}"


@JUDGES
def test_a_whole_source_file_has_the_judges_ids(judge) -> None:
    ids_equal(GPT2.encode, judge, Path(threading.__file__).read_text(encoding="utf-8"))


@pytest.mark.parametrize("n", [1, 3, 64, 65, 5000])
@given(part=nasty_texts(max_size=3))
@settings(max_examples=15)
def test_long_runs_have_the_judges_ids(n: int, part: str) -> None:
    ids_equal(GPT2.encode, ids_by_tiktoken, part * n)


def test_looking_a_piece_up_first_changes_no_id() -> None:
    merging = Tokenizer(MERGES)
    for token in derive_vocabulary(MERGES):
        ids_equal(GPT2.encode, merging.encode, token.replace("Ġ", " "))


def test_a_token_that_no_merge_makes_is_not_looked_up() -> None:
    merges = [("t", "h")]
    vocab = derive_vocabulary(merges)
    plain = Tokenizer(merges).encode("hello")
    assert Tokenizer(merges, vocab | {"hello": len(vocab)}).encode("hello") == plain


def test_tinys_tokenizer_is_the_default() -> None:
    assert Tokenizer.from_pretrained()._ranks == TINY._ranks


@BOTH
@given(text=st.text(max_size=60))
def test_any_text_comes_back_as_it_was(tokenizer: Tokenizer, text: str) -> None:
    text_survives(tokenizer.encode, tokenizer.decode, text)


@BOTH
@given(text=nasty_texts())
def test_nasty_texts_come_back_as_they_were(tokenizer: Tokenizer, text: str) -> None:
    text_survives(tokenizer.encode, tokenizer.decode, text)


@BOTH
@pytest.mark.parametrize(
    "text",
    [
        "Is this family-friendly ? Yes , it 's . This is n't a follow-up !",
        "Is this restaurant family-friendly ? Yes No Unsure ?"
        " This is a follow-up sentence.",
    ],
)
def test_no_space_is_tidied_away(tokenizer: Tokenizer, text: str) -> None:
    text_survives(tokenizer.encode, tokenizer.decode, text)


@pytest.mark.parametrize("char", ["a", "^", "\n", "地"])
def test_a_very_long_piece_is_encoded_as_by_tiktoken(char: str) -> None:
    ids_equal(GPT2.encode, ids_by_tiktoken, char * 100_000)


def test_a_run_of_carets_is_cut_into_fours() -> None:
    """A million: enough for any stack to run over, if one of them grew with it."""
    assert GPT2.encode("^" * 1_000_000) == [39397] * 250_000


# The end-of-text mark


def test_the_mark_counts_only_where_it_is_allowed() -> None:
    text = "hi<|endoftext|>there"
    plain = [5303, 27, 91, 437, 1659, 5239, 91, 29, 8117]
    assert GPT2.encode(text) == plain
    assert GPT2.encode(text, allow_special=True) == [5303, 50256, 8117]
    assert GPT2.encode("<|endoftext|>", allow_special=True) == [GPT2.eot_id] == [50256]


@given(
    parts=st.lists(st.sampled_from(["<|endoftext|>", "<|", " ", "a", "endoftext|>"])),
)
def test_marks_are_found_where_tiktoken_finds_them(parts: list[str]) -> None:
    def by_tiktoken(text: str) -> list[int]:
        return TIKTOKEN.encode(text, allowed_special="all")

    def encode(text: str) -> list[int]:
        return GPT2.encode(text, allow_special=True)

    ids_equal(encode, by_tiktoken, "".join(parts))
    text_survives(encode, GPT2.decode, "".join(parts))


@BOTH
@given(text=nasty_texts())
def test_no_text_becomes_the_mark_by_itself(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.eot_id not in tokenizer.encode(text + "<|endoftext|>")


@pytest.mark.parametrize("text", [b"Hello", None, 5, ["Hello"]])
def test_what_is_no_str_is_refused_by_its_type(text) -> None:
    with pytest.raises(ValueError, match=f"a str, not {type(text).__name__}"):
        GPT2.encode(text)


# Ids to text


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        *(([], ""), ([5633], " ?"), ([50256], "<|endoftext|>"), ([28839, 108], "地")),
        *(([41840], "\ufffd"), ([187], "\ufffd"), ([41840, 64], "\ufffda")),
    ],
)
def test_ids_are_decoded_as_bytes_joined(ids: list[int], text: str) -> None:
    assert GPT2.decode(ids) == text


@given(ids=gpt2_ids)
def test_any_ids_are_decoded_as_tiktoken_decodes_them(ids: list[int]) -> None:
    assert GPT2.decode_bytes(ids) == TIKTOKEN.decode_bytes(ids)
    assert GPT2.decode(ids) == TIKTOKEN.decode(ids)


def test_each_id_has_the_bytes_that_tiktoken_gives() -> None:
    for index in range(GPT2.n_vocab):
        assert GPT2.token_bytes(index) == TIKTOKEN.decode_single_token_bytes(index)
    assert GPT2.n_vocab == TIKTOKEN.n_vocab == 50257


@pytest.mark.parametrize(
    "bad", [50257, -1, 10**30, True, False, 1.0, float("nan"), "1", None, [1]]
)
@pytest.mark.parametrize(
    "read",
    [
        lambda tokenizer, bad: tokenizer.decode([64, bad]),
        lambda tokenizer, bad: tokenizer.decode_bytes([64, bad]),
        lambda tokenizer, bad: tokenizer.token_bytes(bad),
        lambda tokenizer, bad: tokenizer.stream_decoder().push(bad),
    ],
    ids=["decode", "decode_bytes", "token_bytes", "push"],
)
def test_what_is_no_id_is_refused_by_its_name(read: Callable, bad) -> None:
    GPT2.decode([0, 1])  # ids that True and 1.0 are equal to, by Python's ==
    with pytest.raises(TokenizerError) as raised:
        read(GPT2, bad)
    assert str(raised.value).startswith(f"{bad!r} is not an id")
    assert "0 to 50256" in str(raised.value)


def test_ids_may_be_the_integers_of_other_libraries() -> None:
    numpy = pytest.importorskip("numpy")
    assert GPT2.decode(numpy.array([15496, 995])) == "Hello world"


def test_how_broken_bytes_are_treated_may_be_chosen() -> None:
    broken = GPT2.decode_bytes([41840])
    for errors in ("replace", "ignore", "backslashreplace", "surrogateescape"):
        assert GPT2.decode([41840], errors) == broken.decode("utf-8", errors)
    with pytest.raises(UnicodeDecodeError):
        GPT2.decode([41840], errors="strict")
    with pytest.raises(
        ValueError, match=r"errors: must be one of .*, not 'no such way'"
    ):
        GPT2.decode([], errors="no such way")


# Explaining


def test_tokenization_is_explained_from_its_bytes_to_its_two_tokens() -> None:
    first, *merges = GPT2.explain("tokenization")
    assert first.parts == (*(bytes([byte]) for byte in b"tokenization"),)
    assert (first.merged, first.rank) == (None, None)
    assert merges[-1].parts == (b"token", b"ization")
    for step in merges:
        left, right = MERGES[step.rank]
        assert (left + right).encode() == step.merged
        assert step.merged in step.parts


@given(text=nasty_texts(max_size=6))
def test_what_is_explained_is_what_is_encoded(text: str) -> None:
    steps = GPT2.explain(text)
    starts = [i for i, step in enumerate(steps) if step.rank is None]
    ends = [steps[i - 1] for i in (*starts[1:], len(steps)) if steps]
    parts = [part for step in ends for part in step.parts]
    assert parts == [GPT2.token_bytes(index) for index in GPT2.encode(text)]
    for before, after in pairwise(steps):
        assert after.rank is None or len(after.parts) == len(before.parts) - 1


def test_a_piece_too_long_to_explain_is_refused() -> None:
    assert len(GPT2.explain("ab " * 1000)) > 1000
    assert len(GPT2.explain("a" * 1000)) > 1
    with pytest.raises(TokenizerError, match="1001 bytes is too long to explain"):
        GPT2.explain("a" * 1001)


# Memory and threads


def test_the_cache_is_bounded_and_changes_no_id(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(room, "CACHED_PIECES", 10)
    tokenizer, text = Tokenizer(MERGES), " ".join(map(str, range(500)))
    assert tokenizer.encode(text) == tokenizer.encode(text) == ids_by_tiktoken(text)
    assert 0 < len(tokenizer._ids_of) <= 10
    sizes = []
    for n in range(30):
        tokenizer.encode(f"{n}")
        sizes.append(len(tokenizer._ids_of))
    assert max(sizes) == 10


def test_a_giant_piece_is_not_kept() -> None:
    tokenizer = Tokenizer(MERGES)
    tokenizer.encode("short " + "a" * 1000)
    assert set(tokenizer._ids_of) == {"short"}


def test_a_piece_of_64_characters_is_kept_and_of_65_is_not() -> None:
    tokenizer = Tokenizer(MERGES)
    tokenizer.encode("a" * 64 + "!" + "b" * 65)
    assert set(tokenizer._ids_of) == {"a" * 64, "!"}


def test_a_tokenizer_may_be_pickled() -> None:
    again = pickle.loads(pickle.dumps(TINY))
    assert again.encode("Once upon") == TINY.encode("Once upon")
    assert again.decode([300, 301]) == TINY.decode([300, 301])


def test_threads_may_share_a_tokenizer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "CACHED_PIECES", 50)
    tokenizer, text = Tokenizer(MERGES), " ".join(map(str, range(3000)))
    found: list[list[int]] = []
    threads = [
        threading.Thread(target=lambda: found.append(tokenizer.encode(text)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [ids_by_tiktoken(text)] * 4


@pytest.mark.parametrize("ids", [15496, "15496", b"ab", None])
def test_what_is_no_list_of_ids_is_refused_by_its_kind(ids):
    tokenizer = Tokenizer.from_pretrained("tiny")
    with pytest.raises(TokenizerError, match=f"not {type(ids).__name__}"):
        tokenizer.decode(ids)


def test_a_tokenizer_shows_its_size():
    shown = repr(Tokenizer.from_pretrained("gpt2"))
    assert shown == "Tokenizer(50257 tokens, 50000 merges)"
