"""Over https: a certificate that nobody vouches for, and the way back to http."""

import ssl

import pytest

from downloads import NAME, TOKEN, files_in, machine, repository
from gpt2hw import DownloadError, download

FILES = repository()
# A key and a certificate for 127.0.0.1, made for this test; they open nothing else.
CERTIFICATE = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgENHDQgQG48jky75P
h1QTTNT20SMxjxa8Fub22ctlSg6hRANCAASZX2Y/G9znThTsX2yWEiJCm6LlBTEi
goKdrNMRbgFcKyqfDAEPT7Sd8j4VvegHWgYF1sXvRyio1sTfVBcWc99T
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBoDCCAUagAwIBAgIUCNW6WgzuW2JVf6H0+GohetaaDQ0wCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJMTI3LjAuMC4xMCAXDTI2MTEyOTIwMjcwMloYDzIxMjYxMTA1
MjAyNzAyWjAUMRIwEAYDVQQDDAkxMjcuMC4wLjEwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAASZX2Y/G9znThTsX2yWEiJCm6LlBTEigoKdrNMRbgFcKyqfDAEPT7Sd
8j4VvegHWgYF1sXvRyio1sTfVBcWc99To3QwcjAdBgNVHQ4EFgQUmqWhZ+z/PrQd
cMOlEESX8jKpz98wHwYDVR0jBBgwFoAUmqWhZ+z/PrQdcMOlEESX8jKpz98wDwYD
VR0TAQH/BAUwAwEB/zAPBgNVHREECDAGhwR/AAABMA4GA1UdDwEB/wQEAwIChDAK
BggqhkjOPQQDAgNIADBFAiEA9UTKWKT9XMl3G+LhAdeQ4NLf/JckPrywpeLxTY/Y
pdwCIGmUcxpd9+we99opOo+fl3lU3fs7BtR1S8bgqgxGBW5/
-----END CERTIFICATE-----
"""


@pytest.fixture
def certificate(tmp_path):
    path = tmp_path / "certificate.pem"
    path.write_text(CERTIFICATE, encoding="ascii")
    return path


@pytest.fixture
def hub(monkeypatch, tmp_path, certificate):
    """A hub that speaks https, on both of its hosts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with machine(monkeypatch, tmp_path, context) as hub:
        hub.put(NAME, FILES)
        yield hub


def test_a_certificate_that_nobody_vouches_for_is_refused_at_once(hub):
    with pytest.raises(DownloadError, match="certificate"):
        download(NAME, token=TOKEN)
    assert not hub.log


def test_one_that_is_vouched_for_is_taken(hub, monkeypatch, certificate):
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    assert files_in(download(NAME, token=TOKEN)) == FILES
    assert {seen.authorization for seen in hub.requests(host="cdn")} == {None}


def test_the_way_from_https_to_http_is_not_taken(hub, monkeypatch, certificate):
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    hub.cdn_url = hub.cdn_url.replace("https:", "http:")
    with pytest.raises(DownloadError, match="https to http"):
        download(NAME, token=TOKEN)


def test_http_is_told_from_https(hub, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", hub.url.replace("https:", "http:"))
    with pytest.raises(DownloadError):
        download(NAME)


def test_certificates_that_cannot_be_read_are_told_as_such(hub, monkeypatch, tmp_path):
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "not_there.pem"))
    with pytest.raises(DownloadError, match="REQUESTS_CA_BUNDLE") as caught:
        download(NAME)
    assert "written" not in str(caught.value)
