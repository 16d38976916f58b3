"""How far fewer bytes change what the real GPT-2 says. Nobody published how far.

So it is told, beside the published facts, and decides nothing.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from math import log
from pathlib import Path

import torch
from published_facts import Check, Fact, Outcome, model_of

from gpt2hw import GPT2
from gpt2hw.evaluation import token_losses
from gpt2hw.precisions import Precision


def precision_checks(facts: Fact) -> Iterator[Check]:
    """A check for each precision of each model that the facts let write greedily."""
    texts: dict[str, list[list[int]]] = {}
    for fact in facts.get("greedy", []):
        ids = [*fact["prompt_ids"], *fact["ids"]]
        texts.setdefault(fact["model"], []).append(ids)
    for name, written in texts.items():
        for precision in ("float16", "int8"):
            what = f"{precision}, on its greedy texts"
            look = partial(_against_float32, precision, written)
            yield Check(name, what, look, is_asserted=False)


def _against_float32(
    precision: Precision, texts: list[list[int]], folder: Path
) -> Outcome:
    """Its loss in bits a token beside float32's, and how often they choose alike."""
    narrow = GPT2.from_pretrained(folder, precision=precision)
    rows = [
        (_token_by_token(model_of(folder), ids), _token_by_token(narrow, ids))
        for ids in texts
    ]
    same = torch.cat([wide.argmax(-1) == ours.argmax(-1) for wide, ours in rows])
    wide, ours = (_bits(each, texts) for each in zip(*rows, strict=True))
    share = float(same.double().mean())
    return Outcome(
        f"float32: {wide:.4f} bits a token",
        f"{ours:.4f}; the same first choice in {share:.1%}",
        is_ok=True,
    )


@torch.inference_mode()
def _token_by_token(model: GPT2, ids: list[int]) -> torch.Tensor:
    """The logits after each id but the last, read as where text is written."""
    cache = model.new_cache()
    return torch.stack([model.last_logits([i], cache) for i in ids[:-1]])


def _bits(rows: Sequence[torch.Tensor], texts: list[list[int]]) -> float:
    pairs = zip(rows, texts, strict=True)
    losses = [token_losses(row, torch.tensor(ids[1:])) for row, ids in pairs]
    return float(torch.cat(losses).double().mean()) / log(2)
