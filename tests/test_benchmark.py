"""What `gpt2hw bench` measures, and how it tells it; no figure is judged here."""

import json

import pytest
import torch

import gpt2hw.benchmark
import gpt2hw.cli.bench_command
from checkpoints import SMALL, random_model
from gpt2hw import GPT2, GPT2Config
from gpt2hw.benchmark import BATCHES, bytes_per_token, measure, tensor_bytes
from gpt2hw.cli import main
from gpt2hw.layout import n_parameters


@pytest.fixture(autouse=True)
def _little_is_read(monkeypatch):
    monkeypatch.setattr(gpt2hw.benchmark, "READ_AT_ONCE", 2**20)


def test_shares_and_limits_follow_from_what_was_measured():
    found = measure(random_model(), n_tokens=1)
    assert found.bandwidth == max(found.reading.values()) > 0
    assert len(found.reading) == 3
    assert found.limit == found.bandwidth / found.bytes_per_token
    for at in found.decoding:
        assert at.share_of_limit == pytest.approx(at.tokens_per_second / found.limit)
    assert [of.n_texts for of in found.together] == list(BATCHES)
    assert found.together[0].times_one == 1
    for of in found.together:
        alone = found.together[0].tokens_per_second
        assert of.times_one == pytest.approx(of.tokens_per_second / alone)
    assert found.threads == torch.get_num_threads()


def test_one_text_is_measured_as_generate_writes_it(monkeypatch):
    shapes = []
    model = GPT2.from_pretrained("tiny", precision="int8")
    whole = GPT2.last_logits

    def watched(self, ids, cache=None, *, mask=None):
        shapes.append(tuple(ids.shape))
        return whole(self, ids, cache, mask=mask)

    monkeypatch.setattr(GPT2, "last_logits", watched)
    measure(model, n_tokens=1)
    assert (1,) in shapes
    assert {len(shape) for shape in shapes if shape[0] == 1} == {1}
    assert (8, 1) in shapes


def test_positions_stay_within_the_context():
    found = measure(random_model(), n_tokens=99)
    assert [at.position for at in found.decoding] == [1, 8, 13]
    with pytest.raises(ValueError, match="8 positions are too few"):
        measure(GPT2.random(GPT2Config(n_vocab=7, n_ctx=8, n_embd=4, n_head=2)))


@pytest.mark.parametrize("n_tokens", [0, -1, 2.5, True, None, "3"])
def test_nothing_is_not_measured(n_tokens):
    with pytest.raises(
        ValueError, match=f"n_tokens: must be 1 or more, not {n_tokens!r}"
    ):
        measure(random_model(), n_tokens=n_tokens)


def test_sixteen_positions_are_enough():
    measure(
        GPT2.random(GPT2Config(n_vocab=7, n_ctx=16, n_embd=4, n_head=2)), n_tokens=1
    )
    with pytest.raises(ValueError, match="15 positions are too few"):
        measure(GPT2.random(GPT2Config(n_vocab=7, n_ctx=15, n_embd=4, n_head=2)))


def test_the_median_counts_of_the_tokens_and_of_the_rounds(monkeypatch):
    """A clock that says 1, 100, 2: the first and the mean would be others."""
    tokens, rounds = iter([1.0, 100.0, 2.0]), iter([1.0, 100.0, 2.0])
    with monkeypatch.context() as patch:
        patch.setattr(gpt2hw.benchmark, "_seconds", lambda _: next(tokens))
        assert gpt2hw.benchmark._writing(random_model(), 1, 3)() == 2.0
    reading = {"sum": lambda: next(rounds)}
    monkeypatch.setattr(gpt2hw.benchmark, "_reading", reading.items)
    assert measure(random_model(), n_tokens=1).bandwidth == 2**20 / 2


@pytest.mark.parametrize("tied", [True, False])
def test_a_token_reads_every_parameter_but_the_tables_that_are_looked_up(tied):
    config = GPT2Config(
        n_vocab=7, n_ctx=16, n_embd=4, n_head=2, n_layer=2, tie_word_embeddings=tied
    )
    model = GPT2.random(config)
    looked_up = config.n_ctx * 4 + (0 if tied else 7 * 4)
    assert bytes_per_token(model) == 4 * (n_parameters(config) - looked_up)
    assert tensor_bytes(model) == 4 * n_parameters(config)


def test_fewer_bytes_are_read_in_a_lower_precision():
    by_precision = [
        bytes_per_token(GPT2.from_pretrained("tiny", precision=p))
        for p in ("float32", "float16", "int8")
    ]
    assert by_precision[1] < 0.51 * by_precision[0]
    assert by_precision[2] < 0.28 * by_precision[0]


def test_the_cache_takes_as_much_as_is_told():
    model = random_model()
    cache = model.new_cache()
    model([1], cache)
    held = sum(c.k.nbytes + c.v.nbytes for c in cache.layers(torch.Size([])))
    assert measure(model, n_tokens=1).cache_bytes == held


def test_the_table_and_the_json_tell_the_same(capsys):
    assert main(["bench", "--threads", "1"]) == 0
    table = capsys.readouterr().out
    for word in (
        "tiny, float32",
        "GB/s",
        "tokens/s at position 238",
        "8 texts at once",
    ):
        assert word in table
    assert main(["bench", "--json", "--precision", "int8", "--threads", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["model"], found["precision"]) == ("tiny", "int8")
    assert found["limit"] == found["bandwidth"] / found["bytes_per_token"]
    assert {"first_token", "decoding", "together", "weight_bytes"} <= set(found)


def test_a_published_shape_needs_no_weights(capsys, monkeypatch):
    monkeypatch.setitem(gpt2hw.cli.bench_command.PUBLISHED, "gpt2", SMALL)
    assert main(["bench", "--random", "gpt2", "--threads", "1"]) == 0
    assert "gpt2, random weights, float32" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--random", "gpt5"], "--random must be one of distilgpt2, gpt2,"),
        (["--random", "gpt2", "--model", "tiny"], "do not go together"),
        (["--precision", "int4"], "--precision must be one of"),
    ],
)
def test_a_wrong_use_is_told(capsys, words, says):
    assert main(["bench", *words]) == 2
    out, errors = capsys.readouterr()
    assert says in errors
    assert out == ""


def test_a_model_is_measured_and_nothing_else():
    with pytest.raises(ValueError, match="model: must be a GPT2, not 'gpt2'"):
        measure("gpt2")
