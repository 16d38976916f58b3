"""Which hub is asked, with whose token, and whether it may be asked at all.

Source of the variables: huggingface_hub, `constants.py` and `utils/_auth.py`. What
needs its services is left out: tokens that a browser or a CI run hands out for hours.
"""

import os
import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from gpt2hw.files import read_plain
from gpt2hw.hub.places import expanded, hub_home

HUB = "https://huggingface.co"
MAX_TOKEN_BYTES = 10_000
_A_TOKEN = re.compile(r"[!-~]+")
_TRUE = {"1", "ON", "YES", "TRUE"}
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Access:
    """A hub's address, without a slash at its end, and the token to show there."""

    endpoint: str
    token: str | None = field(default=None, repr=False)

    def may_see_token(self, url: str) -> bool:
        """Whether an address has the scheme, the host and the port of the endpoint.

        >>> hub = Access("https://huggingface.co")
        >>> hub.may_see_token("https://HUGGINGFACE.co:443/gpt2")
        True
        >>> hub.may_see_token("http://huggingface.co/gpt2")
        False
        """
        return origin(url) == origin(self.endpoint)


def origin(url: str) -> tuple[str, str, int | None]:
    """The scheme, the host and the port of an address; ValueError where it has none.

    >>> origin("HTTPS://Example.org/a?b")
    ('https', 'example.org', 443)
    """
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError("it is no http or https address")
    port = _PORTS[parts.scheme] if parts.port is None else parts.port
    return parts.scheme, parts.hostname, port


def choose_hub(endpoint: str | None = None, token: str | bool | None = None) -> Access:
    """The hub and the token that are given, or else those of the environment.

    The endpoint is HF_ENDPOINT or Hugging Face's hub; the token is HF_TOKEN, or that of
    who has logged in with the hub's own client, unless HF_HUB_DISABLE_IMPLICIT_TOKEN is
    set; False shows none. Raises ValueError, which never repeats a token.

    >>> choose_hub("http://127.0.0.1:8000/", token="secret")
    Access(endpoint='http://127.0.0.1:8000')
    """
    given = os.environ.get("HF_ENDPOINT") if endpoint is None else endpoint
    if endpoint is None and not given:
        given = HUB
    return Access(_checked_endpoint(given), _token(token))


def _checked_endpoint(endpoint: object) -> str:
    what = "endpoint: must be an address like https://huggingface.co"
    if not isinstance(endpoint, str) or not endpoint.isascii():
        raise ValueError(f"{what}, not {endpoint!r:.80}")
    try:
        parts: SplitResult = urlsplit(endpoint)
        origin(endpoint)
    except ValueError:
        raise ValueError(f"{what} (or HF_ENDPOINT, if it is set)") from None
    if "@" in parts.netloc or parts.query or parts.fragment or not _is_plain(endpoint):
        raise ValueError(f"{what}, without a user, a query or a space in it")
    return endpoint.rstrip("/")


def _is_plain(endpoint: str) -> bool:
    """Whether an address has neither spaces nor what cannot be printed."""
    return endpoint.isprintable() and " " not in endpoint


def _token(token: str | bool | None) -> str | None:
    if token is False:
        return None
    if isinstance(token, str) and _A_TOKEN.fullmatch(token):
        return token
    if token is not None and token is not True:
        raise ValueError(
            "token: must be a text without spaces and special characters, None, or"
            " False for none"
        )
    if token is None and is_true("HF_HUB_DISABLE_IMPLICIT_TOKEN"):
        return None
    for variable in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        if os.environ.get(variable):
            return _clean(os.environ[variable], variable)
    return _token_of_file()


def _token_of_file() -> str | None:
    named = os.environ.get("HF_TOKEN_PATH")
    path = expanded(os.path.expandvars(named)) if named else hub_home() / "token"
    try:
        text = read_plain(path, MAX_TOKEN_BYTES).decode("utf-8")
    except (OSError, ValueError):
        return None
    return _clean(text, str(path))


def _clean(token: str, where: str) -> str | None:
    """The token without line ends; None for an empty one."""
    token = token.replace("\r", "").replace("\n", "").strip()
    if token and not _A_TOKEN.fullmatch(token):
        raise ValueError(f"{where}: a token has neither spaces nor special characters")
    return token or None


def is_true(variable: str) -> bool:
    """Whether a variable of the environment is set to 1, ON, YES or TRUE."""
    return os.environ.get(variable, "").upper() in _TRUE


def is_offline(offline: bool | None = None) -> bool:
    """Whether the network is not to be used: as told, or as the environment has it.

    >>> is_offline(True)
    True
    """
    if offline is not None and not isinstance(offline, bool):
        raise ValueError(f"offline: must be True, False or None, not {offline!r:.80}")
    if offline is not None:
        return offline
    if os.environ.get("HF_HUB_OFFLINE"):  # it rules, also where it says no
        return is_true("HF_HUB_OFFLINE")
    return is_true("TRANSFORMERS_OFFLINE")
