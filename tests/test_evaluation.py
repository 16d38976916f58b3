"""Perplexity and bits per byte, against transformers and against arithmetic."""

import math

import pytest
import torch
import torch.nn.functional as F
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from gpt2hw import GPT2, GPT2Config, Tokenizer
from gpt2hw.evaluation import evaluate, strided_windows, token_losses
from gpt2hw.hub import SHIPPED
from gpt2hw.layout import parameter_shapes

TALE = (
    "Once upon a time there lived a king who had three daughters. The youngest was so "
    "fair that the sun itself wondered whenever it shone upon her face.\n\n"
) * 4


@pytest.fixture(scope="module")
def tiny() -> tuple[GPT2, Tokenizer]:
    return GPT2.from_pretrained("tiny"), Tokenizer.from_pretrained("tiny")


def losses_by_transformers(
    ids: list[int], window: int, stride: int
) -> tuple[float, int]:
    """The strided method of transformers' documentation, as written there in prose."""
    model = transformers.GPT2LMHeadModel.from_pretrained(
        SHIPPED / "tiny", dtype=torch.float32
    )
    total, n_scored, previous_end = 0.0, 0, 0
    for begin in range(0, len(ids), stride):
        end = min(begin + window, len(ids))
        inputs = torch.tensor([ids[begin:end]])
        labels = inputs.clone()
        labels[:, : -(end - previous_end)] = -100
        n = int((labels[:, 1:] != -100).sum())
        if n:
            with torch.no_grad():
                total += float(model(inputs, labels=labels).loss) * n
        n_scored, previous_end = n_scored + n, end
        if end == len(ids):
            break
    return total, n_scored


@pytest.mark.parametrize(
    ("window", "stride"), [(None, None), (64, 32), (64, 64), (50, 17)]
)
def test_a_text_scores_as_it_does_with_transformers(tiny, window, stride):
    model, tokenizer = tiny
    found = evaluate(model, tokenizer, TALE, window=window, stride=stride)
    window = window or model.config.n_ctx
    total, n_scored = losses_by_transformers(
        tokenizer.encode(TALE), window, stride or window // 2
    )
    assert found.n_tokens == n_scored
    assert found.perplexity == pytest.approx(math.exp(total / n_scored), rel=1e-4)
    bits = total / math.log(2) / len(TALE.encode())
    assert found.bits_per_byte == pytest.approx(bits, rel=1e-4)


def test_every_byte_counts_in_utf_8_though_the_first_token_is_not_scored(tiny):
    found = evaluate(*tiny, "Ä é 你 👍")
    assert found.n_bytes == len("Ä é 你 👍".encode())
    assert found.n_tokens == len(tiny[1].encode("Ä é 你 👍")) - 1


def test_a_model_that_knows_nothing_needs_log2_of_the_vocabulary_a_token(tiny):
    config = GPT2Config(n_vocab=2048, n_ctx=32, n_embd=8, n_head=2, n_layer=1)
    random = GPT2.random(config)
    zeros = {name: torch.zeros(s) for name, s in parameter_shapes(config).items()}
    flat = GPT2.from_tensors(config, zeros)
    assert evaluate(flat, tiny[1], TALE).perplexity == pytest.approx(2048, rel=1e-4)
    assert evaluate(random, tiny[1], TALE).perplexity == pytest.approx(2048, rel=0.1)


@given(st.integers(2, 300), st.integers(2, 64), st.data())
def test_every_token_but_the_first_is_scored_once(n_tokens, window, data):
    stride = data.draw(st.integers(1, window - 1))
    scored = []
    for begin, first, end in strided_windows(n_tokens, window, stride):
        assert begin < first <= end <= begin + window
        assert begin == 0 or first - begin >= window - stride
        scored += range(first, end)
    assert scored == list(range(1, n_tokens))


@settings(max_examples=20)
@given(st.integers(2, 60), st.integers(2, 20), st.data())
def test_progress_is_told_after_each_window_up_to_the_last_token(
    n_tokens, window, data
):
    stride = data.draw(st.integers(1, window))
    seen = []
    evaluate(
        GPT2.random(GPT2Config(n_vocab=258, n_ctx=20, n_embd=4, n_head=1, n_layer=1)),
        Tokenizer([("a", "b")]),
        "a" * n_tokens,
        window=window,
        stride=stride,
        progress=lambda *numbers: seen.append(numbers),
    )
    windows = strided_windows(n_tokens, window, stride)
    assert seen == [(end, n_tokens) for *_, end in windows]
    assert seen[-1] == (n_tokens, n_tokens)


def test_token_losses_are_torch_s_cross_entropy_also_at_1e38():
    logits = torch.randn(5, 7, generator=torch.Generator().manual_seed(0)) * 10
    targets = torch.tensor([0, 6, 3, 3, 1])
    right = F.cross_entropy(logits, targets, reduction="none")
    torch.testing.assert_close(token_losses(logits, targets), right)
    huge = torch.tensor([[1e38, 0.0]])
    assert token_losses(huge, torch.tensor([0])).item() == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("window", 1),
        ("window", 10**6),
        ("window", True),
        ("stride", 0),
        ("stride", 999),
    ],
)
def test_a_window_or_stride_out_of_range_is_named(tiny, name, value):
    with pytest.raises(ValueError, match=f"^{name} must be from"):
        evaluate(*tiny, TALE, **{name: value})


@pytest.mark.parametrize("text", ["", "a"])
def test_a_text_of_fewer_than_two_tokens_is_refused(tiny, text):
    with pytest.raises(ValueError, match=r"text: . token"):
        evaluate(*tiny, text)


def test_a_model_far_off_has_an_infinite_perplexity_and_one_of_nan_is_refused(tiny):
    config = GPT2Config(n_vocab=2048, n_ctx=32, n_embd=8, n_head=2, n_layer=1)
    shapes = parameter_shapes(config)
    generator = torch.Generator().manual_seed(0)
    wild = {n: torch.randn(s, generator=generator) * 1e4 for n, s in shapes.items()}
    assert (
        evaluate(GPT2.from_tensors(config, wild), tiny[1], TALE).perplexity == math.inf
    )
    broken = wild | {"wte.weight": torch.full(shapes["wte.weight"], math.nan)}
    with pytest.raises(ValueError, match="model: its logits are not numbers"):
        evaluate(GPT2.from_tensors(config, broken), tiny[1], TALE)
