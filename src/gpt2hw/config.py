"""The numbers that shape a GPT-2: how wide, how deep, how long.

Source: `config.json` in Hugging Face's layout (transformers,
`models/gpt2/configuration_gpt2.py`); the published sizes are those of Radford et al.
2019, table 2 (whose counts, 117M to 1542M, are not those of the published files), and
of DistilGPT2's model card.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpt2hw.errors import CheckpointError


@dataclass(frozen=True, kw_only=True)
class GPT2Config:
    """The shape of one GPT-2; the defaults are those of GPT-2 124M.

    `n_vocab` tokens are known, `n_ctx` is the longest context in tokens, `n_embd` the
    width of the residual stream, `n_head` the heads of each of `n_layer` blocks,
    `n_inner` the width inside the MLP (None: 4 n_embd). Raises ValueError, naming the
    field, where a number is not a positive integer or the heads do not divide n_embd.

    >>> GPT2Config().d_head
    64
    """

    n_vocab: int = 50257
    n_ctx: int = 1024
    n_embd: int = 768
    n_head: int = 12
    n_layer: int = 12
    n_inner: int | None = None  # None becomes 4 n_embd below: afterwards it is an int
    layer_norm_epsilon: float = 1e-5
    tie_word_embeddings: bool = True

    def __post_init__(self) -> None:
        """Fills n_inner in and refuses what no model can have."""
        if self.n_inner is None and type(self.n_embd) is int:
            object.__setattr__(self, "n_inner", 4 * self.n_embd)
        for name in ("n_vocab", "n_ctx", "n_embd", "n_head", "n_layer", "n_inner"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ValueError(f"{name} must be a positive integer, not {value!r}")
        if self.n_embd % self.n_head:
            raise ValueError(
                f"n_head={self.n_head} does not divide n_embd={self.n_embd}: "
                "each head takes n_embd / n_head columns"
            )
        eps = self.layer_norm_epsilon
        if type(eps) not in (int, float) or not 0 < eps < 1:
            raise ValueError(f"layer_norm_epsilon must lie in (0, 1), not {eps!r}")
        tied = self.tie_word_embeddings
        if type(tied) is not bool:
            raise ValueError(f"tie_word_embeddings must be a bool, not {tied!r}")

    @property
    def d_head(self) -> int:
        """The width of one head, n_embd / n_head."""
        return self.n_embd // self.n_head

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> "GPT2Config":
        """Reads the keys of Hugging Face's config.json.

        Raises CheckpointError, naming the key, where one is missing, of the wrong
        kind, or asks for what this engine does not compute.

        >>> GPT2Config.from_dict({"vocab_size": 9, "n_positions": 8, "n_embd": 6,
        ...                       "n_head": 2, "n_layer": 1}).n_inner
        24
        """
        if not isinstance(settings, Mapping):
            raise CheckpointError(
                f"a config is an object, not {type(settings).__name__}"
            )
        _refuse_what_is_not_computed(settings)
        n_ctx = _context_length(settings)
        try:
            return cls(
                n_vocab=_required(settings, "vocab_size"),
                n_ctx=n_ctx,
                n_embd=_required(settings, "n_embd"),
                n_head=_required(settings, "n_head"),
                n_layer=_required(settings, "n_layer"),
                n_inner=settings.get("n_inner"),
                layer_norm_epsilon=settings.get("layer_norm_epsilon", 1e-5),
                tie_word_embeddings=settings.get("tie_word_embeddings", True),
            )
        except CheckpointError:
            raise
        except ValueError as error:
            raise CheckpointError(_with_key(str(error), settings)) from None


# What a GPT-2 config may say, and the values under which this engine's result is right.
# reorder_and_upcast_attn changes the rounding alone; gelu_pytorch_tanh is gelu_new.
_COMPUTED: dict[str, tuple[Any, ...]] = {
    "model_type": ("gpt2",),
    "activation_function": ("gelu_new", "gelu_pytorch_tanh"),
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
    "add_cross_attention": (False,),
    "is_encoder_decoder": (False,),
    "tie_word_embeddings": (True, False),
    "quantization_config": (None,),
}
_ARCHITECTURES = {"GPT2LMHeadModel", "GPT2Model"}


def _refuse_what_is_not_computed(settings: Mapping[str, Any]) -> None:
    for key, right in _COMPUTED.items():
        value = settings.get(key, right[0])
        if not any(value is r or (isinstance(r, str) and value == r) for r in right):
            meant = " or ".join(repr(r) for r in right)
            raise CheckpointError(
                f"config: {key} is {value!r}, but this engine computes {meant} alone"
            )
    architectures = settings.get("architectures") or ["GPT2LMHeadModel"]
    if not isinstance(architectures, list) or not all(
        isinstance(a, str) and a in _ARCHITECTURES for a in architectures
    ):
        raise CheckpointError(
            f"config: architectures is {architectures!r}; "
            f"this engine runs {', '.join(sorted(_ARCHITECTURES))}"
        )


def _required(settings: Mapping[str, Any], key: str) -> Any:
    if settings.get(key) is None:
        raise CheckpointError(f"config: {key} is missing")
    return settings[key]


def _with_key(message: str, settings: Mapping[str, Any]) -> str:
    """A message that begins with a field, led by its key in the file if that differs.

    >>> _with_key("n_vocab must be a positive integer, not -1", {})
    'config: vocab_size (n_vocab) must be a positive integer, not -1'
    """
    field, space, rest = message.partition(" ")
    has_n_positions = settings.get("n_positions") is not None
    keys = {"n_vocab": "vocab_size"}
    keys |= {"n_ctx": "n_positions"} if has_n_positions else {}
    named = f"{keys[field]} ({field})" if field in keys else field
    return f"config: {named}{space}{rest}"


def _context_length(settings: Mapping[str, Any]) -> Any:
    """n_positions, which transformers reads; old files say n_ctx beside it or alone."""
    if settings.get("n_positions") is None:
        if settings.get("n_ctx") is None:
            raise CheckpointError("config: n_positions is missing")
        return settings["n_ctx"]
    return settings["n_positions"]


PUBLISHED = {
    "distilgpt2": GPT2Config(n_layer=6),
    "gpt2": GPT2Config(),
    "gpt2-medium": GPT2Config(n_embd=1024, n_head=16, n_layer=24),
    "gpt2-large": GPT2Config(n_embd=1280, n_head=20, n_layer=36),
    "gpt2-xl": GPT2Config(n_embd=1600, n_head=25, n_layer=48),
}
