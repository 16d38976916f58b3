"""The door of the engine: GPT2 loads a model, checks what comes in, and runs it."""

import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gpt2hw.batches import PaddedCache, checked_mask, padded_state, remember
from gpt2hw.config import GPT2Config
from gpt2hw.doors import SEED_RULE, checked, is_dense, no_type_check
from gpt2hw.fast import FastTransformer
from gpt2hw.fast_cache import FastCache, state_after_one_token
from gpt2hw.folder import read_config
from gpt2hw.hub import find_or_download
from gpt2hw.ids import checked_ids
from gpt2hw.initialization import initial_weights
from gpt2hw.kv_cache import KVCache
from gpt2hw.layout import (
    check_names_and_shapes,
    is_buffer,
    n_parameters,
    strip_prefix,
)
from gpt2hw.loader import assemble, read_parameters
from gpt2hw.precisions import Precision, checked_precision

CPU = torch.device("cpu")


@dataclass(frozen=True, eq=False)
class GPT2(FastTransformer):
    """A GPT-2 ready to run: its weights, its `config`, and a checked `__call__`.

    >>> model = GPT2.random(
    ...     GPT2Config(n_vocab=7, n_ctx=8, n_embd=4, n_head=2, n_layer=1))
    >>> model([3, 1, 4]).shape
    torch.Size([3, 7])
    """

    config: GPT2Config

    @classmethod
    @no_type_check
    def from_pretrained(
        cls,
        name_or_path: str | os.PathLike[str] = "tiny",
        device: str = "cpu",
        *,
        precision: Precision = "float32",
        mmap: bool = False,
    ) -> "GPT2":
        """Loads a model by its name or from its folder, onto a torch device.

        precision: what the matrices are kept in: "float32", "float16" (half the
        memory) or "int8" (a quarter). Logits are float32 in each.

        mmap: whether float32 matrices may stay in the file, which is mapped into memory
        (see `mapped`). The first token comes sooner, all that follows is slower, and
        the file must not be changed where it lies meanwhile. Where they cannot (another
        precision or device; see `mapped.can_be_viewed`), they are read.

        A model that is not on this machine is downloaded (see `hub.download`). Raises
        DownloadError where that fails; CheckpointError where it is not here and
        offline is set, its config asks for what the engine does not compute, or a
        tensor is missing, surplus or of the wrong shape; SafetensorsError where its
        file is broken; ValueError where the device cannot be used, the precision is
        none or not to be had there, or mmap is no bool. Warns where mps computes other
        logits than the CPU.
        """
        precision = checked_precision(precision)
        if not isinstance(mmap, bool):
            raise ValueError(f"mmap: must be True or False, not {mmap!r:.80}")  # noqa: TRY004
        target = _usable_device(device)
        if precision != "float32" and target.type != "cpu":
            raise ValueError(f"precision: {precision} is for the CPU, not for {target}")
        folder = find_or_download(name_or_path)
        config = read_config(folder)

        def load(on: torch.device) -> GPT2:
            as_stored = precision == "float32" and on.type == "cpu"
            pairs = read_parameters(folder, config, may_map=mmap and as_stored)
            parts = assemble(config, pairs, on, precision=precision, may_lay=not mmap)
            return cls._wrap(config, parts)

        model = load(target)
        if target.type == "mps":
            warn_if_logits_differ(model, load(CPU))
        return model

    @classmethod
    @no_type_check
    def from_tensors(cls, config: GPT2Config, tensors: Mapping[str, Tensor]) -> "GPT2":
        """A model from tensors by the checkpoint's names, with or without its prefix.

        Tensors become float32; those that are float32 already are shared, not copied.
        Raises CheckpointError as from_pretrained does, and ValueError for sparse and
        nested tensors.
        """
        checked("config", config, GPT2Config, lambda _: True, "a GPT2Config")
        checked(
            "tensors", tensors, Mapping, _holds_tensors, "a dict of names to tensors"
        )
        names = strip_prefix(tensors)
        shapes = {bare: tuple(tensors[name].shape) for bare, name in names.items()}
        check_names_and_shapes(shapes, config)
        pairs = [(b, tensors[n]) for b, n in names.items() if not is_buffer(b)]
        return cls._wrap(config, assemble(config, pairs, pairs[0][1].device))

    @classmethod
    @no_type_check
    def random(
        cls, config: GPT2Config, seed: int = 0, *, precision: Precision = "float32"
    ) -> "GPT2":
        """An untrained model: see `initialization.initial_weights`.

        The global random state is not touched. Raises ValueError for a seed that is no
        integer from -2**63 to 2**64 - 1.

        >>> GPT2.random(GPT2Config(n_vocab=9, n_embd=12), seed=7).wte.shape
        torch.Size([9, 12])
        """
        checked("config", config, GPT2Config, lambda _: True, "a GPT2Config")
        seed = int(checked("seed", seed, Integral, *SEED_RULE))
        precision = checked_precision(precision)
        pairs = initial_weights(config, seed)
        parts = assemble(config, pairs, CPU, precision=precision, may_lay=True)
        return cls._wrap(config, parts)

    @classmethod
    def _wrap(cls, config: GPT2Config, parts: FastTransformer) -> "GPT2":
        return cls(
            config=config,
            **{f.name: getattr(parts, f.name) for f in fields(FastTransformer)},
        )

    def __repr__(self) -> str:
        """Its size, not its 124 million numbers."""
        return f"GPT2({n_parameters(self.config):,} parameters, {self.config})"

    def final_state(
        self,
        ids: Int[Tensor, "*batch n_seq"],
        cache: KVCache | None = None,
        *,
        last_only: bool = False,
    ) -> Float[Tensor, "*batch n_out n_embd"]:
        """What the head is given; one id more goes a way of its own."""
        if isinstance(cache, FastCache) and ids.shape == (1,):
            return state_after_one_token(self, ids, cache)
        return super().final_state(ids, cache, last_only=last_only)

    def new_cache(self) -> PaddedCache:
        """An empty cache for this model: `model(ids, cache)` fills it.

        It is for writing: no derivative goes through it.
        """
        return PaddedCache(self)

    @no_type_check
    def __call__(
        self,
        ids: Int[Tensor, "*batch n_seq"] | Sequence[int],
        cache: KVCache | None = None,
        *,
        mask: Bool[Tensor, "*batch n_seq"] | Sequence[Any] | None = None,
    ) -> Float[Tensor, "*batch n_seq n_vocab"]:
        """[*batch, n_seq] ids -> [*batch, n_seq, n_vocab] float32 logits.

        With a cache only the new ids go in. mask: 1 for a real token, 0 for padding
        (see `batches`); the cache remembers it. Before anything is computed it raises
        ValueError for an id outside the vocabulary (naming it), no ids at all, or a
        mask that does not fit, and ContextError for more than n_ctx positions. A call
        that raises leaves the cache as it was. (Only Ctrl-C may come between the last
        act and the return: `len(cache)` tells whether the ids were counted.)
        """
        new_ids, real = self._checked(ids, cache, mask)
        with self._without_autocast():
            if real is not None:
                logits = self.logits(padded_state(self, new_ids, real, cache))
                remember(cache, new_ids, real)
                return logits
            if cache is None:
                return self.forward(new_ids)
            return self.cached(new_ids, cache)

    @no_type_check
    def last_logits(
        self,
        ids: Int[Tensor, "*batch n_seq"] | Sequence[int],
        cache: KVCache | None = None,
        *,
        mask: Bool[Tensor, "*batch n_seq"] | Sequence[Any] | None = None,
    ) -> Float[Tensor, "*batch n_vocab"]:
        """The last row of what `__call__` gives, without computing the others.

        Raises ValueError, as well, where the mask says that a text ends with padding:
        shorter texts are padded on the left (see `batches.left_padded`).

        >>> model = GPT2.random(
        ...     GPT2Config(n_vocab=7, n_ctx=8, n_embd=4, n_head=2, n_layer=1))
        >>> model.last_logits([3, 1, 4]).shape
        torch.Size([7])
        """
        new_ids, real = self._checked(ids, cache, mask)
        if real is not None and bool((real.any(-1) & ~real[..., -1]).any()):
            raise ValueError("mask: a text ends with padding; pad on the left")
        with self._without_autocast():
            if real is None:
                return self.last(new_ids, cache)
            state = padded_state(self, new_ids, real, cache, last_only=True)
            logits = self.logits(state[..., -1, :])
            remember(cache, new_ids, real)
            return logits

    def _without_autocast(self) -> AbstractContextManager[Any]:
        """Logits are float32, and the fast forms call kernels for that alone."""
        if torch.is_autocast_enabled("cpu"):
            return torch.autocast("cpu", enabled=False)
        return nullcontext()

    @no_type_check
    def _checked(
        self, ids: Any, cache: Any, mask: Any
    ) -> tuple[Int[Tensor, "*batch n_seq"], Bool[Tensor, "*batch n_kv"] | None]:
        new_ids = self.checked(ids)
        if cache is not None and not isinstance(cache, KVCache):
            raise ValueError(f"cache: must be a KVCache or None, not {cache!r:.80}")
        if cache is not None:
            cache.check(self, new_ids.shape[:-1], new_ids.shape[-1])
        return new_ids, checked_mask(mask, new_ids, cache)

    @no_type_check
    def checked(
        self, ids: Int[Tensor, "*batch n_seq"] | Sequence[int]
    ) -> Int[Tensor, "*batch n_seq"]:
        """The ids as int64 on the model's device; raises as `__call__` does."""
        return checked_ids(ids, self.config).to(self.wte.device)


def _holds_tensors(tensors: Mapping[Any, Any]) -> bool:
    return all(isinstance(n, str) for n in tensors) and all(
        isinstance(t, Tensor) and is_dense(t) for t in tensors.values()
    )


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
