"""Tensors: the numbers that bytes stand for, and files that come back bit for bit."""

import math
import os
import stat
import subprocess
import sys
import tracemalloc
import warnings
from pathlib import Path

import pytest
import safetensors.torch
import torch
from hypothesis import given
from safetensors import deserialize

from gpt2hw import safetensors as room
from gpt2hw.errors import SafetensorsError
from gpt2hw.header import Header, TensorInfo, read_header
from gpt2hw.properties import safetensors as properties
from gpt2hw.properties.drawn_files import DTYPES, NAMED_TENSORS, damaged_files
from gpt2hw.properties.header import answers_or_refuses, file_bytes
from gpt2hw.properties.safetensors import bits
from gpt2hw.safetensors import iter_tensors, read_safetensors, write_safetensors
from gpt2hw.tensor_info import DTYPE_BYTES


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("safetensors") / "model.safetensors"


@pytest.fixture
def read(path):
    def read_bytes(content):
        path.write_bytes(content)
        return read_safetensors(path)

    return read_bytes


def one(dtype, shape, data):
    info = {"dtype": dtype, "shape": list(shape), "data_offsets": [0, len(data)]}
    return file_bytes({"t": info}, data)


def one_of(name, *shape):
    """A tensor of the dtype of that name in the file, with values that differ."""
    n_bytes = math.prod(shape) * DTYPE_BYTES[name]
    raw = torch.arange(n_bytes).to(torch.uint8)
    if name == "BOOL":
        raw = raw % 2
    return raw.view(room.torch_dtype(name)).reshape(shape)


# The numbers


VALUES = [
    ("BOOL", "00 01", [False, True]),
    ("U8", "00 ff", [0, 255]),
    ("I8", "7f 80", [127, -128]),
    ("F8_E5M2", "3c c0 7b 01", [1.0, -2.0, 57344.0, 2.0**-16]),
    ("F8_E4M3", "38 c0 7e 01", [1.0, -2.0, 448.0, 0.001953125]),
    ("F8_E8M0", "7f 80 00", [1.0, 2.0, 2.0**-127]),
    ("F8_E4M3FNUZ", "40 c8 7f 01", [1.0, -2.0, 240.0, 2.0**-10]),
    ("F8_E5M2FNUZ", "40 c4 7f 01", [1.0, -2.0, 57344.0, 2.0**-17]),
    ("I16", "01 02 00 80", [513, -32768]),
    ("U16", "01 02 ff ff", [513, 65535]),
    ("F16", "00 3c 00 c0 ff 7b", [1.0, -2.0, 65504.0]),
    ("BF16", "80 3f 00 c0", [1.0, -2.0]),
    ("I32", "01 02 00 00 00 00 00 80", [513, -(2**31)]),
    ("U32", "01 02 00 00 ff ff ff ff", [513, 2**32 - 1]),
    ("F32", "00 00 80 3f 00 00 00 c0", [1.0, -2.0]),
    ("C64", "00 00 80 3f 00 00 00 40", [1 + 2j]),
    ("F64", "00 00 00 00 00 00 f0 3f", [1.0]),
    ("I64", "00 00 00 00 00 00 00 80", [-(2**63)]),
    ("U64", "ff ff ff ff ff ff ff ff", [2**64 - 1]),
]


def values(tensor):
    is_float8 = tensor.is_floating_point() and tensor.element_size() == 1
    return (tensor.float() if is_float8 else tensor).tolist()


def test_the_table_of_known_values_names_every_dtype():
    assert [dtype for dtype, _, _ in VALUES] == list(DTYPE_BYTES)


@pytest.mark.parametrize(("dtype", "data", "numbers"), VALUES)
def test_known_bytes_are_known_numbers(dtype, data, numbers, read):
    if dtype not in DTYPES:
        pytest.skip(f"this torch has no {dtype}")
    tensor = read(one(dtype, [len(numbers)], bytes.fromhex(data)))["t"]
    assert values(tensor) == numbers


def test_any_byte_but_zero_is_true(read):
    tensor = read(one("BOOL", [4], bytes([0, 1, 2, 255])))["t"]
    assert tensor.tolist() == [False, True, True, True]
    assert tensor.sum() == 3
    assert bits(tensor) == bytes([0, 1, 1, 1])


def test_rows_come_one_after_another_and_the_last_axis_is_the_fastest(read):
    assert read(one("U8", [2, 3], bytes(range(6))))["t"].tolist() == [
        [0, 1, 2],
        [3, 4, 5],
    ]


@pytest.mark.parametrize("shape", [[0], [2, 0], [0, 3, 2**40]])
def test_an_empty_tensor_keeps_its_shape_and_dtype(read, shape):
    tensor = read(one("F16", shape, b""))["t"]
    assert tensor.dtype == torch.float16
    assert list(tensor.shape) == shape


def test_a_scalar_is_a_tensor_without_axes(read):
    tensor = read(one("F32", [], bytes.fromhex("0000803f")))["t"]
    assert tensor.ndim == 0
    assert tensor.item() == 1.0


def test_a_tensor_may_have_more_axes_than_torch_can_add_up(read):
    for dtype, data in [("BOOL", b"\2"), ("F32", bytes(4))]:
        assert read(one(dtype, [1] * 1000, data))["t"].numel() == 1


@pytest.mark.parametrize("n_spaces", range(8))
def test_data_may_begin_at_any_byte(read, path, n_spaces):
    numbers = torch.arange(5, dtype=torch.float64)
    content = one("F64", [5], bits(numbers))
    n_header = int.from_bytes(content[:8], "little")
    text = content[8 : 8 + n_header] + b" " * n_spaces
    assert torch.equal(read(file_bytes(text, bits(numbers)))["t"], numbers)
    assert read_header(path).data_start % 8 == (n_header + n_spaces) % 8


def test_a_dtype_that_this_torch_lacks_is_named(read, monkeypatch):
    monkeypatch.delattr(torch, "float8_e4m3fn")
    with pytest.raises(
        SafetensorsError, match="s: tensor 't': dtype F8_E4M3 needs a newer"
    ):
        read(one("F8_E4M3", [1], b"\0"))


def test_a_machine_that_counts_from_the_big_end_reads_the_same_numbers(
    read, path, monkeypatch
):
    # On such a machine the bytes 01 02 mean 0x0102, unless they are swapped first. This
    # machine swaps as if it were one, which shows that each number is turned by itself.
    monkeypatch.setattr(sys, "byteorder", "big")
    assert read(one("I16", [2], b"\1\2\3\4"))["t"].tolist() == [0x0102, 0x0304]
    assert bits(read(one("C64", [1], bytes(range(8))))["t"]) == bytes(
        [3, 2, 1, 0, 7, 6, 5, 4]
    )
    tensor = torch.tensor([0x0102], dtype=torch.int16)
    write_safetensors(path, {"t": tensor})
    assert path.read_bytes()[-2:] == b"\1\2"
    assert tensor.tolist() == [0x0102], "the tensor that was written is left as it was"


# Reading


@given(NAMED_TENSORS)
def test_tensors_that_were_read_are_independent_and_writable(path, tensors):
    write_safetensors(path, tensors)
    properties.tensors_are_independent(read_safetensors, path)


@given(damaged_files())
def test_a_damaged_file_gives_the_numbers_of_the_reference_or_an_error(path, content):
    path.write_bytes(content)
    if not answers_or_refuses(read_safetensors, path):
        return
    tensors, expected = read_safetensors(path), dict(deserialize(content))
    assert tensors.keys() == expected.keys()
    for name, tensor in tensors.items():
        data = bytes(expected[name]["data"])
        if tensor.dtype == torch.bool:
            data = bytes(min(byte, 1) for byte in data)
        assert list(tensor.shape) == expected[name]["shape"]
        assert bits(tensor) == data


def test_tensors_that_are_not_asked_for_are_not_read(path):
    write_safetensors(path, {"a": torch.ones(3), "b": torch.ones(5)})
    header = read_header(path)
    with path.open("r+b") as file:  # the bytes of b are gone, and nobody asks for them
        file.truncate(header.data_start + header["b"].start)
    ((name, tensor),) = iter_tensors(path, header, ["a"])
    assert name == "a"
    assert tensor.tolist() == [1, 1, 1]


def test_tensors_come_in_the_order_of_the_file_each_once(path):
    write_safetensors(
        path, {name: torch.ones(2) for name in "dacb"} | {"e": torch.ones(0)}
    )
    found = iter_tensors(path, read_header(path), ["e", "c", "a", "c", "d"])
    assert [name for name, _ in found] == ["a", "c", "d", "e"]


def test_a_name_that_is_not_there_is_refused_before_anything_is_read(path):
    write_safetensors(path, {"wte.weight": torch.ones(2)})
    found = iter_tensors(path, read_header(path), ["wte.weight", "wte.wieght"])
    with pytest.raises(SafetensorsError, match=r"near names: 'wte\.weight'"):
        next(found)


def test_a_file_that_was_cut_after_its_header_was_read_is_refused(path):
    write_safetensors(path, {"a": torch.ones(3), "b": torch.ones(1000)})
    header = read_header(path)
    with path.open("r+b") as file:
        file.truncate(header.data_start + 100)
    with pytest.raises(
        SafetensorsError, match="ends inside tensor 'b': 88 of its 4000"
    ):
        dict(iter_tensors(path, header, ["b"]))


def test_reading_makes_no_second_copy_of_a_tensor(path):
    n_bytes = 8_000_000
    write_safetensors(path, {"t": torch.zeros(n_bytes, dtype=torch.uint8)})
    tracemalloc.start()  # it sees Python's memory: the tensor itself is torch's
    try:
        read_safetensors(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < n_bytes / 10


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="needs a list of open files")
def test_the_file_is_closed_once_it_is_read(path):
    write_safetensors(path, {"t": torch.ones(2)})
    before = {link.name for link in Path("/dev/fd").iterdir()}
    kept = read_safetensors(path)
    assert {link.name for link in Path("/dev/fd").iterdir()} == before
    assert kept["t"].tolist() == [1, 1]


def test_tensors_are_on_the_cpu_whatever_the_default_device(path):
    write_safetensors(path, {"t": torch.ones(2)})
    with torch.device("meta"):
        assert read_safetensors(path)["t"].tolist() == [1, 1]


def test_numpy_is_not_needed(path):
    write_safetensors(path, {"t": torch.ones(2)})
    code = """
import sys, warnings
warnings.simplefilter("ignore")  # torch remarks that NumPy is missing
sys.modules["numpy"] = None
import torch
warnings.simplefilter("error")
from gpt2hw import read_safetensors, write_safetensors
tensors = read_safetensors(sys.argv[1])
write_safetensors(sys.argv[1], tensors)
print(read_safetensors(sys.argv[1])["t"].tolist())
"""
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[1.0, 1.0]"


def test_a_tensor_beyond_all_memory_is_named_with_its_size(path):
    path.write_bytes(file_bytes({}))
    info = TensorInfo("wte.weight", "U8", (2**60,), 0, 2**60)
    header = Header({info.name: info}, {}, 10, path)
    with pytest.raises(
        SafetensorsError, match=f"{path}: tensor 'wte.weight' takes {2**60} bytes: more"
    ):
        list(iter_tensors(path, header, ["wte.weight"]))


# Writing


@given(NAMED_TENSORS)
def test_what_was_written_is_read_back_bit_for_bit(path, tensors):
    properties.round_trip_keeps_every_bit(
        write_safetensors, read_safetensors, tensors, path
    )


@given(NAMED_TENSORS)
def test_the_order_of_the_dict_does_not_matter(path, tensors):
    properties.order_of_writing_does_not_matter(write_safetensors, tensors, path)


@given(NAMED_TENSORS)
def test_the_file_is_byte_for_byte_the_one_that_the_reference_writes(path, tensors):
    plain = {name: tensor.contiguous().clone() for name, tensor in tensors.items()}
    write_safetensors(path, tensors, metadata={"format": "pt"})
    assert path.read_bytes() == safetensors.torch.save(plain, metadata={"format": "pt"})


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "F8_E8M0"])
def test_the_reference_reads_what_was_written(path, dtype):
    # F8_E8M0 is in the reference's format, but its reader for torch does not know it.
    tensors = {"t": one_of(dtype, 3, 2), "s": one_of(dtype), "e": one_of(dtype, 0, 4)}
    write_safetensors(path, tensors, metadata={"a": "b"})
    found = safetensors.torch.load_file(path)
    assert {n: (t.dtype, t.shape, bits(t)) for n, t in found.items()} == {
        n: (t.dtype, t.shape, bits(t)) for n, t in tensors.items()
    }
    with safetensors.safe_open(path, "pt") as file:
        assert file.metadata() == {"a": "b"}


def test_the_data_begins_at_a_multiple_of_eight_and_wide_dtypes_come_first(path):
    tensors = {dtype: one_of(dtype, 3) for dtype in DTYPES}
    write_safetensors(path, tensors)
    header = read_header(path)
    assert header.data_start % 8 == 0
    for info in header.tensors.values():
        assert info.start % DTYPE_BYTES[info.dtype] == 0


def test_views_are_written_as_what_they_show(path):
    base = torch.arange(12.0).reshape(3, 4)
    views = {
        "transposed": base.T,
        "column": base[:, 1],
        "repeated": base[0].expand(2, 4),
        "reversed": base.flip(0),
        "again": base,
        "conjugate": torch.tensor([1 + 2j]).conj(),
        "negative": torch.tensor([1 + 2j]).conj().imag,
        "parameter": base.clone().requires_grad_(),
    }
    write_safetensors(path, views)
    found = read_safetensors(path)
    assert {n: t.tolist() for n, t in found.items()} == {
        n: v.tolist() for n, v in views.items()
    }
    assert not found["parameter"].requires_grad


def test_saving_over_the_file_that_was_read_keeps_its_tensors(path):
    write_safetensors(path, {"t": torch.arange(1000.0)})
    tensors = read_safetensors(path)
    write_safetensors(path, tensors | {"u": tensors["t"] + 1})
    assert torch.equal(tensors["t"], torch.arange(1000.0))
    assert torch.equal(read_safetensors(path)["u"], torch.arange(1000.0) + 1)


def test_no_tensor_at_all_is_a_file_too(path):
    write_safetensors(path, {})
    assert read_safetensors(path) == {}
    assert safetensors.torch.load_file(path) == {}


def nested():
    """Rows of two lengths in one tensor, which torch calls strided all the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch remarks that they are a prototype
        return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])


@pytest.mark.parametrize(
    ("tensors", "reason"),
    [
        ([], "tensors must be a dict, not a list"),
        ({"t": [1.0]}, r"tensors\['t'\] is a list, no tensor"),
        ({"t": None}, r"tensors\['t'\] is a NoneType"),
        ({1: torch.ones(1)}, "1 cannot be the name of a tensor"),
        ({"__metadata__": torch.ones(1)}, "'__metadata__' cannot be the name"),
        ({"\ud800": torch.ones(1)}, "lone surrogate"),
        (
            {"t": torch.ones(1, dtype=torch.complex128)},
            r"no dtype for torch.complex128",
        ),
        ({"t": torch.ones(2, device="meta")}, r"tensors\['t'\] is .* on meta"),
        ({"t": torch.eye(2).to_sparse()}, r"tensors\['t'\] is torch.sparse_coo"),
        ({"t": nested()}, r"tensors\['t'\] is nested"),
    ],
)
def test_what_the_format_cannot_hold_is_refused_and_the_file_left_alone(
    path, tensors, reason
):
    path.write_bytes(b"as it was")
    with pytest.raises(ValueError, match=reason):
        write_safetensors(path, tensors)
    assert path.read_bytes() == b"as it was"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("metadata", [[], "pt", {"a": 1}, {1: "a"}, {"a": None}])
def test_metadata_that_are_no_texts_are_refused(path, metadata):
    with pytest.raises(ValueError, match="metadata must"):
        write_safetensors(path, {}, metadata)


def test_a_write_that_fails_midway_leaves_the_old_file_and_no_rest(path, monkeypatch):
    write_safetensors(path, {"t": torch.ones(2)})
    before = path.read_bytes()

    def full_disk(tensor):
        raise OSError("no space left on device")

    monkeypatch.setattr(room, "_plain", full_disk)
    with pytest.raises(OSError, match="no space left"):
        write_safetensors(path, {"t": torch.zeros(2)})
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_an_error_that_names_it(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        write_safetensors(tmp_path / "nowhere" / "t.safetensors", {})


@pytest.mark.parametrize("path", [None, 5, b"t.safetensors", "", "a\0b"])
def test_what_can_be_no_path_is_named_as_the_argument(path):
    for use in (lambda: write_safetensors(path, {}), lambda: read_safetensors(path)):
        with pytest.raises(ValueError, match=r"^path: must be the path of a file"):
            use()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX files and links")
def test_only_a_plain_file_is_written_over_and_it_keeps_its_permissions(tmp_path):
    pipe, link, path = tmp_path / "pipe", tmp_path / "link", tmp_path / "t.safetensors"
    os.mkfifo(pipe)
    with pytest.raises(ValueError, match="pipe cannot be written: it is a pipe"):
        write_safetensors(pipe, {})
    path.touch(mode=0o600)
    link.symlink_to(path)
    write_safetensors(link, {"t": torch.ones(2)})
    assert read_safetensors(path)["t"].tolist() == [1.0, 1.0]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert link.is_symlink()
