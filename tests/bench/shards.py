"""Loading at scale: what a checkpoint in shards takes in memory (`nox -s bench`).

GPT-2 medium's shape, with random weights: 1.42 GB in float32, in shards of at most 400
MB, made in a temporary folder and removed after. The peak is counted by the system, in
a fresh process, from the moment at which torch is there.

By calculation a load takes, at its peak, 4 bytes for each parameter (each is read into
the memory in which it stays; wte is laid anew, and is the first to come), and where the
file holds halves, 2 bytes for each number of the largest tensor, which is dropped once
it has been converted. Headers and Python's objects stay below 20 MB. So GPT-2 XL, which
has 1,557,611,200 parameters, takes 6.23 GB from float32, and 0.16 GB more from float16:
50,257 x 1,600 numbers of wte.
"""

import json
import statistics
import sys
import tempfile
from pathlib import Path

import torch
from measuring import load, report, results, write_settings

from gpt2hw import GPT2Config, write_safetensors
from gpt2hw.config import PUBLISHED
from gpt2hw.folder import INDEX
from gpt2hw.layout import n_parameters, parameter_shapes

MAX_SHARD_BYTES = 400_000_000
RUNS = 3
Shapes = dict[str, tuple[int, ...]]


def cut(shapes: Shapes, bytes_each: int) -> list[Shapes]:
    """The tensors, in their order, in shards of at most MAX_SHARD_BYTES."""
    shards: list[Shapes] = [{}]
    n_bytes = 0
    for name, shape in shapes.items():
        size = bytes_each * torch.Size(shape).numel()
        if shards[-1] and n_bytes + size > MAX_SHARD_BYTES:
            shards.append({})
            n_bytes = 0
        shards[-1][name] = shape
        n_bytes += size
    return shards


def write_shards(folder: Path, config: GPT2Config, dtype: torch.dtype) -> int:
    """A checkpoint of this shape with a mask in each block; how many shards it has."""
    shapes = dict(parameter_shapes(config))
    for layer in range(config.n_layer):
        shapes[f"h.{layer}.attn.bias"] = (1, 1, config.n_ctx, config.n_ctx)
    shards = cut(shapes, dtype.itemsize)
    generator = torch.Generator().manual_seed(0)
    weight_map = {}
    for number, shard in enumerate(shards, 1):
        file = f"model-{number:05}-of-{len(shards):05}.safetensors"
        tensors = {
            name: torch.empty(shape, dtype=dtype).normal_(0, 0.02, generator=generator)
            for name, shape in shard.items()
        }
        write_safetensors(folder / file, tensors, {"format": "pt"})
        weight_map |= dict.fromkeys(shard, file)
    index = {"metadata": {}, "weight_map": weight_map}
    (folder / INDEX).write_text(json.dumps(index), encoding="utf-8")
    write_settings(folder, config)
    return len(shards)


def bench_shards(dtype: torch.dtype, config: GPT2Config) -> None:
    """Peak memory, over the bytes of the parameters in float32; and the time."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        n_shards = write_shards(folder, config, dtype)
        size = sum(path.stat().st_size for path in folder.iterdir()) / 1e9
        rows = [load(folder) for _ in range(RUNS)]
    took, memory, _ = map(statistics.median, zip(*rows, strict=True))
    what = f"{size:.2f} GB of {str(dtype).removeprefix('torch.')} in {n_shards} shards"
    print(f"      {what}: {took:.2f} s, peak {memory / 1e9:.3f} GB")
    ratio = memory / (4 * n_parameters(config))
    report(f"load {what}: peak / bytes of parameters", ratio, 1.1, "x")


def main() -> int:
    config = PUBLISHED["gpt2-medium"]
    for dtype in (torch.float32, torch.float16):
        bench_shards(dtype, config)
    xl = 4 * n_parameters(PUBLISHED["gpt2-xl"]) / 1e9
    print(f"      gpt2-xl's parameters, by calculation: {xl:.2f} GB")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
