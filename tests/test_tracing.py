"""Every intermediate value by name, and equal to what transformers computes there."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpoints import SMALL, random_ids, random_model, random_tensors
from gpt2hw import GPT2, ContextError, trace
from gpt2hw.properties.closeness import agree
from gpt2hw.properties.drawn import SEEDS, batch_shapes, configs, ids_for
from gpt2hw.properties.tracing import each_part_runs_once_and_in_order
from reference import reference_model

MODEL = random_model()
IDS = random_ids(SMALL, 2, 7)

IN_A_BLOCK = (
    *("ln_1", "attn.q", "attn.k", "attn.v", "attn.scores", "attn.weights"),
    *("attn.mixed", "attn.out", "resid_mid"),
    *("ln_2", "mlp.inner", "mlp.act", "mlp.out", "resid_post"),
)


def test_the_names_stand_in_the_order_of_the_computation():
    blocks = [f"h.{layer}.{name}" for layer in range(2) for name in IN_A_BLOCK]
    assert list(trace(MODEL, IDS)) == ["embed", *blocks, "ln_f", "logits"]


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_each_value_has_the_shape_of_its_axes(batch):
    seen = trace(MODEL, random_ids(SMALL, *batch, 7))
    n_embd, n_head, d_head, n_inner = 12, 3, 4, 20
    shapes = dict.fromkeys(IN_A_BLOCK, (7, n_embd))
    shapes |= dict.fromkeys(("attn.q", "attn.k", "attn.v"), (n_head, 7, d_head))
    shapes |= {"attn.mixed": (n_head, 7, d_head)}
    shapes |= dict.fromkeys(("attn.scores", "attn.weights"), (n_head, 7, 7))
    shapes |= dict.fromkeys(("mlp.inner", "mlp.act"), (7, n_inner))
    for name, shape in shapes.items():
        assert seen[f"h.1.{name}"].shape == (*batch, *shape), name
    assert seen["embed"].shape == seen["ln_f"].shape == (*batch, 7, n_embd)
    assert seen["logits"].shape == (*batch, 7, 37)


@given(configs(), batch_shapes(), SEEDS, st.data())
@settings(deadline=None, max_examples=20)
def test_the_last_value_is_the_models_logits_to_the_bit(config, batch, seed, data):
    model, ids = random_model(config, seed), data.draw(ids_for(config, *batch))
    assert torch.equal(trace(model, ids)["logits"], model(ids))


@given(configs(), SEEDS, st.data())
@settings(deadline=None, max_examples=20)
def test_hidden_states_and_attentions_equal_transformers(config, seed, data):
    tensors, ids = random_tensors(config, seed), data.draw(ids_for(config, 2))
    with torch.no_grad():
        theirs = reference_model(config, tensors)(
            ids, output_hidden_states=True, output_attentions=True, use_cache=False
        )
    ours = trace(GPT2.from_tensors(config, tensors), ids)
    # Their first state is the embedding; the last has passed the final norm.
    streams = ["embed"] + [f"h.{i}.resid_post" for i in range(config.n_layer - 1)]
    for name, right in zip([*streams, "ln_f"], theirs.hidden_states, strict=True):
        agree(ours[name], right, 1e-4, name)
    for layer, right in enumerate(theirs.attentions):
        agree(ours[f"h.{layer}.attn.weights"], right, 1e-4, f"weights of layer {layer}")
    agree(ours["logits"], theirs.logits, 1e-4, "logits")


def values_inside(model, ids) -> dict[str, torch.Tensor]:
    """What the modules of transformers' model give out, by our names."""
    seen = {}

    def note(name):
        def hook(module, inputs, output):
            seen[name] = output[0] if isinstance(output, tuple) else output

        return hook

    for layer, block in enumerate(model.transformer.h):
        for name, module in {
            "ln_1": block.ln_1,
            "attn.out": block.attn,
            "ln_2": block.ln_2,
            "mlp.inner": block.mlp.c_fc,
            "mlp.act": block.mlp.act,
            "mlp.out": block.mlp,
            "qkv": block.attn.c_attn,
        }.items():
            module.register_forward_hook(note(f"h.{layer}.{name}"))
    with torch.no_grad():
        model(ids, use_cache=False)
    return seen


def test_every_value_inside_a_block_equals_what_transformers_modules_give_out():
    inside = values_inside(reference_model(SMALL, random_tensors(SMALL)), IDS)
    ours = trace(MODEL, IDS)
    for layer in range(SMALL.n_layer):
        qkv = inside.pop(f"h.{layer}.qkv").chunk(3, dim=-1)
        for name, right in zip("qkv", qkv, strict=True):
            found = ours[f"h.{layer}.attn.{name}"].transpose(-3, -2).flatten(-2)
            agree(found, right, 1e-4, f"{name} of layer {layer}")
    assert len(inside) == 12
    for name, right in inside.items():
        agree(ours[name], right, 1e-4, name)


def test_the_values_of_a_block_follow_from_each_other():
    seen = trace(MODEL, IDS)
    for layer, before in enumerate(["embed", "h.0.resid_post"]):
        at = {name: seen[f"h.{layer}.{name}"] for name in IN_A_BLOCK}
        scores = at["attn.q"] @ at["attn.k"].mT / 2  # d_head is 4
        agree(at["attn.scores"], scores, 1e-6)  # before the mask: the future is there
        masked = scores.masked_fill(~torch.ones(7, 7).tril().bool(), -torch.inf)
        agree(at["attn.weights"], F.softmax(masked, dim=-1), 1e-6)
        agree(at["attn.mixed"], at["attn.weights"] @ at["attn.v"], 1e-6)
        assert torch.equal(at["resid_mid"], seen[before] + at["attn.out"])
        assert torch.equal(at["resid_post"], at["resid_mid"] + at["mlp.out"])
        agree(at["mlp.act"], F.gelu(at["mlp.inner"], approximate="tanh"), 1e-6)
    assert torch.equal(seen["logits"], seen["ln_f"] @ MODEL.wte.T)


def test_the_model_and_its_trace_are_one_pass():
    each_part_runs_once_and_in_order(GPT2.forward, torch.tensor([3, 1, 4, 1]))


def test_scores_are_finite_also_for_the_future():
    assert trace(MODEL, IDS)["h.0.attn.scores"].isfinite().all()


@pytest.mark.parametrize(
    ("ids", "error"),
    [
        ([], ValueError),
        ([37], ValueError),
        ([1.5], ValueError),
        ([0] * 17, ContextError),
    ],
)
def test_it_refuses_what_the_model_refuses(ids, error):
    with pytest.raises(error):
        trace(MODEL, ids)
