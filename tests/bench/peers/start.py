"""From the command to the first token: whole processes, in turn, with warm files.

Ours is the command line; theirs is the shortest script with transformers that does the
same. Both load the folder's tokenizer and model, and print the token. The memory is the
most that the process held at any time.

Told apart is what the system worked for the process. Memory is a part of that: an
engine that copies its weights is handed as much, and a virtual machine may have to ask
its host for it.

Run as a script, in a small process: Linux counts into a process's peak what the one
that started it held.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

PROMPT = "Once upon a time"
THEIRS = """
import sys
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32)
ids = tokenizer(sys.argv[2], return_tensors="pt").input_ids
with torch.inference_mode():
    logits = model(ids, logits_to_keep=1).logits
print(tokenizer.decode(logits[0, -1].argmax()), flush=True)
"""
Rounds = dict[str, dict[str, list[float]]]
PUBLISHED = "published"  # the folder of weights.py whose file is laid as GPT-2's own
OWN = ", GPT-2's own layout"


def start(folder: Path, rounds: int) -> Rounds:
    """Seconds to the first text on standard output, the system's, and MiB.

    From a file as the safetensors library writes it, and from one laid as GPT-2's own,
    whose numbers lie at no multiple of their size.
    """
    command = [sys.executable, __file__, str(folder), str(rounds)]
    return json.loads(subprocess.check_output(command))


def commands(folder: str) -> dict[str, list[str]]:
    ours = ["-m", "gpt2hw", "generate", PROMPT, "--model", folder]
    options = ["--greedy", "--max-new-tokens", "1", "--only-new"]
    return {
        "gpt2hw float32": [sys.executable, *ours, *options],
        "transformers float32": [sys.executable, "-c", THEIRS, folder, PROMPT],
    }


def measured(folder: str, rounds: int) -> Rounds:
    found: Rounds = {}
    for number in range(rounds + 1):
        for kind, place in (("", folder), (OWN, f"{folder}/{PUBLISHED}")):
            for name, command in commands(place).items():
                figures = first_text(command)
                if not number:  # the first warms the files
                    continue
                for work, figure in zip(
                    ("seconds", "system", "MiB"), figures, strict=True
                ):
                    found.setdefault(work + kind, {}).setdefault(name, []).append(
                        figure
                    )
    return found


def first_text(command: list[str]) -> tuple[float, float, float]:
    """Seconds, those that the system worked, and MiB."""
    # What is compiled in the run that does not count is kept, as it is everywhere.
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    begun = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=kept
    )
    assert process.stdout
    text = process.stdout.read(1)
    took = time.perf_counter() - begun
    process.stdout.read()
    process.stdout.close()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or not text:
        raise SystemExit(f"{command[1:]} failed")
    return took, used.ru_stime, used.ru_maxrss / 1024


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1], int(sys.argv[2]))))
