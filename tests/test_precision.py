"""Weights in 16 and in 8 bits: fewer bytes, nearly the same model."""

import json
from dataclasses import fields, is_dataclass
from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import gpt2hw.int8
from checkpoints import SMALL, random_ids, random_tensors, write_folder
from gpt2hw import GPT2, CheckpointError, Sampler, Tokenizer, evaluate, generate, trace
from gpt2hw.bags import BagMatrix
from gpt2hw.cli import main, options
from gpt2hw.half import FEW, HalfMatrix
from gpt2hw.int8 import (
    Int8Matrix,
    by_plain_tensors,
    by_torch,
    integer_product,
    quantize,
)
from gpt2hw.precisions import Precision
from gpt2hw.properties import kv_cache as cache_rules
from gpt2hw.properties import model as rules
from gpt2hw.properties.closeness import agree, relative_gap
from gpt2hw.properties.seeded import normal
from gpt2hw.rows import RowMatrix

quickly = settings(deadline=None, max_examples=40)
COMPACT = ("float16", "int8")
# As a share of the range: rounding in 11 bits, and in 8, added up over the blocks.
WITHIN = {"float32": 1e-5, "float16": 0.005, "int8": 0.06}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("s"), SMALL, random_tensors(SMALL))


@pytest.fixture(scope="module")
def tiny():
    return {p: GPT2.from_pretrained("tiny", precision=p) for p in WITHIN}


@pytest.fixture(scope="module")
def tales(tiny):
    """Texts that the model itself holds likely."""
    tokenizer = Tokenizer.from_pretrained("tiny")
    samplers = [Sampler(temperature=0.8, seed=seed) for seed in range(3)]
    return [
        generate(tiny["float32"], tokenizer, "", max_new_tokens=200, sampler=sampler)
        for sampler in samplers
    ]


def bytes_of(part: object, seen: set[int] | None = None) -> int:
    """The bytes of every tensor in a model, memory that is shared counted once."""
    seen = set() if seen is None else seen
    if isinstance(part, Tensor):
        memory = part.untyped_storage()
        is_new = memory.data_ptr() not in seen
        seen.add(memory.data_ptr())
        return memory.nbytes() * is_new
    if isinstance(part, tuple):
        return sum(bytes_of(p, seen) for p in part)
    if is_dataclass(part):
        return sum(bytes_of(getattr(part, f.name), seen) for f in fields(part))
    return 0


# --- the model ---


@pytest.mark.parametrize("precision", COMPACT)
def test_logits_are_float32_and_near_those_of_float32(folder, precision):
    model = GPT2.from_pretrained(folder, precision=precision)
    right = GPT2.from_pretrained(folder)
    ids = random_ids(SMALL, 2, 9)
    rules.each_id_gets_a_row_of_logits(model, ids, SMALL.n_vocab)
    agree(model(ids), right(ids), WITHIN[precision], "logits")
    assert relative_gap(model(ids), right(ids)) > 1e-6  # it is another precision


@pytest.mark.parametrize("precision", COMPACT)
@pytest.mark.parametrize("chunks", [[9], [1] * 9, [4, 1, 4]])
def test_the_cache_changes_nothing_but_the_rounding(folder, precision, chunks):
    model = GPT2.from_pretrained(folder, precision=precision)
    within = {"float16": 0.005, "int8": 1e-5}[precision]  # whole numbers are exact
    ids = random_ids(SMALL, 9)
    cache_rules.cache_equals_no_cache(model, ids, chunks, within)


def test_in_int8_a_batch_gives_each_sequence_what_it_gets_alone(folder):
    rules.sequences_of_a_batch_are_apart(
        GPT2.from_pretrained(folder, precision="int8"), random_ids(SMALL, 3, 5)
    )


@pytest.mark.parametrize(("precision", "share"), [("float16", 0.52), ("int8", 0.30)])
def test_the_memory_is_a_half_and_a_quarter(tiny, precision, share):
    """The rest is what stays in float32: positions, biases, norms; and the scales."""
    assert bytes_of(tiny[precision]) <= share * bytes_of(tiny["float32"])


def test_a_tied_table_is_there_once(tiny):
    for precision in COMPACT:
        model = tiny[precision]
        assert model.head is model.table
        assert model.wte is model.lm_head
        assert model.wte.dtype == getattr(torch, precision)


@pytest.mark.parametrize(
    ("precision", "bits", "agreeing"), [("float16", 0.001, 0.99), ("int8", 0.01, 0.9)]
)
def test_the_quality_on_tales_is_nearly_that_of_float32(
    tiny, tales, precision, bits, agreeing
):
    """Bits per byte more than float32's; share of the same likeliest next ids."""
    tokenizer = Tokenizer.from_pretrained("tiny")
    same = []
    for tale in tales:
        ids = tale.prompt_ids + tale.ids
        found, right = tiny[precision](ids), tiny["float32"](ids)
        same.append(found.argmax(-1) == right.argmax(-1))
        wide = evaluate(tiny["float32"], tokenizer, tale.text).bits_per_byte
        narrow = evaluate(tiny[precision], tokenizer, tale.text).bits_per_byte
        assert abs(narrow - wide) <= bits * wide
    assert float(torch.cat(same).float().mean()) >= agreeing


@pytest.mark.parametrize("precision", COMPACT)
def test_every_value_can_be_traced_and_is_float32(folder, precision):
    model = GPT2.from_pretrained(folder, precision=precision)
    values = trace(model, [3, 1, 4])
    assert {value.dtype for value in values.values()} == {torch.float32}
    agree(values["logits"], model([3, 1, 4]), WITHIN[precision])


@pytest.mark.parametrize("wrong", ["float64", "INT8", "", None, 8, torch.float16])
def test_an_unknown_precision_is_refused_by_name(wrong):
    with pytest.raises(ValueError, match=r"precision: .*float32, float16, int8"):
        GPT2.from_pretrained("tiny", precision=wrong)


@pytest.mark.parametrize("precision", COMPACT)
def test_a_precision_that_a_device_lacks_is_refused(monkeypatch, precision):
    other = torch.device("mps")
    monkeypatch.setattr("gpt2hw.pretrained._usable_device", lambda _: other)
    with pytest.raises(ValueError, match=f"precision: {precision} is for the CPU"):
        GPT2.from_pretrained("tiny", "mps", precision=precision)


@pytest.mark.parametrize("precision", COMPACT)
def test_a_tied_head_that_is_stored_all_the_same_is_dropped(tmp_path, precision):
    tensors = random_tensors(SMALL)
    tensors["lm_head.weight"] = tensors["wte.weight"].clone()
    folder = write_folder(tmp_path, SMALL, tensors)
    model = GPT2.from_pretrained(folder, precision=precision)
    assert model.head is model.table


@pytest.mark.parametrize("precision", WITHIN)
@pytest.mark.parametrize("times", [2.0, 1.01])
@pytest.mark.parametrize("rows", [slice(None), slice(-1, None)])
def test_a_stored_head_that_differs_from_a_tied_wte_is_refused(
    tmp_path, precision, times, rows
):
    tensors = random_tensors(SMALL)
    head = tensors["wte.weight"].clone()
    head[rows] *= times  # in int8 the whole numbers stay, the scales do not
    folder = write_folder(tmp_path, SMALL, tensors | {"lm_head.weight": head})
    with pytest.raises(CheckpointError, match="differs from wte"):
        GPT2.from_pretrained(folder, precision=precision)


# --- 16 bits ---


@pytest.mark.parametrize("n_rows", [1, 2, 5])
def test_a_half_matrix_gives_the_product_to_three_digits(n_rows):
    values, x = normal(50, 64), normal(n_rows, 64, seed=1)
    agree(HalfMatrix.of(values)(x), x @ values.T, 0.001)


def test_a_prompt_is_multiplied_in_float32():
    """By the stored weights, widened: to float32's rounding, not to float16's."""
    matrix, x = HalfMatrix.of(normal(50, 64)), normal(FEW + 1, 64, seed=1)
    agree(matrix(x), x @ matrix.values.float().T, 1e-6)


@pytest.mark.parametrize("of", [BagMatrix, RowMatrix, HalfMatrix.of, Int8Matrix.of])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_no_rows_give_no_rows(of, shape):
    assert of(normal(10, 4))(torch.empty(*shape, 4)).shape == (*shape, 10)


@pytest.mark.parametrize("of", [HalfMatrix.of, Int8Matrix.of])
def test_pieces_make_the_whole(monkeypatch, of):
    whole = of(normal(10, 4))
    x = normal(3, 4, seed=1)
    right = whole(x)
    for room in ("half", "int8"):
        monkeypatch.setattr(f"gpt2hw.{room}.AT_ONCE", 8)
        monkeypatch.setattr(f"gpt2hw.{room}.WIDENED_AT_ONCE", 8)
    pieces = of(normal(10, 4))
    assert torch.equal(pieces.values, whole.values)
    agree(pieces(x), right, 1e-6)


# --- 8 bits ---


@given(st.integers(1, 9), st.integers(1, 300), st.integers(1, 70), st.integers(0, 99))
@quickly
def test_the_product_of_whole_numbers_is_exact(n_rows, n_in, n_out, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(-127, 128, (n_rows, n_in), generator=generator).to(torch.int8)
    w = torch.randint(-127, 128, (n_out, n_in), generator=generator).to(torch.int8)
    right = x.long() @ w.T.long()
    assert torch.equal(integer_product()(x, w).long(), right)
    assert torch.equal(by_plain_tensors(x, w).long(), right)


def test_an_int8_matrix_is_two_scales_times_a_product_of_whole_numbers():
    matrix, x = Int8Matrix.of(normal(20, 32)), normal(3, 32, seed=1)
    whole, step = quantize(x)
    right = (whole * step).double() @ matrix.widened().double().T
    agree(matrix(x), right.float(), 1e-6)


def missing(*_: object) -> Tensor:
    raise AttributeError("module 'torch' has no attribute '_int_mm'")


def saturating(x: Tensor, w: Tensor) -> Tensor:
    """As a processor that moves x up by 128, and keeps pairs of products in 16 bits."""
    pairs = ((x.int() + 128)[:, None] * w.int()).unflatten(-1, (-1, 2)).sum(-1)
    moved = pairs.clamp(-(2**15), 2**15 - 1).sum(-1)
    return (moved - 128 * w.int().sum(-1)).int()


def wrong_below_zero(x: Tensor, w: Tensor) -> Tensor:
    return by_plain_tensors(x, w).int().clamp(min=-(2**15))


def wrong_above_zero(x: Tensor, w: Tensor) -> Tensor:
    return by_plain_tensors(x, w).int().clamp(max=2**15 - 1)


def wrong_for_one_row(x: Tensor, w: Tensor) -> Tensor:
    return (saturating if len(x) == 1 else by_plain_tensors)(x, w).int()


def wrong_for_more_rows(x: Tensor, w: Tensor) -> Tensor:
    return (saturating if len(x) > 1 else by_plain_tensors)(x, w).int()


def test_the_planted_saturation_is_right_for_small_numbers():
    x, w = torch.tensor([[3, -2]]).to(torch.int8), torch.tensor([[5, 7]]).to(torch.int8)
    assert saturating(x, w).tolist() == [[1]]


@pytest.mark.parametrize(
    "torchs_own",
    [
        *(missing, saturating, wrong_below_zero, wrong_above_zero),
        *(wrong_for_one_row, wrong_for_more_rows),
    ],
)
def test_where_torchs_product_is_missing_or_wrong_plain_tensors_take_its_place(
    monkeypatch, tiny, torchs_own
):
    right = tiny["int8"]([3, 1, 4])
    integer_product.cache_clear()
    monkeypatch.setattr(gpt2hw.int8, "by_torch", torchs_own)
    try:
        assert integer_product() is by_plain_tensors
        agree(tiny["int8"]([3, 1, 4]), right, 1e-6)
    finally:
        integer_product.cache_clear()


def test_the_oracle_of_whole_numbers_needs_no_private_call(monkeypatch):
    def wrong(x: Tensor, values: Tensor) -> Tensor:
        return x @ values.T + 1

    monkeypatch.setattr("gpt2hw.many_rows.by_onednn", wrong)
    x, w = normal(9, 70).to(torch.int8), normal(5, 70, seed=1).to(torch.int8)
    assert torch.equal(by_plain_tensors(x, w).long(), x.long() @ w.long().T)


def test_without_the_private_call_in_torch_the_model_still_runs(monkeypatch, tiny):
    right = tiny["int8"]([3, 1, 4])
    integer_product.cache_clear()
    monkeypatch.delattr(torch, "_int_mm")
    try:
        agree(tiny["int8"]([3, 1, 4]), right, 1e-6)
        with pytest.raises(AttributeError):
            by_torch(*2 * [torch.ones(1, 2, dtype=torch.int8)])
    finally:
        integer_product.cache_clear()


# --- on the command line ---


def test_commands_take_a_precision(capsys, tmp_path):
    text = tmp_path / "text"
    text.write_text("Once upon a time there was a king.")
    found = []
    for precision in WITHIN:
        assert main(["evaluate", str(text), "--json", "--precision", precision]) == 0
        found.append(json.loads(capsys.readouterr().out)["bits_per_byte"])
    assert len(set(found)) > 1
    assert max(found) - min(found) < 0.05
    generating = ["generate", "Once", "--max-new-tokens", "3", "--precision", "int8"]
    assert main(generating) == 0
    assert capsys.readouterr().out.startswith("Once")


@pytest.mark.parametrize("command", ["generate", "evaluate"])
def test_an_unknown_precision_is_a_wrong_use(capsys, command):
    assert main([command, "Once", "--precision", "int4"]) == 2
    rule = "--precision must be one of float32, float16, int8, not 'int4'"
    assert rule in capsys.readouterr().err


def test_the_command_line_knows_every_precision():
    assert get_args(Precision) == options.PRECISIONS
