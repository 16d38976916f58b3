"""A trace made visible: a line for each value, and the likeliest next tokens."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from rich.text import Text
from torch import Tensor

from gpt2hw.attention import softmax
from gpt2hw.cli.screen import rich_console, show, table
from gpt2hw.cli.text import quoted
from gpt2hw.generation import mask_unknown_ids
from gpt2hw.tokenizer import Tokenizer

N_FIRST, N_NEXT = 5, 5
NUMBER = 10  # columns for one number


@dataclass(frozen=True)
class Candidate:
    """A token that may come next, and its probability at temperature 1."""

    token_id: int
    token: bytes
    probability: float


def likeliest(logits_row: Tensor, tokenizer: Tokenizer) -> list[Candidate]:
    """The likeliest next tokens by a row of logits [n_vocab], the likeliest first."""
    known = mask_unknown_ids(logits_row.double(), tokenizer.n_vocab)
    top = softmax(known).topk(min(N_NEXT, tokenizer.n_vocab))
    pairs = zip(top.indices.tolist(), top.values.tolist(), strict=True)
    return [Candidate(i, tokenizer.token_bytes(i), p) for i, p in pairs]


def summary(value: Tensor) -> dict[str, Any]:
    """Shape, mean, norm and first numbers; the sums are taken in float64."""
    numbers = value.detach().cpu().double().flatten()
    return {
        "shape": list(value.shape),
        "mean": float(numbers.mean()),
        "norm": float(numbers.square().sum().sqrt()),
        "first": numbers[:N_FIRST].tolist(),
    }


def as_dict(
    prompt: str,
    ids: Sequence[int],
    values: Mapping[str, Tensor],
    following: Sequence[Candidate],
) -> dict[str, Any]:
    """The trace for JSON, which has no NaN and no infinity: they are null."""
    return {
        "prompt": prompt,
        "ids": list(ids),
        "values": [
            {"name": name} | _finite(summary(value)) for name, value in values.items()
        ],
        "next": [
            {
                "id": c.token_id,
                "text": c.token.decode("utf-8", errors="replace"),
                "bytes": c.token.hex(),
                "probability": c.probability,
            }
            for c in following
        ],
    }


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def print_trace(
    tokenizer: Tokenizer,
    ids: Sequence[int],
    values: Mapping[str, Tensor],
    following: Sequence[Candidate],
) -> None:
    """Prints the tokens, a table of the values, and one of the next tokens."""
    encoding = sys.stdout.encoding
    tokens = [
        (str(token_id), quoted(tokenizer.token_bytes(token_id), encoding))
        for token_id in ids
    ]
    chances = [
        (f"{c.probability:.1%}", str(c.token_id), quoted(c.token, encoding))
        for c in following
    ]
    show(table(("id", "token"), tokens, right=("id",)), "", _values(values), "")
    show(table(("next", "id", "token"), chances, right=("next", "id")))


def _values(values: Mapping[str, Tensor]) -> Text:
    """Name, shape, mean and norm, and as many first numbers as there is room for."""
    found = {name: summary(value) for name, value in values.items()}
    rows = [
        [name, str(s["shape"]), f"{s['mean']:.4f}", f"{s['norm']:.4f}"]
        for name, s in found.items()
    ]
    taken = sum(max(map(len, column)) + 2 for column in zip(*rows, strict=True))
    n_first = max(0, min(N_FIRST, (rich_console().width - taken) // NUMBER))
    heads = ["value", "shape", "mean", "norm"]
    if n_first:
        heads.append("first numbers")
        for row in rows:
            first = found[row[0]]["first"][:n_first]
            row.append("".join(f"{number:{NUMBER}.4f}" for number in first))
    return table(heads, rows, right=("mean", "norm"))
