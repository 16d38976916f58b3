"""The report on a checkpoint: what is counted, under which kind, from its header."""

import json
import sys

import pytest

from gpt2hw.config import GPT2Config
from gpt2hw.errors import CheckpointError, SafetensorsError
from gpt2hw.header import format_header
from gpt2hw.inspection import inspect_checkpoint
from gpt2hw.layout import parameter_shapes
from gpt2hw.tensor_info import TensorInfo

SMALL = GPT2Config(n_vocab=50, n_ctx=8, n_embd=4, n_head=2, n_layer=2)


def shapes_of(config, prefix=""):
    """The shapes of a checkpoint with a causal mask in each block."""
    shapes = dict(parameter_shapes(config))
    for layer in range(config.n_layer):
        shapes[f"h.{layer}.attn.bias"] = (1, 1, config.n_ctx, config.n_ctx)
    return {prefix + name: shape for name, shape in shapes.items()}


def write_hollow(path, shapes, metadata=None):
    """A float32 checkpoint whose data are a hole: it takes no room on the disk."""
    infos, at = [], 0
    for name, shape in shapes.items():
        n_bytes = 4 * TensorInfo(name, "F32", shape, 0, 0).n_elements
        infos.append(TensorInfo(name, "F32", shape, at, at + n_bytes))
        at += n_bytes
    start = format_header(infos, metadata)
    with path.open("wb") as file:
        file.write(start)
        file.truncate(len(start) + at)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.safetensors"
    yield path
    path.unlink(missing_ok=True)


@pytest.mark.skipif(
    sys.platform == "win32", reason="its hollow file would take 548 MB of the disk"
)
def test_gpt2_has_124439808_parameters_and_its_twelve_masks_are_none(path):
    write_hollow(path, shapes_of(GPT2Config()), {"format": "pt"})
    report = inspect_checkpoint(path)
    parameters, buffers = report.total("parameter"), report.total("buffer")
    assert parameters.n_elements == 124_439_808
    assert (parameters.n_tensors, buffers.n_tensors) == (148, 12)
    assert buffers.n_elements == 12 * 1024 * 1024
    assert report.total().n_tensors == 160
    assert report.total().n_bytes == 548_090_880
    assert report.data_start + 548_090_880 == path.stat().st_size
    assert report.metadata == {"format": "pt"}
    assert report.notes == ()


@pytest.mark.parametrize("prefix", ["", "transformer."])
def test_masks_are_told_from_the_biases_of_c_attn(path, prefix):
    shapes = shapes_of(SMALL, prefix)
    shapes[f"{prefix}h.0.attn.masked_bias"] = ()
    write_hollow(path, shapes)
    kinds = {row.name: row.kind for row in inspect_checkpoint(path).rows}
    assert kinds[f"{prefix}h.0.attn.bias"] == "buffer"
    assert kinds[f"{prefix}h.0.attn.masked_bias"] == "buffer"
    assert kinds[f"{prefix}h.0.attn.c_attn.bias"] == "parameter"
    assert sum(kind == "buffer" for kind in kinds.values()) == 3


def test_a_row_tells_all_of_its_tensor(path):
    write_hollow(path, {"wte.weight": (5, 2)})
    (row,) = inspect_checkpoint(path).rows
    assert (row.name, row.dtype, row.shape) == ("wte.weight", "F32", (5, 2))
    assert (row.n_elements, row.n_bytes, row.kind) == (10, 40, "parameter")


@pytest.mark.parametrize(
    "config", [None, {}, {"tie_word_embeddings": True}, "broken", []]
)
def test_a_stored_head_that_is_tied_is_counted_once_and_said_so(path, config):
    write_hollow(path, {"wte.weight": (5, 2), "lm_head.weight": (5, 2)})
    if config is not None:
        text = config if isinstance(config, str) else json.dumps(config)
        (path.parent / "config.json").write_text(text, encoding="utf-8")
    report = inspect_checkpoint(path)
    assert report.total("parameter").n_elements == 10
    assert report.total("tied head").n_elements == 10
    assert "lm_head.weight is stored although it is tied" in report.notes[0]


def test_a_head_of_its_own_is_a_parameter(path):
    shapes = {"transformer.wte.weight": (5, 2), "lm_head.weight": (5, 2)}
    write_hollow(path, shapes)
    settings = '{"tie_word_embeddings": false}'
    (path.parent / "config.json").write_text(settings, encoding="utf-8")
    report = inspect_checkpoint(path)
    assert report.total("parameter").n_elements == 20
    assert report.notes == ()


@pytest.mark.parametrize(
    "shapes",
    [{"lm_head.weight": (5, 2)}, {"lm_head.weight": (5, 2), "wte.weight": (4, 2)}],
)
def test_a_head_without_an_embedding_of_its_shape_is_a_parameter(path, shapes):
    write_hollow(path, shapes)
    assert inspect_checkpoint(path).total("tied head").n_tensors == 0


def test_a_folder_is_inspected_by_its_model_file(path):
    write_hollow(path, shapes_of(SMALL))
    assert inspect_checkpoint(path.parent) == inspect_checkpoint(path)


def test_the_report_is_plain_json(path):
    write_hollow(path, shapes_of(SMALL), {"format": "pt"})
    report = inspect_checkpoint(path)
    found = json.loads(json.dumps(report.to_json()))
    assert found == report.to_json()
    assert found["parameters"]["n_elements"] == report.total("parameter").n_elements
    assert found["buffers"] == {"n_tensors": 2, "n_elements": 128, "n_bytes": 512}
    assert found["tied_head"]["n_tensors"] == 0
    assert found["all"]["n_tensors"] == len(found["tensors"]) == len(report.rows)
    assert found["data_start"] == report.data_start
    assert found["metadata"] == {"format": "pt"}
    assert found["tensors"][0] == {
        "name": "wte.weight",
        "dtype": "F32",
        "shape": [50, 4],
        "n_elements": 200,
        "n_bytes": 800,
        "kind": "parameter",
        "file": "model.safetensors",
    }


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ([], "has no model.safetensors: put the one of the same model there"),
        (["model-1-of-2.safetensors"], "has shards .*not the index that names them"),
        (
            ["a.safetensors", "b.safetensors"],
            "but a.safetensors, b.safetensors: rename",
        ),
        (["pytorch_model.bin"], "only pytorch_model.bin, a pickle"),
        (["pytorch_model-1-of-2.bin"], "a pickle, which can run code"),
    ],
)
def test_a_folder_without_the_file_is_refused_with_what_it_holds(
    tmp_path, files, reason
):
    for name in files:
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(CheckpointError, match=reason):
        inspect_checkpoint(tmp_path)


def test_a_broken_file_is_refused(path):
    path.write_bytes(b"<html>")
    with pytest.raises(SafetensorsError, match="HTML"):
        inspect_checkpoint(path)


@pytest.mark.parametrize("path", [None, 5, "", "a\0b"])
def test_what_can_be_no_path_is_named_as_the_argument(path):
    with pytest.raises(ValueError, match=r"^path: must be the path of a file"):
        inspect_checkpoint(path)


def test_nothing_at_all_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        inspect_checkpoint(tmp_path / "nowhere")
