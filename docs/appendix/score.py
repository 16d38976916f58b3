"""Scores a model folder on a text: `nox -s train -- --score FOLDER TEXT`."""

import argparse
from pathlib import Path

from gpt2hw import GPT2, Tokenizer
from gpt2hw.evaluation import evaluate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("text", type=Path)
    args = parser.parse_args()
    model = GPT2.from_pretrained(args.folder)
    tokenizer = Tokenizer.from_pretrained(args.folder)
    found = evaluate(model, tokenizer, args.text.read_bytes().decode("utf-8"))
    print(f"bits per byte        {found.bits_per_byte:.4f}")
    print(f"perplexity a token   {found.perplexity:.3f}")
    print(
        f"tokens scored        {found.n_tokens:,} of a text of {found.n_bytes:,} bytes"
    )


if __name__ == "__main__":
    main()
