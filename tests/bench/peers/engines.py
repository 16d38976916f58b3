"""Each engine, asked for one thing: to go on greedily, token by token, from ids.

`written` gives the times (seconds) at which it was called and at which each new token
was known: the first after the whole prompt, and so on. `logits` gives those of the
token after the prompt. Each engine does it in its own fastest way, with its own
defaults, on `threads` threads; llama.cpp's are those of its C library.
"""

import inspect
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from llama import LlamaCpp

Ids = list[list[int]]  # texts of one length


class Ours:
    def __init__(self, folder: Path, kind: str, threads: int) -> None:
        import torch

        from gpt2hw import GPT2

        torch.set_num_threads(threads)
        self.torch = torch
        self.model = GPT2.from_pretrained(folder, precision=kind)

    def written(self, texts: Ids, n_new: int) -> list[float]:
        with self.torch.inference_mode():
            return self._written(texts, n_new)

    def _written(self, texts: Ids, n_new: int) -> list[float]:
        cache, ids = self.model.new_cache(), self.torch.tensor(texts)
        if len(texts) == 1:
            ids = ids[0]
        stamps = [time.perf_counter()]
        for _ in range(n_new):
            ids = self.model.last_logits(ids, cache).argmax(-1, keepdim=True)
            ids.tolist()
            stamps.append(time.perf_counter())
        return stamps

    def logits(self, ids: list[int]) -> list[float]:
        with self.torch.inference_mode():
            return self.model.last_logits(ids).tolist()


class Transformers:
    def __init__(self, folder: Path, kind: str, threads: int) -> None:
        import torch
        from transformers import AutoModelForCausalLM

        torch.set_num_threads(threads)
        self.torch = torch
        self.model = AutoModelForCausalLM.from_pretrained(
            folder, dtype=getattr(torch, kind), attn_implementation="sdpa"
        )
        # Its argument for the past has had two names.
        known = inspect.signature(self.model.forward).parameters
        self.past = "cache" if "cache" in known else "past_key_values"

    def written(self, texts: Ids, n_new: int) -> list[float]:
        with self.torch.inference_mode():
            return self._written(texts, n_new)

    def _written(self, texts: Ids, n_new: int) -> list[float]:
        past, ids = None, self.torch.tensor(texts)
        stamps = [time.perf_counter()]
        for _ in range(n_new):
            out = self.model(ids, **{self.past: past}, use_cache=True, logits_to_keep=1)
            past, ids = out[self.past], out.logits[:, -1].argmax(-1, keepdim=True)
            ids.tolist()
            stamps.append(time.perf_counter())
        return stamps

    def logits(self, ids: list[int]) -> list[float]:
        with self.torch.inference_mode():
            return self.model(self.torch.tensor([ids])).logits[0, -1].tolist()


class CTranslate2:
    def __init__(self, folder: Path, kind: str, threads: int) -> None:
        import ctranslate2

        self.model = ctranslate2.Generator(
            str(folder / "ctranslate2"), compute_type=kind, intra_threads=threads
        )
        path = folder / "ctranslate2" / "vocabulary.json"
        self.names = json.loads(path.read_text(encoding="utf-8"))

    def written(self, texts: Ids, n_new: int) -> list[float]:
        at = [0.0] * n_new

        def note(step: Any) -> bool:
            at[step.step] = time.perf_counter()
            return False

        words = [[self.names[i] for i in text] for text in texts]
        start = time.perf_counter()
        self.model.generate_batch(
            words,
            max_length=n_new,
            min_length=n_new,  # the end token is not taken
            include_prompt_in_result=False,  # the prompt goes in as one piece
            callback=note,
        )
        return [start, *at]

    def logits(self, ids: list[int]) -> list[float]:
        import numpy as np

        found = self.model.forward_batch([[self.names[i] for i in ids]])
        return np.array(found)[0, -1].tolist()


# Name -> what runs it, and what it is told of its precision. Who is compared stands
# together: machines drift, and neighbours are measured within a second.
ENGINES: dict[str, tuple[Callable[[Path, str, int], Any], str]] = {
    "gpt2hw float32": (Ours, "float32"),
    "llama.cpp f32": (LlamaCpp, "f32"),
    "CTranslate2 float32": (CTranslate2, "float32"),
    "transformers float32": (Transformers, "float32"),
    "gpt2hw float16": (Ours, "float16"),
    "llama.cpp f16": (LlamaCpp, "f16"),
    "gpt2hw int8": (Ours, "int8"),
    "llama.cpp q8_0": (LlamaCpp, "q8_0"),
    "CTranslate2 int8": (CTranslate2, "int8"),
    "llama.cpp q4_0": (LlamaCpp, "q4_0"),
}
