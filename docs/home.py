"""What the first page computes: its commands, its picture, its table, its story.

Everything is read from where it is true: the commands from README.md, the shapes from
GPT2Config, the minutes from the chapters, the text from the model that runs.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import torch

from gpt2hw import GPT2Config
from gpt2hw.figures import Figure, bar_chart, running, token_labels
from gpt2hw.figures.architecture import architecture

DOCS = Path(__file__).resolve().parent
PROMPT = "Once upon a time"
# Step -> its chapter, its title, and the room that stands in until it is written.
STEPS = {
    "1": ("step1_download_model", "Download and explore", "header"),
    "2": ("step2_tokenizer", "The tokenizer", "tokenizer"),
    "3": ("step3_embeddings", "Embeddings and positions", "embeddings"),
    "4a": ("step4a_attention", "Attention: one head", "attention"),
    "4b": ("step4b_attention", "Attention: all heads", "attention"),
    "5": ("step5_transformer_block", "The transformer block", "block"),
    "6": ("step6_forward_pass", "The forward pass and logits", "model"),
    "7": ("step7_generation", "Generation", "generation"),
    "8": ("step8_kv_cache", "The KV cache", "kv_cache"),
    "9": ("step9_where_the_time_goes", "Where the time goes", "rows"),
    "10": ("step10_fewer_bytes", "Fewer bytes", "int8"),
}
AT_ITS_END = {
    "1": "list every tensor of a checkpoint, with no library",
    "2": "encode and decode exactly as GPT-2 does",
    "3": "turn ids into vectors with positions",
    "4a": "compute one head of scaled dot-product attention",
    "4b": "write the full causal self-attention, all heads at once",
    "5": "put norm, attention, MLP and residuals into a transformer block",
    "6": "say what the model thinks comes next",
    "7": "write text: greedy, temperature, top-k, top-p",
    "8": "write the same text without computing the past again",
    "9": "tell what a token waits for, and write several texts at once",
    "10": "keep a model in a half or a quarter of the memory, and say what it costs",
}


def doors() -> dict[str, str]:
    """Step -> address: its chapter, or the API page of its room while there is none."""
    return {
        step: f"steps/{stem}.html"
        if _chapter(stem).is_file()
        else f"reference/api/{room}.html"
        for step, (stem, _, room) in STEPS.items()
    }


def commands() -> list[str]:
    """The two command lines of README.md, broken after the environment's part."""
    lines = (DOCS.parent / "README.md").read_text(encoding="utf-8").splitlines()
    found = [line for line in lines if line.startswith("python3 -m venv .venv &&")]
    if len(found) != 2:
        raise ValueError(f"README.md has {len(found)} lines of set-up, not two")
    return [line.replace(" && pip", " \\\n  && pip") for line in found]


def clone() -> str:
    """How to come by a clone, where the build is told the repository's address."""
    address = os.environ.get("GPT2HW_REPO_URL", "").rstrip("/")
    if not address:
        return "If you built these pages yourself, you did so in one.\n"
    folder = address.rsplit("/", 1)[-1].removesuffix(".git")
    return fence(f"git clone {address} && cd {folder}", "bash")


def fence(text: str, language: str) -> str:
    """A block that is shown and not run."""
    return f"```{language} {{.{language} .not-run}}\n{text}\n```\n"


def picture() -> str:
    """The model as a picture, for wide pages and for narrow ones."""
    now = running()
    ids = now.tokenizer.encode(PROMPT)
    answer = now.tokenizer.decode([int(now.model(ids)[-1].argmax())]).strip()
    models = [(Path(now.name).name, now.model.config), ("GPT-2 124M", GPT2Config())]
    if models[0][1] == models[1][1]:
        del models[0]
    wide, narrow = (
        architecture(models, doors(), prompt=PROMPT, answer=answer, narrow=narrow)
        for narrow in (False, True)
    )
    return f'<div class="wide">{wide}</div><div class="narrow">{narrow}</div>'


def next_tokens(n: int = 6) -> Figure:
    """What the running model expects after the prompt, the n most likely tokens."""
    now = running()
    logits = now.model(now.tokenizer.encode(PROMPT))[-1]
    found = torch.topk(torch.softmax(logits, dim=-1), n)
    names = token_labels(now.tokenizer, found.indices.tolist())
    bars = list(zip(names, found.values.tolist(), strict=True))
    return bar_chart(bars, form="{:.1%}")


def session() -> str:
    """`gpt2hw generate` as typed in a terminal, and what it wrote."""
    now = running()
    typed = ["generate", PROMPT, "--seed", "2", "--max-new-tokens", "64"]
    named = [] if now.name == "tiny" else ["--model", now.name]
    run = [sys.executable, "-m", "gpt2hw", *typed, *named]
    env = {**os.environ, "PYTHONUTF8": "1"}
    done = subprocess.run(
        run, env=env, capture_output=True, encoding="utf-8", check=True
    )
    named = ["--model", Path(now.name).name] if named else []
    shown = f'$ gpt2hw generate "{PROMPT}" {" ".join(typed[2:] + named)}'
    lines = done.stdout.strip().splitlines()
    story = "\n".join(textwrap.fill(line, 80) for line in lines)
    return f"```console\n{shown}\n{story}\n```\n"


def table() -> str:
    """The steps: what is built, how long it takes, what one can do then."""
    rows = ["| step | | minutes | at its end you can |", "| --- | --- | ---: | --- |"]
    for step, (stem, title, _) in STEPS.items():
        there = _chapter(stem).is_file()
        linked = f"[{title}](steps/{stem}.html)" if there else title
        time = _minutes(stem) if there else "soon"
        rows.append(f"| {step} | {linked} | {time} | {AT_ITS_END[step]} |")
    return "\n".join(rows) + "\n"


def _chapter(stem: str) -> Path:
    return DOCS / "steps" / f"{stem}.md"


def _minutes(stem: str) -> str:
    """The `minutes:` of a chapter's head."""
    head = _chapter(stem).read_text(encoding="utf-8").split("---")[1]
    found = [line for line in head.splitlines() if line.startswith("minutes:")]
    return found[0].removeprefix("minutes:").strip() if found else "–"
