"""How many times as good as its peers the engine has to be, and what was found."""

from typing import Any, NamedTuple

import peers
from start import OWN

# work -> unit, and engine -> median and rounds (told.py).
Table = dict[str, dict[str, Any]]


class Bar(NamedTuple):
    """`ours` at `work` over the best of `theirs` at `their_work`, or the inverse.

    Where less is better, it is the inverse: a ratio above 1 is always in our favour.
    """

    what: str
    ours: str
    work: str
    theirs: tuple[str, ...]
    their_work: str
    floor: float
    target: float


def _beside(
    what: str, kind: str, work: str, theirs: str, floor: float, target: float
) -> Bar:
    """A bar at one work; theirs: one peer, or several with commas between them."""
    peers = tuple(theirs.split(", "))
    name = peers[0] if len(peers) == 1 else f"the best {kind} peer"
    what, ours = f"{what}, beside {name}", f"gpt2hw {kind}".strip()
    return Bar(what, ours, work, peers, work, floor, target)


def _itself(
    what: str, kind: str, work: str, other: str, floor: float, target: float
) -> Bar:
    """A bar of one engine at two works."""
    ours = f"gpt2hw {kind}"
    return Bar(what, ours, work, (ours,), other, floor, target)


FLOATS = "llama.cpp f32, CTranslate2 float32, transformers float32"
AT = "at 64"
BARS = (
    Bar(
        *("float32, a token, of what the memory allows", "gpt2hw float32", AT),
        *(("float32",), "limit of memory", 0.9, 1.0),
    ),
    _beside("float32, a token", "float32", AT, "llama.cpp f32", 1.0, 1.2),
    _beside("float32, a token", "float32", AT, "transformers float32", 2.4, 3.2),
    _beside("float16, a token", "float16", AT, "llama.cpp f16", 0.85, 1.0),
    _beside("int8, a token", "int8", AT, "llama.cpp q8_0", 0.95, 1.15),
    _beside("int8, a token", "int8", AT, "CTranslate2 int8", 2.0, 2.5),
    _beside("float32, a prompt of 512", "float32", "prompt of 512", FLOATS, 0.95, 1.1),
    _itself("float32, at 960 beside at 64", "float32", "at 960", AT, 0.8, 0.9),
    _itself("int8, at 960 beside at 64", "int8", "at 960", AT, 0.7, 0.85),
    _itself(
        "float32, eight texts beside one", "float32", "8 at once", "1 at once", 4.0, 6.0
    ),
    _beside("start", "float32", "seconds", "transformers float32", 2.3, 2.7),
    _beside(
        *("start, GPT-2's own layout", "float32", f"seconds{OWN}"),
        *("transformers float32", 2.3, 2.7),
    ),
    _beside("tokenizer, prose", "", "prose", "tiktoken", 0.36, 0.45),
    _beside("tokenizer, code", "", "code", "tiktoken", 0.36, 0.45),
    _beside("tokenizer, prose", "", "prose", "tokenizers", 2.5, 3.5),
    _beside("tokenizer, code", "", "code", "tokenizers", 2.5, 3.5),
)


def ratios(table: Table) -> list[dict[str, Any]]:
    """Each bar of which everything was measured, with what was found."""
    return [_ratio(table, bar) for bar in BARS if _is_measured(table, bar)]


def _is_measured(table: Table, bar: Bar) -> bool:
    needed = ((bar.work, bar.ours), *((bar.their_work, name) for name in bar.theirs))
    return all(work in table and name in table[work]["rows"] for work, name in needed)


def _ratio(table: Table, bar: Bar) -> dict[str, Any]:
    """What was found beside the best of its peers."""
    rows = table[bar.their_work]["rows"]
    more = peers.MORE_IS_BETTER[table[bar.work]["unit"]]
    best = (max if more else min)(bar.theirs, key=lambda name: rows[name]["median"])
    pair = [bar.work, bar.ours], [bar.their_work, best]
    found = peers.paired({"work": table}, *pair)
    return {
        "what": bar.what,
        "ours": [bar.work, bar.ours],
        "theirs": [bar.their_work, best],
        "ratio": round(found, 3),
        "floor": bar.floor,
        "target": bar.target,
    }
