"""From a folder to a model's parameters: one tensor after another.

Source of the layout: Hugging Face's `config.json` and `model.safetensors`
(transformers, `models/gpt2/modeling_gpt2.py`).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path

import torch
from torch import Tensor

from gpt2hw.attention import CausalSelfAttention
from gpt2hw.block import MLP, LayerNorm, TransformerBlock
from gpt2hw.config import GPT2Config
from gpt2hw.errors import CheckpointError
from gpt2hw.fast import FastTransformer, Matrix, MatrixLinear
from gpt2hw.folder import weights_file
from gpt2hw.layout import HEAD, check_names_and_shapes, is_buffer, strip_prefix
from gpt2hw.linear import Linear
from gpt2hw.mapped import iter_mapped
from gpt2hw.precisions import WTE, Precision, kept
from gpt2hw.safetensors import iter_tensors
from gpt2hw.shards import read_headers

NamedTensors = Iterable[tuple[str, Tensor]]
Parameters = Mapping[str, Tensor | Matrix]


def read_parameters(
    folder: Path, config: GPT2Config, *, may_map: bool = False
) -> Iterator[tuple[str, Tensor]]:
    """Each parameter by its bare name, one at a time; buffers are not read.

    wte and the head come first: they may be laid anew, and take their room twice for as
    long. `may_map`: tensors may be views of the files (see `mapped`), which are gone
    through once. Raises CheckpointError, before any tensor is read, where the tensors
    do not fit the config, and SafetensorsError where a file is broken.
    """
    path = weights_file(folder)
    headers = read_headers(path)
    found = {name: info.shape for h in headers for name, info in h.tensors.items()}
    try:
        names = strip_prefix(found)
        shapes = {bare: found[name] for bare, name in names.items()}
        check_names_and_shapes(shapes, config)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from None
    wanted = {name: bare for bare, name in names.items() if not is_buffer(bare)}
    tensors_of = iter_mapped if may_map else iter_tensors
    heads = {name for name, bare in wanted.items() if bare in (WTE, HEAD)}
    for these in [set(wanted)] if may_map else [heads, set(wanted) - heads]:
        for header in headers:
            here = [name for name in header.tensors if name in these]
            if here:
                yield from _renamed(tensors_of(header.path, header, here), wanted)


def _renamed(
    pairs: NamedTensors, names: Mapping[str, str]
) -> Iterator[tuple[str, Tensor]]:
    """The tensors by their bare names. At its end, it holds none of them."""
    for name, tensor in pairs:
        yield names[name], tensor


def assemble(
    config: GPT2Config,
    pairs: NamedTensors,
    device: torch.device,
    *,
    precision: Precision = "float32",
    may_lay: bool = False,
) -> FastTransformer:
    """Puts the parameters, made float32, into the places that their names say.

    Matrices get the form that the precision asks for, one after another as they come
    (see `precisions.kept`); may_lay: the head may be laid anew. The names and shapes
    have been checked (`layout.check_names_and_shapes`). Raises CheckpointError for
    integers, and for a stored head that differs from the wte to which the config ties
    it.
    """
    p: dict[str, Tensor | Matrix] = {}
    for name, tensor in pairs:
        if not tensor.is_floating_point():
            raise CheckpointError(f"{name} holds {tensor.dtype}, not floating point")
        wide = tensor.detach().to(device=device, dtype=torch.float32)
        lay = may_lay and name == (WTE if config.tie_word_embeddings else HEAD)
        p[name] = kept(name, wide, precision, may_lay=lay)
        del tensor, wide  # before the next one comes: what is kept may be another
        _share_tied_head(p, config)
    wte, lm_head = p[WTE], p.get(HEAD, p[WTE])
    return FastTransformer(
        wte=_numbers(wte),
        wpe=_tensor(p, "wpe.weight"),
        h=tuple(_block(p, f"h.{layer}", config) for layer in range(config.n_layer)),
        ln_f=_norm(p, "ln_f", config),
        lm_head=_numbers(lm_head),
        table=None if isinstance(wte, Tensor) else wte,
        head=None if isinstance(lm_head, Tensor) else lm_head,
    )


def _share_tied_head(p: dict[str, Tensor | Matrix], config: GPT2Config) -> None:
    """A tied head that is stored all the same is dropped once it has been compared."""
    head, wte = p.get(HEAD), p.get(WTE)
    if not config.tie_word_embeddings or head is None or wte is None or head is wte:
        return
    if not all(map(torch.equal, _stored(head), _stored(wte))):
        raise CheckpointError(
            f"{HEAD} differs from {WTE}, though the config ties them; if a head "
            "of its own is meant, set tie_word_embeddings to false"
        )
    p[HEAD] = wte


def _stored(kept: Tensor | Matrix) -> tuple[Tensor, ...]:
    """All that is kept of it: in int8 the scales as well."""
    if isinstance(kept, Tensor):
        return (kept,)
    return tuple(getattr(kept, field.name) for field in fields(kept) if field.init)


def _numbers(kept: Tensor | Matrix) -> Tensor:
    return kept if isinstance(kept, Tensor) else kept.values


def _tensor(p: Parameters, name: str) -> Tensor:
    tensor = p[name]
    assert isinstance(tensor, Tensor)  # noqa: S101 -- `kept` leaves it so
    return tensor


def _block(p: Parameters, at: str, config: GPT2Config) -> TransformerBlock:
    return TransformerBlock(
        ln_1=_norm(p, f"{at}.ln_1", config),
        attn=CausalSelfAttention(
            c_attn=_linear(p, f"{at}.attn.c_attn"),
            c_proj=_linear(p, f"{at}.attn.c_proj"),
            n_head=config.n_head,
        ),
        ln_2=_norm(p, f"{at}.ln_2", config),
        mlp=MLP(
            c_fc=_linear(p, f"{at}.mlp.c_fc"), c_proj=_linear(p, f"{at}.mlp.c_proj")
        ),
    )


def _linear(p: Parameters, at: str) -> Linear:
    weight, bias = p[f"{at}.weight"], _tensor(p, f"{at}.bias")
    if isinstance(weight, Tensor):
        return Linear(weight=weight, bias=bias)
    return MatrixLinear.of(weight, bias)


def _norm(p: Parameters, at: str, config: GPT2Config) -> LayerNorm:
    return LayerNorm(
        weight=_tensor(p, f"{at}.weight"),
        bias=_tensor(p, f"{at}.bias"),
        eps=config.layer_norm_epsilon,
    )
