"""The published facts about the real GPT-2, where its weights are on this machine."""

import functools
import hashlib
import json
from pathlib import Path

import pytest
import torch
from report import same_ids, same_numbers

from gpt2hw import GPT2, CheckpointError, Tokenizer, generate, read_header
from gpt2hw.config import PUBLISHED
from gpt2hw.hub import find
from gpt2hw.layout import is_buffer, n_parameters

FACTS = json.loads(Path(__file__).with_name("gpt2.json").read_text(encoding="utf-8"))


def folder_of(name: str) -> Path:
    """The folder of a published model; without its weights the test is skipped."""
    try:
        folder = find(name)
    except CheckpointError:
        folder = None
    if folder is None or not (folder / "model.safetensors").is_file():
        pytest.skip(f"the weights of {name} are not here: put them into models/{name}")
    return folder


@functools.lru_cache(maxsize=1)  # one at a time: medium alone takes 1.4 GB
def model_of(name: str) -> GPT2:
    return GPT2.from_pretrained(folder_of(name))


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.from_pretrained("gpt2")


PROMPTS = [*FACTS["greedy"]] + [
    FACTS[key] for key in ("likeliest_logits", "logits_after_hello")
]


@pytest.mark.parametrize("fact", PROMPTS, ids=lambda f: repr(f["prompt"]))
def test_the_published_prompts_have_their_published_ids(tokenizer, fact):
    same_ids("prompt", tokenizer.encode(fact["prompt"]), fact["prompt_ids"])
    if "text" in fact:
        assert tokenizer.decode(fact["ids"]) == fact["text"]


@pytest.mark.parametrize("fact", FACTS["greedy"], ids=lambda f: repr(f["prompt"]))
def test_the_greedy_text_is_the_published_one(tokenizer, fact):
    model, n_new = model_of(fact["model"]), len(fact["ids"])
    done = generate(model, tokenizer, fact["prompt"], max_new_tokens=n_new)
    same_ids(f"after {fact['prompt']!r}", done.ids, fact["ids"], tokenizer.decode)
    assert done.text == fact["text"]


def test_the_likeliest_next_words_have_their_published_logits(tokenizer):
    fact = FACTS["likeliest_logits"]
    logits = model_of("gpt2")(fact["prompt_ids"])[-1]
    ids, _, expected = zip(*fact["last_row"], strict=True)
    likeliest = logits.topk(5).indices.tolist()
    same_ids("the five likeliest", likeliest, ids, tokenizer.decode)
    found = logits[list(ids)].tolist()
    same_numbers("their logits", found, expected, fact["tolerance"])


def test_the_logits_after_hello_are_the_published_ones():
    fact = FACTS["logits_after_hello"]
    logits = model_of("gpt2")(fact["prompt_ids"])
    ids = [int(i) for i in fact["first_row"]]
    expected = list(fact["first_row"].values())
    found = logits[0, ids].tolist()
    same_numbers("logits after Hello", found, expected, fact["tolerance"])
    assert int(logits[0].argmax()) == fact["first_row_likeliest"]
    mean = float(logits.double().mean())
    right, allowed = fact["mean_of_all_logits"], fact["mean_tolerance"]
    same_numbers("mean of all logits", [mean], [right], allowed)


def test_the_mean_loss_is_the_published_one(tokenizer):
    fact = FACTS["mean_loss"]
    ids = tokenizer.encode(fact["prompt"], allow_special=True)
    same_ids("prompt", ids, fact["prompt_ids"])
    log_p = torch.log_softmax(model_of("gpt2")(ids).double(), dim=-1)
    loss = -log_p[range(3), ids[1:]].mean()
    right, allowed = fact["mean_loss_of_3_targets"], fact["tolerance"]
    same_numbers("mean loss", [float(loss)], [right], allowed)


@pytest.mark.parametrize("file", FACTS["files"]["bytes_and_sha256"])
def test_a_file_of_gpt2_has_its_published_size_and_hash(file):
    path = folder_of("gpt2") / file
    if not path.is_file():
        pytest.skip(f"the folder of gpt2 has no {file}")
    n_bytes, sha256 = FACTS["files"]["bytes_and_sha256"][file]
    assert path.stat().st_size == n_bytes
    with path.open("rb") as opened:
        assert hashlib.file_digest(opened, "sha256").hexdigest() == sha256


def test_gpt2s_weights_file_is_built_as_published():
    fact = FACTS["structure"]
    path = folder_of("gpt2") / "model.safetensors"
    header = read_header(path)
    tensors = header.tensors
    assert header.data_start == 8 + fact["header_bytes"]
    assert header.data_start % 8 != 0  # why the data cannot be mapped as it lies
    assert path.stat().st_size - header.data_start == fact["data_bytes"]
    assert len(tensors) == fact["n_tensors"]
    assert header.metadata == fact["metadata"]
    assert {info.dtype for info in tensors.values()} == {fact["dtype"]}
    masks = [name for name in tensors if is_buffer(name)]
    assert masks == [name for name in tensors if name.endswith(".attn.bias")]
    assert len(masks) == fact["n_masks"]
    unexpected = ("transformer.", "lm_head")
    assert not [name for name in tensors if name.startswith(unexpected)]
    trained = [info for name, info in tensors.items() if name not in masks]
    assert sum(info.n_elements for info in trained) == fact["n_parameters"]


@pytest.mark.parametrize("name", FACTS["n_parameters"])
def test_a_published_size_has_as_many_parameters_as_was_published(name):
    assert n_parameters(PUBLISHED[name]) == FACTS["n_parameters"][name]
