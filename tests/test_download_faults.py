"""Download from a hub, a CDN and a network that misbehave, one fault at a time.

After each: no wrong file under a final name, a bounded number of tries, no token
outside its host and in no message, and the next undisturbed run ends well.
"""

import json
import re
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import hub_faults as faults
from downloads import (
    CDN,
    FILES,
    FOLDER,
    NAME,
    SIZE,
    WEIGHTS,
    failure,
    fetch,
    files_in,
    hub_with,
    impatient,
)
from gpt2hw import CheckpointError, DownloadError, download
from gpt2hw.hub.asking import MAX_REDIRECTS

MOST_TRIES = 5


hub = hub_with(FILES, keeps_rules=True)


# --- what passes by itself ---

PASSING = {
    "no answer from the hub": (faults.no_answer, {"file": WEIGHTS, "host": "hub"}),
    "no answer from the cdn": (faults.no_answer, CDN),
    "no http": (faults.no_http, CDN),
    "half the headers": (faults.half_headers, CDN),
    "cut at once": (faults.cut(0), CDN),
    "cut": (faults.cut(0.5), CDN),
    "cut in a small file": (faults.cut(0.5), {"file": "config.json"}),
    "cut in a redirect": (faults.cut(3), {"file": WEIGHTS, "host": "hub"}),
    "reset": (faults.cut(0.5, is_reset=True), CDN),
    "short, and says so": (faults.short_and_said(1), CDN),
    "long, and says so": (faults.long(100), CDN),
    "long, without a length": (
        faults.both(faults.long(9), faults.length(None)),
        CDN,
    ),
    "no length": (faults.length(None), CDN),
    "in chunks": (faults.chunked, CDN),
    "in chunks, cut": (faults.both(faults.chunked, faults.cut(0.5)), CDN),
    "in chunks of nonsense": (
        faults.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        CDN,
    ),
    "an endless header": (faults.with_headers(X_Long="a" * 70_000), CDN),
    "too many headers": (
        faults.with_headers(**{f"X{n}": "a" for n in range(200)}),
        CDN,
    ),
    "a status that is no number": (faults.raw(b"HTTP/1.1 abc OK\r\n\r\n"), CDN),
    "a status of five digits": (faults.raw(b"HTTP/1.1 99999 OK\r\n\r\n"), CDN),
    "a header without a colon": (
        faults.raw(b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n"),
        CDN,
    ),
    "cut, without a length": (faults.cut_without_length(100), CDN),
    "a length too small": (faults.length("100"), CDN),
    "a length too large": (faults.length(str(SIZE + 100)), CDN),
    "a length below zero": (faults.length("-1"), CDN),
    "a length that is no number": (faults.length("many"), CDN),
    "a bit turned": (faults.damaged(SIZE - 5), CDN),
    "a bit turned in a small file": (faults.damaged(5), {"file": "config.json"}),
    "compressed": (faults.zipped, CDN),
    "said to be compressed": (faults.with_headers(Content_Encoding="gzip"), CDN),
    "said to be something": (faults.with_headers(Content_Encoding="zstd, no"), CDN),
    "408": (faults.status(408), CDN),
    "429": (faults.status(429), CDN),
    "429 with a wait": (faults.status(429, Retry_After="1"), CDN),
    "429 with a date": (
        faults.status(429, Retry_After="Wed, 21 Oct 2015 07:28:00 GMT"),
        CDN,
    ),
    "429 with nonsense": (faults.status(429, Retry_After="soon"), CDN),
    "429 from the hub": (faults.status(429), {"file": "config.json"}),
    "500": (faults.status(500), CDN),
    "502": (faults.status(502), {"file": WEIGHTS, "host": "hub"}),
    "503 with a wait": (faults.status(503, Retry_After="0"), CDN),
    "504": (faults.status(504), CDN),
    "520": (faults.status(520), CDN),
    "a signature that ran out": (faults.status(403), CDN),
}  # fmt: skip


@pytest.mark.parametrize("case", PASSING)
def test_what_passes_is_waited_out(hub, case):
    change, which = PASSING[case]
    hub.fault(change, **which)
    assert files_in(fetch()) == FILES
    assert len(hub.requests(file=WEIGHTS, host="cdn")) <= 3


@pytest.mark.parametrize(
    ("change", "most"),
    [
        (faults.stalled(1_000_000, 30), 1_000_000),
        (faults.stalled(0, 30), 0),
        (faults.trickle, 300),  # at 50 bytes a second
    ],
)
def test_who_falls_silent_or_hardly_speaks_is_left(hub, monkeypatch, change, most):
    patience = replace(impatient(), stalled=0.4)
    monkeypatch.setattr("gpt2hw.hub.patience.PATIENCE", patience)
    hub.fault(change, **CDN)
    assert files_in(fetch()) == FILES
    assert hub.requests(host="cdn")[0].sent <= most


def test_a_wait_that_the_server_asks_for_is_kept(hub):
    hub.fault(faults.status(429, Retry_After="1"), **CDN)
    start = time.monotonic()
    fetch()
    assert time.monotonic() - start >= 1


def test_a_wait_of_hours_is_not_kept_but_told(hub):
    hub.fault(faults.status(429, Retry_After="7200"), times=None)
    assert re.search("429.*7,200", failure())
    assert len(hub.log) == 1


# --- what does not pass: each says what it is ---

ALWAYS = {"times": None}
LASTING = {
    "401": (faults.status(401), {}, "401.*token"),
    "403": (faults.status(403), {}, "403"),
    "404": (faults.status(404), {}, "404"),
    "410": (faults.status(410), {}, "410"),
    "416": (faults.status(416), CDN, "416|the part"),
    "429": (faults.status(429), {}, "429"),
    "451": (faults.status(451), {}, "451"),
    "500": (faults.status(500), {}, "500"),
    "503": (faults.status(503), CDN, "503"),
    "418": (faults.status(418), {}, "418"),
    "304": (faults.status(304), {}, "304"),
    "no answer": (faults.no_answer, CDN, WEIGHTS),
    "no http": (faults.no_http, {}, "config.json"),
    "cut at once": (faults.cut(0), CDN, WEIGHTS),
    "a bit turned": (
        faults.damaged(SIZE - 5),
        CDN,
        f"{WEIGHTS}.*(SHA-256|sha256|hash)",
    ),
    "a page": (faults.instead(faults.LOGIN_PAGE), CDN, "page"),
    "a page for the config": (faults.instead(faults.LOGIN_PAGE), {}, "page"),
    "an LFS pointer": (faults.instead(faults.POINTER), CDN, "LFS pointer"),
    "a loop": (faults.loop, {"file": "config.json"}, "redirect"),
    "a loop at the cdn": (faults.loop, CDN, "redirect"),
    "a loop of two": (faults.circle, CDN, "redirect"),
    "redirects without end": (faults.endless, CDN, "redirect"),
    "a redirect to a file": (faults.redirect("file:///etc/passwd"), CDN, "redirect"),
    "a redirect to ftp": (faults.redirect("ftp://127.0.0.1/x"), CDN, "redirect"),
    "a redirect to nowhere": (faults.redirect("http://[::1"), CDN, "redirect"),
    "a redirect to nothing": (faults.redirect(""), CDN, "redirect"),
    "a redirect without one": (
        faults.both(faults.redirect("x"), faults.without(["Location"])),
        CDN,
        "redirect",
    ),
}


@pytest.mark.parametrize("case", LASTING)
def test_what_lasts_is_told_after_a_bounded_number_of_tries(hub, case):
    change, which, said = LASTING[case]
    hub.fault(change, **ALWAYS | which)
    message = failure()
    assert re.search(said, message, re.DOTALL), message
    tries = Counter((seen.file, seen.host) for seen in hub.log)
    assert max(tries.values()) <= max(MOST_TRIES, MAX_REDIRECTS)


@pytest.mark.parametrize(
    ("change", "said", "n_asked"),
    [
        (faults.loop, "127.0.0.1 redirects in a loop", 1),
        (faults.circle, "127.0.0.1 redirects in a loop", 2),
        (faults.endless, "127.0.0.1 redirects once more, after 10 redirects", 10),
    ],
)
def test_redirects_that_lead_nowhere_are_told_at_once(hub, change, said, n_asked):
    hub.fault(change, **CDN | ALWAYS)
    assert said in failure()
    assert len(hub.requests(**CDN)) == n_asked


def test_a_redirect_to_the_same_address_that_sets_a_cookie_is_no_loop(hub):
    cookie = faults.with_headers(Set_Cookie="seen=1")
    hub.fault(faults.both(faults.loop, cookie), **CDN)
    assert files_in(fetch()) == FILES
    assert [s.headers.get("cookie") for s in hub.requests(**CDN)] == [None, "seen=1"]


def test_each_refusal_has_its_own_message(hub):
    said = set()
    for code in (401, 403, 404, 410, 416, 429, 451, 500, 503):
        hub.faults.clear()
        hub.fault(faults.status(code), times=None)
        said.add(failure().replace(str(code), "CODE"))
    assert len(said) >= 6


@pytest.mark.parametrize("code", [401, 403])
def test_without_a_token_a_refusal_says_how_to_give_one(hub, code):
    hub.fault(faults.status(code), times=None)
    with pytest.raises(DownloadError, match="HF_TOKEN"):
        download(NAME, FOLDER)


def test_a_gated_model_says_where_to_ask_for_access(hub):
    hub.gated.add(NAME)
    assert NAME in failure()
    hub.gated.clear()


def test_a_name_that_the_hub_does_not_know_says_so(hub):
    with pytest.raises(DownloadError, match="someone/unknown"):
        download("someone/unknown", "elsewhere")
    assert not files_in(Path("elsewhere"))


def test_a_try_with_progress_is_not_counted(hub):
    for _ in range(12):
        hub.fault(faults.cut(SIZE // 15), **CDN)
    assert files_in(fetch()) == FILES


def test_a_failed_file_leaves_the_ones_before_it(hub):
    hub.fault(faults.status(500), file=WEIGHTS, times=None)
    failure()
    kept = files_in(FOLDER)
    assert kept == {n: FILES[n] for n in ("config.json", "merges.txt") if n in kept}


def test_an_error_that_is_json_is_no_config(hub):
    page = json.dumps({"error": "Repository is loading"})
    hub.fault(faults.instead(page), file="config.json", times=None)
    failure((DownloadError, CheckpointError))
