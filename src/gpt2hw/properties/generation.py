"""What holds for `generate` and `stream`: the text, the ids, and why it ended."""
# ruff: noqa: S101

from collections.abc import Callable, Generator, Sequence
from os.path import commonprefix
from typing import Any

import torch
from torch import Tensor

from gpt2hw.config import GPT2Config
from gpt2hw.generation import Completion
from gpt2hw.tokenizer import Tokenizer

Stream = Callable[..., Generator[str, None, Completion]]
Generate = Callable[..., Completion]


class ScriptedModel:
    """A model that plays a script: its n-th call predicts the script's n-th id.

    `calls` holds the ids that each call was given. Its caches are lists of ids.
    """

    def __init__(self, script: Sequence[int], n_vocab: int, n_ctx: int = 1024) -> None:
        self.config = GPT2Config(n_vocab=n_vocab, n_ctx=n_ctx)
        self.script = script
        self.calls: list[list[int]] = []

    def new_cache(self) -> list[int]:
        """An empty list: it will hold the ids that it has seen."""
        return []

    def __call__(self, ids: Sequence[int], cache: list[int] | None = None) -> Tensor:
        """[n_seq] ids -> [n_seq, n_vocab] logits; the last row is the script's."""
        seen = [] if cache is None else cache
        seen.extend(ids)
        assert len(seen) <= self.config.n_ctx, "more ids than there are positions"
        logits = torch.zeros(len(ids), self.config.n_vocab)
        logits[-1, self.script[len(self.calls)]] = 1.0
        self.calls.append(list(ids))
        return logits


def whole_characters(data: bytes) -> str:
    """The text of these bytes whatever may follow: an unfinished character is left out.

    That is what stays the same when the bytes go on in one way and in another.
    """
    ends = [b"", b"a", *(bytes([first, 0x80, 0x80]) for first in (0x80, 0x90, 0xA0))]
    texts = [(data + end).decode("utf-8", "replace") for end in ends]
    return str(commonprefix(texts))  # noqa: RUF071 -- of characters, not of folders


def cut_before_first(text: str, stops: Sequence[str]) -> str:
    """The text up to where the first of its stop strings begins."""
    return text[: min((text.find(s) for s in stops if s in text), default=len(text))]


def expected(
    tokenizer: Tokenizer, script: Sequence[int], stops: Sequence[str], n_new: int
) -> tuple[str, list[int], str]:
    """Text, ids and finish_reason by their definition, decoding anew after each id."""
    for n in range(1, n_new + 1):
        if script[n - 1] == tokenizer.eot_id:
            text = tokenizer.decode(script[: n - 1])
            return cut_before_first(text, stops), list(script[:n]), "end_of_text"
        text = whole_characters(tokenizer.decode_bytes(script[:n]))
        if any(stop in text for stop in stops):
            return cut_before_first(text, stops), list(script[:n]), "stop"
    text = tokenizer.decode(script[:n_new])
    reason = "stop" if any(stop in text for stop in stops) else "length"
    return cut_before_first(text, stops), list(script[:n_new]), reason


def writes_the_script(
    generate: Generate, tokenizer: Tokenizer, script: Sequence[int], stops: list[str]
) -> None:
    """Text, ids and finish_reason are those of the definition, for every length."""
    for n_new in range(len(script) + 1):
        model = ScriptedModel(script, tokenizer.n_vocab)
        done = generate(model, tokenizer, "ab", max_new_tokens=n_new, stop=stops)
        found = (done.text, done.ids, done.finish_reason)
        right = expected(tokenizer, script, stops, n_new)
        assert found == right, f"{found} for {n_new} new ids, expected {right}"


def shows_what_is_sure(
    make_gate: Callable[[Sequence[str]], Any], pieces: list[str], stops: list[str]
) -> None:
    """After each piece, what has passed is all that no stop string can still take."""
    gate, shown, text = make_gate(stops), "", ""
    for piece in pieces:
        shown += gate.push(piece)
        if any(stop in text for stop in stops):
            continue  # it was stopped before this piece, of which nothing may pass
        text += piece
        sure = cut_before_first(text, stops)
        if sure == text:
            starts = [
                s[:n] for s in stops for n in range(len(s)) if text.endswith(s[:n])
            ]
            sure = text[: len(text) - max(map(len, starts), default=0)]
        assert shown == sure, f"{shown!r} is shown of {text!r}"
    shown += gate.flush()
    assert shown == gate.text == cut_before_first(text, stops), f"{shown!r} of {text!r}"


def collect(pieces: Generator[str, None, Completion]) -> tuple[list[str], Completion]:
    """All pieces, and the Completion that the generator returns."""
    found = []
    while True:
        try:
            found.append(next(pieces))
        except StopIteration as end:
            return found, end.value


def pieces_join_to_the_text(stream: Stream, *arguments: Any, **settings: Any) -> None:
    """The joined pieces are the Completion's text, and none is empty."""
    pieces, done = collect(stream(*arguments, **settings))
    assert "".join(pieces) == done.text, f"{pieces} are not {done.text!r}"
    assert all(pieces), "an empty piece was yielded"


def cache_changes_nothing(
    generate: Generate, model: Any, tokenizer: Tokenizer, prompt: list[int], n_new: int
) -> None:
    """Greedy ids are those of a loop that computes everything anew for each of them.

    Compared as long as the two largest logits are further apart than rounding goes.
    """
    settings = {"max_new_tokens": n_new, "overflow": "slide"}
    done = generate(model, tokenizer, prompt, **settings)
    ids = list(prompt)
    for new_id in done.ids:
        logits = model(ids[-model.config.n_ctx :])[-1, : tokenizer.n_vocab]
        first, second = logits.topk(2).values.tolist()
        if first - second < 1e-5:
            return
        assert new_id == int(logits.argmax()), f"id {len(ids)} differs: {new_id}"
        ids.append(new_id)
