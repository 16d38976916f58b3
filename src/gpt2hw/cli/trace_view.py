"""A trace made visible: a line for each value, and the likeliest next tokens."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from rich.text import Text
from torch import Tensor

from gpt2hw.attention import softmax
from gpt2hw.cli.screen import GAP, aside, rich_console, show, table
from gpt2hw.cli.text import counted, quoted
from gpt2hw.generation import mask_unknown_ids
from gpt2hw.tokenizer import Tokenizer

N_FIRST, N_NEXT = 5, 5
HEADINGS = ("last token's first numbers", "last token")


@dataclass(frozen=True)
class Candidate:
    """A token that may come next, and its probability at temperature 1."""

    token_id: int
    token: bytes
    probability: float


def likeliest(logits_row: Tensor, tokenizer: Tokenizer) -> list[Candidate] | None:
    """The likeliest next tokens by a row of logits [n_vocab], the likeliest first.

    None where a known token's logit is not finite: then there are no chances.
    """
    if not logits_row[: tokenizer.n_vocab].isfinite().all():
        return None
    known = mask_unknown_ids(logits_row.double(), tokenizer.n_vocab)
    top = softmax(known).topk(min(N_NEXT, tokenizer.n_vocab))
    pairs = zip(top.indices.tolist(), top.values.tolist(), strict=True)
    return [Candidate(i, tokenizer.token_bytes(i), p) for i, p in pairs]


def not_finite(values: Mapping[str, Tensor]) -> str:
    """What to say where the last logits are not finite, and where that begins.

    >>> import torch
    >>> not_finite({"embed": torch.zeros(2), "logits": torch.tensor([0.0, torch.inf])})
    'the logits are not finite, so no token is likeliest; this begins at logits'
    """
    first = next(n for n, value in values.items() if not value.isfinite().all())
    return (
        f"the logits are not finite, so no token is likeliest; this begins at {first}"
    )


def summary(value: Tensor) -> dict[str, Any]:
    """Shape, mean, norm, the last token's first numbers; sums are taken in float64.

    The last token decides what comes next. Of several heads it is the first one's.

    >>> import torch
    >>> summary(torch.tensor([[[1.0, 0.0], [0.25, 0.75]]]))["last_token"]
    [0.25, 0.75]
    """
    numbers = value.detach().cpu().double().flatten()
    last = value.detach().flatten(0, -3)[0] if value.ndim > 2 else value.detach()
    last = last[-1, :N_FIRST].cpu().double()
    return {
        "shape": list(value.shape),
        "mean": float(numbers.mean()),
        "norm": float(numbers.square().sum().sqrt()),
        "last_token": last.tolist(),
    }


def as_dict(
    prompt: str,
    ids: Sequence[int],
    values: Mapping[str, Tensor],
    following: Sequence[Candidate] | None,
) -> dict[str, Any]:
    """The trace for JSON, which has no NaN and no infinity: they are null.

    So is what comes next, where the logits are not finite.
    """
    return {
        "prompt": prompt,
        "ids": list(ids),
        "values": [
            {"name": name} | _finite(summary(value)) for name, value in values.items()
        ],
        "next": following
        and [
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
    model: str,
    tokenizer: Tokenizer,
    ids: Sequence[int],
    values: Mapping[str, Tensor],
    following: Sequence[Candidate] | None,
) -> None:
    """Prints the tokens, a table of the values, and one of the next tokens, if any."""
    encoding = sys.stdout.encoding
    tokens = [
        (str(token_id), quoted(tokenizer.token_bytes(token_id), encoding))
        for token_id in ids
    ]
    chances = [
        (f"{c.probability:.1%}", str(c.token_id), quoted(c.token, encoding))
        for c in following or ()
    ]
    parts: list[str | Text] = [
        table(("id", "token"), tokens, right=("id",)),
        "",
        _values(values),
    ]
    if chances:
        heads = ("chance", "id", "next token")
        parts += ["", table(heads, chances, right=("chance", "id"))]
    aside(
        f"model {model}: {counted(len(ids), 'token')}, {counted(len(values), 'value')}"
    )
    show(*parts)
    n_lines = sum(str(part).count("\n") + 1 for part in parts)
    if n_lines > rich_console().height:
        aside("-n NAME shows fewer values: -n weights, or -n 'h.0.*'")


def _values(values: Mapping[str, Tensor]) -> Text:
    """Name, shape, mean and norm, and as many numbers as there is room for."""
    found = {name: summary(value) for name, value in values.items()}
    rows = [
        [name, str(s["shape"]), f"{s['mean']:.4f}", f"{s['norm']:.4f}"]
        for name, s in found.items()
    ]
    heads = ["value", "shape", "mean", "norm"]
    taken = sum(max(map(len, column)) + len(GAP) for column in zip(*rows, strict=True))
    cells = _numbers([s["last_token"] for s in found.values()], taken)
    if cells:
        room = rich_console().width - taken
        heads.append(next(h for h in HEADINGS if len(h) <= max(room, len(HEADINGS[1]))))
        rows = [[*row, cell] for row, cell in zip(rows, cells, strict=True)]
    return table(heads, rows, right=("mean", "norm"))


def _numbers(lists: Sequence[Sequence[float]], taken: int) -> list[str]:
    """The numbers of each list in aligned columns, as many as fit beside the taken."""
    shown = [[f"{number:.4f}" for number in numbers] for numbers in lists]
    width = max(len(number) for numbers in shown for number in numbers)
    room = rich_console().width - taken + len(GAP)
    n = min(N_FIRST, room // (width + len(GAP)))
    if n < 1 or room - len(GAP) < len(HEADINGS[1]):
        return []
    return [GAP.join(f"{number:>{width}}" for number in row[:n]) for row in shown]
