"""Twenty samples of a model, none left out: `python docs/appendix/samples.py [FOLDER]`.

Each begins with a prompt, in bold, and has the seed that stands over it. How they are
drawn was chosen once for a model, by `choose_sampling.py`, on seeds other than these.
"""

import re
import sys

import measured

from gpt2hw import GPT2, Completion, Sampler, Tokenizer, generate

PROMPTS = ("Once upon a time", "The king said to his daughter", "There was once a fox")
SEEDS = range(1, 21)
N_NEW = 200
MARKUP = re.compile(r"[\\`*_\[\]<>#|]|^[-+=~]|^(?<=\d)\.", re.MULTILINE)


def prompt_of(seed: int) -> str:
    """The prompts take turns."""
    return PROMPTS[seed % len(PROMPTS)]


def sample(
    model: GPT2, tokenizer: Tokenizer, seed: int, n_new: int = N_NEW
) -> Completion:
    """The sample of a seed, drawn as `measured.json` says."""
    return generate(
        model,
        tokenizer,
        prompt_of(seed),
        max_new_tokens=n_new,
        sampler=Sampler(seed=seed, **measured.read()["sampling"]["chosen"]),
        overflow="stop",
    )


def as_markdown(samples: dict[int, Completion]) -> str:
    """The page of all samples, by seed."""
    setting = settings_in_words(measured.read()["sampling"]["chosen"])
    parts = [
        "---\ndescription: Twenty samples of the tiny model, none left out.\n---",
        "# Samples of the tiny model",
        "Made by `python docs/appendix/samples.py`: every seed from "
        f"{SEEDS[0]} to {SEEDS[-1]}, none left out, none drawn anew. Each begins with "
        "one of three prompts, here in bold, and goes on until end-of-text or for "
        f"{N_NEW} tokens; those that ended by length break off where they were, most "
        f"of them within a sentence. Drawn at {setting}; "
        "[the card](tiny_model.md#its-samples) says how that was chosen.",
    ]
    for seed, done in samples.items():
        text = f"**{done.prompt}**{MARKUP.sub(_escaped, done.text.rstrip())}"
        quoted = "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
        parts += [f"## Seed {seed}", quoted, f"Ended by: {done.finish_reason}."]
    return "\n\n".join(parts) + "\n"


def _escaped(found: re.Match[str]) -> str:
    return "\\" + found[0]


def settings_in_words(chosen: dict[str, float | None]) -> str:
    """The settings of a sampler, for people.

    >>> settings_in_words({"temperature": 0.7, "top_k": None, "top_p": 0.9})
    'temperature 0.7, top-p 0.9'
    """
    used = [(name, value) for name, value in chosen.items() if value is not None]
    return ", ".join(f"{name.replace('_', '-')} {value:g}" for name, value in used)


def texts_of(page: str) -> list[tuple[str, bool]]:
    """The samples as they stand on the page, prompt and all; and whether cut off."""
    found = re.findall(
        r"^## Seed \d+\n\n((?:>.*\n)+)\nEnded by: (\w+)\.$", page, re.MULTILINE
    )
    return [(_unquoted(quoted), reason != "end_of_text") for quoted, reason in found]


def _unquoted(quoted: str) -> str:
    text = re.sub(r"^> ?", "", quoted, flags=re.MULTILINE).replace("**", "")
    return re.sub(r"\\(.)", r"\1", text).strip("\n")


def page(name: str = "tiny") -> str:
    """All samples of a model, as Markdown."""
    model, tokenizer = GPT2.from_pretrained(name), Tokenizer.from_pretrained(name)
    return as_markdown({seed: sample(model, tokenizer, seed) for seed in SEEDS})


if __name__ == "__main__":
    print(page(*sys.argv[1:2]), end="")
