"""Shapes in annotations are checked while the tests run (jaxtyping with beartype)."""

from jaxtyping import install_import_hook

ROOMS_THAT_COMPUTE = (
    "linear",
    "embeddings",
    "attention",
    "block",
    "model",
    "kv_cache",
    "pretrained",
    "sampling",
    "generation",
    "tracing",
)
install_import_hook([f"gpt2hw.{room}" for room in ROOMS_THAT_COMPUTE], "beartype.beartype")
