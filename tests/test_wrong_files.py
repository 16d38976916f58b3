"""Files that are something else: each is named for what it is."""

import gzip
import io
import pickle
import zipfile

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpt2hw.errors import SafetensorsError
from gpt2hw.header import MAX_HEADER_BYTES, _json_bytes, read_header
from gpt2hw.properties.drawn_files import good_files
from gpt2hw.wrong_files import identify


def torch_checkpoint(**how):
    file = io.BytesIO()
    torch.save({"w": torch.ones(3)}, file, **how)
    return file.getvalue()


def stored_zip():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("data.pkl", bytes(1000))
    return file.getvalue()


LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 548105171\n"

WRONG = {
    "lfs": (LFS.format("ab" * 32).encode(), "Git LFS pointer"),
    "html": (b"<!DOCTYPE html>\n<html><body>429</body></html>", "HTML"),
    "html, lower case": (b"\r\n <html lang='en'>", "HTML"),
    "xml": (b"<?xml version='1.0'?><Error/>", "HTML or XML"),
    "short html": (b"<html>", "HTML"),
    "json error": (b'{"error":"Repository not found"}', "JSON error message"),
    "json": (b'{"model_type": "gpt2"}', "JSON text"),
    "text": (b"Entry not found", "'Entry not found'"),
    "torch zip": (torch_checkpoint(), "pickle"),
    "zip": (stored_zip(), "zip archive"),
    "old torch": (torch_checkpoint(_use_new_zipfile_serialization=False), "pickle"),
    "pickle 2": (pickle.dumps({"w": [1.0]}, protocol=2), "pickle"),
    "pickle 4": (pickle.dumps({"w": [1.0] * 50}, protocol=4), "pickle"),
    "gzip": (gzip.compress(bytes(100)), "gzip"),
    "gguf": (b"GGUF\x03\0\0\0" + bytes(50), "GGUF"),
    "hdf5": (b"\x89HDF\r\n\x1a\n" + bytes(50), "HDF5"),
    "zeros": (bytes(100), "zero bytes"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_file_is_named_for_what_it_is(kind, tmp_path):
    content, name = WRONG[kind]
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(SafetensorsError) as refusal:
        read_header(path)
    assert name in str(refusal.value)
    assert str(path) in str(refusal.value)


def test_a_zip_so_long_that_its_first_bytes_could_be_a_length_is_a_zip():
    start = b"PK\x03\x04".ljust(512, b"\0")
    n_header = int.from_bytes(start[:8], "little")
    assert n_header < MAX_HEADER_BYTES
    with pytest.raises(SafetensorsError, match="zip archive"):
        _json_bytes(io.BytesIO(start), n_file=n_header + 1000)


def test_a_length_that_could_be_an_honest_one_is_not_taken_for_a_sign():
    assert identify(b"<" + bytes(7)) is None
    assert identify(b"\x80\x02" + bytes(6)) is None
    assert identify(b"") is None


@given(good_files())
def test_no_good_file_is_taken_for_something_else(content):
    assert identify(content[:512]) is None


@given(st.binary(max_size=40))
def test_any_bytes_at_all_can_be_asked_about(content):
    answer = identify(content)
    assert answer is None or answer.startswith("this ")
