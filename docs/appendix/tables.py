"""The card's figures, from what is on file: each part stands between two marks.

Nothing is measured here: `measured.json`, `recipe.json`, `curve.csv` and the shipped
config.json hold the numbers, and `card.py` makes them anew.
"""

import json
import re
from typing import Any

import measured
from curve import description
from samples import SEEDS, settings_in_words
from train_tiny import Recipe, schedule

from gpt2hw import GPT2Config
from gpt2hw.layout import n_parameters

CURVE = measured.HERE / "curve.csv"
RECIPE = measured.HERE / "recipe.json"


def table(*rows: tuple[object, ...]) -> str:
    """A Markdown table; the first row is its head, numbers stand to the right."""
    rules = ["---:" if _is_number(cell) else "---" for cell in rows[-1]]
    lines = [rows[0], rules, *rows[1:]]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def _is_number(cell: object) -> bool:
    return bool(re.fullmatch(r"[\d.,]+( %)?( \(.*\))?", str(cell)))


def model() -> str:
    """What it is made of."""
    text = (measured.TINY / "config.json").read_text(encoding="utf-8")
    c = GPT2Config.from_dict(json.loads(text))
    size = (measured.TINY / "model.safetensors").stat().st_size / 1e6
    return table(
        ("what", "in the tiny model"),
        (
            "architecture",
            f"GPT-2's: {c.n_layer} blocks, {c.n_head} heads of {c.d_head}, n_embd "
            f"{c.n_embd}, n_inner {c.n_inner}, n_ctx {c.n_ctx}, tied head",
        ),
        (
            "parameters",
            f"{n_parameters(c):,}, shipped in F16 ({size:.1f} MB), run in float32",
        ),
        (
            "tokenizer",
            f"byte-level BPE in GPT-2's format: 256 bytes, {c.n_vocab - 257:,} merges, "
            f"end-of-text; {c.n_vocab:,} tokens",
        ),
    )


def corpus() -> str:
    """How much of each kind of text there was."""
    kinds = measured.read()["corpus"]["kinds"]
    rows = [
        (name, f"{k['documents']:,}", f"{k['bytes']:,}", f"{k['tokens']:,}")
        for name, k in kinds.items()
    ]
    return table(("texts", "documents", "bytes in UTF-8", "tokens"), *rows)


def recipe() -> str:
    """Every number that decides the result, and how often each text was read."""
    r = Recipe(**json.loads(RECIPE.read_text(encoding="utf-8")))
    names = {
        "steps": f"{r.steps:,}",
        "windows a step": f"{r.batch} of {r.n_ctx} tokens",
        "tokens in all": f"{r.steps * r.batch * r.n_ctx:,}",
        "Muon (matrices in the blocks)": f"rate {r.muon_lr:g}, decay {r.weight_decay}",
        "AdamW (embeddings, vectors)": f"rate {r.adam_lr:g}, decay "
        f"{r.weight_decay / 10:g} on embeddings, none on vectors, betas 0.9 and 0.95",
        "rates": f"{r.warmup} steps up, then level, over the last {r.decay:.0%} of "
        "the steps in a straight line to 0",
        "share of novels": f"{r.novels_first:.0%}, falling with the rates to "
        f"{r.novels_last:.0%}",
        "dropout": f"{r.dropout:g}",
        "numbers": "bfloat16 autocast, float32 weights, gradients cut to norm 1 "
        "(Muon's are not)",
        "seed": f"{r.seed}, of the weights, of the windows and of the order of texts",
        "passes": passes(r),
    }
    return table(("recipe", "value"), *names.items()) + note_of("run")


def passes(r: Recipe) -> str:
    """How often each kind of text was read, on the average."""
    kinds = measured.read()["corpus"]["kinds"]
    share = sum(schedule(step, r)[1] for step in range(r.steps)) / r.steps
    read = r.steps * r.batch * r.n_ctx
    tales = read * (1 - share) / kinds["tales"]["tokens"]
    novels = read * share / kinds["novels"]["tokens"]
    return f"about {tales:.0f} over the tales, {novels:.0f} over the novels"


def note_of(entry: str) -> str:
    """What was not as it should be with a measurement, if anything."""
    note = measured.read().get(entry, {}).get("note", "")
    return f"\n\n{note}" if note else ""


def curve() -> str:
    """The figure's words."""
    return description(CURVE.read_text(encoding="utf-8"))


def score() -> str:
    """How well it predicts tales that it has not seen."""
    found, tales = measured.read()["heldout"], measured.read()["tales"]
    rows = [("the held-out tales, as one string", found, "")]
    for kind, name in (("validation", "validation"), ("trained", "training")):
        of = tales[kind]
        names = f"{of['n_tales']} {name} tales, each alone"
        rows.append((names, of, f" ({of['lowest']:.2f} to {of['highest']:.2f})"))
    lines = [
        (
            name,
            f"{of['n_bytes']:,}",
            f"{of['n_tokens']:,}",
            f"{of['bits_per_byte']:.4f}{spread}",
        )
        for name, of, spread in rows
    ]
    head = ("text", "bytes", "tokens scored", "bits per UTF-8 byte")
    about = (
        f"On the held-out tales that is a perplexity of {found['perplexity']:.3f} a "
        f"token. Measured on {found['date']} with {found['with']}, from the shipped "
        f"file (its sha256 begins `{found['weights'][:12]}`; the held-out text's "
        f"`{found['text'][:12]}`)."
    )
    return table(head, *lines) + "\n\n" + about


def sampling() -> str:
    """The grid of settings, and the one that was taken."""
    found = measured.read()["sampling"]
    first, last = found["seeds"]
    chosen = found["chosen"]
    rows = [
        shares(
            settings_in_words({name: row[name] for name in chosen})
            + (", **taken**" if chosen.items() <= row.items() else ""),
            row,
        )
        for row in found["grid"]
    ]
    head = ("setting", "words in the corpus", "four words said again", "repeats")
    tales = shares("pieces of the tales themselves", found["tales"])
    return (
        f"Of {last - first + 1} texts a setting, of seeds {first} to {last} and "
        f"{found['n_new']} tokens each; repeats are the texts that say a sentence "
        f"twice:\n\n" + table(head, *rows, tales) + note_of("sampling")
    )


def shares(name: str, row: dict[str, float]) -> tuple[str, str, str, float]:
    """A row of the grid, in per cent."""
    known, again = 100 * row["known"], 100 * row["again"]
    return name, f"{known:.2f} %", f"{again:.1f} %", row["repeats"]


def words() -> str:
    """The bars of the samples."""
    found = measured.read()["samples"]
    missing = found["unknown"]
    share = 1 - len(missing) / found["n_words"]
    listed = ", ".join(f"*{word}*" for word in missing) or "none"
    repeated = found["n_repeated"] or "none"
    return (
        f"The {found['n_samples']} samples of seeds {SEEDS[0]} to {SEEDS[-1]} have "
        f"{found['n_words']:,} words, of which {100 * share:.2f} per cent occur in the "
        f"corpus; the others are {listed}. Of their {found['n_sentences']} sentences "
        f"{repeated} is said twice within a sample. Of their {found['n_runs']:,} runs "
        f"of eight words {found['n_copied']} stand in the corpus word for word."
    )


def heads() -> str:
    """The scores of every head, the highest of each kind in bold."""
    kinds = ("previous_token", "first_token", "induction")
    scores = measured.read()["heads"]["scores"]
    top = {kind: max(s[kind] for s in scores) for kind in kinds}
    rows = [
        (
            f"h.{s['layer']}, head {s['head']}",
            *(_bold(f"{s[kind]:.3f}", s[kind] == top[kind]) for kind in kinds),
        )
        for s in scores
    ]
    head = ("head", *(kind.replace("_", " ") for kind in kinds))
    return table(head, *rows) + "\n\n" + induction()


def _bold(text: str, is_bold: bool) -> str:
    return f"**{text}**" if is_bold else text


def induction() -> str:
    """Whether there is an induction head, over several random sequences."""
    found = measured.read()["heads"]
    tops = found["highest_induction"]
    names = sorted({f"h.{t['layer']}, head {t['head']}" for t in tops})
    low, high = (f(t["induction"] for t in tops) for f in (min, max))
    if len(names) > 1 or low < 3 * found["level"]:
        verdict = "There is no induction head"
    elif low < 0.5:
        verdict = "It is an induction head, but a weak one"
    else:
        verdict = "It is an induction head"
    return (
        f"A head that looks at all tokens alike scores about {found['level']:.3f} for "
        f"induction. On {len(tops)} random sequences (seeds 0 to {len(tops) - 1}) the "
        f"highest score is that of {' or '.join(names)}, from {low:.2f} to {high:.2f}. "
        f"{verdict}."
    )


PARTS: tuple[Any, ...] = (
    *(model, corpus, recipe, curve, score, sampling, words, heads),
)


def fill(page: str) -> str:
    """The page with every part made anew between its marks."""
    for part in PARTS:
        name = part.__name__
        begin, end = f"<!-- begin {name} -->\n", f"\n<!-- end {name} -->"
        before, found, rest = page.partition(begin)
        _, found_end, after = rest.partition(end)
        if not found or not found_end:
            raise ValueError(f"the card has no place for {name!r}: {begin!r}, {end!r}")
        page = f"{before}{begin}\n{part()}\n{end}{after}"
    return page
