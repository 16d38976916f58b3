"""What a config may say, and what is refused by name instead of being run wrongly."""

import json
from dataclasses import FrozenInstanceError

import pytest

from checkpoints import SMALL, settings_of
from gpt2hw import CheckpointError, GPT2Config
from gpt2hw.config import PUBLISHED


def test_the_defaults_are_gpt2_124m():
    config = GPT2Config()
    assert (config.n_layer, config.n_head, config.n_embd) == (12, 12, 768)
    assert (config.n_vocab, config.n_ctx) == (50257, 1024)
    assert (config.n_inner, config.d_head) == (3072, 64)
    assert config.layer_norm_epsilon == 1e-5
    assert config.tie_word_embeddings


@pytest.mark.parametrize(
    ("name", "n_layer", "n_head", "n_embd"),
    [
        ("distilgpt2", 6, 12, 768),
        ("gpt2", 12, 12, 768),
        ("gpt2-medium", 24, 16, 1024),
        ("gpt2-large", 36, 20, 1280),
        ("gpt2-xl", 48, 25, 1600),
    ],
)
def test_each_published_size_has_heads_of_64(name, n_layer, n_head, n_embd):
    config = PUBLISHED[name]
    assert (config.n_layer, config.n_head, config.n_embd) == (n_layer, n_head, n_embd)
    assert (config.d_head, config.n_ctx, config.n_vocab) == (64, 1024, 50257)


def test_a_config_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        GPT2Config().n_embd = 8


def test_the_inner_width_is_four_times_the_outer_unless_it_is_said():
    assert GPT2Config(n_embd=24, n_head=2).n_inner == 96
    assert GPT2Config(n_embd=24, n_head=2, n_inner=7).n_inner == 7


NUMBERS = ("n_vocab", "n_ctx", "n_embd", "n_head", "n_layer", "n_inner")


@pytest.mark.parametrize("field", NUMBERS)
@pytest.mark.parametrize(
    "value", [0, -1, 1.0, 12.5, True, "12", [12], {}, float("nan")]
)
def test_a_size_that_is_no_positive_integer_is_named(field, value):
    with pytest.raises(ValueError, match=rf"^{field} must be a positive integer"):
        GPT2Config(**{field: value})


@pytest.mark.parametrize("field", [name for name in NUMBERS if name != "n_inner"])
def test_a_size_of_none_is_named(field):
    with pytest.raises(ValueError, match=rf"^{field} must be a positive integer"):
        GPT2Config(**{field: None})


def test_heads_that_do_not_divide_the_width_are_refused():
    with pytest.raises(ValueError, match=r"n_head=5 does not divide n_embd=768"):
        GPT2Config(n_head=5)


@pytest.mark.parametrize(
    "eps", [0, 0.0, -1e-5, 1, float("nan"), float("inf"), "1e-5", True, None]
)
def test_an_epsilon_outside_0_to_1_is_named(eps):
    with pytest.raises(ValueError, match=r"^layer_norm_epsilon must lie in \(0, 1\)"):
        GPT2Config(layer_norm_epsilon=eps)


@pytest.mark.parametrize("tied", [1, None, "yes"])
def test_a_tie_that_is_no_bool_is_named(tied):
    with pytest.raises(ValueError, match=r"^tie_word_embeddings must be a bool"):
        GPT2Config(tie_word_embeddings=tied)


# --- Hugging Face's config.json ---


def test_every_number_is_read_from_hugging_faces_keys():
    config = GPT2Config(
        n_vocab=11, n_ctx=13, n_embd=15, n_head=5, n_layer=3, n_inner=17,
        layer_norm_epsilon=1e-3, tie_word_embeddings=False,
    )  # fmt: skip
    assert GPT2Config.from_dict(settings_of(config)) == config


# The published config.json; beside the sizes it tells of training and sampling.
PUBLISHED_SETTINGS = json.loads("""
{
  "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"],
  "attn_pdrop": 0.1, "bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id": 50256,
  "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "gpt2",
  "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
  "resid_pdrop": 0.1, "summary_activation": null, "summary_first_dropout": 0.1,
  "summary_proj_to_labels": true, "summary_type": "cls_index", "summary_use_proj": true,
  "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}},
  "vocab_size": 50257
}
""")


def test_the_published_config_is_read_and_says_what_the_defaults_say():
    assert GPT2Config.from_dict(PUBLISHED_SETTINGS) == GPT2Config()


def test_n_positions_rules_and_n_ctx_serves_where_it_is_missing():
    settings = settings_of(SMALL, n_positions=16, n_ctx=99)
    assert GPT2Config.from_dict(settings).n_ctx == 16
    del settings["n_positions"]
    assert GPT2Config.from_dict(settings).n_ctx == 99
    del settings["n_ctx"]
    with pytest.raises(CheckpointError, match="n_positions is missing"):
        GPT2Config.from_dict(settings)


@pytest.mark.parametrize("key", ["vocab_size", "n_embd", "n_head", "n_layer"])
@pytest.mark.parametrize("is_null", [False, True])
def test_a_size_that_is_missing_or_null_is_named(key, is_null):
    settings = settings_of(SMALL)
    del settings[key]
    if is_null:
        settings[key] = None
    with pytest.raises(CheckpointError, match=f"config: {key} is missing"):
        GPT2Config.from_dict(settings)


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("n_embd", {}, "n_embd"),
        ("n_embd", "12", "n_embd"),
        ("vocab_size", 37.0, r"vocab_size \(n_vocab\) must be a positive integer"),
        ("n_layer", True, "n_layer"),
        ("n_head", -3, "n_head"),
        ("n_head", 5, "n_head=5 does not divide"),
        ("n_positions", 0, r"n_positions \(n_ctx\) must be a positive integer"),
        ("n_inner", [20], "n_inner"),
        ("layer_norm_epsilon", "1e-5", "layer_norm_epsilon"),
        ("layer_norm_epsilon", float("nan"), "layer_norm_epsilon"),
    ],
)
def test_a_number_that_no_model_can_have_is_a_checkpoint_error(key, value, named):
    with pytest.raises(CheckpointError, match=f"config: {named}"):
        GPT2Config.from_dict(settings_of(SMALL, **{key: value}))


def test_a_context_length_under_its_old_key_is_named_by_that_key():
    settings = settings_of(SMALL, n_positions=None, n_ctx=-1)
    with pytest.raises(CheckpointError, match="config: n_ctx must be a positive"):
        GPT2Config.from_dict(settings)


@pytest.mark.parametrize("name", ["gelu_new", "gelu_pytorch_tanh"])
def test_both_names_of_the_tanh_gelu_are_taken(name):
    settings = settings_of(SMALL, activation_function=name)
    assert GPT2Config.from_dict(settings) == SMALL


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("activation_function", "gelu"),
        ("activation_function", "relu"),
        ("activation_function", ["gelu_new"]),
        ("scale_attn_by_inverse_layer_idx", True),
        ("scale_attn_weights", False),
        ("scale_attn_weights", 1),
        ("add_cross_attention", True),
        ("is_encoder_decoder", True),
        ("model_type", "llama"),
        ("model_type", "gpt_neo"),
        ("architectures", ["LlamaForCausalLM"]),
        ("architectures", ["GPT2ForSequenceClassification"]),
        ("architectures", ["GPT2DoubleHeadsModel"]),
        ("architectures", ["GPT2LMHeadModel", "T5Model"]),
        ("architectures", "GPT2LMHeadModel"),
        ("architectures", [None]),
        ("quantization_config", {"bits": 4}),
        ("tie_word_embeddings", "yes"),
    ],
)
def test_what_the_engine_does_not_compute_is_refused_by_name(key, value):
    with pytest.raises(CheckpointError, match=rf"config: {key} is ") as refusal:
        GPT2Config.from_dict(settings_of(SMALL, **{key: value}))
    assert repr(value) in str(refusal.value)


def test_a_refusal_says_what_the_engine_does_compute():
    settings = settings_of(SMALL, activation_function="relu")
    right = "this engine computes 'gelu_new' or 'gelu_pytorch_tanh' alone"
    with pytest.raises(CheckpointError, match=f"{right}$"):
        GPT2Config.from_dict(settings)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("architectures", ["GPT2Model"]),
        ("architectures", []),
        ("reorder_and_upcast_attn", True),  # another rounding of the same numbers
        ("attn_pdrop", 0.5),
        ("use_cache", False),
    ],
)
def test_what_changes_no_logit_is_taken(key, value):
    assert GPT2Config.from_dict(settings_of(SMALL, **{key: value})) == SMALL


@pytest.mark.parametrize("settings", [None, [], "gpt2", 7, [("n_embd", 8)]])
def test_a_config_that_is_no_object_is_refused(settings):
    kind = type(settings).__name__
    with pytest.raises(CheckpointError, match=f"a config is an object, not {kind}$"):
        GPT2Config.from_dict(settings)
