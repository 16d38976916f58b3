"""Makes the card's figures anew, in one command.

    python docs/appendix/card.py                       the tables, from what is on file
    python docs/appendix/card.py CORPUS                measures the shipped model first
    python docs/appendix/card.py CORPUS --from FOLDER  puts a trained model in its place
                                                       before that

`CORPUS` is a folder as `corpus.py` describes it, with `heldout.txt` beside train/.
`FOLDER` is what train_tiny.py wrote. `--note` tells what in the run was not as the
recipe says. The golden files are made anew by a command of their own
(tests/golden/regenerate.py).
"""

import argparse
import csv
import shutil
from pathlib import Path
from typing import Any

import check_samples
import choose_sampling
import measured
import samples
import score
import tables
import torch
from corpus import read_corpus

from gpt2hw import GPT2, Tokenizer
from gpt2hw.heads import head_scores

CARD = measured.HERE / "tiny_model.md"
TALE = measured.HERE / "own_tale.txt"
CURVE_HEAD = "step,loss in nats a token,bits per byte on the validation tales"
N_SEQUENCES = 10


def install(folder: Path) -> None:
    """Puts a trained model, its recipe and its curve in the place of the old ones."""
    for name in ("config.json", "model.safetensors", "vocab.json", "merges.txt"):
        shutil.copyfile(folder / name, measured.TINY / name)
    shutil.copyfile(folder / "recipe.json", tables.RECIPE)
    text = (folder / "curve.csv").read_text(encoding="utf-8")
    tables.CURVE.write_text(tidy(text), encoding="utf-8", newline="\n")


def tidy(text: str) -> str:
    """The curve with its head, and of a step that was made twice the last line.

    >>> print(tidy("100,5.9,,\\n100,5.8,,\\n"), end="")
    step,loss in nats a token,bits per byte on the validation tales
    100,5.8,,
    """
    rows = {row[0]: row for row in csv.reader(text.splitlines()) if row[0].isdigit()}
    lines = [",".join(rows[step]) for step in sorted(rows, key=int)]
    return "\n".join([CURVE_HEAD, *lines]) + "\n"


def count_corpus(folder: Path) -> dict[str, Any]:
    """Documents, bytes and tokens of each kind of text."""
    tokenizer, texts = Tokenizer.from_pretrained("tiny"), read_corpus(folder)
    kinds = {
        kind: {
            "documents": len(documents),
            "bytes": sum(len(text.encode()) for text in documents),
            "tokens": sum(len(tokenizer.encode(text)) for text in documents),
        }
        for kind, documents in vars(texts).items()
    }
    return {"kinds": kinds}


def score_heads() -> dict[str, Any]:
    """Every head's scores, and the highest for induction on each random sequence."""
    model, tokenizer = GPT2.from_pretrained("tiny"), Tokenizer.from_pretrained("tiny")
    ids = tokenizer.encode(TALE.read_text(encoding="utf-8"))
    found = [head_scores(model, ids, seed=seed) for seed in range(N_SEQUENCES)]
    tops = [max(scores, key=lambda s: s.induction) for scores in found]
    n_repeat = model.config.n_ctx // 4  # the queries of the second half see n to 2n
    level = sum(1 / seen for seen in range(n_repeat + 1, 2 * n_repeat + 1)) / n_repeat
    return {
        "scores": [rounded(score) for score in found[0]],
        "highest_induction": [rounded(score) for score in tops],
        "level": round(level, 4),
    }


def rounded(score: Any) -> dict[str, float]:
    """A head's scores, to four places."""
    return {name: round(value, 4) for name, value in vars(score).items()}


def measure(corpus: Path) -> None:
    """Everything that the card tells of the model, anew, and the samples with it."""
    text = corpus / "heldout.txt"
    score.record(measured.TINY, text, score.score(measured.TINY, text))
    measured.record("tales", score.score_tales(corpus))
    measured.record("corpus", count_corpus(corpus))
    measured.record("heads", score_heads())
    choose_sampling.choose(corpus)
    check_samples.PAGE.write_text(samples.page(), encoding="utf-8", newline="\n")
    measured.record("samples", check_samples.check(corpus))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path, nargs="?")
    parser.add_argument("--from", type=Path, dest="folder", help="a trained model")
    parser.add_argument("--note", help="what was not as the recipe says")
    args = parser.parse_args()
    torch.set_num_threads(1)  # on a small model threads wait for one another
    if args.folder:
        install(args.folder)
    if args.folder or args.note is not None:
        measured.record("run", {"note": args.note or ""})
    if args.corpus:
        measure(args.corpus)
    page = tables.fill(CARD.read_text(encoding="utf-8"))
    CARD.write_text(page, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
