"""Prompts and tokens: every engine in turn, at several positions, and of eight texts.

What comes out is work -> engine -> the figure of each round. A round's speed is that of
its median token; the first token after the prompt is left out.
"""

import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from engines import ENGINES
from memory import tokens_of_reading_alone
from start import Rounds
from weights import CONFIG
from workers import Worker

POSITIONS = (64, 512, 960)
N_NEW = 18  # the prompt's own, one that does not count, and sixteen that do
N_TEXTS = 8
TOGETHER = (
    *("gpt2hw float32", "llama.cpp f32"),
    *("CTranslate2 float32", "transformers float32"),
)

# The largest gap of a logit, in standard deviations of the logits.
MAY_DIFFER = {
    "float32": 1e-3,
    **dict.fromkeys(("float16", "f16"), 0.02),
    "f32": 0.02,  # llama.cpp's, as far off as its f16
    **dict.fromkeys(("int8", "q8_0"), 0.5),
    "q4_0": 4.0,
}


@contextmanager
def workers(names: Sequence[str], folder: Path, threads: int) -> Iterator[list[Worker]]:
    made = [Worker(name, folder, threads) for name in names]
    try:
        yield made
    finally:
        for worker in made:
            worker.close()


def random_ids(*shape: int) -> list:
    generator = torch.Generator().manual_seed(1)
    return torch.randint(CONFIG.n_vocab, shape, generator=generator).tolist()


def compare(engines: Sequence[Worker]) -> dict[str, float]:
    """How far each engine's logits are from the first's; fails where it is too far."""
    ids = random_ids(48)
    logits = [torch.tensor(engine.logits(ids)).double() for engine in engines]
    gaps = {
        engine.name: float((row - logits[0]).abs().max() / logits[0].std())
        for engine, row in zip(engines, logits, strict=True)
    }
    for name, gap in gaps.items():
        kinds = (ENGINES[one][1] for one in (name, engines[0].name))
        bound = max(map(MAY_DIFFER.__getitem__, kinds))
        if not gap <= bound:
            raise SystemExit(f"{name}: logits differ by {gap:.3g}, more than {bound}")
    return {name: float(f"{gap:.3g}") for name, gap in gaps.items()}


def one_text(engines: Sequence[Worker], rounds: int, threads: int) -> Rounds:
    """Milliseconds of each prompt, and tokens a second after it.

    And what the memory allows just before and after the first engine's first turn: the
    larger of both.
    """
    found: Rounds = {}
    limits = found.setdefault("limit of memory", {"float32": []})["float32"]
    for number in range(rounds):
        for position in POSITIONS:
            for engine in turns(engines, number):
                is_first = engine is engines[0] and position == POSITIONS[0]
                before = tokens_of_reading_alone(CONFIG, threads) if is_first else 0
                prompt, _, *tokens = engine.written([random_ids(position)], N_NEW)
                if is_first:
                    after = tokens_of_reading_alone(CONFIG, threads)
                    limits.append(max(before, after))
                note(found, f"prompt of {position}", engine, 1000 * prompt)
                speed = 1 / statistics.median(tokens)
                note(found, f"at {position}", engine, speed)
    return found


def several_texts(engines: Sequence[Worker], rounds: int) -> Rounds:
    """Tokens a second in all, of one text and of N_TEXTS at once, after 64 tokens."""
    found: Rounds = {}
    chosen = [engine for engine in engines if engine.name in TOGETHER]
    for number in range(rounds):
        for n_texts in (1, N_TEXTS):
            for engine in turns(chosen, number):
                texts = random_ids(n_texts, POSITIONS[0])
                _, _, *tokens = engine.written(texts, N_NEW)
                speed = n_texts / statistics.median(tokens)
                note(found, f"{n_texts} at once", engine, speed)
    return found


def turns(engines: Sequence[Worker], number: int) -> Sequence[Worker]:
    """Every other round goes backwards, so that no engine always follows another."""
    return engines[::-1] if number % 2 else engines


def note(found: Rounds, work: str, engine: Worker, figure: float) -> None:
    found.setdefault(work, {}).setdefault(engine.name, []).append(figure)
