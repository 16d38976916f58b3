"""What others have published about GPT-2, beside what is found on this machine.

Each check looks at one fact in one model's folder and tells what was expected and what
was found. `test_golden_gpt2.py` asserts them; `tests/published/gpt2_check.py` prints
them as a table.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import takewhile
from math import isnan
from pathlib import Path
from typing import Any

import torch
from report import table, verdict

from gpt2hw import GPT2, Tokenizer, generate, read_header
from gpt2hw.inspection import inspect_checkpoint
from gpt2hw.layout import is_buffer

Fact = dict[str, Any]
FACTS: Fact = json.loads(
    Path(__file__).with_name("gpt2.json").read_text(encoding="utf-8")
)


@dataclass(frozen=True)
class Outcome:
    """What one look found; `detail` is the longer story for a failure."""

    expected: str
    found: str
    is_ok: bool
    detail: str = ""


@dataclass(frozen=True)
class Check:
    """One fact about one model; `look` takes its folder, None: it lacks the file.

    Where `is_asserted` is False the outcome is told and means no failure.
    """

    model: str
    what: str
    look: Callable[[Path], Outcome | None]
    is_asserted: bool = True


def checks(facts: Fact) -> Iterator[Check]:
    """Every check that the facts allow, model by model, so that each is loaded once."""
    found = [*_file_checks(facts), *_parameter_checks(facts), *_model_checks(facts)]
    models = list(dict.fromkeys(check.model for check in found))
    yield from sorted(found, key=lambda check: models.index(check.model))


@lru_cache(maxsize=1)  # one at a time: medium alone takes 1.4 GB
def model_of(folder: Path) -> GPT2:
    return GPT2.from_pretrained(folder)


def tokenizer_of(folder: Path) -> Tokenizer:
    """The folder's own; where it has none, GPT-2's as it comes with the package."""
    return Tokenizer.from_pretrained(
        folder if (folder / "merges.txt").is_file() else "gpt2"
    )


# Files


def _file_checks(facts: Fact) -> Iterator[Check]:
    files = facts.get("files", {"bytes_and_sha256": {}})
    for name, (n_bytes, sha256) in files["bytes_and_sha256"].items():
        look = partial(_size_and_hash, name, n_bytes, sha256)
        yield Check(files["model"], f"size and hash of {name}", look)
    if fact := facts.get("structure"):
        for what in _STRUCTURE:
            if what in fact:
                look = partial(_structure, what, fact[what])
                yield Check(fact["model"], what, look)


def _size_and_hash(
    name: str, n_bytes: int, sha256: str, folder: Path
) -> Outcome | None:
    path = folder / name
    if not path.is_file():
        return None
    with path.open("rb") as file:
        found = (path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())
    told = [f"{size}, {digest[:8]}..." for size, digest in ((n_bytes, sha256), found)]
    return Outcome(*told, is_ok=found == (n_bytes, sha256), detail=found[1])


_STRUCTURE = (
    *("header_bytes", "data_bytes", "n_tensors", "n_masks", "n_parameters"),
    *("dtype", "metadata", "first_name_parts"),
)


def _structure(what: str, expected: Any, folder: Path) -> Outcome | None:
    """One number, or word, about how model.safetensors is built."""
    path = folder / "model.safetensors"
    if not path.is_file():
        return None
    header = read_header(path)
    tensors = header.tensors
    masks = [name for name in tensors if is_buffer(name)]
    trained = [info.n_elements for name, info in tensors.items() if name not in masks]
    found = {
        "header_bytes": header.data_start - 8,
        "data_bytes": path.stat().st_size - header.data_start,
        "n_tensors": len(tensors),
        "n_masks": len(masks),
        "n_parameters": sum(trained),
        "dtype": " ".join(sorted({info.dtype for info in tensors.values()})),
        "metadata": header.metadata,
        "first_name_parts": " ".join(sorted({n.partition(".")[0] for n in tensors})),
    }[what]
    return Outcome(str(expected), str(found), found == expected)


def _parameter_checks(facts: Fact) -> Iterator[Check]:
    for name, expected in facts.get("n_parameters", {}).items():
        yield Check(name, "parameters, by its header", partial(_parameters, expected))


def _parameters(expected: int, folder: Path) -> Outcome:
    found = inspect_checkpoint(folder).total("parameter").n_elements
    return Outcome(f"{expected:,}", f"{found:,}", found == expected)


# Models


def _model_checks(facts: Fact) -> Iterator[Check]:
    for fact in facts.get("greedy", []):
        yield Check(fact["model"], _after(fact), partial(_greedy, fact))
    for pair in _batches(facts.get("greedy", [])):
        yield Check(pair[0]["model"], "two prompts at once", partial(_together, pair))
    looks = {
        "likeliest_logits": (
            ("five likeliest", _likeliest),
            ("their logits", _last_row),
        ),
        "logits_after_hello": (
            ("logits of the first row", _first_row),
            ("mean of all logits", _mean_logit),
        ),
        "mean_loss": (("mean loss", _mean_loss),),
    }
    for key, ways in looks.items():
        if fact := facts.get(key):
            for what, look in ways:
                what = f"{what}, {fact['prompt']!r}"
                yield Check(fact["model"], what, partial(look, fact))
    for fact in facts.get("reported", []):
        what = f"{_after(fact)} ({fact['of']})"
        yield Check(fact["model"], what, partial(_greedy, fact), is_asserted=False)


def _after(fact: Fact) -> str:
    prompt = fact["prompt"]
    return f"greedy after {prompt if len(prompt) < 30 else prompt[:28] + '...'!r}"


def _greedy(fact: Fact, folder: Path) -> Outcome:
    """The likeliest ids one after the other; or the prompt's, where those differ."""
    tokenizer, right = tokenizer_of(folder), fact["ids"]
    prompt_ids = tokenizer.encode(fact["prompt"])
    if prompt_ids != fact["prompt_ids"]:
        return _same_ids(tokenizer, prompt_ids, fact["prompt_ids"])
    done = generate(model_of(folder), tokenizer, prompt_ids, max_new_tokens=len(right))
    return _same_ids(tokenizer, done.ids, right)


def _batches(greedy: list[Fact]) -> Iterator[list[Fact]]:
    """The texts that transformers' test of left padding lets its batch write."""
    found = [
        fact for fact in greedy if "test_batch_generation" in fact.get("source", "")
    ]
    if found:
        yield found


def _together(batch: list[Fact], folder: Path) -> Outcome:
    """The ids that each prompt of a batch gets, all in one row."""
    prompts = [fact["prompt_ids"] for fact in batch]
    tokenizer, n_new = tokenizer_of(folder), len(batch[0]["ids"])
    done = generate(model_of(folder), tokenizer, prompts, max_new_tokens=n_new)
    found, right = (
        [i for row in rows for i in row]
        for rows in ([one.ids for one in done], [fact["ids"] for fact in batch])
    )
    return _same_ids(tokenizer, found, right)


def _same_ids(tokenizer: Tokenizer, found: list[int], right: list[int]) -> Outcome:
    pairs = zip(found, right, strict=False)
    n_same = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
    is_ok = found == right
    rest = "" if is_ok else f", then {tokenizer.decode(found[n_same : n_same + 4])!r}"
    return Outcome(
        f"{len(right)} ids, to {tokenizer.decode(right[-2:])!r}",
        f"{n_same} of them{rest}",
        is_ok,
        f"   found {found} {tokenizer.decode(found)!r}\n"
        f"expected {right} {tokenizer.decode(right)!r}",
    )


def _likeliest(fact: Fact, folder: Path) -> Outcome:
    found = _logits(fact, folder)[-1].topk(len(fact["last_row"])).indices.tolist()
    return _same_ids(tokenizer_of(folder), found, [row[0] for row in fact["last_row"]])


def _last_row(fact: Fact, folder: Path) -> Outcome:
    ids, _, expected = zip(*fact["last_row"], strict=True)
    found = _logits(fact, folder)[-1][list(ids)].tolist()
    return _near(found, list(expected), fact["tolerance"])


def _first_row(fact: Fact, folder: Path) -> Outcome:
    row = _logits(fact, folder)[0]
    outcome = _near(
        row[[int(i) for i in fact["first_row"]]].tolist(),
        list(fact["first_row"].values()),
        fact["tolerance"],
    )
    likeliest = int(row.argmax())
    if likeliest == fact["first_row_likeliest"]:
        return outcome
    expected = f"likeliest id {fact['first_row_likeliest']}"
    return Outcome(expected, str(likeliest), is_ok=False, detail=outcome.detail)


def _mean_logit(fact: Fact, folder: Path) -> Outcome:
    mean = float(_logits(fact, folder).double().mean())
    return _near([mean], [fact["mean_of_all_logits"]], fact["mean_tolerance"])


def _mean_loss(fact: Fact, folder: Path) -> Outcome:
    """Of every id of the prompt but the first, which is end-of-text."""
    ids = tokenizer_of(folder).encode(fact["prompt"], allow_special=True)
    if ids != fact["prompt_ids"]:
        return _same_ids(tokenizer_of(folder), ids, fact["prompt_ids"])
    log_p = torch.log_softmax(_logits(fact, folder).double(), dim=-1)
    loss = -float(log_p[range(len(ids) - 1), ids[1:]].mean())
    return _near([loss], [fact["mean_loss"]], fact["tolerance"])


def _logits(fact: Fact, folder: Path) -> torch.Tensor:
    return model_of(folder)(fact["prompt_ids"])


def _near(found: list[float], right: list[float], tolerance: float) -> Outcome:
    """One number, or the largest difference of several."""
    gap = max(abs(f - r) for f, r in zip(found, right, strict=True))
    is_ok = verdict(gap, tolerance) == "OK" and not any(map(isnan, found))
    detail = table("numbers", found, right, tolerance)
    if len(found) == 1:
        return Outcome(f"{right[0]:.5f}", f"{found[0]:.5f}", is_ok, detail)
    expected = f"{len(right)} numbers, within {tolerance:g}"
    return Outcome(expected, f"largest difference {gap:.6f}", is_ok, detail)
