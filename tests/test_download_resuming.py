"""Download goes on where it stopped: ranges, drafts, files that change meanwhile."""

from contextlib import suppress

import pytest

import hub_faults as faults
from downloads import (
    CDN,
    FILES,
    FOLDER,
    NAME,
    OTHER,
    SIZE,
    WEIGHTS,
    fetch,
    files_in,
    hub_with,
    left_at,
    repository,
)
from gpt2hw import DownloadError
from hub_server import COMMIT

hub = hub_with(FILES, keeps_rules=True)


def cut_then(hub, change, part=0.5):
    """A first answer that is cut; a fault in the one that goes on."""
    hub.fault(faults.cut(part), **CDN)
    hub.fault(change, **CDN)


RESUMING = {
    "the range is ignored": faults.no_range,
    "no content-range": faults.content_range(None),
    "another start": faults.content_range("bytes {off}-{last}/{size}"),
    "another size": faults.content_range("bytes {start}-{last}/77"),
    "an unknown size": faults.content_range("bytes {start}-{last}/*"),
    "another unit": faults.content_range("pages {start}-{last}/{size}"),
    "nonsense": faults.content_range("bytes"),
    "the start again": faults.other_part,
    "a later part": faults.later_part,
    "cut again": faults.cut(0.5),
    "compressed": faults.zipped,
    "too long": faults.long(1000),
    "too short": faults.short_and_said(1000),
    "no length": faults.length(None),
    "a page": faults.instead(faults.LOGIN_PAGE),
    "416": faults.status(416),
    "416 with the size": faults.status(416, Content_Range=f"bytes */{SIZE}"),
    "416 with another size": faults.status(416, Content_Range="bytes */7"),
    "412": faults.status(412),
    "404": faults.status(404),
    "206 without being one": faults.status(206),
    "204": faults.status(204),
}


MAY_FAIL = ("a page", "404", "412", "204")  # other answers than a part of the file


@pytest.mark.parametrize("case", RESUMING)
def test_an_answer_to_a_resumed_request_is_believed_only_where_it_is_right(hub, case):
    cut_then(hub, RESUMING[case])
    if case in MAY_FAIL:
        with suppress(DownloadError):
            fetch()
    else:
        assert files_in(fetch()) == FILES
    assert len(hub.requests(file=WEIGHTS, host="cdn")) <= 5


def test_resuming_at_60_per_cent_takes_at_most_41_per_cent_more(hub):
    big = repository(32_000_000)
    hub.put(NAME, big)
    hub.fault(faults.cut(0.6), **CDN)
    assert files_in(fetch()) == big
    first, second = hub.requests(host="cdn")
    assert first.sent == 0.6 * 32_000_000
    assert second.sent <= 0.41 * 32_000_000


def test_a_server_that_ignores_the_range_starts_the_file_anew(hub):
    cut_then(hub, faults.no_range)
    assert files_in(fetch()) == FILES
    _, second = hub.requests(host="cdn", method="GET")
    assert second.headers["range"] == f"bytes={SIZE // 2}-"
    assert second.sent == SIZE


def test_the_next_run_goes_on_where_the_last_one_failed(hub):
    assert left_at(hub, 0.6).stat().st_size == 0.6 * SIZE
    assert files_in(fetch()) == FILES
    assert hub.sent(host="cdn") == 0.4 * SIZE


DRAFTS = {
    "whole": FILES[WEIGHTS],
    "whole but for a byte": FILES[WEIGHTS][:-1],
    "of the right size, with a bit turned": FILES[WEIGHTS][:-1]
    + bytes([FILES[WEIGHTS][-1] ^ 1]),
    "longer than the file": FILES[WEIGHTS] + b"\0" * 100,
    "of another file": OTHER[WEIGHTS][: SIZE // 2],
    "of zeros, as after a power cut": b"\0" * (SIZE // 2),
    "empty": b"",
}


@pytest.mark.parametrize("case", DRAFTS)
def test_a_draft_is_believed_only_where_it_is_right(hub, case):
    draft = left_at(hub, 0.6)
    draft.write_bytes(DRAFTS[case])
    assert files_in(fetch()) == FILES
    if case == "whole":
        assert hub.sent(host="cdn") == 0
    assert hub.sent(host="cdn") <= 2 * SIZE


def test_a_whole_draft_for_which_the_server_has_no_more_is_finished(hub):
    left_at(hub, 0.6).write_bytes(FILES[WEIGHTS])
    hub.fault(faults.status(404), **CDN)
    assert files_in(fetch()) == FILES


# --- the file changes meanwhile ---


@pytest.mark.parametrize("commit", [COMMIT, "9" * 40])
def test_a_file_that_changes_between_two_runs_is_taken_anew(hub, commit):
    left_at(hub, 0.5)
    hub.put(NAME, OTHER, commit=commit)
    for path in map(FOLDER.joinpath, files_in(FOLDER)):
        path.unlink()
    assert files_in(fetch()) == OTHER


@pytest.mark.parametrize("commit", [COMMIT, "9" * 40])
def test_a_file_that_changes_between_two_tries_is_never_mixed(hub, commit):
    def publish():
        hub.put(NAME, OTHER, commit=commit)

    hub.fault(faults.meanwhile(publish, at=SIZE // 2), **CDN)
    content = files_in(fetch())[WEIGHTS]
    assert content == (OTHER if commit == COMMIT else FILES)[WEIGHTS]
