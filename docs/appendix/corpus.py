"""The corpus of the tiny model: folders of plain text to a list of documents.

The texts are public: `fairytaleqa.txt` are the tales of FairytaleQA (sections joined;
github.com/uci-soe/FairytaleQAData), the others ebooks of Project Gutenberg, of which
`src/gpt2hw/models/tiny/NOTICE` has the numbers, as UTF-8 without their licence pages,
one blank line between two paragraphs.

A corpus folder holds `train/*.txt` (tales) and `more/*.txt` (novels). In
`train/fairytaleqa.txt` three line feeds stand between two tales; in the other books
of tales a heading in capitals begins a new tale. Headings, contents and title pages
are dropped: the model is to tell tales, not to print title pages.
"""

from dataclasses import dataclass
from pathlib import Path

VALIDATION_EVERY = 25  # one tale of fairytaleqa in 25 is kept for choosing settings


@dataclass(frozen=True)
class Corpus:
    """Documents by kind: tales and novels to train on, tales to choose settings by."""

    tales: list[str]
    novels: list[str]
    validation: list[str]


def read_corpus(folder: Path) -> Corpus:
    """Reads `folder/train` and, where present, `folder/more`."""
    tales: list[str] = []
    validation: list[str] = []
    for path in sorted((folder / "train").glob("*.txt")):
        text = path.read_text(encoding="utf-8")
        if path.stem == "fairytaleqa":
            parts = [tale.strip() for tale in text.split("\n\n\n") if tale.strip()]
            validation += parts[::VALIDATION_EVERY]
            tales += [t for i, t in enumerate(parts) if i % VALIDATION_EVERY]
        else:
            tales += split_at_headings(text)
    novels = [
        "\n\n".join(split_at_headings(path.read_text(encoding="utf-8")))
        for path in sorted((folder / "more").glob("*.txt"))
    ]
    return Corpus(tales=tales, novels=novels, validation=validation)


def split_at_headings(text: str) -> list[str]:
    """Cuts a book at its headings; pieces too short to be a tale are dropped."""
    documents: list[list[str]] = [[]]
    for paragraph in (p.strip() for p in text.split("\n\n")):
        if not paragraph:
            continue
        if is_heading(paragraph):
            documents.append([])
        else:
            documents[-1].append(paragraph)
    joined = ["\n\n".join(paragraphs) for paragraphs in documents]
    return [document for document in joined if len(document) >= 300]


def is_heading(paragraph: str) -> bool:
    """Whether a paragraph is a heading, a contents page or a title: mostly capitals."""
    letters = [c for c in paragraph if c.isalpha()]
    return not letters or sum(c.isupper() for c in letters) > 0.4 * len(letters)
