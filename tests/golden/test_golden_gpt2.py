"""The published facts about the real GPT-2, where its weights are on this machine."""

from pathlib import Path

import pytest
from published_facts import FACTS, checks
from report import same_ids

from gpt2hw import CheckpointError, Tokenizer
from gpt2hw.config import PUBLISHED
from gpt2hw.hub import find
from gpt2hw.layout import n_parameters


def folder_of(name: str) -> Path:
    """The folder of a published model; without its weights the test is skipped."""
    try:
        folder = find(name)
    except CheckpointError:
        folder = None
    if folder is None or not (folder / "model.safetensors").is_file():
        pytest.skip(f"the weights of {name} are not here: put them into models/{name}")
    return folder


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.from_pretrained("gpt2")


PROMPTS = [*FACTS["greedy"], *FACTS["reported"]] + [
    FACTS[key] for key in ("likeliest_logits", "logits_after_hello")
]
CHECKS = [check for check in checks(FACTS) if check.is_asserted]


@pytest.mark.parametrize("fact", PROMPTS, ids=lambda f: repr(f["prompt"]))
def test_the_published_prompts_have_their_published_ids(tokenizer, fact):
    same_ids("prompt", tokenizer.encode(fact["prompt"]), fact["prompt_ids"])
    if "text" in fact:
        assert tokenizer.decode(fact["ids"]) == fact["text"]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: f"{c.model}: {c.what}")
def test_what_is_found_is_what_was_published(check):
    outcome = check.look(folder_of(check.model))
    if outcome is None:
        assert check.model == "gpt2"  # no file is told of the others
        pytest.skip(f"the folder of gpt2 has no {check.what.split()[-1]}")
    assert outcome.is_ok, (
        f"{check.what}: expected {outcome.expected}, found {outcome.found}\n"
        f"{outcome.detail}"
    )


@pytest.mark.parametrize("name", FACTS["n_parameters"])
def test_a_published_size_has_as_many_parameters_as_was_published(name):
    assert n_parameters(PUBLISHED[name]) == FACTS["n_parameters"][name]
