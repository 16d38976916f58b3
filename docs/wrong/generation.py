"""Step 7: mistakes in the loop around the sampler."""

from collections.abc import Iterable
from typing import Any

from gpt2hw import Completion, Tokenizer, generate
from gpt2hw.properties import generation as rules
from wrong.entry import Entry, Piece


def generate_with_stops_per_token(
    model: Any,
    tokenizer: Tokenizer,
    prompt: str,
    *,
    max_new_tokens: int,
    stop: Iterable[str],
) -> Completion:
    """Looks for stop strings in each token alone: one that lies in two is missed."""
    done = generate(model, tokenizer, prompt, max_new_tokens=max_new_tokens)
    text = ""
    for new_id in done.ids:
        piece = tokenizer.decode([new_id])
        if any(s in piece for s in stop):
            return Completion(text, done.prompt, done.prompt_ids, done.ids, "stop")
        text += piece
    return done


def generate_past_the_end_of_text(
    model: Any,
    tokenizer: Tokenizer,
    prompt: str,
    *,
    max_new_tokens: int,
    stop: Iterable[str],
) -> Completion:
    """Writes the end-of-text marker out, as if it were a word."""
    done = generate(model, tokenizer, prompt, max_new_tokens=max_new_tokens, stop=stop)
    text = tokenizer.decode(done.ids)
    return Completion(text, done.prompt, done.prompt_ids, done.ids, done.finish_reason)


def generate_with_the_prompt(
    model: Any,
    tokenizer: Tokenizer,
    prompt: str,
    *,
    max_new_tokens: int,
    stop: Iterable[str],
) -> Completion:
    """Hands the prompt back as part of what was written."""
    done = generate(model, tokenizer, prompt, max_new_tokens=max_new_tokens, stop=stop)
    text = prompt + done.text
    return Completion(text, done.prompt, done.prompt_ids, done.ids, done.finish_reason)


# What catches them

TINY_TOKENIZER = Tokenizer.from_pretrained("tiny")


def _writes(script: str, stop: list[str]) -> Piece:
    ids = [*TINY_TOKENIZER.encode(script), TINY_TOKENIZER.eot_id]
    return lambda generate: rules.writes_the_script(generate, TINY_TOKENIZER, ids, stop)


ENTRIES = [
    Entry(
        generate_with_stops_per_token,
        generate,
        rules.writes_the_script,
        _writes("the king said", [" king s"]),
    ),
    Entry(
        generate_past_the_end_of_text,
        generate,
        rules.writes_the_script,
        _writes("the king", []),
    ),
    Entry(
        generate_with_the_prompt,
        generate,
        rules.writes_the_script,
        _writes("the king", []),
    ),
]
