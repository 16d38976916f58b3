"""Text to ids on one thread: 2 MB of prose and of code, a new tokenizer each round."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from engine import code_text, prose_text, tiktoken_gpt2
from start import Rounds

from gpt2hw import Tokenizer

os.environ |= {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"}
Encode = Callable[[str], list[int]]


def ours(_: Path) -> Encode:
    return Tokenizer.from_pretrained("gpt2").encode


def tiktoken(_: Path) -> Encode:
    return tiktoken_gpt2().encode_ordinary


def tokenizers(folder: Path) -> Encode:
    """Without offsets of the tokens, which it would else find, too."""
    from tokenizers import Tokenizer as Theirs

    made = Theirs.from_file(str(folder / "tokenizer.json"))
    return lambda text: made.encode_batch_fast([text], add_special_tokens=False)[0].ids


MAKERS = {"gpt2hw": ours, "tiktoken": tiktoken, "tokenizers": tokenizers}


def encode(folder: Path, prose: Path | None, code: Path | None, rounds: int) -> Rounds:
    """Megabytes a second; fails unless the ids are the same."""
    found: Rounds = {}
    for kind, text in (("prose", prose_text(prose)), ("code", code_text(code))):
        size = len(text.encode()) / 1e6
        rows = found.setdefault(kind, {name: [] for name in MAKERS})
        for _ in range(rounds):
            ids = {}
            for name, make in MAKERS.items():
                encoder = make(folder)
                begun = time.perf_counter()
                ids[name] = encoder(text)
                rows[name].append(size / (time.perf_counter() - begun))
        if not ids["gpt2hw"] == ids["tiktoken"] == ids["tokenizers"]:
            raise SystemExit(f"{kind}: the ids differ")
    return found
