"""Small models for the tests, and checkpoint folders by the safetensors library."""

import json
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import safetensors.torch
import torch
from torch import Tensor

from gpt2hw import GPT2, GPT2Config
from gpt2hw.batches import PaddedCache
from gpt2hw.layout import parameter_shapes
from gpt2hw.loader import assemble
from gpt2hw.precisions import Precision

if TYPE_CHECKING:  # the benchmarks use this file, too, and have no pytest
    import pytest

SMALL = GPT2Config(n_vocab=37, n_ctx=16, n_embd=12, n_head=3, n_layer=2, n_inner=20)


class WithFbgemm:
    """What torch says of its engines where it has the kernel for bags."""

    supported_engines = ("fbgemm",)


def as_on_x86(monkeypatch: "pytest.MonkeyPatch") -> None:
    """The fast forms of float32 are chosen as on x86, whatever the machine is."""
    monkeypatch.setattr("torch.backends.mkl.is_available", lambda: True)
    monkeypatch.setattr("torch.backends.quantized", WithFbgemm)
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: "AVX2")


def random_tensors(
    config: GPT2Config, seed: int = 0, deviation: float = 0.3
) -> dict[str, Tensor]:
    """Every parameter random, biases and norms too, so that none can be left out.

    Weights of norms lie around 1. The deviation is far above the 0.02 of an untrained
    model, under which attention and GELU are nearly flat and faults stay small.
    """
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, shape in parameter_shapes(config).items():
        tensors[name] = torch.empty(shape).normal_(0, deviation, generator=generator)
        if ".ln_" in f".{name}" and name.endswith("weight"):
            tensors[name] += 1
    return tensors


def random_model(config: GPT2Config = SMALL, seed: int = 0) -> GPT2:
    """A model of this shape whose parameters are all random."""
    return GPT2.from_tensors(config, random_tensors(config, seed))


def fast_model(
    config: GPT2Config = SMALL, seed: int = 0, precision: Precision = "float32"
) -> GPT2:
    """The same in a precision, in the forms that its size and the machine bring."""
    tensors = random_tensors(config, seed).items()
    parts = assemble(config, tensors, torch.device("cpu"), precision=precision)
    return GPT2._wrap(config, parts)


def random_ids(config: GPT2Config, *shape: int, seed: int = 0) -> Tensor:
    """Ids of this shape."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(config.n_vocab, shape, generator=generator)


def cache_after(model: GPT2, n_past: int) -> PaddedCache:
    """A cache of this model that holds so many random tokens."""
    cache = model.new_cache()
    if n_past:
        model.last_logits(random_ids(model.config, n_past, seed=1), cache)
    return cache


def settings_of(config: GPT2Config, **changes: Any) -> dict[str, Any]:
    """A config.json in Hugging Face's keys; a change to None leaves the key out."""
    settings = {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "activation_function": "gelu_new",
        "vocab_size": config.n_vocab,
        "n_positions": config.n_ctx,
        "n_ctx": config.n_ctx,
        "n_embd": config.n_embd,
        "n_head": config.n_head,
        "n_layer": config.n_layer,
        "n_inner": config.n_inner,
        "layer_norm_epsilon": config.layer_norm_epsilon,
        "tie_word_embeddings": config.tie_word_embeddings,
    } | changes
    return {key: value for key, value in settings.items() if value is not None}


def write_folder(
    folder: Path, config: GPT2Config, tensors: dict[str, Tensor], **changes: Any
) -> Path:
    """A checkpoint's folder: config.json (see settings_of) and model.safetensors."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(settings_of(config, **changes), indent=2)
    (folder / "config.json").write_text(text, encoding="utf-8")
    path = folder / "model.safetensors"
    safetensors.torch.save_file(tensors, path, metadata={"format": "pt"})
    return folder


def write_as_published(path: Path, tensors: dict[str, Tensor]) -> None:
    """A file laid as GPT-2's own: its data begin at byte 14,291.

    Its header is not padded to whole numbers, as our writer would do. The smallest
    tensors come first: their short offsets leave room in the header.
    """
    entries, at = {}, 0
    tensors = dict(sorted(tensors.items(), key=lambda entry: entry[1].numel()))
    for name, tensor in tensors.items():
        offsets = [at, at := at + 4 * tensor.numel()]
        shape = list(tensor.shape)
        entries[name] = {"dtype": "F32", "shape": shape, "data_offsets": offsets}
    header = json.dumps(entries, separators=(",", ":")).encode().ljust(14_283)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        for tensor in tensors.values():
            tensor.numpy().tofile(file)
