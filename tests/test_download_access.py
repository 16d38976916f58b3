"""Download from which endpoint, over which way, and with whose token."""

import pytest

import hub_faults as faults
from downloads import (
    NAME,
    TOKEN,
    clean_environment,
    files_in,
    hub_with,
    refused,
    repository,
)
from gpt2hw import download

FILES = repository()
OTHER = repository(seed=1)


hub = hub_with(FILES)


@pytest.mark.parametrize("slash", ["", "/"])
def test_every_request_starts_at_the_endpoint(hub, monkeypatch, slash):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert files_in(download(NAME, endpoint=hub.url + slash)) == FILES
    assert all("//" not in seen.path for seen in hub.log)


@pytest.mark.parametrize("cdn", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("by", ["argument", "HF_TOKEN", "file"])
def test_the_token_goes_to_the_endpoint_and_to_no_other_host(
    hub, monkeypatch, tmp_path, by, cdn
):
    hub.cdn_url = hub.cdn_url.replace("127.0.0.1", cdn)
    hub.tokens[NAME] = TOKEN
    if by == "HF_TOKEN":
        monkeypatch.setenv("HF_TOKEN", f" {TOKEN}\n")
    elif by == "file":
        file = tmp_path / "home" / ".cache" / "huggingface" / "token"
        file.parent.mkdir(parents=True)
        file.write_text(f"{TOKEN}\n", encoding="utf-8")
    options = {"token": TOKEN} if by == "argument" else {}
    folder = download(NAME, **options)
    assert files_in(folder) == FILES
    assert {s.authorization for s in hub.requests(host="hub")} == {f"Bearer {TOKEN}"}
    assert {s.authorization for s in hub.requests(host="cdn")} == {None}
    kept = [p for p in folder.rglob("*") if p.is_file()]
    assert not [p for p in kept if TOKEN.encode() in p.read_bytes()]


def test_no_token_is_sent_where_none_is_wanted(hub, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    download(NAME, token=False)
    assert {seen.authorization for seen in hub.log} == {None}


def test_a_login_in_netrc_takes_no_tokens_place_and_goes_nowhere(
    hub, monkeypatch, tmp_path
):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    download(NAME, token=TOKEN)
    assert {s.authorization for s in hub.requests(host="hub")} == {f"Bearer {TOKEN}"}
    assert {s.authorization for s in hub.requests(host="cdn")} == {None}


@pytest.mark.parametrize("token", ["a b", "é", "a\r\nX-Evil: 1", 5, b"x"])
def test_a_token_that_can_be_none_is_refused_and_not_repeated(hub, token):
    said = refused(NAME, token=token, error=ValueError)
    assert not hub.log
    assert len(str(token)) < 3 or str(token) not in said


def test_the_proxy_variables_are_honoured(hub, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.invalid")
    monkeypatch.setenv("http_proxy", hub.url)
    hub.cdn_url = "http://cdn.invalid"
    assert files_in(download(NAME, token=TOKEN)) == FILES
    assert all(
        seen.url.startswith("http://") for seen in hub.log
    )  # as a proxy is asked
    assert {s.authorization for s in hub.requests(host="cdn")} == {None}


def test_no_proxy_is_honoured_too(hub, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert files_in(download(NAME)) == FILES


def test_a_mirror_may_lack_every_header_of_its_own(hub):
    names = ["X-Repo-Commit", "X-Linked-Etag", "X-Linked-Size", "ETag", "Accept-Ranges"]
    hub.fault(faults.without(names), times=None)
    assert files_in(download(NAME)) == FILES


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("is_relative", [True, False])
def test_a_mirror_may_lead_on_by_any_redirect(hub, code, is_relative):
    hub.tokens[NAME] = TOKEN

    def elsewhere(seen, answer):
        if "sign" in seen.query or "/resolve/" not in seen.path:
            return answer
        there = f"{seen.url}?sign=a%2Bb"
        return faults.redirect(there if is_relative else hub.url + there, code)(
            seen, faults.page("")
        )

    hub.fault(elsewhere, file="config.json", times=None)
    assert files_in(download(NAME, token=TOKEN)) == FILES
    led = [s for s in hub.requests(file="config.json") if "sign" in s.query]
    assert [seen.query["sign"] for seen in led] == [["a+b"]]
    assert led[0].authorization == f"Bearer {TOKEN}"


def test_a_name_that_moved_is_followed(hub):
    hub.moved["someone/old"] = NAME
    assert files_in(download("someone/old")) == FILES


def test_the_clean_machine_of_these_tests_is_clean(hub, tmp_path):
    environment = clean_environment(hub, tmp_path)
    assert not [n for n in environment if n.lower().endswith("_proxy")]
    assert [n for n in environment if n.startswith("HF_")] == ["HF_ENDPOINT"]
