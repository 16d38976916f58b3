"""LLM inference the hard way: GPT-2 from the bytes of its weight file to text.

Names are handed on lazily (PEP 562), so that `gpt2hw --help` and the tokenizer do not
wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

_ROOMS = {
    "errors": (
        "CheckpointError",
        "ContextError",
        "DownloadError",
        "GPT2HWError",
        "SafetensorsError",
        "TokenizerError",
    ),
    "config": ("GPT2Config",),
    "hub": ("download",),
    "header": ("read_header",),
    "safetensors": ("read_safetensors", "write_safetensors"),
    "tokenizer": ("Tokenizer",),
    "pretrained": ("GPT2",),
    "kv_cache": ("KVCache",),
    "sampling": ("Sampler",),
    "generation": ("Completion", "generate", "stream"),
    "tracing": ("trace",),
    "evaluation": ("evaluate",),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [  # noqa: RUF022 -- in the order of the house
    "GPT2",
    "GPT2Config",
    "KVCache",
    "Tokenizer",
    "Sampler",
    "Completion",
    "generate",
    "stream",
    "trace",
    "evaluate",
    "download",
    "read_safetensors",
    "write_safetensors",
    "read_header",
    "GPT2HWError",
    "SafetensorsError",
    "TokenizerError",
    "CheckpointError",
    "ContextError",
    "DownloadError",
]

if TYPE_CHECKING:
    from gpt2hw.config import GPT2Config
    from gpt2hw.errors import (
        CheckpointError,
        ContextError,
        DownloadError,
        GPT2HWError,
        SafetensorsError,
        TokenizerError,
    )
    from gpt2hw.evaluation import evaluate
    from gpt2hw.generation import Completion, generate, stream
    from gpt2hw.header import read_header
    from gpt2hw.hub import download
    from gpt2hw.kv_cache import KVCache
    from gpt2hw.pretrained import GPT2
    from gpt2hw.safetensors import read_safetensors, write_safetensors
    from gpt2hw.sampling import Sampler
    from gpt2hw.tokenizer import Tokenizer
    from gpt2hw.tracing import trace
else:

    def __getattr__(name: str) -> object:
        """Imports the room of a public name at its first use."""
        if name not in _ROOM_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_ROOM_OF[name]}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
