"""The header: what a good file says, and every way in which one can be wrong."""

import io
import json
import os
import re
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from safetensors import SafetensorError, deserialize

from gpt2hw import header as header_room
from gpt2hw.errors import SafetensorsError
from gpt2hw.header import (
    MAX_HEADER_BYTES,
    Header,
    TensorInfo,
    format_header,
    parse_header,
    read_header,
)
from gpt2hw.properties import drawn_files
from gpt2hw.properties import header as properties
from gpt2hw.properties.drawn_files import good_files
from gpt2hw.properties.header import file_bytes
from gpt2hw.tensor_info import DTYPE_BYTES, SUB_BYTE_DTYPES


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("header") / "model.safetensors"


@pytest.fixture
def read(path):
    def read_bytes(content):
        path.write_bytes(content)
        return read_header(path)

    return read_bytes


def reference_reads(content):
    """What the safetensors library finds, by name; None where it refuses the file."""
    try:
        return dict(deserialize(content))
    except SafetensorError:
        return None


# Good files


def test_the_parts_of_a_header_are_found(read, path):
    header = {"b": entry(shape=(1, 2), offsets=(4, 12)), "a": entry("U8", (4,), (0, 4))}
    found = read(file_bytes(header | {"__metadata__": {"format": "pt"}}, bytes(12)))
    assert found.tensors == {
        "a": TensorInfo("a", "U8", (4,), 0, 4),
        "b": TensorInfo("b", "F32", (1, 2), 4, 12),
    }
    assert list(found.tensors) == ["a", "b"], "the order is that of the data"
    assert found.metadata == {"format": "pt"}
    assert found.data_start == path.stat().st_size - 12
    assert found.path == path


@pytest.mark.parametrize("before", [b"", b"  ", b"\n\t\r "])
@pytest.mark.parametrize("after", [b"", b"   \n", b" " * 100])
def test_white_space_around_the_json_is_padding(read, before, after):
    text = before + json.dumps({"t": entry()}).encode() + after
    assert read(file_bytes(text, bytes(8))).data_start == 8 + len(text)


def test_a_file_may_hold_no_tensor_at_all(read):
    assert read(file_bytes({})).tensors == {}


@pytest.mark.parametrize("shape", [[0], [2, 0], [0, 2**40], [3, 0, 2**60]])
def test_an_empty_tensor_keeps_its_shape(read, shape):
    both = {"one": entry(shape=shape, offsets=(0, 0)), "two": entry("U8", (0,), (0, 0))}
    header = read(file_bytes(both))
    assert header["one"].shape == tuple(shape)
    assert header["one"].n_elements == header["one"].n_bytes == 0


def test_a_scalar_has_an_empty_shape_and_one_element(read):
    header = read(file_bytes({"t": entry(shape=(), offsets=(0, 4))}, bytes(4)))
    assert header["t"].shape == ()
    assert header["t"].n_elements == 1


@pytest.mark.parametrize(
    "name", ["", "\u0117", "\U0001f600", "a/b c", "transformer.wte"]
)
def test_any_text_can_be_a_name(read, name):
    assert list(read(file_bytes({name: entry()}, bytes(8))).tensors) == [name]


def test_fields_that_the_format_does_not_know_are_ignored(read):
    header = {"t": entry() | {"x": 1, "later": [None, {"y": "z"}]}}
    assert read(file_bytes(header, bytes(8)))["t"].shape == (2,)


@pytest.mark.parametrize(("dtype", "n_bytes"), DTYPE_BYTES.items())
def test_every_plain_dtype_has_the_size_that_the_reference_gives_it(
    dtype, n_bytes, read
):
    content = file_bytes(
        {"t": entry(dtype, (3,), (0, 3 * n_bytes))}, bytes(3 * n_bytes)
    )
    assert read(content)["t"].n_bytes == 3 * n_bytes
    assert reference_reads(content) is not None


def test_the_dtypes_are_those_of_the_reference_in_its_order():
    """A later release of the reference may know more; what is known here, it knows."""
    with pytest.raises(SafetensorError) as refusal:
        deserialize(file_bytes({"t": entry("no such")}, bytes(8)))
    known = re.findall("`([A-Z][A-Z0-9_]*)`", str(refusal.value))
    for ours in (DTYPE_BYTES, SUB_BYTE_DTYPES):
        assert [name for name in known if name in ours] == list(ours)


@given(good_files())
def test_the_tensors_of_a_good_file_cover_its_data(path, content):
    path.write_bytes(content)
    properties.tensors_cover_the_data(read_header, path)


# The length field


@pytest.mark.parametrize("n", range(8))
def test_a_file_too_short_for_its_length_field_is_called_truncated(read, n):
    with pytest.raises(SafetensorsError, match=f"truncated: {n} bytes"):
        read(b"\x40" * n)


@pytest.mark.parametrize(
    "content", [(60).to_bytes(8, "little"), (2).to_bytes(8, "little") + b"{"]
)
def test_a_header_longer_than_its_file_is_called_truncated(read, content):
    n, follow = content[0], len(content) - 8
    fault = f"truncated: the header should take {n} bytes, and {follow} follow the"
    with pytest.raises(SafetensorsError, match=fault):
        read(content)


@pytest.mark.parametrize(
    ("n", "ours", "theirs"),
    [
        (100_000_000, "follow the length field", "invalid header length"),
        (100_000_001, "more than the 100000000 allowed", "header too large"),
    ],
)
def test_the_cap_is_that_of_the_safetensors_library(read, n, ours, theirs):
    content = n.to_bytes(8, "little") + b"{}"
    with pytest.raises(SafetensorsError, match=ours):
        read(content)
    with pytest.raises(SafetensorError, match=theirs):
        deserialize(content)


@pytest.mark.parametrize("n", [MAX_HEADER_BYTES + 1, 2**63, 2**64 - 1])
def test_a_length_beyond_the_cap_is_refused_even_in_a_file_of_that_size(n):
    start = io.BytesIO(n.to_bytes(8, "little") + b"{}")
    with pytest.raises(SafetensorsError, match=f"a header of {n} bytes"):
        header_room._json_bytes(start, n_file=8 + n)


def test_nothing_of_the_announced_length_is_read_before_it_is_checked(
    path, monkeypatch
):
    path.write_bytes((90_000_000).to_bytes(8, "little") + b"{}")
    asked = []

    class Counting:
        def __init__(self, file):
            self.file = file

        def read(self, n):
            asked.append(n)
            return self.file.read(n)

    with path.open("rb") as file, pytest.raises(SafetensorsError, match="truncated"):
        header_room._json_bytes(Counting(file), path.stat().st_size)
    assert max(asked) < 10_000


def test_a_file_that_shrinks_while_it_is_read_is_noticed(path):
    content = file_bytes({"t": entry()})
    path.write_bytes(content[:-1])
    with path.open("rb") as file, pytest.raises(SafetensorsError, match="shrank"):
        header_room._json_bytes(file, len(content))


# The text


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"\xff", b"{", b"[]", b"null", b"\xef\xbb\xbf{}", b"{}\0\0", b"\0{}"),
        *(b"{} x", b"{}{}", b'{"t": NaN}', b'{"t": 1e999}', b'{"a": {}, "a": {}}'),
        b'{"t": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"t": ' + b"9" * 10_000 + b"}",
        b'{"\\ud800": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}}',
    ],
)
def test_a_header_that_is_no_json_object_is_refused(read, text):
    with pytest.raises(SafetensorsError, match="header"):
        read(file_bytes(text))
    assert reference_reads(file_bytes(text)) is None or b'"a": {}' in text


@pytest.mark.parametrize("second", [entry(), entry(shape=(1,), offsets=(0, 4))])
def test_a_tensor_that_stands_twice_is_refused(read, second):
    text = f'{{"t": {json.dumps(entry())}, "t": {json.dumps(second)}}}'
    with pytest.raises(SafetensorsError, match="'t' appears twice"):
        read(file_bytes(text.encode(), bytes(8)))


@pytest.mark.parametrize(
    "metadata", [None, [], "pt", {"a": 1}, {"a": None}, {"a": ["b"]}, {"a": {}}, True]
)
def test_metadata_maps_texts_to_texts(read, metadata):
    with pytest.raises(SafetensorsError, match="__metadata__ must map texts to texts"):
        read(file_bytes({"__metadata__": metadata, "t": entry()}, bytes(8)))


# One entry


@pytest.mark.parametrize("value", [None, [1], "F32", 3, True, ["F32", [2], [0, 8]]])
def test_an_entry_must_be_an_object(read, value):
    with pytest.raises(SafetensorsError, match="tensor 't': its entry is no object"):
        read(file_bytes({"t": value}, bytes(8)))


@pytest.mark.parametrize("field", ["dtype", "shape", "data_offsets"])
def test_a_missing_field_is_named(read, field):
    fields = entry()
    del fields[field]
    with pytest.raises(SafetensorsError, match=f"tensor 't': the field '{field}'"):
        read(file_bytes({"t": fields}, bytes(8)))


@pytest.mark.parametrize("dtype", ["F33", "f32", "", None, 4, ["F32"], {"F32": None}])
def test_an_unknown_dtype_is_named_with_those_that_are_known(read, dtype):
    with pytest.raises(
        SafetensorsError, match=r"tensor 't': unknown dtype .*known: BOOL"
    ):
        read(file_bytes({"t": entry() | {"dtype": dtype}}, bytes(8)))


@pytest.mark.parametrize("dtype", SUB_BYTE_DTYPES)
def test_a_dtype_of_less_than_a_byte_is_named_as_not_supported(read, dtype):
    with pytest.raises(SafetensorsError, match=f"dtype {dtype} .*not supported"):
        read(file_bytes({"t": entry(dtype, (4,), (0, 8))}, bytes(8)))


@pytest.mark.parametrize(
    "shape", [[-2], [-2, -1], [2.0], [True, 2], ["2"], [None], [[2]], 2, "2", None, {}]
)
def test_a_shape_is_a_list_of_whole_numbers_and_true_is_none(read, shape):
    content = file_bytes({"t": entry() | {"shape": shape}}, bytes(8))
    with pytest.raises(SafetensorsError, match="tensor 't': the shape must be a list"):
        read(content)
    assert reference_reads(content) is None


@pytest.mark.parametrize(
    "offsets",
    [
        *([-8, 0], [0, 8.0], ["0", "8"], [0, 8, 8], [8, 0], [8], [], [False, 8]),
        *([0, None], [[0], [8]], None, 8, "08", {"0": 8}),
    ],
)
def test_offsets_are_two_whole_numbers_in_order(read, offsets):
    content = file_bytes({"t": entry() | {"data_offsets": offsets}}, bytes(8))
    with pytest.raises(SafetensorsError, match="tensor 't': data_offsets must be"):
        read(content)
    assert reference_reads(content) is None


@pytest.mark.parametrize(
    ("shape", "n_bytes"),
    [
        ([1000, 1000], 4),
        ([3], 8),
        ([1], 4),
        ([], 4),
        ([0], 8),
        ([2], 0),
        ([2, 2**61], 2**63),
        ([2**61], 0),  # 2**61 * 8 is 0 for those who count in 64 bits
    ],
)
def test_the_bytes_must_be_as_many_as_the_shape_says(read, shape, n_bytes):
    header = {"t": entry("F64", shape, (0, n_bytes))}
    with pytest.raises(SafetensorsError, match=r"tensor 't': shape .* takes \d+ bytes"):
        read(file_bytes(header, bytes(min(n_bytes, 16))))


@pytest.mark.parametrize(
    "shape",
    [
        *([0, 2**63], [2**32, 2**31, 0], [0, 2**64]),
        [2, 2**64 - 2],  # 2 * (2**64 - 2) * 4 is -16 for those who count in 64 bits
        [2**62] * 5000,  # Python refuses to write so long a product out
        [2**62] * 500_000,  # and takes minutes to work this one out
    ],
)
def test_axes_beyond_all_counting_are_refused_at_once(read, shape):
    with pytest.raises(
        SafetensorsError, match=r"tensor 't': the shape .* is too large"
    ):
        read(file_bytes({"t": entry(shape=shape, offsets=(0, 0))}))


def test_axes_of_length_one_count_for_nothing(read):
    header = {"t": entry("U8", [1] * 70, (0, 1))}
    content = file_bytes(header, b"\x07")
    assert read(content)["t"].n_elements == 1
    assert "t" in reference_reads(content)


# All entries together


@pytest.mark.parametrize(
    ("ranges", "fault"),
    [
        ([(0, 8), (4, 12)], "'t1' overlaps"),
        ([(4, 12), (0, 8)], "'t0' overlaps"),
        ([(0, 8), (0, 8)], "'t1' overlaps"),
        ([(0, 12), (4, 8)], "'t1' overlaps"),
        ([(0, 4), (8, 12)], "'t1' leaves a gap"),
        ([(4, 12)], "'t0' leaves a gap"),
        ([(0, 4), (4, 4), (8, 8)], "'t2' leaves a gap"),
        ([(0, 8)], "take 8 bytes, and 12 are there"),
        ([], "take 0 bytes, and 12 are there"),
        ([(0, 13)], "truncated: the tensors take 13 bytes, of which 12"),
        ([(0, 12), (12, 20)], "truncated: the tensors take 20 bytes, of which 12"),
    ],
)
def test_the_tensors_must_cover_the_data_without_gap_or_overlap(read, ranges, fault):
    header = {
        f"t{i}": entry("U8", (end - start,), (start, end))
        for i, (start, end) in enumerate(ranges)
    }
    content = file_bytes(header, bytes(12))
    with pytest.raises(SafetensorsError, match=fault):
        read(content)
    assert reference_reads(content) is None


# What is no file


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.safetensors"):
        read_header(tmp_path / "none.safetensors")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(SafetensorsError, match="is a folder"):
        read_header(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no FIFOs")
def test_a_pipe_is_refused_without_waiting_for_a_writer(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SafetensorsError, match=r"is a pipe, not a \.safetensors"):
        read_header(tmp_path / "pipe")


@pytest.mark.parametrize("path", [None, 5, b"bytes", "", "a\0b"])
def test_what_can_be_no_path_is_named_as_the_argument(path):
    with pytest.raises(ValueError, match=r"^path: must be the path of a file"):
        read_header(path)


def test_the_message_names_the_file_once(path):
    path.write_bytes(file_bytes({"t": 1}))
    with pytest.raises(SafetensorsError) as refusal:
        read_header(path)
    assert str(refusal.value).count(str(path)) == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"dtype": "x" * 10_000},
        {"dtype": ["x"] * 10_000},
        {"shape": [1] * 10_000},
        {"shape": ["x"] * 10_000},
        {"data_offsets": [0] * 10_000},
        {"data_offsets": [1, 9]},
    ],
)
def test_a_message_stays_short_and_on_one_line_whatever_the_file_says(read, fields):
    with pytest.raises(SafetensorsError) as refusal:
        read(file_bytes({"t\n\x1b" * 10_000: entry() | fields}, bytes(8)))
    assert len(str(refusal.value)) < 600
    assert str(refusal.value).isprintable()


def test_an_unknown_name_lists_names_that_are_near(read, path):
    header = read(
        file_bytes(
            {"h.0.ln_1.bias": entry(), "wte": entry("U8", (0,), (8, 8))}, bytes(8)
        )
    )
    with pytest.raises(
        SafetensorsError, match=r"'h.0.ln_1.bais'; near names: 'h.0.ln_1.bias'"
    ):
        header["h.0.ln_1.bais"]
    with pytest.raises(SafetensorsError, match=r"no tensor is named 'zzzzzz'$"):
        header["zzzzzz"]


def lookup(absent: str, *names: str) -> str:
    """What is said where a name is looked for among others."""
    header = Header(dict.fromkeys(names), {}, 8, "file")
    with pytest.raises(SafetensorsError) as refusal:
        header[absent]
    return str(refusal.value)


def test_at_most_three_near_names_are_listed():
    near = [f"h.{n}.ln_1.bias" for n in range(9)]
    assert lookup("h.x.ln_1.bias", *near).count("ln_1.bias'") == 1 + 3


@pytest.mark.parametrize(("n_far", "is_found"), [(1999, True), (2000, False)])
def test_a_near_name_is_found_among_the_first_two_thousand(n_far, is_found):
    said = lookup("ln_f.bais", *map(str, range(n_far)), "ln_f.bias")
    assert said.endswith("; near names: 'ln_f.bias'") is is_found


@pytest.mark.parametrize(
    ("n_absent", "n_there", "is_found"),
    [(100, 100, True), (101, 100, False), (100, 101, False), (101, 101, False)],
)
def test_names_of_over_a_hundred_characters_are_not_compared(
    n_absent, n_there, is_found
):
    absent = "a" * n_absent
    start, _, near = lookup(absent, "a" * (n_there - 1) + "b").partition("; near")
    assert start == f"file: no tensor is named {absent!r:.80}"
    assert bool(near) is is_found


def test_near_names_are_sought_quickly_among_any_number(path, monkeypatch):
    names = [f"h.{n}.attn.c_attn.weight" for n in range(5000)]
    infos = {name: TensorInfo(name, "U8", (0,), 0, 0) for name in names}
    header = Header(infos | {"n" * 10**6: None}, {}, 8, path)
    compared = []

    def count(name, others, **options):
        compared.extend(others)
        return []

    monkeypatch.setattr(header_room, "get_close_matches", count)
    for absent in ("h.x.attn.c_attn.weight", "n" * 10**6 + "o"):
        with pytest.raises(SafetensorsError, match="no tensor is named"):
            header[absent]
    assert compared == names[: header_room.MAX_NEAR_NAMES]


# Beside the safetensors library, on files good and bad


REFUSED_HERE_ALONE = (
    "appears twice",
    "its entry is no object",
    "unknown dtype",
    "not supported",
    "must map texts to texts",
    "is too large",
    "digits",
)


def compare_with_the_reference(path, content):
    path.write_bytes(content)
    accepted = properties.answers_or_refuses(read_header, path)
    reference = reference_reads(content)
    if not accepted:
        if reference is not None:
            with pytest.raises(SafetensorsError) as refusal:
                read_header(path)
            assert any(reason in str(refusal.value) for reason in REFUSED_HERE_ALONE)
        return
    assert reference is not None, "accepted here, refused by the reference"
    header = read_header(path)
    assert header.tensors.keys() == reference.keys()
    for name, info in header.tensors.items():
        start = header.data_start + info.start
        found = content[start : start + info.n_bytes]
        expected = reference[name]
        assert (info.dtype, list(info.shape)) == (expected["dtype"], expected["shape"])
        assert found == bytes(expected["data"])


@given(good_files())
def test_a_good_file_is_read_as_the_reference_reads_it(path, content):
    compare_with_the_reference(path, content)
    assert reference_reads(content) is not None


@given(drawn_files.edited_files())
def test_a_header_with_another_value_is_refused_or_read_as_the_reference_does(
    path, content
):
    compare_with_the_reference(path, content)


@given(drawn_files.damaged_files())
def test_a_damaged_file_is_refused_or_read_as_the_reference_does(path, content):
    compare_with_the_reference(path, content)


@given(st.binary(max_size=60))
@example(file_bytes(b'{"__metadata__":null}'))
@example(file_bytes(b'{"t":["U8",[1],[0,1]]}', b"x"))
@example(
    file_bytes(b'{"t":{"dtype":{"U8":null},"shape":[1],"data_offsets":[0,1]}}', b"x")
)
@example(file_bytes(b'{"__metadata__":{"a":"1","a":"2"}}'))
def test_any_bytes_at_all_are_refused_or_read_as_the_reference_does(path, content):
    compare_with_the_reference(path, content)


# Writing a header


@given(drawn_files.headers())
def test_a_header_that_was_written_reads_as_it_was(header_and_data):
    header, data = header_and_data
    metadata = header.pop("__metadata__", None)
    tensors, _ = parse_header(json.dumps(header).encode(), len(data))
    text = format_header(tensors.values(), metadata)
    assert parse_header(text[8:], len(data)) == (tensors, metadata or {})
    assert len(text) % 8 == 0
    assert int.from_bytes(text[:8], "little") == len(text) - 8


def test_a_name_is_written_in_utf_8_as_it_is():
    assert '{"é":'.encode() in format_header([TensorInfo("é", "U8", (1,), 0, 1)], None)


def test_a_lone_surrogate_cannot_be_written():
    info = TensorInfo("\ud800", "U8", (0,), 0, 0)
    with pytest.raises(ValueError, match="lone surrogate"):
        format_header([info], None)


def test_a_header_over_the_cap_cannot_be_written(monkeypatch):
    monkeypatch.setattr(header_room, "MAX_HEADER_BYTES", 48)
    assert len(format_header([], {"a": "b" * 19})) == 8 + 48
    with pytest.raises(ValueError, match="a header of 56 bytes, over 48"):
        format_header([], {"a": "b" * 29})
