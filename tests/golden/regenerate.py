"""Makes tiny.json anew: `python tests/golden/regenerate.py`.

Do so after the tiny model has been replaced, and look at the difference before it is
committed: texts that were good and are not any more are a finding. Everything is
computed by the plain forward pass; the tests compare with what `generate` does.
"""

import json
from pathlib import Path
from typing import Any

from report import LEAST_GAP

from gpt2hw import GPT2, Tokenizer

FILE = Path(__file__).with_name("tiny.json")
PROMPTS = (
    "Once upon a time",
    "The king said to his daughter",
    "A fox and a crow",
    "",
    "In the middle of the wood there stood a little house, and in it",
)
N_NEW = 40
ABOUT = [
    "What the tiny model answers, for people and for tests/golden/test_golden_tiny.py.",
    "Made by: python tests/golden/regenerate.py",
    "text is what follows the prompt when the likeliest id is taken each time; it ends",
    f"after {N_NEW} ids, or with end-of-text, or before an id that leads by less than",
    f"{LEAST_GAP:g}, which other processors may decide otherwise. least_lead is the",
    "narrowest decision in it. first_logits are those of ids 0 to 4 right after the",
    "prompt; likeliest are the five likeliest ids there, as [id, its text, its logit].",
]


def greedy(model: GPT2, ids: list[int], eot_id: int) -> tuple[list[int], float]:
    """The ids that follow while each leads by LEAST_GAP, and the narrowest lead.

    They end with end-of-text, if it comes.
    """
    new: list[int] = []
    least = float("inf")
    while len(new) < N_NEW and eot_id not in new:
        best = model([*ids, *new])[-1].topk(2)
        lead = float(best.values[0] - best.values[1])
        if lead < LEAST_GAP:
            break
        least = min(least, lead)
        new.append(int(best.indices[0]))
    return new, least


def case(model: GPT2, tokenizer: Tokenizer, prompt: str) -> dict[str, Any]:
    """All that is kept on file for one prompt."""
    prompt_ids = tokenizer.encode(prompt) or [tokenizer.eot_id]
    logits = model(prompt_ids)[-1]
    ids, least = greedy(model, prompt_ids, tokenizer.eot_id)
    likeliest = logits.topk(5)
    pairs = zip(likeliest.indices.tolist(), likeliest.values.tolist(), strict=True)
    return {
        "prompt": prompt,
        "text": tokenizer.decode(i for i in ids if i != tokenizer.eot_id),
        "prompt_ids": prompt_ids,
        "ids": ids,
        "least_lead": round(least, 4),
        "first_logits": [round(x, 5) for x in logits[:5].tolist()],
        "likeliest": [[i, tokenizer.decode([i]), round(x, 5)] for i, x in pairs],
    }


def as_text(cases: list[dict[str, Any]]) -> str:
    """JSON with one line for each field, and one for each of the likeliest ids."""
    shown = []
    for entry in cases:
        fields = []
        for key, value in entry.items():
            text = json.dumps(value, ensure_ascii=False)
            if key == "likeliest":
                rows = (f"      {json.dumps(r, ensure_ascii=False)}" for r in value)
                text = "[\n" + ",\n".join(rows) + "\n    ]"
            fields.append(f"    {json.dumps(key)}: {text}")
        shown.append("  {\n" + ",\n".join(fields) + "\n  }")
    about = ",\n".join(f"  {json.dumps(line)}" for line in ABOUT)
    cases_text = ",\n".join(shown)
    return f'{{"about": [\n{about}\n],\n"cases": [\n{cases_text}\n]}}\n'


def main() -> None:
    """Writes the file."""
    model, tokenizer = GPT2.from_pretrained("tiny"), Tokenizer.from_pretrained("tiny")
    text = as_text([case(model, tokenizer, prompt) for prompt in PROMPTS])
    json.loads(text)
    FILE.write_text(text, encoding="utf-8", newline="\n")
    print(f"{FILE.name}: {len(PROMPTS)} prompts")


if __name__ == "__main__":
    main()
