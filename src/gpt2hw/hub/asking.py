"""One question to the hub, and its answer, wherever the hub leads for it.

Redirects are followed here, by hand, so that each hop gets its own headers: the token
goes to the endpoint alone, and a range is asked for only where it is known what of.
`requests` is imported when a question is asked, so that offline nothing waits for it.

Source: RFC 9110, sections 15.4 (redirects), 14 (ranges) and 13.1.5 (If-Range).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urljoin

import gpt2hw
from gpt2hw.errors import DownloadError
from gpt2hw.hub.access import Access, origin
from gpt2hw.hub.body import Pace
from gpt2hw.hub.failures import (
    host_of,
    no_address,
    no_certificates,
    not_followed,
    not_trusted,
    reason_of,
)
from gpt2hw.hub.patience import Patience
from gpt2hw.hub.refusals import TryAgain
from gpt2hw.hub.statement import Statement, stated

if TYPE_CHECKING:
    import requests

MAX_REDIRECTS = 10
REDIRECTS = (301, 302, 303, 307, 308)
PIECE = 2**18  # the most bytes taken at once; as many as are there are enough

# What more to ask at an address, after what the hub has said so far.
Extra = Callable[[str, Statement], Mapping[str, str]]


@dataclass(frozen=True)
class Answer:
    """The last answer, what the hub's own answers said, and whence it came."""

    response: "requests.Response"
    statement: Statement
    url: str
    patience: Patience

    @property
    def status(self) -> int:
        """Its status."""
        return self.response.status_code

    @property
    def headers(self) -> Mapping[str, str]:
        """Its headers, by names in any case."""
        return self.response.headers

    def pieces(self) -> Iterator[bytes]:
        """The body as it comes; TryAgain where it breaks off, or hardly comes."""
        import urllib3

        raw, pace = self.response.raw, Pace(self.patience)
        try:
            while piece := raw.read1(PIECE, decode_content=False):
                yield piece
                pace.count(len(piece))
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise TryAgain(f"the connection broke off ({reason_of(error)})") from None

    def close(self) -> None:
        """Hangs up, whatever is left of the body."""
        self.response.close()


class _Login:
    """Puts the token into requests for the endpoint, and nothing into any other.

    That an object is there at all keeps `requests` from taking a login of ~/.netrc.
    """

    def __init__(self, access: Access) -> None:
        self._access = access

    def __call__(self, request: Any) -> Any:
        request.headers.pop("Authorization", None)
        if self._access.token and self._access.may_see_token(request.url):
            request.headers["Authorization"] = f"Bearer {self._access.token}"
        return request


class Asker:
    """Keeps the connections to the hub; to be used in a `with`."""

    def __init__(self, access: Access, patience: Patience) -> None:
        import requests

        self.access, self.patience = access, patience
        self._session = requests.Session()
        self._session.headers.update(
            {
                "User-Agent": f"gpt2hw/{gpt2hw.__version__}",
                "Accept-Encoding": "identity",  # the bytes themselves, for their hash
            }
        )

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the connections."""
        self._session.close()

    def ask(self, url: str, extra: Extra | None = None, method: str = "GET") -> Answer:
        """Asks for a file; the answer is to be closed.

        HEAD asks what the hub has to say of it, and is not led on to another host.
        Raises TryAgain and DownloadError where there is none. Any status that is no
        redirect is an answer.
        """
        known, asked = Statement(), list[object]()
        while True:
            asked.append(self._question(url))
            response = self._request(method, url, extra(url, known) if extra else {})
            if self.access.may_see_token(url):
                known = known.completed_by(stated(response.headers))
            if response.status_code not in REDIRECTS:
                return Answer(response, known, url, self.patience)
            response.close()
            there = self._led_to(url, response.headers.get("Location"), asked)
            if method == "HEAD" and not self.access.may_see_token(there):
                return Answer(response, known, url, self.patience)
            url = there

    def _led_to(self, url: str, location: str | None, asked: list[object]) -> str:
        """Where a redirect leads; no try again mends a loop, or one without an end."""
        there = next_url(url, location)
        if self._question(there) in asked:
            raise not_followed(url, "in a loop, to where it was asked already")
        if len(asked) > MAX_REDIRECTS:
            how = f"once more, after {MAX_REDIRECTS} redirects in a row"
            raise not_followed(url, how)
        return there

    def _question(self, url: str) -> object:
        """What tells two questions apart: the address, or a cookie that came since."""
        return url, frozenset((c.name, c.value) for c in self._session.cookies)

    def _request(
        self, method: str, url: str, headers: Mapping[str, str]
    ) -> "requests.Response":
        import requests
        import urllib3

        times = (self.patience.connect, self.patience.stalled)
        try:
            return self._session.request(
                method,
                url,
                headers=dict(headers),
                auth=_Login(self.access),
                stream=True,
                allow_redirects=False,
                timeout=times,
            )
        except requests.exceptions.SSLError as error:
            raise not_trusted(url, error) from None
        except (
            requests.exceptions.InvalidURL,
            requests.exceptions.MissingSchema,
            requests.exceptions.InvalidSchema,
        ):
            raise DownloadError(
                f"{host_of(url)} cannot be asked: check the endpoint, and HTTPS_PROXY"
                " and HTTP_PROXY if they are set"
            ) from None
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            raise TryAgain(f"{host_of(url)}: {reason_of(error)}") from None
        except OSError as error:  # without a number it is one of requests' own
            if error.errno is None:
                raise no_certificates(url) from None
            raise TryAgain(f"{host_of(url)}: {reason_of(error)}") from None
        except ValueError:  # requests looks at the next address, followed or not
            raise no_address(url) from None


def next_url(url: str, location: str | None) -> str:
    """Where a redirect leads; its query is kept, as it may hold a signature.

    >>> next_url("https://hub/a/b", "/c?d=%2F")
    'https://hub/c?d=%2F'
    >>> next_url("https://hub/a", "http://hub/a")
    Traceback (most recent call last):
    gpt2hw.errors.DownloadError: hub redirects from https to http, ...
    """
    if not location:
        raise TryAgain(f"{host_of(url)} redirects, and does not say where to")
    try:
        there = urljoin(url, location)
        scheme = origin(there)[0]
    except ValueError:
        raise no_address(url) from None
    if scheme == "http" and origin(url)[0] == "https":  # the endpoint may say HTTPS:
        raise DownloadError(
            f"{host_of(url)} redirects from https to http, where anybody on the way"
            " could change the file: this is not followed; try another endpoint"
        )
    return there
