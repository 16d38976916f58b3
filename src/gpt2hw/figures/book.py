"""What every page of the book begins with: the model that runs, and its tokens."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch

from gpt2hw.figures.svg import visible
from gpt2hw.pretrained import GPT2
from gpt2hw.tokenizer import Tokenizer

SIGNS = str.maketrans({" ": "·", "\n": "↵", "\t": "⇥"})


@dataclass(frozen=True)
class Running:
    """The model that makes a page's outputs; `name` is a known name or a folder."""

    name: str
    model: GPT2
    tokenizer: Tokenizer

    @property
    def label(self) -> str:
        """The name, or the last part of the folder's: what a page calls it."""
        return Path(self.name).name or self.name


def running() -> Running:
    """The model that GPT2HW_MODEL names, `tiny` unless set; loaded once a process.

    >>> running().model is running().model
    True
    """
    return _loaded(os.environ.get("GPT2HW_MODEL") or "tiny")


@cache
def _loaded(name: str) -> Running:
    model = GPT2.from_pretrained(name)
    if model.config.n_embd < 512:  # there, threads wait for one another
        torch.set_num_threads(1)
    return Running(name, model, Tokenizer.from_pretrained(name))


def token_labels(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
    """Each token as a short label: a space is a middle dot, a line's end an arrow.

    Other control characters are pictures, as ␀.

    >>> from gpt2hw import Tokenizer
    >>> token_labels(Tokenizer.from_pretrained("gpt2"), [15496, 995])
    ['Hello', '·world']
    """
    return [label(tokenizer.decode([i])) for i in ids]


def label(text: str) -> str:
    r"""A token's text, as `token_labels` shows it.

    >>> label(" a\n")
    '·a↵'
    """
    return visible(text.translate(SIGNS))
