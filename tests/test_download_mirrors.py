"""Download from mirrors that keep little of what the hub states of its files."""

import pytest

import hub_faults as faults
from downloads import (
    CDN,
    FILES,
    FOLDER,
    NAME,
    SIZE,
    TOKEN,
    WEIGHTS,
    failure,
    fetch,
    files_in,
    hub_with,
    left_at,
)
from gpt2hw import CheckpointError, DownloadError, download
from hub_server import COMMIT

hub = hub_with(FILES, keeps_rules=True)


# What a mirror may do that keeps no header of the hub's: then no hash is known, and a
# weights file must tell by its own header whether it is whole.
MIRRORED = {
    "with a length": faults.slow(1e9),
    "in chunks": faults.chunked,
    "in chunks, cut": faults.both(faults.chunked, faults.cut(0.5)),
    "without a length": faults.length(None),
    "without a length, cut": faults.cut_without_length(1000),
    "cut": faults.cut(0.5),
    "short, and says so": faults.short_and_said(1),
    "long, and says so": faults.long(1),
}
NO_HASHES = faults.without(["X-Repo-Commit", "X-Linked-Etag", "X-Linked-Size", "ETag"])


@pytest.mark.parametrize("case", MIRRORED)
def test_weights_without_a_hash_are_whole_by_their_own_header(hub, case):
    hub.fault(faults.both(NO_HASHES, MIRRORED[case]), **CDN)
    hub.fault(NO_HASHES, times=None)
    assert files_in(fetch()) == FILES


@pytest.mark.parametrize(
    "change",
    [
        faults.other_part,
        faults.later_part,
        faults.no_range,
        faults.content_range("bytes {off}-{last}/{size}"),
        faults.both(faults.other_part, faults.content_range(None)),
        faults.meanwhile(lambda: None, at=10),
    ],
)
def test_a_part_without_a_hash_is_taken_only_from_where_it_is_missing(hub, change):
    few = faults.without(["X-Repo-Commit", "X-Linked-Etag", "X-Linked-Size"])
    hub.fault(faults.cut(0.5), **CDN)  # it keeps its ETag, so the rest is asked for
    hub.fault(change, **CDN)
    hub.fault(few, file=WEIGHTS, host="hub", times=None)
    assert files_in(fetch()) == FILES
    assert "if-range" in hub.requests(host="cdn", method="GET")[1].headers


def test_a_text_without_hash_and_length_could_be_cut_and_is_refused(hub):
    hub.fault(
        faults.both(NO_HASHES, faults.length(None)), file="merges.txt", times=None
    )
    assert "merges.txt" in failure()


@pytest.mark.parametrize("form", ['W/"{}"', "{}", '"{}"', "upper"])
def test_an_etag_in_any_form_is_taken_for_the_hash(hub, form):
    etag = hub.commits[NAME][COMMIT][WEIGHTS].etag
    said = etag.upper() if form == "upper" else form.format(etag)
    hub.fault(
        faults.with_headers(X_Linked_Etag=said), file=WEIGHTS, host="hub", times=None
    )
    hub.fault(faults.damaged(SIZE - 5), **CDN)
    assert files_in(fetch()) == FILES
    assert len(hub.requests(file=WEIGHTS, host="cdn", method="GET")) == 2


@pytest.mark.parametrize("size", ["-5", "many", "", "1e6", "99999999999999999999999"])
def test_a_stated_size_that_is_no_number_is_passed_over(hub, size):
    hub.fault(faults.with_headers(X_Linked_Size=size), file=WEIGHTS, times=None)
    assert files_in(fetch()) == FILES


def test_an_endless_config_is_not_taken_whole(hub):
    hub.put(NAME, FILES | {"config.json": b"{" + b" " * 150_000_000 + b"}"})
    failure((DownloadError, CheckpointError))
    assert hub.requests(file="config.json", method="GET")[-1].sent < 100_000_000
    hub.put(NAME, FILES)


@pytest.mark.parametrize("code", [403, 405, 501])
def test_a_server_that_answers_no_head_is_no_hindrance(hub, code):
    left_at(hub, 0.6)
    hub.fault(faults.status(code), method="HEAD", times=None)
    assert files_in(fetch()) == FILES
    assert files_in(download(NAME, FOLDER, token=TOKEN, force=True)) == FILES
