"""What an honest hub answers: pages, redirects, ranges, and statuses of refusal.

Header names, statuses and error codes are those that huggingface_hub reads
(`file_download.py`, `utils/_http.py`), so far as a download meets them.
"""

import gzip
import json
import re
from dataclasses import replace
from typing import Any, Protocol
from urllib.parse import quote

from hub_messages import Answer, File, Seen


class Shelf(Protocol):
    """What the honest answers need to know of the hub."""

    cdn_url: str
    commits: dict[str, dict[str, dict[str, File]]]  # name -> commit -> files
    moved: dict[str, str]
    tokens: dict[str, str]
    gated: set[str]
    cdn_files: dict[str, File]


def honest(hub: Shelf, seen: Seen) -> Answer:
    """The answer of a hub without faults."""
    if seen.host == "cdn":
        return _from_cdn(hub, seen)
    cached = re.fullmatch(r"/api/resolve-cache/models/(.+?/.+?)/(.+?)/(.+)", seen.path)
    if cached:
        return _small_file(hub, seen, *cached.groups())
    asked = re.fullmatch(r"/(.+?)/resolve/(.+?)/(.+)", seen.path)
    if asked:
        return _resolve(hub, seen, *asked.groups())
    listing = r"/api/models/(.+?/[^/]+)(?:/(revision|tree)/([^/]+))?"
    asked = re.fullmatch(listing, seen.path)
    if asked:
        return _listing(hub, seen, *asked.groups())
    return refusal(404, "", "Not found")


def page(text: str, status: int = 200, **headers: str) -> Answer:
    """A short text; header names by underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    content = text.encode()
    kind = {"Content-Type": "text/plain", "Content-Length": str(len(content))}
    return Answer(status, kind | named, File(content), 0, len(content))


def refusal(status: int, code: str, message: str) -> Answer:
    said = {"X_Error_Code": code, "X_Error_Message": message} if code else {}
    text = json.dumps({"error": message})
    return page(text, status, Content_Type="application/json", **said)


def _refused(hub: Shelf, seen: Seen, name: str, commit: str) -> Answer | None:
    """The refusal of a request, None where it may go on."""
    is_known = seen.authorization is not None
    if name not in hub.commits:
        return refusal(404 if is_known else 401, "RepoNotFound", "Repository not found")
    token = hub.tokens.get(name)
    if token and not is_known:
        return refusal(401, "RepoNotFound", "Repository not found")
    if token and seen.authorization != f"Bearer {token}":
        return refusal(401, "", "Invalid credentials in Authorization header")
    if name in hub.gated:
        return refusal(403 if is_known else 401, "GatedRepo", "Access is restricted")
    if commit not in hub.commits[name]:
        return refusal(404, "RevisionNotFound", "Invalid rev id")
    return None


def _commit(hub: Shelf, name: str, revision: str) -> str:
    """The commit of a revision: the latest for `main`."""
    return list(hub.commits.get(name, [""]))[-1] if revision == "main" else revision


def _resolve(hub: Shelf, seen: Seen, name: str, revision: str, file: str) -> Answer:
    if name in hub.moved:
        there = quote(f"/{hub.moved[name]}/resolve/{revision}/{file}")
        return page(f"Moved to {there}", 307, Location=there)
    commit = _commit(hub, name, revision)
    refused = _refused(hub, seen, name, commit)
    if refused:
        return refused
    held = hub.commits[name][commit].get(file)
    if held is None:
        answer = refusal(404, "EntryNotFound", "Entry not found")
        answer.headers["X-Repo-Commit"] = commit
        return answer
    query = f"file={quote(file)}&etag=%22{held.etag}%22"
    stated = {"X_Repo_Commit": commit, "Accept_Ranges": "bytes"}
    if not held.is_large:
        there = f"/api/resolve-cache/models/{name}/{commit}/{quote(file)}?{query}"
        return page(f"Temporary Redirect to {there}", 307, Location=there, **stated)
    hub.cdn_files[held.etag] = held
    there = f"{hub.cdn_url}/repos/{held.etag}?{query}&Signature=a%2Bb%3D"
    stated |= {"X_Linked_Etag": f'"{held.etag}"', "X_Linked_Size": str(held.size)}
    return page(f"Found. Redirecting to {there}", 302, Location=there, **stated)


def _small_file(hub: Shelf, seen: Seen, name: str, commit: str, file: str) -> Answer:
    refused = _refused(hub, seen, name, commit)
    if refused:
        return refused
    held = hub.commits[name][commit][file]
    if seen.query.get("etag") != [f'"{held.etag}"']:
        return refusal(400, "", "The query of the address got lost")
    if (
        "gzip" in seen.headers.get("accept-encoding", "")
        and "range" not in seen.headers
    ):
        answer = whole(File(gzip.compress(bytes(_content(held)))), f'W/"{held.etag}"')
        answer.headers |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    else:
        answer = _part(seen, held, f'"{held.etag}"')
    answer.headers["X-Repo-Commit"] = commit
    return answer


def _content(file: File) -> bytes:
    return b"".join(file.pieces(0, file.size))


def _from_cdn(hub: Shelf, seen: Seen) -> Answer:
    """A store of files at signed addresses, which takes no second way to log in."""
    if seen.authorization is not None:
        return page("Only one auth mechanism allowed", 400)
    if seen.query.get("Signature") != ["a+b="]:
        return page("The signature does not match", 403)
    held = hub.cdn_files.get(seen.path.removeprefix("/repos/"))
    if held is None:
        return page("NoSuchKey", 404)
    return _part(seen, held, f'"{held.cdn_etag}"')


def whole(file: File, etag: str) -> Answer:
    headers = {
        "Content-Type": "application/octet-stream",
        "Content-Length": str(file.size),
        "Accept-Ranges": "bytes",
        "ETag": etag,
    }
    return Answer(200, headers, file, 0, file.size)


def _part(seen: Seen, file: File, etag: str) -> Answer:
    """The part that a Range asks for, where If-Range allows one (RFC 9110, 14)."""
    answer = whole(file, etag)
    asked = re.fullmatch(r"bytes=(\d+)-(\d*)", seen.headers.get("range", ""))
    if not asked or seen.headers.get("if-range", etag) != etag:
        return answer
    start, last = int(asked[1]), int(asked[2] or file.size - 1)
    if start >= file.size:
        content_range = {"Content_Range": f"bytes */{file.size}"}
        return page("Range Not Satisfiable", 416, **content_range)
    stop = min(file.size, last + 1)
    answer.headers["Content-Length"] = str(stop - start)
    answer.headers["Content-Range"] = f"bytes {start}-{stop - 1}/{file.size}"
    return replace(answer, status=206, start=start, stop=stop)


def _listing(
    hub: Shelf, seen: Seen, name: str, kind: str | None, revision: str | None
) -> Answer:
    commit = _commit(hub, name, revision or "main")
    refused = _refused(hub, seen, name, commit)
    if refused:
        return refused
    files = hub.commits[name][commit]
    names = [{"rfilename": file} for file in files]
    about: Any = {"id": name, "modelId": name, "sha": commit, "siblings": names}
    if kind == "tree":
        about = [_entry(name, file) for name, file in files.items()]
    return page(json.dumps(about), Content_Type="application/json")


def _entry(name: str, file: File) -> dict[str, Any]:
    entry = {"type": "file", "path": name, "size": file.size, "oid": file.etag}
    if file.is_large:
        entry["lfs"] = {"oid": file.etag, "size": file.size, "pointerSize": 135}
    return entry
