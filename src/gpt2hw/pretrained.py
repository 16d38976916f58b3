"""The door of the engine: GPT2 loads a model, checks what comes in, and runs it."""

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from math import sqrt

import torch
from jaxtyping import Float, Int
from torch import Tensor

from gpt2hw.config import GPT2Config
from gpt2hw.doors import no_type_check
from gpt2hw.errors import ContextError
from gpt2hw.folder import read_config
from gpt2hw.hub import find
from gpt2hw.kv_cache import KVCache, cached_forward
from gpt2hw.layout import (
    check_names_and_shapes,
    is_buffer,
    n_parameters,
    parameter_shapes,
    strip_prefix,
)
from gpt2hw.loader import assemble, read_parameters
from gpt2hw.model import Transformer

CPU = torch.device("cpu")


@dataclass(frozen=True, eq=False)
class GPT2(Transformer):
    """A GPT-2 ready to run: weights in float32, `config`, and a checked `__call__`.

    >>> model = GPT2.random(
    ...     GPT2Config(n_vocab=7, n_ctx=8, n_embd=4, n_head=2, n_layer=1))
    >>> model([3, 1, 4]).shape
    torch.Size([3, 7])
    """

    config: GPT2Config

    @classmethod
    @no_type_check
    def from_pretrained(
        cls, name_or_path: str | os.PathLike[str] = "tiny", device: str = "cpu"
    ) -> "GPT2":
        """Loads a model by its name or from its folder, onto a torch device.

        Raises CheckpointError where the model is not on this machine, its config asks
        for what the engine does not compute, or a tensor is missing, surplus or of
        the wrong shape; SafetensorsError where its file is broken; ValueError where
        the device cannot be used. Warns where mps computes other logits than the CPU.
        """
        target = _usable_device(device)
        folder = find(name_or_path)
        config = read_config(folder)

        def load(on: torch.device) -> GPT2:
            return cls._wrap(
                config, assemble(config, read_parameters(folder, config), on)
            )

        model = load(target)
        if target.type == "mps":
            warn_if_logits_differ(model, load(CPU))
        return model

    @classmethod
    def from_tensors(cls, config: GPT2Config, tensors: Mapping[str, Tensor]) -> "GPT2":
        """A model from tensors by the checkpoint's names, with or without its prefix.

        Tensors become float32; those that are float32 already are shared, not copied.
        Raises CheckpointError as from_pretrained does.
        """
        names = strip_prefix(tensors)
        shapes = {bare: tuple(tensors[name].shape) for bare, name in names.items()}
        check_names_and_shapes(shapes, config)
        pairs = [(b, tensors[n]) for b, n in names.items() if not is_buffer(b)]
        return cls._wrap(config, assemble(config, pairs, pairs[0][1].device))

    @classmethod
    def random(cls, config: GPT2Config, seed: int = 0) -> "GPT2":
        """Untrained weights: normal, of deviation 0.02; biases 0, norms 1.

        The maps that write to the residual stream, two a block, are scaled by
        1 / sqrt(2 n_layer) (Radford et al. 2019, section 2.3). As in Hugging Face's
        `initializer_range`, positions begin with 0.02 too; OpenAI's code has 0.01
        there. The global random state is not touched.
        """
        return cls._wrap(config, assemble(config, _first_weights(config, seed), CPU))

    @classmethod
    def _wrap(cls, config: GPT2Config, parts: Transformer) -> "GPT2":
        return cls(
            config=config,
            **{f.name: getattr(parts, f.name) for f in fields(Transformer)},
        )

    def __repr__(self) -> str:
        """Its size, not its 124 million numbers."""
        return f"GPT2({n_parameters(self.config):,} parameters, {self.config})"

    def new_cache(self) -> KVCache:
        """An empty cache for this model: `model(ids, cache)` fills it."""
        return KVCache(self)

    @no_type_check
    def __call__(
        self,
        ids: Int[Tensor, "*batch n_seq"] | Sequence[int],
        cache: KVCache | None = None,
    ) -> Float[Tensor, "*batch n_seq n_vocab"]:
        """[*batch, n_seq] ids -> [*batch, n_seq, n_vocab] float32 logits.

        With a cache only the new ids go in. Before anything is computed it raises
        ValueError for an id outside the vocabulary (naming it) or no ids at all, and
        ContextError for more than n_ctx positions.
        """
        checked = self.checked(ids)
        if cache is None:
            return self.forward(checked)
        if not isinstance(cache, KVCache):
            raise ValueError(  # noqa: TRY004
                f"cache: must be a KVCache or None, not {cache!r:.80}"
            )
        cache.check(self, checked.shape[:-1], checked.shape[-1])
        return cached_forward(self, checked, cache)

    @no_type_check
    def checked(
        self, ids: Int[Tensor, "*batch n_seq"] | Sequence[int]
    ) -> Int[Tensor, "*batch n_seq"]:
        """The ids as int64 on the model's device; raises as `__call__` does."""
        if not isinstance(ids, Tensor):
            ids = _as_tensor(ids)
        if ids.is_floating_point() or ids.is_complex() or ids.dtype is torch.bool:
            raise ValueError(f"ids: must be integers, not {ids.dtype}")
        ids = ids.to(torch.int64)  # n_vocab need not fit into a narrower type
        if ids.ndim == 0 or ids.numel() == 0:
            raise ValueError("ids: at least one id is needed ([*batch, n_seq])")
        outside = ids[(ids < 0) | (ids >= self.config.n_vocab)]
        if outside.numel():
            raise ValueError(
                f"ids: {int(outside[0])} is outside the vocabulary "
                f"(0 to {self.config.n_vocab - 1})"
            )
        if ids.shape[-1] > self.config.n_ctx:
            raise ContextError(
                f"{ids.shape[-1]} ids are more than the model's {self.config.n_ctx} "
                "positions (n_ctx)"
            )
        return ids.to(self.wte.device)


@no_type_check
def _as_tensor(ids: Sequence[int]) -> Tensor:
    if isinstance(ids, str):
        raise ValueError("ids: are integers; a text is encoded first, by a Tokenizer")  # noqa: TRY004
    if not isinstance(ids, Sequence):
        kind = type(ids).__name__
        raise ValueError(f"ids: must be ints or a tensor, not {kind}")  # noqa: TRY004
    for number in ids:
        if type(number) is not int:
            raise ValueError(f"ids: {number!r} is not an integer id")
        if not -(2**63) <= number < 2**63:
            raise ValueError(f"ids: {number} is outside every vocabulary")
    return torch.tensor(ids, dtype=torch.int64)


def _first_weights(config: GPT2Config, seed: int) -> Iterator[tuple[str, Tensor]]:
    generator = torch.Generator().manual_seed(seed)
    for name, shape in parameter_shapes(config).items():
        if name.endswith("bias"):
            yield name, torch.zeros(shape)
        elif len(shape) == 1:  # a layer norm's weight
            yield name, torch.ones(shape)
        else:
            writes = name.endswith("c_proj.weight")
            deviation = 0.02 / sqrt(2 * config.n_layer) if writes else 0.02
            yield name, torch.empty(shape).normal_(0, deviation, generator=generator)


@no_type_check
def _usable_device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, TypeError, ImportError) as error:
        reason = str(error).partition("\n")[0].partition(". ")[0]
        raise ValueError(f"device: {name!r} cannot be used here: {reason}") from None
    return device


def warn_if_logits_differ(model: GPT2, on_cpu: GPT2) -> None:
    """Warns where a device's first logits are not the CPU's (largest gap above 1e-2).

    Some releases of torch compute wrong results on mps without any error.
    """
    ids = [i % model.config.n_vocab for i in range(min(8, model.config.n_ctx))]
    found, right = model(ids).cpu(), on_cpu(ids)
    gap = float((found - right).abs().max())
    if not gap <= 1e-2:  # also where it is NaN
        warnings.warn(
            f"{model.wte.device} computes logits that differ from the CPU's by "
            f"{gap:.3g}; its results cannot be trusted: use device='cpu', "
            "or another torch",
            RuntimeWarning,
            stacklevel=3,
        )
