"""Scores a model folder on a text: `nox -s train -- --score FOLDER TEXT`.

With `--record` what it finds is put on file too, in `measured.json`, for the card.
"""

import argparse
import random
from dataclasses import asdict
from pathlib import Path
from typing import Any

import measured
from corpus import read_corpus

from gpt2hw import GPT2, Tokenizer
from gpt2hw.evaluation import Evaluation, evaluate

N_TRAINED = 50  # of the training tales, drawn at random


def score(folder: Path, text: Path) -> Evaluation:
    """Scores the text, verbatim, with the package's own forward pass."""
    model, tokenizer = GPT2.from_pretrained(folder), Tokenizer.from_pretrained(folder)
    return evaluate(model, tokenizer, text.read_bytes().decode("utf-8"))


def record(folder: Path, text: Path, found: Evaluation) -> None:
    """Puts the score on file, with the hash of the text that it is of."""
    entry = asdict(found) | {"text": measured.sha256(text)}
    measured.record("heldout", entry, folder)


def score_tales(corpus: Path, folder: Path = measured.TINY) -> dict[str, Any]:
    """The validation tales, and some of those that were trained on, each alone."""
    model, tokenizer = GPT2.from_pretrained(folder), Tokenizer.from_pretrained(folder)
    texts = read_corpus(corpus)
    some = random.Random(0).sample(texts.tales, N_TRAINED)
    found = {}
    for kind, tales in (("validation", texts.validation), ("trained", some)):
        scores = [evaluate(model, tokenizer, tale) for tale in tales]
        bits = [score.bits_per_byte for score in scores]
        n_bytes = sum(score.n_bytes for score in scores)
        total = sum(score.bits_per_byte * score.n_bytes for score in scores)
        found[kind] = {
            "n_tales": len(tales),
            "n_bytes": n_bytes,
            "n_tokens": sum(score.n_tokens for score in scores),
            "bits_per_byte": total / n_bytes,
            "lowest": min(bits),
            "highest": max(bits),
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--record", action="store_true", help="put it on file")
    args = parser.parse_args()
    found = score(args.folder, args.text)
    print(f"bits per byte        {found.bits_per_byte:.4f}")
    print(f"perplexity a token   {found.perplexity:.3f}")
    print(
        f"tokens scored        {found.n_tokens:,} of a text of {found.n_bytes:,} bytes"
    )
    if args.record:
        record(args.folder, args.text, found)


if __name__ == "__main__":
    main()
