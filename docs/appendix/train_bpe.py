"""Trains the tiny model's byte-level BPE and writes it in GPT-2's format.

    python docs/appendix/train_bpe.py CORPUS FOLDER [--size 2048]

Source of the method: Sennrich, Haddow and Birch 2016, section 3.2 (merge the most
frequent pair, again and again), on bytes as in GPT-2 (Radford et al. 2019, section
2.2): a merge never crosses the pieces that GPT-2's pattern cuts. Ties go to the pair
that is smaller as a pair of byte strings, so that a run can be repeated to the byte.
"""

import argparse
import heapq
import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from corpus import read_corpus

from gpt2hw.tokenizer import BYTE_TO_CHAR, END_OF_TEXT, SPLIT_PATTERN

Pair = tuple[bytes, bytes]


def train(texts: Iterable[str], size: int) -> list[Pair]:
    """The merges, in order, of a vocabulary of `size` tokens, bytes and end included.

    A pair whose token is made by an earlier merge is passed over: one id a token.
    """
    counts = Counter(p for text in texts for p in SPLIT_PATTERN.findall(text))
    words = [[bytes([b]) for b in word.encode()] for word in counts]
    weights = list(counts.values())
    pair_counts: Counter[Pair] = Counter()
    where: defaultdict[Pair, set[int]] = defaultdict(set)
    for index, word in enumerate(words):
        for pair in pairwise(word):
            pair_counts[pair] += weights[index]
            where[pair].add(index)
    heap = [(-count, pair) for pair, count in pair_counts.items()]
    heapq.heapify(heap)
    merges: list[Pair] = []
    made: set[bytes] = set()
    while len(merges) < size - 257 and heap:
        negative, pair = heapq.heappop(heap)
        if -negative != pair_counts[pair] or negative == 0:
            continue  # an old entry: a newer count of this pair is in the heap
        if pair[0] + pair[1] in made:
            continue
        made.add(pair[0] + pair[1])
        merges.append(pair)
        changed: set[Pair] = set()
        for index in where.pop(pair):
            before = words[index]
            after = merge(before, pair)
            words[index] = after
            for old in pairwise(before):
                pair_counts[old] -= weights[index]
                changed.add(old)
            for new in pairwise(after):
                pair_counts[new] += weights[index]
                where[new].add(index)
                changed.add(new)
        for p in changed:
            heapq.heappush(heap, (-pair_counts[p], p))
    return merges


def merge(word: list[bytes], pair: Pair) -> list[bytes]:
    """`word` with each occurrence of `pair`, from left to right, made one token."""
    out: list[bytes] = []
    i = 0
    while i < len(word):
        if i + 1 < len(word) and (word[i], word[i + 1]) == pair:
            out.append(word[i] + word[i + 1])
            i += 2
        else:
            out.append(word[i])
            i += 1
    return out


def write(merges: list[Pair], folder: Path) -> None:
    """Writes merges.txt and vocab.json as GPT-2's tokenizer has them."""

    def spell(token: bytes) -> str:
        return "".join(BYTE_TO_CHAR[b] for b in token)

    folder.mkdir(parents=True, exist_ok=True)
    lines = ["#version: 0.2", *(f"{spell(a)} {spell(b)}" for a, b in merges)]
    (folder / "merges.txt").write_bytes(("\n".join(lines) + "\n").encode())
    tokens = [*BYTE_TO_CHAR.values(), *(spell(a + b) for a, b in merges), END_OF_TEXT]
    vocab = {token: index for index, token in enumerate(tokens)}
    (folder / "vocab.json").write_bytes(json.dumps(vocab).encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", type=int, default=2048)
    args = parser.parse_args()
    corpus = read_corpus(args.corpus)
    merges = train([*corpus.tales, *corpus.novels], args.size)
    write(merges, args.folder)
    print(f"{len(merges)} merges written to {args.folder}")


if __name__ == "__main__":
    main()
