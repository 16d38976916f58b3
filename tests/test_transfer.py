"""The pieces of a download, one by one: what is asked, read, waited for and believed.

How they hold together against a hub that misbehaves is in test_download*.py.
"""

import hashlib
import json
import os
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hub_faults as faults
from downloads import NAME, WEIGHTS, machine, weights
from downloads import repository as published
from gpt2hw import CheckpointError, DownloadError, Tokenizer, download
from gpt2hw.hub.access import Access, choose_hub, is_offline
from gpt2hw.hub.asking import next_url
from gpt2hw.hub.body import Pace, Part, gathered, part_of
from gpt2hw.hub.draft import Desk, Draft
from gpt2hw.hub.file_kinds import judge_of, stands_alone
from gpt2hw.hub.folder_lock import locked
from gpt2hw.hub.patience import Patience, Tries, retry_after, step_of, usual
from gpt2hw.hub.places import (
    SHIPPED,
    check_name,
    check_revision,
    own_folder,
    repository,
    short_name,
)
from gpt2hw.hub.presence import is_whole
from gpt2hw.hub.progress import Bar, Lines, printable, shown
from gpt2hw.hub.records import Record, read_record, record_path, write_record
from gpt2hw.hub.refusals import NotThereError, TryAgain, not_written, refusal
from gpt2hw.hub.statement import (
    Statement,
    blob_sha1,
    content_range,
    stated,
    strong_etag,
)
from gpt2hw.shards import parse_weight_map

SHA256, SHA1 = "a" * 64, "b" * 40


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch, tmp_path):
    for name in os.environ:
        if name.startswith(("HF_", "HUGGING", "GPT2HW", "TRANSFORMERS", "XDG_")):
            monkeypatch.delenv(name)
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(tmp_path / "home"))


# --- names ---


@pytest.mark.parametrize("revision", ["main", "v1.0", "refs/pr/1", SHA1, "a-b_c"])
def test_a_revision_is_a_branch_a_tag_or_a_commit(revision):
    check_revision(revision)


@pytest.mark.parametrize(
    "revision",
    ["", "..", "../main", "a/../b", "a//b", "/main", "main/", "a b", "a?b", "a#b",
     "a\\b", "a%2fb", "-a", "é", "main\n", "a" * 101, 5, None]
)  # fmt: skip
def test_what_climbs_or_ends_an_address_is_no_revision(revision):
    with pytest.raises(ValueError, match="revision: must be"):
        check_revision(revision)


@pytest.mark.parametrize("name", ["a/b", "gpt2", "openai-community/gpt2-xl"])
def test_a_model_has_one_folder_in_the_cache_at_each_revision(name):
    check_name(name)
    folders = {own_folder(name, at).name for at in (None, "main", "refs/pr/1")}
    assert len(folders) == 3
    assert own_folder(name) == own_folder(short_name(name))


def test_a_published_name_has_its_owner_at_the_hub():
    assert repository("gpt2-large") == "openai-community/gpt2-large"
    assert short_name("distilbert/distilgpt2") == "distilgpt2"
    assert short_name("someone/gpt2") == "someone/gpt2"


# --- which hub, whose token ---

CLIENT = """
import importlib, json, os, sys
import huggingface_hub.constants as constants
from huggingface_hub.utils._headers import get_token_to_send
for chosen in json.loads(sys.argv[1]):
    os.environ.update(chosen)
    now = importlib.reload(constants)
    print(json.dumps([now.ENDPOINT, now.HF_HUB_OFFLINE, get_token_to_send(None)]))
    for name in chosen: del os.environ[name]
"""
SETTINGS = [
    {},
    {"HF_ENDPOINT": "http://127.0.0.1:9/"},
    {"HF_ENDPOINT": "http://127.0.0.1:9/a//"},
    {"HF_HUB_OFFLINE": "1"},
    {"HF_HUB_OFFLINE": "yes"},
    {"HF_HUB_OFFLINE": "true"},
    {"HF_HUB_OFFLINE": "0", "TRANSFORMERS_OFFLINE": "1"},
    {"HF_HUB_OFFLINE": "", "TRANSFORMERS_OFFLINE": "on"},
    {"TRANSFORMERS_OFFLINE": "2"},
    {"HF_TOKEN": "one"},
    {"HF_TOKEN": " one\n"},
    {"HF_TOKEN": "", "HUGGING_FACE_HUB_TOKEN": "two"},
    {"HF_TOKEN": "one", "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"},
    {"HF_TOKEN": "one", "HF_HUB_DISABLE_IMPLICIT_TOKEN": "0"},
    {"HF_TOKEN_PATH": "{home}/mine"},
    {"HF_HOME": "{home}/hf"},
]


def test_the_environment_means_what_it_means_to_the_hubs_own_client(
    monkeypatch, tmp_path
):
    home = tmp_path / "home"
    for name in ("mine", "hf/token", ".cache/huggingface/token"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(f"of-{Path(name).parts[0].strip('.')}\n")
    chosen = [{n: v.format(home=home) for n, v in s.items()} for s in SETTINGS]
    client = [sys.executable, "-c", CLIENT, json.dumps(chosen)]
    done = subprocess.run(client, capture_output=True, text=True, check=True)
    expected = [json.loads(line) for line in done.stdout.splitlines()]
    for setting, right in zip(chosen, expected, strict=True):
        with monkeypatch.context() as patch:
            for name, value in setting.items():
                patch.setenv(name, value)
            hub = choose_hub()
            assert [hub.endpoint, is_offline(), hub.token] == right, setting


def test_what_is_given_rules_over_the_environment(monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://one")
    monkeypatch.setenv("HF_TOKEN", "one")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert choose_hub("http://two/", "two") == Access("http://two", "two")
    assert choose_hub(token=False).token is None
    assert not is_offline(False)


def test_a_token_is_in_no_representation():
    assert "secret" not in repr(choose_hub("http://hub", "secret"))


@pytest.mark.parametrize("text", ["a b", "é", "a\tb"])
def test_a_broken_token_of_the_environment_is_named_by_its_variable(text, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", text)
    with pytest.raises(ValueError, match=r"^HF_TOKEN: ") as refusal:
        choose_hub()
    assert text not in str(refusal.value)


@pytest.mark.parametrize(
    "endpoint",
    ["", "huggingface.co", "ftp://hub", "file:///etc", "http://", "http://user:pw@hub",
     "http://hub?a=b", "http://hub#a", "http://hub:port", "http://[::1", "http://é",
     "http://hub/a b", "http://hub/\t", "http://hub\n", 5]
)  # fmt: skip
def test_what_is_no_address_of_a_hub_is_refused(endpoint):
    with pytest.raises(ValueError, match="endpoint: must be") as refusal:
        choose_hub(endpoint)
    assert "pw" not in str(refusal.value)


@pytest.mark.parametrize(
    ("url", "may"),
    [
        ("https://hub/a", True),
        ("https://HUB:443/a?b", True),
        ("https://hub:444/a", False),
        ("http://hub/a", False),
        ("https://cdn.hub/a", False),
        ("https://hub.evil/a", False),
        ("https://hub@evil/a", False),
    ],
)
def test_the_token_is_for_the_endpoints_scheme_host_and_port(url, may):
    assert Access("https://hub", "t").may_see_token(url) is may


# --- redirects ---


@pytest.mark.parametrize(
    ("location", "there"),
    [
        ("/c?d=%2F&e=a+b%3D", "https://hub/c?d=%2F&e=a+b%3D"),
        ("c", "https://hub/a/c"),
        ("//cdn/x", "https://cdn/x"),
        ("https://cdn/x?s=1", "https://cdn/x?s=1"),
    ],
)
def test_a_redirect_keeps_its_query(location, there):
    assert next_url("https://hub/a/b?q", location) == there


@pytest.mark.parametrize("url", ["https://hub/a", "HTTPS://hub/a"])
@pytest.mark.parametrize(
    "location", ["http://hub/a", "ftp://hub/a", "file:///etc/passwd", "http://[::1"]
)
def test_a_redirect_to_less_than_https_is_not_followed(url, location):
    with pytest.raises(DownloadError, match="redirects"):
        next_url(url, location)


@pytest.mark.parametrize("location", [None, ""])
def test_a_redirect_to_nowhere_may_pass(location):
    with pytest.raises(TryAgain, match="redirects"):
        next_url("https://hub/a", location)


# --- what the hub states ---


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, Statement()),
        ({"ETag": f'"{SHA1}"'}, Statement(blob_sha1=SHA1)),
        ({"ETag": f'W/"{SHA1}"'}, Statement(blob_sha1=SHA1)),
        ({"ETag": '"0123-gzip"'}, Statement()),
        ({"ETag": '"d41d8cd98f00b204e9800998ecf8427e"'}, Statement()),
        (
            {"ETag": f'"{SHA1}"', "X-Linked-ETag": f'"{SHA256}"'},
            Statement(sha256=SHA256),
        ),
        ({"X-Linked-Size": "12", "Content-Length": "7"}, Statement(size=12)),
        ({"X-Linked-Size": "-12"}, Statement()),
        ({"X-Repo-Commit": SHA1}, Statement(commit=SHA1)),
        ({"X-Repo-Commit": "../" * 13 + "a"}, Statement()),
    ],
)
def test_headers_state_sizes_hashes_and_commits_or_nothing(headers, expected):
    assert stated(headers) == expected


def test_a_blobs_hash_is_gits(tmp_path):
    (tmp_path / "hello").write_bytes(b"hello\n")  # git hash-object
    assert blob_sha1(tmp_path / "hello") == "ce013625030ba8dba906f756967f9e9ca394464a"


def test_two_statements_differ_where_both_know_and_disagree():
    assert Statement(size=1).differs_from(Statement(size=2))
    assert not Statement(size=1).differs_from(Statement(sha256=SHA256))
    assert not Statement(commit="a").differs_from(Statement(commit="b"))


def test_a_file_is_compared_by_size_and_hash(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    right = hashlib.sha256(b"abc").hexdigest()
    assert Statement(size=3, sha256=right).is_true_of(path)
    assert Statement(blob_sha1=blob_sha1(path)).is_true_of(path)
    assert not Statement(size=4, sha256=right).is_true_of(path)
    assert not Statement(size=3, sha256=SHA256).is_true_of(path)
    assert not Statement(size=3, blob_sha1=SHA1).is_true_of(path)


@given(st.integers(0, 10**12), st.integers(0, 10**12), st.integers(0, 10**12))
def test_a_content_range_is_read_where_it_is_one(first, last, size):
    found = content_range(f"bytes {first}-{last}/{size}")
    assert found == ((first, last, size) if first <= last < size else None)


@given(st.text(max_size=30))
def test_no_content_range_makes_its_reader_fail(said):
    assert content_range(said) is None or said.strip().startswith("bytes ")


@pytest.mark.parametrize("etag", ["", "abc", 'W/"abc"', '"a"b"', '"a\nb"'])
def test_if_range_needs_a_strong_etag(etag):
    assert strong_etag({"ETag": etag}) is None


# --- bodies ---


@pytest.mark.parametrize("reached", [0, 5])
def test_a_whole_answer_starts_at_the_beginning(reached):
    part = part_of(200, {"Content-Length": "9"}, reached, 9)
    assert part == Part(0, 9, is_framed=True)


@pytest.mark.parametrize(
    ("headers", "is_framed"),
    [({}, False), ({"Transfer-Encoding": "chunked"}, True),
     ({"Content-Length": "x"}, False)],
)  # fmt: skip
def test_a_body_without_a_length_is_framed_if_it_is_chunked(headers, is_framed):
    assert part_of(200, headers, 0, None) == Part(0, None, is_framed)
    assert part_of(200, headers, 0, 7) == Part(0, 7, is_framed)


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (200, {"Content-Length": "8"}),
        (200, {"Content-Encoding": "gzip"}),
        (206, {}),
        (206, {"Content-Range": "bytes 0-8/9"}),
        (206, {"Content-Range": "bytes 6-8/9"}),
        (206, {"Content-Range": "bytes 5-8/10"}),
        (206, {"Content-Range": "bytes 5-8/9", "Content-Encoding": "br"}),
    ],
)
def test_what_cannot_be_the_missing_part_is_not_taken(status, headers):
    with pytest.raises(TryAgain):
        part_of(status, headers, reached=5, size=9)


def test_a_part_of_a_part_is_taken():
    said = {"Content-Range": "bytes 5-6/*"}
    assert part_of(206, said, reached=5, size=9) == Part(5, 7, is_framed=True)


@given(st.lists(st.binary(min_size=1, max_size=400)))
def test_gathering_loses_no_byte_and_starts_with_enough_of_them(pieces):
    got = list(gathered(pieces))
    assert b"".join(got) == b"".join(pieces)
    assert len(got[0]) >= min(512, len(b"".join(pieces)))


def test_gathering_gives_what_came_before_a_break():
    def broken():
        yield b"ab"
        raise TryAgain("cut")

    pieces = gathered(broken())
    assert next(pieces) == b"ab"
    with pytest.raises(TryAgain, match="cut"):
        next(pieces)


def test_a_trickle_counts_as_silence():
    pace = Pace(Patience(stalled=1e-9, slowest=1e15))
    with pytest.raises(TryAgain, match="hardly anything"):
        pace.count(100)
    Pace(Patience(stalled=1e-9)).count(100)


# --- patience ---


def test_waits_double_up_to_the_longest_and_spread_by_a_half():
    patience = Patience(first_delay=1, longest_delay=5)
    assert [patience.delay(n, chance=1) for n in range(1, 6)] == [1, 2, 4, 5, 5]
    assert patience.delay(3, chance=0) == 2
    assert 2 <= patience.delay(3) <= 4


@given(st.integers(1, 8), st.integers(100, 10**9))
def test_tries_without_progress_are_bounded(n_tries, size):
    tries = Tries(Patience(tries=n_tries))
    waits = [tries.next_delay(0, size) for _ in range(n_tries)]
    assert waits[-1] is None
    assert None not in waits[:-1]


def test_progress_starts_the_count_anew_but_not_a_repetition_of_it():
    tries = Tries(Patience(tries=2))
    for reached in (50, 100):
        assert tries.next_delay(reached, 1000) is not None
    assert tries.next_delay(100, 1000) is not None
    assert tries.next_delay(60, 1000) is None  # of bytes that were here before


def test_a_byte_a_try_is_no_progress_in_a_large_file():
    tries, size = Tries(Patience()), 10**9
    assert None in [tries.next_delay(n, size) for n in range(5)]
    assert step_of(size) > 5


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("0", 0), (" 7 ", 7), ("Sat, 01 Jan 2000 00:02:00 GMT", 120),
        ("Fri, 31 Dec 1999 00:00:00 GMT", 0), ("Sat, 01 Jan 2000 00:02:00 -0000", 120),
        ("-1", None), ("1.5", None), ("soon", None), ("", None), ("٣", None),
        ("Sat, 99 Jan 2000 00:02:00 GMT", None),
        ("Sat, 01 Jan 99999999999999999999 00:02:00 GMT", None),
        ("Sat, 01 Jan 2000 00:02:00 +99999999999999999999", None),
    ],
)  # fmt: skip
def test_retry_after_is_seconds_or_a_date(said, seconds):
    assert retry_after(said, now=datetime(2000, 1, 1, tzinfo=UTC)) == seconds


@given(st.text(max_size=40))
def test_no_retry_after_makes_its_reader_fail(said):
    wait = retry_after(said)
    assert wait is None or wait >= 0


def test_the_clients_own_time_outs_are_heeded(monkeypatch):
    monkeypatch.setenv("HF_HUB_DOWNLOAD_TIMEOUT", "77")
    monkeypatch.setenv("HF_HUB_ETAG_TIMEOUT", "-3")
    assert (usual().stalled, usual().connect) == (77, Patience().connect)


# --- refusals ---


def test_what_may_pass_is_told_apart_from_what_stays():
    for status in (408, 425, 429, 500, 502, 503, 504, 520):
        assert isinstance(refusal(status, {}, "f", "p", False), TryAgain)
    for status in (400, 401, 402, 403, 404, 407, 410, 418, 451):
        assert isinstance(refusal(status, {}, "f", "p", False), DownloadError)


def test_each_status_that_stays_has_a_message_of_its_own():
    statuses = (400, 401, 402, 403, 404, 407, 410, 451)
    said = {
        str(refusal(status, {}, "f", "p", has)).partition(": ")[2].partition(": ")[2]
        for status in statuses
        for has in (False, True)
    }
    assert len(said) == len(statuses) + 2  # of 401 and 403 there are two each


@pytest.mark.parametrize(
    ("code", "is_file"),
    [("", True), ("EntryNotFound", True), ("RepoNotFound", False),
     ("RevisionNotFound", False)],
)  # fmt: skip
def test_only_a_file_that_is_missing_is_looked_for_elsewhere(code, is_file):
    told = refusal(404, {"X-Error-Code": code}, "f", "p", False)
    assert isinstance(told, NotThereError) is is_file


def test_a_gated_model_says_where_to_ask():
    told = str(
        refusal(401, {"X-Error-Code": "GatedRepo"}, "f", "https://hub/a/b", False)
    )
    assert "https://hub/a/b" in told
    assert "HF_TOKEN" in told


def test_what_a_server_says_is_not_passed_on():
    headers = {"X-Error-Message": "your token hf_x", "X-Error-Code": "hf_x"}
    assert "hf_x" not in str(refusal(403, headers, "f", "p", True))


def test_an_error_of_the_system_keeps_its_number(tmp_path):
    told = not_written(PermissionError(13, "Permission denied"), tmp_path / "f", None)
    assert told.errno == 13
    assert "Permission denied" in str(told)
    full = not_written(OSError(28, "No space left on device"), tmp_path / "f", 1234567)
    assert full.errno == 28
    assert "1,234,567 bytes needed" in str(full)


# --- drafts ---


@given(st.binary(max_size=3000), st.integers(0, 3000))
def test_a_draft_goes_on_where_it_was_left(tmp_path_factory, content, cut):
    path = tmp_path_factory.mktemp("draft") / "file.part"
    path.write_bytes(content[:cut])
    with closing(Draft(path, len(content))) as draft:
        draft.append(content[cut:])
        assert draft.length == len(content)
        assert draft.sha256 == hashlib.sha256(content).hexdigest()
        assert draft.start == content[:512]
    assert path.read_bytes() == content


def test_a_draft_that_is_too_long_is_not_believed(tmp_path):
    (tmp_path / "a.part").write_bytes(b"abcd")
    with closing(Draft(tmp_path / "a.part", limit=3)) as draft:
        assert draft.length == 0


def test_a_draft_gets_its_name_in_one_step_over_what_was_there(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    draft = Draft(tmp_path / "a.part")
    draft.append(b"new")
    assert (tmp_path / "a").read_bytes() == b"old"
    draft.install(tmp_path / "a")
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"new"


@pytest.mark.skipif(os.name == "nt", reason="symbolic links need a privilege there")
def test_a_link_is_replaced_and_what_it_leads_to_is_not(tmp_path):
    (tmp_path / "blob").write_bytes(b"of the hub's cache")
    (tmp_path / "a").symlink_to("blob")
    draft = Draft(tmp_path / "a.part")
    draft.install(tmp_path / "a")
    assert (tmp_path / "blob").read_bytes() == b"of the hub's cache"


def test_drafts_of_another_state_of_the_file_go_and_those_of_others_stay(tmp_path):
    others = ("a.safetensors.index.json.abc.part", "b.part")
    for name in ("a.safetensors.123.part", "a.safetensors.part", *others):
        (tmp_path / name).touch()
    Desk(tmp_path).open("a.safetensors", Statement(sha256=SHA256)).close()
    left = {p.name for p in tmp_path.iterdir()}
    assert left == {f"a.safetensors.{SHA256[:16]}.part", *others}


def test_a_draft_of_which_no_hash_is_known_starts_anew(tmp_path):
    (tmp_path / "a.part").write_bytes(b"abc")
    with closing(Desk(tmp_path).open("a", Statement(size=9))) as draft:
        assert draft.length == 0


# --- records ---

RECORD = Record("a/b", "main", SHA1, 3, SHA256)


def test_a_record_holds_as_long_as_the_file_has_its_size(tmp_path):
    (tmp_path / ".gpt2hw").mkdir()
    file = tmp_path / "file"
    file.write_bytes(b"abc")
    write_record(file, RECORD)
    assert read_record(file) == RECORD
    file.write_bytes(b"ab")
    assert read_record(file) is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"size": 3}', "{", '{"other": 1}'])
def test_a_broken_record_is_none(tmp_path, text):
    (tmp_path / ".gpt2hw").mkdir()
    (tmp_path / "file").write_bytes(b"abc")
    record_path(tmp_path / "file").write_text(text)
    assert read_record(tmp_path / "file") is None


@pytest.mark.parametrize(
    "wrong", [{"commit": 7}, {"size": 3.0}, {"sha256": None}, {"revision": ["main"]}]
)
def test_a_record_with_something_else_in_a_words_place_is_none(tmp_path, wrong):
    (tmp_path / ".gpt2hw").mkdir()
    (tmp_path / "file").write_bytes(b"abc")
    record_path(tmp_path / "file").write_text(json.dumps(asdict(RECORD) | wrong))
    assert read_record(tmp_path / "file") is None


# --- what a file holds ---


@pytest.mark.parametrize(
    ("file", "start"),
    [
        ("model.safetensors", b"<!DOCTYPE html>" + b" " * 500),
        ("model.safetensors", b"version https://git-lfs.github.com/spec/v1\n"),
        ("model.safetensors", b"PK\3\4" + b"\xff" * 500),
        ("model.safetensors", b"\x80\x02" * 250),
        ("model.safetensors", b'{"error": "not found"}'),
        ("config.json", b"\n <html>"),
        ("merges.txt", b"<?xml version='1.0'?>"),
        ("vocab.json", b"version https://git-lfs.github.com/spec/v1\n"),
        ("config.json", b'{"error":"Repository not found"}'),
    ],
)
def test_another_kind_of_file_is_named_by_its_first_bytes(file, start):
    assert judge_of(file)(start)


def test_what_a_model_has_is_not_taken_for_another_kind():
    for path in (SHIPPED / "tiny").iterdir():
        assert judge_of(path.name)(path.read_bytes()[:512]) is None, path.name


def test_weights_and_json_show_where_they_end(tmp_path):
    for name in ("model.safetensors", "config.json"):
        whole = (SHIPPED / "tiny" / name).read_bytes()
        for suffix in ("", ".part", ".0123abcd.part"):
            path = tmp_path / (name + suffix)
            path.write_bytes(whole)
            assert stands_alone(path) is True
            path.write_bytes(whole[:-3])
            assert stands_alone(path) is False
    assert stands_alone(SHIPPED / "tiny" / "merges.txt") is None


@pytest.mark.parametrize(
    "name", ["model.part1.safetensors", "a.json.safetensors", "ab.0.safetensors"]
)
def test_a_shard_of_an_odd_name_is_weights(tmp_path, name):
    whole = (SHIPPED / "tiny" / "model.safetensors").read_bytes()
    for suffix in ("", ".part", ".0123abcd.ffff.part"):
        path = tmp_path / (name + suffix)
        path.write_bytes(whole)
        assert stands_alone(path) is True
        path.write_bytes(whole[:-3])
        assert stands_alone(path) is False


def test_json_may_begin_with_the_mark_of_utf_8(tmp_path):
    path = tmp_path / "model.safetensors.index.json"
    path.write_bytes(b'\xef\xbb\xbf{"weight_map": {"a": "b.safetensors"}}')
    assert stands_alone(path) is True
    assert parse_weight_map(path.read_bytes()) == {"a": "b.safetensors"}


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors"])
def test_a_folder_without_one_of_its_files_is_not_whole(tmp_path, missing):
    for name in {"config.json", "model.safetensors"} - {missing}:
        (tmp_path / name).write_bytes((SHIPPED / "tiny" / name).read_bytes())
    assert not is_whole(tmp_path)


def test_a_text_without_end_is_not_taken(monkeypatch, tmp_path):
    with machine(monkeypatch, tmp_path) as hub:
        hub.put(NAME, published(5000) | {"merges.txt": bytes(3_000_000)})
        hub.fault(faults.length(None), file="merges.txt", times=None)
        monkeypatch.setattr("gpt2hw.hub.file_kinds.MAX_TEXT_BYTES", 1_000_000)
        with pytest.raises(DownloadError, match="more than 1,000,000 bytes"):
            download(NAME)
        assert hub.sent(file="merges.txt") < 3_000_000 + 1000


def test_the_tokenizer_comes_without_the_weights(monkeypatch, tmp_path):
    with machine(monkeypatch, tmp_path) as hub:
        files = published(5000)
        merges = (SHIPPED / "tiny" / "merges.txt").read_bytes()
        hub.put(NAME, files | {"merges.txt": merges})
        assert Tokenizer.from_pretrained(NAME).encode("the cat")
        assert hub.requests(file="model.safetensors") == []
        hub.log.clear()
        assert Tokenizer.from_pretrained(NAME).encode("the cat")
        assert hub.log == []
        assert (download(NAME) / "model.safetensors").read_bytes() == files[WEIGHTS]


def test_a_whole_file_of_somebody_elses_is_replaced_by_force_alone(
    monkeypatch, tmp_path
):
    with machine(monkeypatch, tmp_path) as hub:
        hub.put(NAME, published(5000))
        own = weights(6000, seed=7)
        Path("mine").mkdir()
        Path("mine", WEIGHTS).write_bytes(own)
        with pytest.raises(CheckpointError, match="is whole, but another file"):
            download(NAME, "mine")
        assert Path("mine", WEIGHTS).read_bytes() == own
        download(NAME, "mine", force=True)
        assert Path("mine", WEIGHTS).read_bytes() == published(5000)[WEIGHTS]


def test_force_reads_what_is_here_and_fetches_what_differs(monkeypatch, tmp_path):
    with machine(monkeypatch, tmp_path) as hub:
        hub.put(NAME, published(5000))
        place = download(NAME) / WEIGHTS
        hub.log.clear()
        download(NAME, force=True)
        assert hub.sent(file=WEIGHTS, host="cdn") == 0
        content = place.read_bytes()
        place.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        download(NAME)  # by its size alone it is right
        assert place.read_bytes() != content
        download(NAME, force=True)
        assert place.read_bytes() == content


def test_a_config_that_cannot_be_run_is_asked_for_again(monkeypatch, tmp_path):
    with machine(monkeypatch, tmp_path) as hub:
        files = published(5000)
        other = json.dumps({"model_type": "llama"}).encode()
        hub.put(NAME, files | {"config.json": other})
        with pytest.raises(CheckpointError, match="model_type is 'llama'"):
            download(NAME, "mine")
        assert not Path("mine", "config.json").exists()
        hub.put(NAME, files)
        download(NAME, "mine")


def test_nothing_but_the_files_and_their_records_is_left(monkeypatch, tmp_path):
    with machine(monkeypatch, tmp_path) as hub:
        hub.put(NAME, published(5000))
        beside = Path("mine", ".gpt2hw")
        beside.mkdir(parents=True)
        for left in (".0123.part", f"{WEIGHTS}.0123.part", "old.bin.part"):
            (beside / left).touch()
        download(NAME, "mine")
        records = {f"{name}.json" for name in published(5000)}
        assert {path.name for path in beside.iterdir()} == {"lock"} | records


def test_a_broken_token_is_no_matter_where_nothing_is_asked(monkeypatch, tmp_path):
    with machine(monkeypatch, tmp_path) as hub:
        hub.put(NAME, published(5000))
        place = download(NAME)
        monkeypatch.setenv("HF_TOKEN", "a b")
        monkeypatch.setenv("HF_ENDPOINT", "nowhere")
        assert download(NAME) == place
        with pytest.raises(ValueError, match="HF_ENDPOINT"):
            download(NAME, force=True)


# --- one at a time ---


def test_a_lock_is_held_by_one_and_free_after_it(tmp_path):
    order, waiting = [], threading.Event()

    def second():
        with locked(tmp_path / "lock", waiting.set) as is_held:
            order.append(("second", is_held))

    with locked(tmp_path / "lock", lambda: None) as is_held:
        other = threading.Thread(target=second)
        other.start()
        assert waiting.wait(timeout=30)
        order.append(("first", is_held))
    other.join(timeout=30)
    assert order == [("first", True), ("second", True)]


# --- what is seen ---


def test_each_file_is_one_line_off_a_terminal(capsys, tmp_path):
    assert isinstance(shown(), Lines)
    with shown() as watch:
        for n_here in (0, 500):
            watch.begins(tmp_path / "model.safetensors", n_here, 2_000_000)
            watch.reached(1000)
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("gpt2hw: downloading model.safetensors, 2.0 MB, into ")


def test_off_a_terminal_each_wait_is_one_line(capsys):
    with shown() as watch:
        watch.waits("the connection broke off; next try in 4 s")
        watch.waits("the connection broke off; next try in 8 s")
    out, errors = capsys.readouterr()
    assert out == ""
    assert errors.splitlines() == [
        "gpt2hw: the connection broke off; next try in 4 s",
        "gpt2hw: the connection broke off; next try in 8 s",
    ]


def test_without_a_standard_error_nothing_is_told(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("sys.stderr", None)
    with shown() as watch:
        watch.begins(tmp_path / "model.safetensors", 0, 2_000_000)
        watch.waits("the connection broke off; next try in 4 s")
    assert capsys.readouterr().out == ""


def test_a_bar_takes_a_file_of_unknown_size_and_a_new_start(capsys, tmp_path):
    with Bar() as watch:
        watch.begins(tmp_path / "a", 0, None)
        watch.reached(1000)
        watch.waits("the [connection] broke off")
        watch.begins(tmp_path / "a", 0, 2000)
        watch.reached(2000)
    said = capsys.readouterr().err
    assert "the [connection] broke off" in said


def test_a_path_is_shown_without_control_characters():
    assert "\x1b" not in printable(Path("a\x1b[2Jb"))


def test_nothing_heavy_is_loaded_until_something_is_asked(tmp_path):
    code = (
        "import sys\nfrom gpt2hw import download\ndownload('tiny')\n"
        "heavy = {'requests', 'urllib3', 'rich', 'torch', 'numpy'} & {*sys.modules}\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "name", ["./gpt2", "/gpt2", "../x", "a/b/c", "https://hub/a", "a\\b", "", "~/x", 5]
)
def test_only_names_are_downloaded(name):
    with pytest.raises(CheckpointError):
        download(name, offline=True)
