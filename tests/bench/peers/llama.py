"""llama.cpp through its C interface, as llama-cpp-python gives it; see engines.py."""

import ctypes
import time
from pathlib import Path
from typing import Any


class LlamaCpp:
    def __init__(self, folder: Path, kind: str, threads: int) -> None:
        import llama_cpp
        import numpy as np

        self.c, self.np, self.threads = llama_cpp, np, threads
        silence()
        path = str(folder / f"{kind}.gguf").encode()
        settings = llama_cpp.llama_model_default_params()
        self.model = llama_cpp.llama_model_load_from_file(path, settings)
        vocabulary = llama_cpp.llama_model_get_vocab(self.model)
        self.n_vocab = llama_cpp.llama_vocab_n_tokens(vocabulary)
        self.contexts: dict[int, Any] = {}  # by the number of texts

    def written(self, texts: list[list[int]], n_new: int) -> list[float]:
        context, n_past = self._empty(len(texts)), 0
        stamps = [time.perf_counter()]
        for _ in range(n_new):
            rows = self._decode(context, texts, n_past)
            n_past += len(texts[0])
            texts = [[int(row.argmax())] for row in rows]
            stamps.append(time.perf_counter())
        return stamps

    def logits(self, ids: list[int]) -> list[float]:
        (row,) = self._decode(self._empty(1), [ids], 0)
        return row.tolist()

    def _empty(self, n_texts: int) -> Any:
        """A context with room for GPT-2's 1,024 tokens of each text, and none in it."""
        if n_texts not in self.contexts:
            settings = self.c.llama_context_default_params()
            settings.n_ctx, settings.n_seq_max = 1024 * n_texts, n_texts
            settings.n_threads = settings.n_threads_batch = self.threads
            made = self.c.llama_init_from_model(self.model, settings)
            self.contexts[n_texts] = made
        context = self.contexts[n_texts]
        self.c.llama_memory_clear(self.c.llama_get_memory(context), True)
        return context

    def _decode(self, context: Any, texts: list[list[int]], n_past: int) -> list[Any]:
        """Each text's logits after these further ids, in llama.cpp's own memory."""
        n_each = len(texts[0])
        batch = self.c.llama_batch_init(n_each * len(texts), 0, 1)
        batch.n_tokens = n_each * len(texts)
        for i in range(batch.n_tokens):
            text, at = divmod(i, n_each)
            batch.token[i], batch.pos[i] = texts[text][at], n_past + at
            batch.n_seq_id[i], batch.seq_id[i][0] = 1, text
            batch.logits[i] = at == n_each - 1
        failed = self.c.llama_decode(context, batch)
        self.c.llama_batch_free(batch)
        if failed:
            raise RuntimeError("llama_decode failed")
        last = range(n_each - 1, n_each * len(texts), n_each)
        found = (self.c.llama_get_logits_ith(context, i) for i in last)
        return [self.np.ctypeslib.as_array(row, (self.n_vocab,)) for row in found]


@ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
def _nothing(level: int, text: bytes, data: object) -> None:
    pass


def silence() -> None:
    """llama.cpp tells a lot as it loads."""
    import llama_cpp

    llama_cpp.llama_log_set(_nothing, None)
