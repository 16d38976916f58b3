"""A model's folder: its settings and its weights, or what stands in their place."""

import os
import sys

import pytest

from gpt2hw import CheckpointError
from gpt2hw.folder import MAX_SETTINGS_BYTES, read_config, read_settings, weights_file

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX files and links")


def put_pipe(path):
    os.mkfifo(path)


def put_endless(path):
    path.symlink_to("/dev/zero")


def put_folder(path):
    path.mkdir()


def put_broken_link(path):
    path.symlink_to("nothing")


IN_THE_WAY = [
    (put_pipe, "a pipe"),
    (put_endless, "a device"),
    (put_folder, "a folder"),
    (put_broken_link, "a link to nothing"),
]


# config.json


@posix
@pytest.mark.parametrize(("put", "what"), IN_THE_WAY)
def test_a_config_that_is_no_file_is_told_without_waiting(tmp_path, put, what):
    put(tmp_path / "config.json")
    with pytest.raises(
        CheckpointError, match=rf"config\.json cannot be read: it is {what}"
    ):
        read_settings(tmp_path)


def test_a_config_far_too_large_is_refused(tmp_path):
    path = tmp_path / "config.json"
    path.write_bytes(b"{" + b" " * (MAX_SETTINGS_BYTES - 2) + b"}")
    assert read_settings(tmp_path) == {}
    path.write_bytes(b"{" + b" " * (MAX_SETTINGS_BYTES - 1) + b"}")
    with pytest.raises(CheckpointError, match=f"larger than {MAX_SETTINGS_BYTES} byt"):
        read_settings(tmp_path)


def test_a_byte_order_mark_before_a_config_does_not_matter(tmp_path):
    text = '\ufeff{"model_type": "gpt2"}'
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    assert read_settings(tmp_path) == {"model_type": "gpt2"}


def test_a_folder_without_config_says_so(tmp_path):
    with pytest.raises(CheckpointError, match=r"has no config\.json"):
        read_settings(tmp_path)


@pytest.mark.parametrize(
    ("key", "named"),
    [
        ("vocab_size", r"vocab_size \(n_vocab\)"),
        ("n_positions", r"n_positions \(n_ctx"),
    ],
)
def test_a_refused_number_is_named_by_its_file_its_key_and_its_field(
    tmp_path, key, named
):
    sizes = dict.fromkeys(("vocab_size", "n_positions", "n_embd", "n_head"), 1)
    text = str(sizes | {"n_layer": 1, key: -1}).replace("'", '"')
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(CheckpointError, match=rf"config\.json: config: {named}"):
        read_config(tmp_path)


# model.safetensors


@posix
@pytest.mark.parametrize(("put", "what"), IN_THE_WAY)
def test_weights_that_are_no_file_are_told(tmp_path, put, what):
    (tmp_path / "another.safetensors").touch()
    put(tmp_path / "model.safetensors")
    with pytest.raises(
        CheckpointError, match=rf"model\.safetensors is {what}, not a file of weights"
    ):
        weights_file(tmp_path)


@posix
@pytest.mark.parametrize(("put", "what"), IN_THE_WAY)
def test_only_files_are_proposed_in_their_place(tmp_path, put, what):
    put(tmp_path / "a.safetensors")
    with pytest.raises(CheckpointError, match=r"has no model\.safetensors: put"):
        weights_file(tmp_path)
    (tmp_path / "b.safetensors").touch()
    with pytest.raises(CheckpointError, match=r"but b\.safetensors: rename"):
        weights_file(tmp_path)
