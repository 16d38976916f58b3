"""Step 9: mistakes in a batch of texts of different lengths."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gpt2hw import GPT2, GPT2Config, Sampler, Tokenizer, generate
from gpt2hw.attention import attention_scores, causal_mask, merge_heads, softmax
from gpt2hw.batch_generation import write_together
from gpt2hw.batches import allowed, left_padded, padded_state, positions
from gpt2hw.continuing import Row, Settings, asked
from gpt2hw.layout import parameter_shapes
from gpt2hw.properties import batches as rules
from gpt2hw.properties.tracing import loud_model
from gpt2hw.writing import Writing
from wrong.entry import Entry, entry

Texts = Sequence[Sequence[int]]


def right_padded(texts: Texts) -> tuple[Tensor, Tensor]:
    """Fills the shorter texts up on the right, where the new token has to come."""
    ids, mask = left_padded(texts)
    back = [real.sum().item() for real in mask]
    rows = range(len(texts))
    return (
        torch.stack([ids[i].roll(back[i]) for i in rows]),
        torch.stack([mask[i].roll(back[i]) for i in rows]),
    )


def positions_by_place(mask: Tensor) -> Tensor:
    """Counts places, padding too: a short text begins somewhere in the middle."""
    return torch.arange(mask.shape[-1]).expand_as(mask)


def allowed_to_look_at_padding(mask: Tensor, n_seq: int) -> Tensor:
    """Causal, whatever the mask says."""
    n_kv = mask.shape[-1]
    return causal_mask(n_seq, n_kv).expand(*mask.shape[:-1], 1, n_seq, n_kv)


def allowed_without_itself(mask: Tensor, n_seq: int) -> Tensor:
    """Causal and real, and no more: padding at the front has nothing to look at."""
    return (causal_mask(n_seq, mask.shape[-1]) & mask[..., None, :]).unsqueeze(-3)


def state_with_positions_by_place(model: GPT2, ids: Tensor, mask: Tensor) -> Tensor:
    """The whole pass, its positions counted from the first place of the row."""
    return _state(model, ids, positions_by_place(mask), allowed(mask, ids.shape[-1]))


def state_that_looks_at_padding(model: GPT2, ids: Tensor, mask: Tensor) -> Tensor:
    """The whole pass, its positions right, and a mask that attention never sees."""
    may_look = allowed_to_look_at_padding(mask, ids.shape[-1])
    return _state(model, ids, positions(mask), may_look)


def state_without_itself(model: GPT2, ids: Tensor, mask: Tensor) -> Tensor:
    """The whole pass, where padding looks at nothing: NaN, and NaN times 0 is NaN."""
    may_look = allowed_without_itself(mask, ids.shape[-1])
    return _state(model, ids, positions(mask), may_look)


def _state(model: GPT2, ids: Tensor, places: Tensor, may_look: Tensor) -> Tensor:
    x = model.vectors(ids) + model.wpe[places]
    for block in model.h:
        q, k, v = block.attn.project(block.ln_1(x))
        scores = attention_scores(q, k).masked_fill(~may_look, float("-inf"))
        x = x + block.attn.c_proj(merge_heads(softmax(scores) @ v))
        x = x + block.mlp(block.ln_2(x))
    return model.ln_f(x)


def write_with_the_first_caches(
    model: GPT2, texts: Texts, n_new: Sequence[int]
) -> list[list[int]]:
    """When a text is done, the first caches stay: as many as needed, not the right."""
    new: list[list[int]] = [[] for _ in texts]
    cache, live = model.new_cache(), list(range(len(texts)))
    ids, mask = left_padded(texts)
    logits = model.last_logits(ids, cache, mask=mask)
    while True:
        for text, row in zip(live, logits, strict=True):
            new[text].append(int(row.argmax()))
        live = [text for text in live if len(new[text]) < n_new[text]]
        if not live:
            return new
        cache.keep(range(len(live)))
        logits = model.last_logits(torch.tensor([new[i][-1:] for i in live]), cache)


def generate_with_one_sampler(
    model: GPT2, tokenizer: Tokenizer, prompts: Sequence[str], **given: Any
) -> list[Writing]:
    """Hands one and the same sampler to all rows, which then draw in turn."""
    settings = Settings(given["max_new_tokens"], given["sampler"], (), "error")
    rows = [asked(model.config, tokenizer, prompt, settings) for prompt in prompts]
    write_together(model, rows)
    return [row.writing for row in rows]


# What catches them

LOUD = loud_model(n_layer=2)
TEXTS = [[3, 1, 4, 1, 5], [9, 2], [6, 5, 3]]
MASK = left_padded(TEXTS)[1]


def _talkative() -> GPT2:
    """Loud, with a head of its own: with a tied one, it says one token for ever."""
    config = replace(LOUD.config, tie_word_embeddings=False)
    generator = torch.Generator().manual_seed(0)
    shapes = parameter_shapes(config).items()
    tensors = {n: torch.randn(s, generator=generator) * 0.5 for n, s in shapes}
    return GPT2.from_tensors(config, tensors)


def _write(model: GPT2, texts: Texts, n_new: Sequence[int]) -> list[list[int]]:
    """The package's loop, greedily."""
    byte_tokens = Tokenizer([])  # its end-of-text, 256, is no id of this model
    rows = [
        Row("", list(text), Sampler.greedy(), Writing(byte_tokens, n, "length", ()))
        for text, n in zip(texts, n_new, strict=True)
    ]
    write_together(model, rows)
    return [row.writing.ids for row in rows]


ENTRIES: list[Entry] = [
    entry(right_padded, left_padded, rules.every_text_ends_in_the_last_place, TEXTS),
    entry(positions_by_place, positions, rules.positions_come_from_the_mask, MASK),
    entry(allowed_to_look_at_padding, allowed, rules.nobody_looks_at_padding, MASK),
    entry(allowed_without_itself, allowed, rules.every_token_looks_at_something, MASK),
    *(
        entry(
            wrong, padded_state, rules.padded_rows_equal_their_single_runs, LOUD, TEXTS
        )
        for wrong in (
            state_with_positions_by_place,
            state_that_looks_at_padding,
            state_without_itself,
        )
    ),
    entry(
        write_with_the_first_caches,
        _write,
        rules.a_row_that_is_done_changes_no_other,
        _talkative(),
        TEXTS,
        [1, 4, 4],
    ),
    entry(
        generate_with_one_sampler,
        generate,
        rules.rows_draw_as_if_alone,
        GPT2.random(GPT2Config(n_vocab=257, n_ctx=16, n_embd=8, n_head=2, n_layer=1)),
        Tokenizer([]),
        ["Hm", "Ah"],
        Sampler(seed=7),
    ),
]
