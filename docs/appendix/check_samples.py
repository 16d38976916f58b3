"""The bars of the samples: `python docs/appendix/check_samples.py CORPUS`.

At least 98 per cent of the words of samples.md occur in the corpus, and no sample says
a sentence twice. What is found is printed and put on file for the card. `prose.py` says
what a word and a sentence are; the last word of a sample that was cut off is left out
where it may be half a word.
"""

import sys
from pathlib import Path
from typing import Any

import measured
import prose
from choose_sampling import corpus_files, corpus_words
from samples import texts_of

PAGE = measured.HERE / "samples.md"
BAR = 0.98
RUN = 8  # words; a run as long as that is hardly said twice by chance


def count(texts: list[tuple[str, bool]]) -> dict[str, int]:
    """What can be counted without the corpus."""
    return {
        "n_samples": len(texts),
        "n_words": sum(len(prose.whole_words(t, is_cut=cut)) for t, cut in texts),
        "n_sentences": sum(len(prose.sentences(text)) for text, _ in texts),
        "n_repeated": sum(len(prose.repeated(text)) for text, _ in texts),
    }


def unknown(texts: list[tuple[str, bool]], known: set[str]) -> list[str]:
    """The words that the corpus does not have, each as often as it stands there."""
    found = [w for text, cut in texts for w in prose.whole_words(text, is_cut=cut)]
    return sorted(word for word in found if word not in known)


def runs(text: str) -> set[tuple[str, ...]]:
    """Every run of RUN words of a text."""
    found = prose.words(text)
    return set(zip(*(found[i:] for i in range(RUN)), strict=False))


def copied(texts: list[tuple[str, bool]], corpus: Path) -> dict[str, int]:
    """How many runs of words the samples have, and how many of them the corpus has."""
    written = set().union(*(runs(text) for text, _ in texts))
    read: set[tuple[str, ...]] = set()
    for file in corpus_files(corpus):
        read |= written & runs(file.read_text(encoding="utf-8"))
    return {"n_runs": len(written), "n_copied": len(read)}


def check(corpus: Path) -> dict[str, Any]:
    """Measures samples.md against the corpus."""
    texts = texts_of(PAGE.read_text(encoding="utf-8"))
    missing = {"unknown": unknown(texts, corpus_words(corpus))}
    return count(texts) | missing | copied(texts, corpus)


def main() -> None:
    """Prints what it finds, and fails where a bar is missed."""
    found = check(Path(sys.argv[1]))
    share = 1 - len(found["unknown"]) / found["n_words"]
    print(f"{100 * share:.2f} % of {found['n_words']:,} words occur in the corpus")
    print(f"not there: {', '.join(found['unknown'])}")
    print(f"{found['n_repeated']} of {found['n_sentences']} sentences said twice")
    print(f"{found['n_copied']} of {found['n_runs']:,} runs of {RUN} words copied")
    measured.record("samples", found)
    if share < BAR or found["n_repeated"]:
        raise SystemExit("a bar is missed")


if __name__ == "__main__":
    main()
