"""This engine beside its peers, in turn in one run: `nox -s bench-peers`.

    python tests/bench/peers/run.py                    all of it; writes the JSON
    python tests/bench/peers/run.py PROSE CODE         with texts of one's own
    python tests/bench/peers/run.py writing start      parts alone; writes nothing
    python tests/bench/peers/run.py writing --engines "gpt2hw int8,llama.cpp q8_0"

Parts: writing (prompts and tokens), several (eight texts at once), start, tokenizer.
The weights are random, of GPT-2 124M's shape, the same for every engine, which has to
compute the same logits before anything is measured. Nothing else should run meanwhile.
docs/benchmarks.md is drawn from the JSON, docs/measurements/peers.json.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[3] / "docs" / "measurements"))

from bars import ratios
from engines import ENGINES
from measuring import results
from start import start
from texts import encode
from told import busy_seconds, machine, show, show_bars, told
from weights import prepare
from writing import compare, one_text, several_texts, workers

JSON = Path(__file__).parents[3] / "docs" / "measurements" / "peers.json"
PARTS = ("writing", "several", "start", "tokenizer")


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*", metavar="PART|FILE")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--folder", type=Path, help="keep the weights here")
    given = parser.parse_args()
    given.parts = [word for word in given.words if word in PARTS] or list(PARTS)
    given.files = [Path(word) for word in given.words if word not in PARTS]
    chosen = given.engines.split(",")
    given.engines = [name for name in ENGINES if name in chosen]
    if len(given.files) not in (0, 2) or not all(f.is_file() for f in given.files):
        parser.error("name parts, or two files: prose and code")
    if unknown := set(chosen) - set(ENGINES):
        parser.error(f"no engine {unknown}; there are {', '.join(ENGINES)}")
    return given


@contextmanager
def weights_in(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        prepare(folder)
        yield folder
        return
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name))
        yield Path(name)


def measured(given: argparse.Namespace, folder: Path) -> tuple[dict, dict]:
    """How far the logits differ, and the rounds of every part that was asked for."""
    differ, rounds = {}, {}
    if {"writing", "several"} & set(given.parts):
        with workers(given.engines, folder, given.threads) as engines:
            differ = compare(engines)
            if "writing" in given.parts:
                rounds |= one_text(engines, given.rounds, given.threads)
            if "several" in given.parts:
                rounds |= several_texts(engines, given.rounds)
    if "start" in given.parts:
        rounds |= start(folder, given.rounds)
    if "tokenizer" in given.parts:
        prose, code = given.files or (None, None)
        rounds |= encode(folder, prose, code, given.rounds)
    return differ, rounds


def written(found: dict[str, Any]) -> None:
    JSON.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"      written: {JSON}")


def main() -> int:
    given = asked()
    with weights_in(given.folder) as folder:
        before = busy_seconds()
        differ, rounds = measured(given, folder)
        whole, own = (b - a for a, b in zip(before, busy_seconds(), strict=True))
    table = told(rounds)
    found = machine(given.threads) | {
        "model": "GPT-2 124M's shape, random weights",
        "texts": "given" if given.files else "default",
        "busy_with_others": round(1 - own / whole, 3),
        "logits_differ": differ,
        "work": table,
        "ratios": ratios(table),
    }
    show(table)
    print(f"      of the processor's work, {found['busy_with_others']:.1%} was others'")
    show_bars(found["ratios"])
    if set(given.parts) == set(PARTS) and set(given.engines) == set(ENGINES):
        written(found)
    print(f"{sum(results)} of {len(results)} bars met")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
