"""What an answer other than the file means, and what to do about it.

Two kinds of error: TryAgain, of what may be over in a while, and DownloadError, of what
stays. No text of a server is passed on, for it may hold anything.

Source: RFC 9110, section 15 (statuses); huggingface_hub, `errors.py` (X-Error-Code).
"""

import errno
import shutil
from collections.abc import Mapping
from pathlib import Path

from gpt2hw.errors import DownloadError
from gpt2hw.hub.patience import retry_after


class TryAgain(Exception):  # noqa: N818 -- it is caught, and no error yet
    """A try that failed in a way that may pass.

    `wait` is how many seconds the server asks to wait, None where it does not say.
    """

    def __init__(self, why: str, wait: float | None = None) -> None:
        super().__init__(why)
        self.wait = wait


class NotThereError(DownloadError):
    """The hub knows the model, but not this file."""


PASSING = {
    408: "the server waited too long for the request",
    425: "the server is not ready for the request",
    429: "the server says that there were too many requests",
    500: "the server has an error of its own",
    502: "a server on the way got no proper answer",
    503: "the server is overloaded or down for a while",
    504: "a server on the way got no answer in time",
}
_STAYING = {
    400: "the request was not understood: is the endpoint a hub of models?",
    402: "the server wants to be paid",
    407: "the proxy wants a name and a password: put them into HTTPS_PROXY, as in"
    " http://name:password@host:port",
    410: "it was there once and has been taken away",
    451: "it is withheld for legal reasons",
}


def refusal(
    status: int, headers: Mapping[str, str], file: str, page: str, has_token: bool
) -> Exception:
    """The error of a status that brings no file; `page` is the model's at the hub.

    >>> refusal(503, {"Retry-After": "7"}, "a.json", "https://hub/o/name", False).wait
    7.0
    >>> print(refusal(403, {}, "a.json", "https://hub/o/name", True))
    a.json: status 403: the token may not read this model: ...
    """
    code = headers.get("X-Error-Code", "")
    if status in PASSING or 500 <= status < 600:
        what = PASSING.get(status, "the server has an error of its own")
        wait = retry_after(headers.get("Retry-After"))
        return TryAgain(f"status {status}: {what}", wait)
    if status == 404 and code not in ("RepoNotFound", "RevisionNotFound"):
        return NotThereError(
            f"{file}: status 404: there is no such file at {page}: check the name of"
            " the model, and the endpoint if one is set (HF_ENDPOINT)"
        )
    reason = _staying(status, code, page, has_token)
    return DownloadError(f"{file}: status {status}: {reason}")


def _staying(status: int, code: str, page: str, has_token: bool) -> str:
    if code == "RevisionNotFound":
        return f"{page} has no such revision: check the branch, the tag or the commit"
    if code == "GatedRepo" or status == 403:
        return _may_not_read(code == "GatedRepo", page, has_token)
    if code == "RepoNotFound" or status == 401:
        return _not_known(page, has_token)
    usual = "this is neither the file nor a reason: is the endpoint a hub of models?"
    return _STAYING.get(status, usual)


def _may_not_read(is_gated: bool, page: str, has_token: bool) -> str:
    way = f"ask for access at {page}"
    if not has_token:
        return (
            f"this model is gated or private: {way}, and set HF_TOKEN to a token of"
            " that account"
        )
    who = "the token's account has no access to this gated model"
    return f"{who if is_gated else 'the token may not read this model'}: {way}"


def _not_known(page: str, has_token: bool) -> str:
    if has_token:
        return (
            f"there is no model at {page}, or the token is not valid for it: check the"
            " name, and HF_TOKEN"
        )
    return (
        f"there is no model at {page}, or it is private: check the name; for a private"
        " one set HF_TOKEN to a token that may read it"
    )


_NO_ROOM = {
    getattr(errno, name) for name in ("ENOSPC", "EDQUOT") if hasattr(errno, name)
}


def not_written(error: OSError, path: Path, needed: int | None) -> DownloadError:
    """The error of a file that the system would not write; it keeps the errno."""
    if error.errno in _NO_ROOM:
        return no_room(path.parent, needed)
    reason = error.strerror or type(error).__name__
    if error.errno == errno.EFBIG:
        reason = "no file of that size is allowed here"
        reason += "" if needed is None else f" ({needed:,} bytes are still to come)"
    told = DownloadError(
        f"{path} cannot be written: {reason}; name another folder, by --directory or"
        " GPT2HW_CACHE"
    )
    told.errno = error.errno
    return told


def no_room(folder: Path, needed: int | None) -> DownloadError:
    """The error of a full disk: how much is needed, and how much is free."""
    more = "more" if needed is None else f"{needed:,} bytes"
    told = DownloadError(
        f"no room in {folder}: {more} needed, {free_bytes(folder):,} bytes free."
        " Make room and run the same again, or name another folder, by --directory or"
        " GPT2HW_CACHE"
    )
    told.errno = errno.ENOSPC
    return told


def free_bytes(folder: Path) -> int:
    """The bytes that are free for files in a folder."""
    return shutil.disk_usage(folder).free
