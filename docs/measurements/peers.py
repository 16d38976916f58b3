"""Tables, pictures and sentences of docs/benchmarks.md, from peers.json beside this.

`nox -s bench-peers` writes that file. A sentence follows the figures: which engine is
faster is looked up, never written down.
"""

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpt2hw.figures import Figure, bar_charts

FILE = Path(__file__).with_suffix(".json")
MORE_IS_BETTER = {"tokens/s": True, "MB/s": True, "ms": False, "s": False, "MiB": False}
NEAR = 1.03  # nearer than this is as fast
BITS = {  # bits of a weight -> who keeps so many
    32: (
        *("gpt2hw float32", "llama.cpp f32"),
        *("CTranslate2 float32", "transformers float32"),
    ),
    16: ("gpt2hw float16", "llama.cpp f16"),
    8: ("gpt2hw int8", "llama.cpp q8_0", "CTranslate2 int8"),
    4: ("llama.cpp q4_0",),
}
PARTS = {  # what the page shows -> the works that it needs, each with its column
    "decode": {"at 64": "at 64", "at 512": "at 512", "at 960": "at 960"},
    "prompt": {"prompt of 64": "64", "prompt of 512": "512", "prompt of 960": "960"},
    "several": {"1 at once": "one text", "8 at once": "eight texts"},
    "start": {
        "seconds": "seconds",
        "system": "system",
        "MiB": "MiB",
        "seconds, GPT-2's own layout": "seconds, GPT-2's own layout",
    },
    "tokenizer": {"prose": "prose", "code": "code"},
}


def read() -> dict[str, Any]:
    """What was measured last."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def rows(found: dict[str, Any], work: str) -> dict[str, dict[str, Any]]:
    """Engine -> its figures at this work."""
    return found["work"][work]["rows"]


def median(found: dict[str, Any], work: str, engine: str) -> float:
    """The median of the rounds."""
    return rows(found, work)[engine]["median"]


def paired(found: dict[str, Any], one: list[str], other: list[str]) -> float:
    """How many times as good `one` ([work, engine]) is: the median of the rounds.

    The engines of one round were measured within a short time of each other, in which
    a machine drifts little.
    """
    more = MORE_IS_BETTER[found["work"][one[0]]["unit"]]
    a, b = (found["work"][work]["rows"][name]["rounds"] for work, name in (one, other))
    return statistics.median(
        x / y if more else y / x for x, y in zip(a, b, strict=True)
    )


def digits(value: float) -> str:
    """Three digits: 0.123, 1.23, 12.3, 123, 1,230.

    >>> [digits(v) for v in (1.234, 12.34, 123.4, 1234.5)]
    ['1.23', '12.3', '123', '1,234']
    """
    after = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:,.{after}f}"


def table(found: dict[str, Any], part: str) -> str:
    """A row for each engine, a column for each work; ours in bold, and the spread."""
    columns = PARTS[part]
    lines = [
        f"| | {' | '.join(columns.values())} |",
        f"| --- |{' ---: |' * len(columns)}",
    ]
    for engine in rows(found, next(iter(columns))):
        name = f"**{engine}**" if engine.startswith("gpt2hw") else engine
        cells = [digits(median(found, work, engine)) for work in columns]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def spread(found: dict[str, Any], part: str) -> str:
    """By how much the rounds of a figure differ: for half of them, and at most."""
    gaps = sorted(
        (row["most"] - row["least"]) / row["median"]
        for work in PARTS[part]
        for row in rows(found, work).values()
    )
    half, most = statistics.median(gaps), gaps[-1]
    return (
        f"Each is the median of {n_rounds(found)} rounds. From the slowest round to "
        f"the fastest, half of these figures move by {half:.0%} at most, and all by "
        f"{most:.0%} at most."
    )


def n_rounds(found: dict[str, Any]) -> int:
    """How often each thing was measured."""
    return len(rows(found, "at 64")["gpt2hw float32"]["rounds"])


def chart(found: dict[str, Any], work: str) -> Figure:
    """Bars by bits of a weight, where that tells engines apart; others are grey."""
    unit, all_rows = found["work"][work]["unit"], rows(found, work)
    groups = [
        (f"{bits} bits a weight", [n for n in names if n in all_rows])
        for bits, names in BITS.items()
    ]
    groups = [(title, names) for title, names in groups if names]
    if len(groups) < 2:
        groups = [("", list(all_rows))]
    pairs = [
        (title, [(name, all_rows[name]["median"]) for name in names])
        for title, names in groups
    ]
    return _bars(pairs, unit)


def charts(found: dict[str, Any], *works: str) -> Figure:
    """The same engines at several works, one chart below the other."""
    pairs = [
        (f"{work}, {found['work'][work]['unit']}", _medians(found, work))
        for work in works
    ]
    return _bars(pairs, found["work"][works[0]]["unit"])


def _medians(found: dict[str, Any], work: str) -> list[tuple[str, float]]:
    return [(name, row["median"]) for name, row in rows(found, work).items()]


def _bars(pairs: list[tuple[str, list[tuple[str, float]]]], unit: str) -> Figure:
    everything = [value for _, group in pairs for _, value in group]
    after = 0 if min(everything) >= 20 else 1 if min(everything) >= 5 else 2
    others = [n for _, group in pairs for n, _ in group if not n.startswith("gpt2hw")]
    form = f"{{:,.{after}f}} {unit}"
    return bar_charts(pairs, form=form, mono=False, quiet=others)


def beside(found: dict[str, Any], work: str, ours: str, peers: Sequence[str]) -> str:
    """How many times as fast as each peer ours is, and which peers are faster."""
    times = {peer: paired(found, [work, peer], [work, ours]) for peer in peers}
    slower = [compared(t, peer) for peer, t in times.items() if t <= NEAR]
    faster = [f"**{p}** ({t:.2f} times)" for p, t in times.items() if t > NEAR]
    told = [f"{ours} is {in_words(slower)}."] if slower else []
    if faster:
        told.append(f"Faster than {ours} here: {in_words(faster)}.")
    return " ".join(told)


def of_bits(found: dict[str, Any], work: str) -> str:
    """`beside` for each of ours, among the engines with as many bits a weight."""
    there = rows(found, work)
    told = (
        beside(found, work, ours, [n for n in names if n in there])
        for ours, *names in BITS.values()
        if ours.startswith("gpt2hw") and ours in there
    )
    return "\n".join(f"- {line}" for line in told if line)


def compared(times: float, peer: str) -> str:
    """How we stand to a peer that does `times` our work in the same time.

    >>> compared(0.4, "x"), compared(0.99, "x")
    ('2.50 times as fast as x', 'as fast as x')
    """
    near = abs(times - 1) <= NEAR - 1
    return f"as fast as {peer}" if near else f"{1 / times:.2f} times as fast as {peer}"


def in_words(parts: Sequence[str]) -> str:
    """A list as a sentence has it.

    >>> in_words(["a"]), in_words(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last


WHY = {  # what a floor names -> why it was missed, found out by hand
    "float32, a token": (
        "A token in float32 waits for its products, and between them for some 250 "
        "small calls of torch: norms, attention, GELU, sums. Each takes little while "
        "its code is in a cache. But each product sends megabytes of weights through "
        "the caches, and then code comes from memory, too, which takes several times "
        "as long. And the kernel for bags has a speed of its own: where memory gives "
        "more than that, the kernel is the limit. Of a dozen other forms of the "
        "product, and of attention in one call, none is faster here. llama.cpp is one "
        "program, compiled as a whole."
    ),
    "a token, beside transformers": (
        "transformers waits for its own calls more than for the memory, and writes as "
        "many tokens where memory is slow as where it is fast. So this engine is ahead "
        "by less where memory is slow."
    ),
    "start": (
        "A start waits for the system to hand out memory for the weights: see "
        "*system* above. How long that takes depends on the machine, and on what ran "
        "before."
    ),
    "int8, a token, beside llama.cpp": (
        "In int8, a third of a token is not the products: numbers are rounded, scaled "
        "and added up in calls of torch, where llama.cpp has one kernel for all."
    ),
    "int8, at 960": (
        "In int8, the keys and values of 960 tokens, which keep 32 bits, are more than "
        "half as many bytes as all the weights. Where nothing but reading counts, a "
        "token there has two thirds of the speed that it has at 64. Whatever else a "
        "token takes brings the two nearer to each other."
    ),
    "eight texts": (
        "The products of eight rows are oneDNN's, which reads the weights at half the "
        "speed of the memory."
    ),
}


def why_missed(found: dict[str, Any]) -> str:
    """A paragraph for each kind of floor that was missed."""
    missed = [one["what"] for one in found["ratios"] if one["ratio"] < one["floor"]]
    told = [why for kind, why in WHY.items() if any(kind in what for what in missed)]
    return "\n\n".join(told)


def ratio_table(found: dict[str, Any]) -> str:
    """What was asked for, and what came out."""
    lines = ["| | found | at least | aim |", "| --- | ---: | ---: | ---: |"]
    for one in found["ratios"]:
        what, best = one["what"], one["theirs"][1]
        if "best" in what:
            what += f" ({best})"
        ratio = f"{one['ratio']:.2f}"
        ratio = ratio if one["ratio"] >= one["floor"] else f"**{ratio} (missed)**"
        numbers = f"{ratio} | {one['floor']:.2f} | {one['target']:.2f}"
        lines.append(f"| {what} | {numbers} |")
    return "\n".join(lines)


def limit(found: dict[str, Any]) -> str:
    """What the memory allowed in the same rounds, and how much of it each reached."""
    allowed = rows(found, "limit of memory")["float32"]
    least, middle, most = (digits(allowed[k]) for k in ("least", "median", "most"))
    ours, *others = [
        f"{name} reaches {share_of_limit(found, name):.0%}"
        for name in BITS[32]
        if name in rows(found, "at 64")
    ]
    return (
        "Just before and after each of gpt2hw float32's turns at 64, memory was read, "
        "and next to nothing computed. Were the weights read at that speed, it would "
        f"be {middle} tokens a second ({least} in the slowest round, {most} in the "
        f"fastest). {ours} of it{by_memory(found)}"
    ) + (f" Of the same limit, {in_words(others)}." if others else "")


def share_of_limit(found: dict[str, Any], engine: str) -> float:
    """How much of what the memory allows an engine of 32 bits reaches."""
    return paired(found, ["at 64", engine], ["limit of memory", "float32"])


APART = 1.25  # of one memory in all rounds, the fastest is nearer to the slowest


def by_memory(found: dict[str, Any]) -> str:
    """The share of the limit in slow rounds and in fast ones, if memory had both."""
    allowed = rows(found, "limit of memory")["float32"]
    if allowed["most"] < APART * allowed["least"]:
        return "."
    ours = rows(found, "at 64")["gpt2hw float32"]["rounds"]
    between = (allowed["most"] * allowed["least"]) ** 0.5
    shares = [
        (limit > between, one / limit)
        for one, limit in zip(ours, allowed["rounds"], strict=True)
    ]
    slow, fast = (
        [share for is_fast, share in shares if is_fast == kind]
        for kind in (False, True)
    )
    return (
        f": {statistics.median(slow):.0%} in {len(slow)} of the {n_rounds(found)} "
        f"rounds, and {statistics.median(fast):.0%} in those in which memory was up to "
        f"{allowed['most'] / allowed['least']:.1f} times as fast. So a median in the "
        "table below may fall into a fast round for one engine and into a slow one for "
        "the next, or for one position and not for the next: the ratios are to be "
        "trusted, which are taken round by round."
    )


def system(found: dict[str, Any]) -> str:
    """What of a start is the system's work."""
    told = [
        f"{digits(row['median'])} s for {name.split()[0]} ({digits(row['least'])} to "
        f"{digits(row['most'])} from round to round)"
        for name, row in rows(found, "system").items()
    ]
    return (
        "*system* is processor time that the system worked for the process, until it "
        f"had ended: {in_words(told)}. It loads libraries and hands out memory, among "
        "other things."
    )


def machine(found: dict[str, Any]) -> str:
    """Where, when, and with which versions."""
    versions = ", ".join(f"{name} {v}" for name, v in found["versions"].items())
    return (
        f"Measured on {found['date']}: {found['processor']}, {found['cores']} cores, "
        f"{found['threads']} threads for each engine, {found['system']}, Python "
        f"{found['python']}; {versions}. Of all that the processor did meanwhile, "
        f"{found['busy_with_others']:.0%} was for other programs."
    )
