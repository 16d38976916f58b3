"""The errors that this package raises on purpose.

Each message says what was wrong, where (file, tensor, position), and what to do.
A bad argument is a plain ValueError that names it.
"""


class GPT2HWError(Exception):
    """Any error that this package raises on purpose."""


class SafetensorsError(GPT2HWError, ValueError):
    """A .safetensors file breaks the rules of its format."""


class TokenizerError(GPT2HWError, ValueError):
    """A tokenizer's files are broken, or a text cannot be encoded."""


class CheckpointError(GPT2HWError, ValueError):
    """A model is missing, incomplete, or asks for what the engine does not do."""


class ContextError(GPT2HWError, ValueError):
    """More tokens than the model has positions for (n_ctx)."""


class DownloadError(GPT2HWError, OSError):
    """A transfer was tried and failed."""
