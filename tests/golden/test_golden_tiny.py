"""The tiny model answers as it did when tiny.json was made."""

import json

import pytest
from regenerate import FILE, N_NEW, PROMPTS
from report import LEAST_GAP, LOGIT_TOLERANCE, same_ids, same_numbers, table

from gpt2hw import GPT2, Tokenizer, generate

CASES = json.loads(FILE.read_text(encoding="utf-8"))["cases"]
by_prompt = pytest.mark.parametrize("case", CASES, ids=lambda c: repr(c["prompt"]))


@pytest.fixture(scope="module")
def model():
    return GPT2.from_pretrained("tiny")


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.from_pretrained("tiny")


@by_prompt
def test_the_prompt_has_its_ids(tokenizer, case):
    ids = tokenizer.encode(case["prompt"]) or [tokenizer.eot_id]
    same_ids("ids of the prompt", ids, case["prompt_ids"], tokenizer.decode)


@by_prompt
def test_the_first_logits_are_those_on_file(model, case):
    logits = model(case["prompt_ids"])[-1]
    what = f"first logits after {case['prompt']!r}"
    same_numbers(what, logits[:5].tolist(), case["first_logits"], LOGIT_TOLERANCE)
    ids = [i for i, _, _ in case["likeliest"]]
    expected = [logit for _, _, logit in case["likeliest"]]
    what = f"likeliest logits after {case['prompt']!r}"
    same_numbers(what, logits[ids].tolist(), expected, LOGIT_TOLERANCE)


@by_prompt
def test_the_greedy_text_is_the_one_on_file(model, tokenizer, case):
    n_new = len(case["ids"])
    done = generate(model, tokenizer, case["prompt"], max_new_tokens=n_new)
    same_ids(f"after {case['prompt']!r}", done.ids, case["ids"], tokenizer.decode)
    assert done.text == case["text"]


def test_the_file_holds_every_prompt_and_no_narrow_decision():
    assert [case["prompt"] for case in CASES] == list(PROMPTS)
    for case in CASES:
        assert len(case["ids"]) <= N_NEW
        assert case["least_lead"] >= LEAST_GAP
    assert sum(len(case["ids"]) for case in CASES) > N_NEW  # enough to notice a change


def test_a_failure_shows_the_first_five_values_and_the_largest_difference():
    found, expected = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 2.0, 3.5, 4.0, 5.0, 7.0]
    assert table("logits", found, expected, 1e-3).splitlines() == [
        "logits: NOT OK",
        "       found     expected   difference",
        "     1.00000      1.00000     0.000000  OK",
        "     2.00000      2.00000     0.000000  OK",
        "     3.00000      3.50000     0.500000  NOT OK",
        "     4.00000      4.00000     0.000000  OK",
        "     5.00000      5.00000     0.000000  OK",
        "largest difference of 6: 1.000000, allowed: 0.001",
    ]
    with pytest.raises(AssertionError, match="logits: NOT OK"):
        same_numbers("logits", found, expected, 1e-3)
    with pytest.raises(AssertionError, match="logits: NOT OK"):
        same_numbers("logits", [float("nan")], [1.0], 1e-3)
    with pytest.raises(AssertionError, match="the first 2 of 3 ids agree"):
        same_ids("text", [1, 2, 4], [1, 2, 3])
