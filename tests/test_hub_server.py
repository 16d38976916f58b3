"""The local hub stands for a real one: the hub's own client is content with it."""

import gzip
import http.client
import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import hub_faults as faults
from hub_server import COMMIT, Hub

NAME = "someone/gpt2"
WEIGHTS = "model.safetensors"
FILES = {
    "config.json": b'{"model_type": "gpt2"}' * 9,
    "model.safetensors": bytes(range(256)) * 50_000,  # the client's chunk is 10 MB
}

# The hub's own client, in a process of its own: its settings are read at import.
CLIENT = """
import json, sys
from huggingface_hub import hf_hub_download, snapshot_download

def said(call, *arguments, **options):
    try:
        return call(*arguments, **options)
    except Exception as error:
        return [kind.__name__ for kind in type(error).__mro__]

moved, private, gated = "gpt2", "someone/private", "someone/gated"
print(json.dumps({
    "snapshot": said(snapshot_download, "someone/gpt2"),
    "moved": said(hf_hub_download, moved, "config.json"),
    "private": said(hf_hub_download, private, "config.json", token=False),
    "token": said(hf_hub_download, private, "model.safetensors", token="hf_secret"),
    "gated": said(hf_hub_download, gated, "config.json", token="hf_secret"),
    "unknown": said(hf_hub_download, "someone/unknown", "config.json"),
    "entry": said(hf_hub_download, "someone/gpt2", "absent.json"),
    "revision": said(hf_hub_download, "someone/gpt2", "config.json", revision="v9"),
}))
"""


@pytest.fixture(scope="module", params=["127.0.0.1", "localhost"])
def hub(request):
    with Hub(request.param) as hub:
        hub.put(NAME, FILES)
        hub.put("someone/private", FILES)
        hub.put("someone/gated", FILES)
        hub.moved["gpt2"] = NAME
        hub.tokens["someone/private"] = "hf_secret"
        hub.gated.add("someone/gated")
        yield hub
    assert hub.errors == []


@pytest.fixture(scope="module")
def said(hub, tmp_path_factory):
    """What the hub's own client says of this hub, after a cut in mid-download."""
    hub.fault(faults.cut(11_000_000), host="cdn", method="GET")
    home = tmp_path_factory.mktemp("home")
    settings = {"HF_HOME": home, "HF_ENDPOINT": hub.url, "HF_HUB_DISABLE_XET": 1}
    done = subprocess.run(
        [sys.executable, "-c", CLIENT],
        env=os.environ
        | {"HF_HUB_OFFLINE": "0"}
        | {name: str(value) for name, value in settings.items()},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_hubs_own_client_takes_a_whole_repository(hub, said):
    folder = Path(said["snapshot"])
    assert folder.name == COMMIT
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == FILES
    held = hub.commits[NAME][COMMIT]
    assert {p.name: p.resolve().name for p in folder.iterdir()} == {
        name: file.etag for name, file in held.items()
    }


def test_the_hubs_own_client_resumes_after_a_cut(hub, said):
    first, second = hub.requests(host="cdn", method="GET")[:2]
    assert first.sent == 11_000_000
    assert second.headers["range"] == f"bytes={10 * 1024 * 1024}-"
    assert second.sent == len(FILES[WEIGHTS]) - 10 * 1024 * 1024


def test_the_hubs_own_client_follows_a_name_that_moved(said):
    assert Path(said["moved"]).read_bytes() == FILES["config.json"]


def test_the_hubs_own_client_opens_what_needs_a_token(hub, said):
    assert Path(said["token"]).read_bytes() == FILES[WEIGHTS]
    assert "Bearer hf_secret" in {seen.authorization for seen in hub.requests()}
    assert {seen.authorization for seen in hub.requests(host="cdn")} == {None}


@pytest.mark.parametrize(
    ("case", "error"),
    [
        ("private", "RepositoryNotFoundError"),
        ("gated", "GatedRepoError"),
        ("unknown", "RepositoryNotFoundError"),
        ("entry", "EntryNotFoundError"),
        ("revision", "RevisionNotFoundError"),
    ],
)
def test_the_hubs_own_client_tells_each_refusal_apart(said, case, error):
    assert error in said[case]


# --- what the client does not ask for ---


def ask(url, method="GET", **headers):
    """One request without any client's comfort: status, headers, body."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=10)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, f"{parts.path}?{parts.query}", headers=named)
    answer = connection.getresponse()
    try:
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


@pytest.fixture
def signed(hub):
    """The address on the CDN of the weights."""
    status, headers, _ = ask(f"{hub.url}/{NAME}/resolve/main/{WEIGHTS}", "HEAD")
    assert status == 302
    return headers["Location"]


def test_a_part_is_a_part_only_of_the_file_that_was_meant(signed):
    etag = ask(signed, "HEAD")[1]["ETag"]
    status, headers, body = ask(signed, Range="bytes=5-8", If_Range=etag)
    assert (status, body) == (206, FILES[WEIGHTS][5:9])
    assert headers["Content-Range"] == f"bytes 5-8/{len(FILES[WEIGHTS])}"
    assert ask(signed, Range="bytes=5-8", If_Range='"other"')[0] == 200
    assert ask(signed, Range=f"bytes={len(FILES[WEIGHTS])}-")[0] == 416


def test_the_cdn_takes_no_token_and_no_address_without_its_signature(signed):
    assert ask(signed, Authorization="Bearer hf_secret")[0] == 400
    assert ask(signed.replace("&Signature=", "&lost="))[0] == 403


def test_a_small_file_is_compressed_for_whoever_takes_that(hub):
    _, headers, _ = ask(f"{hub.url}/{NAME}/resolve/main/config.json")
    there = hub.url + headers["Location"]
    _, headers, body = ask(there, Accept_Encoding="gzip, deflate")
    assert headers["ETag"].startswith("W/")
    assert gzip.decompress(body) == FILES["config.json"]
    assert ask(there, Accept_Encoding="identity")[2] == FILES["config.json"]
