"""The rules of several texts at once: each gets what it gets alone."""

# ruff: noqa: S101

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from gpt2hw.batches import left_padded
from gpt2hw.generation import generate
from gpt2hw.pretrained import GPT2
from gpt2hw.properties.closeness import agree
from gpt2hw.sampling import Sampler
from gpt2hw.tokenizer import Tokenizer

Texts = Sequence[Sequence[int]]
Pad = Callable[[Texts], tuple[Tensor, Tensor]]
State = Callable[[GPT2, Tensor, Tensor], Tensor]
Write = Callable[[GPT2, Texts, Sequence[int]], list[list[int]]]


def every_text_ends_in_the_last_place(padded: Pad, texts: Texts) -> None:
    """The mask finds each text again, and each text's last id is in the last column.

    The last row of logits is what the next token is chosen from, in every row of a
    batch at once.

    >>> every_text_ends_in_the_last_place(left_padded, [[3, 1, 4], [5]])
    """
    ids, mask = padded(texts)
    for number, (row, real) in enumerate(zip(ids, mask, strict=True)):
        text = list(texts[number])
        assert row[real].tolist() == text, (
            f"the mask finds {row[real].tolist()} in row {number}, which is {text}"
        )
        assert bool(real[-1]), (
            f"the last place of row {number} is padding; its text ends with {text[-1]}"
        )


def positions_come_from_the_mask(
    positions: Callable[[Tensor], Tensor], mask: Tensor
) -> None:
    """The real tokens of each row are numbered 0, 1, 2, ..., wherever they stand.

    >>> import torch
    >>> from gpt2hw.batches import positions
    >>> positions_come_from_the_mask(positions, torch.tensor([[False, True, True]]))
    """
    for number, (row, real) in enumerate(zip(positions(mask), mask, strict=True)):
        found, right = row[real].tolist(), list(range(int(real.sum())))
        assert found == right, (
            f"the tokens of row {number} are at positions {found}, not {right}"
        )


def nobody_looks_at_padding(
    allowed: Callable[[Tensor, int], Tensor], mask: Tensor
) -> None:
    """A real token looks at all real ones up to itself, and at nothing else.

    >>> import torch
    >>> from gpt2hw.batches import allowed
    >>> nobody_looks_at_padding(allowed, torch.tensor([[False, True, True]]))
    """
    n_seq = mask.shape[-1]
    for number, (table, real) in enumerate(
        zip(allowed(mask, n_seq), mask, strict=True)
    ):
        for place in real.nonzero().flatten().tolist():
            seen = table[0, place].nonzero().flatten().tolist()
            right = [at for at in range(place + 1) if real[at]]
            assert seen == right, (
                f"row {number}: the token in place {place} looks at {seen}, not {right}"
            )


def every_token_looks_at_something(
    allowed: Callable[[Tensor, int], Tensor], mask: Tensor
) -> None:
    """No row of the table is empty, padding's neither: its softmax would be 0 / 0.

    >>> import torch
    >>> from gpt2hw.batches import allowed
    >>> every_token_looks_at_something(allowed, torch.tensor([[False, True, True]]))
    """
    empty = (~allowed(mask, mask.shape[-1]).any(dim=-1)).nonzero()
    assert not len(empty), (
        f"row {empty[0, 0].item()}: the token in place {empty[0, -1].item()} looks at "
        "nothing, so its weights are 0 / 0"
    )


def padded_rows_equal_their_single_runs(
    state: State, model: GPT2, texts: Texts, within: float = 1e-5
) -> None:
    """Every real token of a padded batch has the logits that it has in its text alone.

    `state(model, ids, mask)` is what the head is given.

    >>> from gpt2hw.batches import padded_state
    >>> from gpt2hw.properties.tracing import loud_model
    >>> texts = [[3, 1, 4], [5]]
    >>> padded_rows_equal_their_single_runs(padded_state, loud_model(1), texts)
    """
    ids, mask = left_padded(texts)
    logits = model.logits(state(model, ids, mask))
    for number, (found, real) in enumerate(zip(logits, mask, strict=True)):
        what = f"logits of text {number}, of {len(texts[number])} ids"
        agree(found[real], model(texts[number]), within, what)


def a_row_that_is_done_changes_no_other(
    write: Write, model: GPT2, texts: Texts, n_new: Sequence[int]
) -> None:
    """Each text writes its own number of new ids, those that it writes alone.

    `write(model, texts, n_new)` gives the new ids of each text, chosen greedily.
    """
    found = write(model, texts, n_new)
    for number, (text, n) in enumerate(zip(texts, n_new, strict=True)):
        right = _greedy(model, text, n)
        assert found[number] == right, (
            f"text {number} writes {found[number]}, and {right} when it is alone"
        )


def _greedy(model: GPT2, text: Sequence[int], n_new: int) -> list[int]:
    ids = list(text)
    for _ in range(n_new):
        ids.append(int(model(ids)[-1].argmax()))
    return ids[len(text) :]


def rows_draw_as_if_alone(
    generate_all: Callable[..., Any],
    model: GPT2,
    tokenizer: Tokenizer,
    prompts: Sequence[str],
    sampler: Sampler,
) -> None:
    """Each of several texts is the one that its prompt and this sampler give alone.

    `generate_all` takes the arguments of `generate`, with a list of prompts.
    """
    given = sampler.copy()
    found = generate_all(model, tokenizer, prompts, max_new_tokens=4, sampler=given)
    for prompt, one in zip(prompts, found, strict=True):
        given = sampler.copy()
        alone = generate(model, tokenizer, prompt, max_new_tokens=4, sampler=given)
        assert one.ids == alone.ids, (
            f"{prompt!r} goes on with {one.ids} among others, with {alone.ids} alone"
        )
