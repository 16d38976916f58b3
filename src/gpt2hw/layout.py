"""What a GPT-2 checkpoint holds: the name and the shape of every tensor.

Matrices are stored [in, out] and applied as `x @ W` (Hugging Face's Conv1D keeps the
order of OpenAI's TensorFlow code); torch.nn.Linear has them the other way round.
"""

from collections.abc import Iterable, Mapping
from math import prod

from gpt2hw.config import GPT2Config
from gpt2hw.errors import CheckpointError

PREFIX = "transformer."
HEAD = "lm_head.weight"
_BODY = ("wte.", "wpe.", "h.", "ln_f.")  # what the prefix stands before, if it is there


_MASKS = ("bias", "masked_bias")


def parameter_shapes(config: GPT2Config) -> dict[str, tuple[int, ...]]:
    """The shape of every parameter by its name, in the order of the forward pass.

    A tied head is wte itself and no parameter of its own.

    >>> shapes = parameter_shapes(GPT2Config())
    >>> shapes["h.0.attn.c_attn.weight"], sum(prod(s) for s in shapes.values())
    ((768, 2304), 124439808)
    """
    n_embd = config.n_embd
    shapes: dict[str, tuple[int, ...]] = {
        "wte.weight": (config.n_vocab, n_embd),
        "wpe.weight": (config.n_ctx, n_embd),
    }
    for layer in range(config.n_layer):
        for name, shape in _block_shapes(config).items():
            shapes[f"h.{layer}.{name}"] = shape
    shapes |= {"ln_f.weight": (n_embd,), "ln_f.bias": (n_embd,)}
    if not config.tie_word_embeddings:
        shapes[HEAD] = (config.n_vocab, n_embd)
    return shapes


def _block_shapes(config: GPT2Config) -> dict[str, tuple[int, ...]]:
    n_embd, n_inner = config.n_embd, config.n_inner
    assert n_inner is not None  # noqa: S101 -- GPT2Config fills it in
    matrices = {
        "attn.c_attn": (n_embd, 3 * n_embd),
        "attn.c_proj": (n_embd, n_embd),
        "mlp.c_fc": (n_embd, n_inner),
        "mlp.c_proj": (n_inner, n_embd),
    }
    shapes: dict[str, tuple[int, ...]] = {}
    order = ("ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj")
    for name in order:
        shape = matrices.get(name, (n_embd,))
        shapes[f"{name}.weight"] = shape
        shapes[f"{name}.bias"] = shape[-1:]
    return shapes


def count_parameters(shapes: Mapping[str, tuple[int, ...]]) -> int:
    """How many trained numbers these tensors hold; buffers do not count.

    >>> count_parameters({"h.0.ln_1.bias": (768,), "h.0.attn.bias": (1, 1, 1024, 1024)})
    768
    """
    return sum(prod(shape) for name, shape in shapes.items() if not is_buffer(name))


def n_parameters(config: GPT2Config) -> int:
    """How many trained numbers a model of this shape has.

    >>> n_parameters(GPT2Config())
    124439808
    """
    return count_parameters(parameter_shapes(config))


def is_buffer(name: str) -> bool:
    """Whether a tensor is a stored causal mask, not a parameter.

    The dot before `attn` matters: `c_attn.bias` is a parameter.

    >>> is_buffer("h.0.attn.bias"), is_buffer("h.0.attn.c_attn.bias")
    (True, False)
    """
    return name.endswith(tuple(f".attn.{mask}" for mask in _MASKS))


def strip_prefix(names: Iterable[str]) -> dict[str, str]:
    """The bare name of each tensor -> its name in the file.

    Some checkpoints put `transformer.` before every name but the head's, some do not.
    Raises CheckpointError where a file does both.

    >>> strip_prefix(["transformer.wte.weight", "lm_head.weight"])
    {'wte.weight': 'transformer.wte.weight', 'lm_head.weight': 'lm_head.weight'}
    """
    names = list(names)
    with_prefix = [name for name in names if name.startswith(PREFIX)]
    without = [name for name in names if name.startswith(_BODY)]
    if with_prefix and without:
        raise CheckpointError(
            f"the checkpoint holds {with_prefix[0]!r} with the prefix {PREFIX!r} and "
            f"{without[0]!r} without it: which of the two is meant cannot be known"
        )
    bare: dict[str, str] = {}
    for name in names:
        short = name.removeprefix(PREFIX)
        if short in bare:
            raise CheckpointError(
                f"the checkpoint holds both {bare[short]!r} and {name!r}: "
                "which of the two is meant cannot be known"
            )
        bare[short] = name
    return bare


def check_names_and_shapes(
    found: Mapping[str, tuple[int, ...]], config: GPT2Config
) -> None:
    """Compares the tensors found, by bare name, with what `config` asks for.

    Buffers and a tied head may be there or not. Raises CheckpointError that lists the
    tensors that are missing, surplus, or of the wrong shape: the first of each kind,
    and how many more.

    >>> config = GPT2Config(n_vocab=7, n_ctx=8, n_embd=4, n_head=2, n_layer=1)
    >>> found = parameter_shapes(config)
    >>> check_names_and_shapes(found, config)
    >>> check_names_and_shapes(found | {"ln_f.bias": (5,)}, config)
    Traceback (most recent call last):
    gpt2hw.errors.CheckpointError: ... shape: ln_f.bias is [5], expected [4]
    """
    if config.n_layer > max(len(found), 1000):  # a file may say anything; do not count
        raise CheckpointError(
            f"the config asks for n_layer={config.n_layer}, but there are "
            f"{len(found)} tensors in all"
        )
    expected = parameter_shapes(config)
    allowed = {HEAD: expected["wte.weight"]} | expected
    masks = {f"h.{i}.attn.{b}" for i in range(config.n_layer) for b in _MASKS}
    missing = [
        f"missing: {name} {list(shape)}"
        for name, shape in expected.items()
        if name not in found
    ]
    surplus = [
        f"surplus: {name} {list(shape)}"
        for name, shape in found.items()
        if name not in allowed and name not in masks
    ]
    misshapen = [
        _shape_fault(name, shape, allowed[name])
        for name, shape in found.items()
        if name in allowed and shape != allowed[name]
    ]
    if missing or surplus or misshapen:
        faults = [*_first(missing), *_first(surplus), *_first(misshapen)]
        raise CheckpointError(
            "the tensors do not fit the config (is config.json that of another size?):"
            "\n  " + "\n  ".join(faults)
        )


def _first(faults: list[str], n_shown: int = 8) -> list[str]:
    n_more = len(faults) - n_shown
    return faults[:n_shown] + ([f"... and {n_more} more"] if n_more > 0 else [])


def _shape_fault(name: str, shape: tuple[int, ...], right: tuple[int, ...]) -> str:
    fault = f"shape: {name} is {list(shape)}, expected {list(right)}"
    if len(shape) == 2 and shape == right[::-1]:
        fault += " (transposed: GPT-2 stores its matrices [in, out])"
    return fault
