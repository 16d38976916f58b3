"""Why a hub could not be asked, in words that hold no address.

An address may hold secrets: a signature, or the password of a proxy. So what a library
says of an error is not passed on, only what broke.
"""

from collections.abc import Iterator
from urllib.parse import urlsplit

from gpt2hw.errors import DownloadError
from gpt2hw.hub.refusals import TryAgain


def no_address(url: str) -> DownloadError:
    """The error of a redirect that leads nowhere one can go."""
    return not_followed(url, "to what is no address of the web")


def not_followed(url: str, how: str) -> DownloadError:
    """The error of a redirect that no later try would make a better one."""
    return DownloadError(
        f"{host_of(url)} redirects {how}: this is not followed; try another endpoint"
    )


def host_of(url: str) -> str:
    """The host in an address, for a message.

    >>> host_of("https://user:password@cdn.example:8000/a?Signature=s")
    'cdn.example'
    """
    return urlsplit(url).hostname or "the endpoint"


def not_trusted(url: str, error: Exception) -> Exception:
    """A certificate that does not fit stays; a connection that was cut may pass."""
    if "certificate" not in str(error).lower():
        return TryAgain(f"{host_of(url)}: the secure connection broke off")
    return DownloadError(
        f"{host_of(url)} cannot prove who it is (its certificate is not trusted here)."
        " In a hotel or a company's network something stands between: log in there"
        " first, or set REQUESTS_CA_BUNDLE to the file of the network's certificates"
    )


def no_certificates(url: str) -> DownloadError:
    """The error of certificates that are to be trusted, and cannot be read."""
    return DownloadError(
        f"{host_of(url)} cannot be asked: the file of trusted certificates cannot be"
        " read; check REQUESTS_CA_BUNDLE and CURL_CA_BUNDLE"
    )


def reason_of(error: BaseException) -> str:
    """What broke, in a few words, and without an address, which may hold secrets."""
    kinds = {
        "NameResolutionError": "its name is not known; is there a network?",
        "ReadTimeoutError": "nothing came for too long",
        "ReadTimeout": "nothing came for too long",
        "ConnectTimeoutError": "no connection in time",
        "ConnectTimeout": "no connection in time",
        "ProxyError": "the proxy does not answer; see HTTPS_PROXY and HTTP_PROXY",
        "IncompleteRead": "the answer ended too early",
        "RemoteDisconnected": "it hung up without an answer",
        "BadStatusLine": "it answers, but not in HTTP",
    }
    chain = list(_chain(error))
    for link in chain:
        if type(link).__name__ in kinds:
            return kinds[type(link).__name__]
    told = [e.strerror for e in chain if isinstance(e, OSError) and e.strerror]
    return told[-1] if told else "the connection failed"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what it came from, as requests and urllib3 wrap them."""
    seen: list[BaseException] = []
    waiting = [error]
    while waiting and len(seen) < 20:
        link = waiting.pop(0)
        if not isinstance(link, BaseException) or link in seen:
            continue
        seen.append(link)
        waiting += [getattr(link, "reason", None), link.__cause__, link.__context__]
        waiting += [a for a in link.args if isinstance(a, BaseException)]
    yield from seen
