"""The scores of heads, on weights made by hand and on models made to have a head."""

import pytest
import torch

from gpt2hw import GPT2, Tokenizer, trace
from gpt2hw.heads import (
    first_token_score,
    head_scores,
    induction_score,
    previous_token_score,
)


def one_hot_rows(keys: list[int]) -> torch.Tensor:
    """[1, n, n] weights: query i looks at keys[i] alone."""
    return torch.eye(len(keys))[keys][None]


def test_a_head_that_looks_one_back_has_previous_token_score_1():
    weights = one_hot_rows([0, 0, 1, 2, 3, 4])
    assert previous_token_score(weights).item() == 1
    assert first_token_score(weights).item() == 0


def test_a_head_that_rests_on_the_first_token_has_first_token_score_1():
    weights = one_hot_rows([0] * 6)
    assert first_token_score(weights).item() == 1
    assert previous_token_score(weights).item() == 0


def test_a_head_that_finds_what_came_next_last_time_has_induction_score_1():
    #                        a  b  c  d  a  b  c  d
    weights = one_hot_rows([0, 0, 0, 0, 1, 2, 3, 4])
    assert induction_score(weights).item() == 1
    off_by_one = one_hot_rows([0, 0, 0, 0, 0, 1, 2, 3])  # finds itself, not the next
    assert induction_score(off_by_one).item() == 0


def test_every_head_of_the_tiny_model_is_scored_in_order():
    model, tokenizer = GPT2.from_pretrained("tiny"), Tokenizer.from_pretrained("tiny")
    ids = tokenizer.encode("The king said to his daughter that she should go home.")
    scores = head_scores(model, ids)
    n_layer, n_head = model.config.n_layer, model.config.n_head
    assert [(s.layer, s.head) for s in scores] == [
        (layer, head) for layer in range(n_layer) for head in range(n_head)
    ]
    weights = trace(model, ids)["h.1.attn.weights"][2]
    by_hand = sum(weights[i, i - 1].item() for i in range(2, len(ids))) / (len(ids) - 2)
    assert scores[n_head + 2].previous_token == pytest.approx(by_hand, abs=1e-6)
    assert scores == head_scores(model, ids)  # the random sequence is always the same


def test_too_few_ids_are_refused():
    with pytest.raises(ValueError, match="ids: 2 are too few"):
        head_scores(GPT2.from_pretrained("tiny"), [1, 2])
