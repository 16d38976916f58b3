"""Shapes in annotations are checked while the tests run (jaxtyping with beartype)."""

import os

# One thread, before torch is there: on small tensors, threads that wait for one another
# cost more than they save, and on a busy machine ten times as much.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from hypothesis import settings
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
    "heads",
    "evaluation",
)
install_import_hook(
    [f"gpt2hw.{room}" for room in ROOMS_THAT_COMPUTE], "beartype.beartype"
)

# No deadline: a busy machine is no fault. In CI the examples are the same each time.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")
