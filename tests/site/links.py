"""Where the pages of a built site lead and what they need, checked without a browser.

Links to other hosts are not followed; the walk makes no request beyond the loopback.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

from pages import Page, all_pages

# Where an element says what else it needs or leads to.
POINTERS = {
    "a": ("href", "xlink:href"),
    "link": ("href",),
    "script": ("src",),
    "img": ("src",),
    "image": ("href", "xlink:href"),
    "use": ("href", "xlink:href"),
    "iframe": ("src",),
    "source": ("src",),
}
ADDRESS_ONLY = {
    "canonical",
    "alternate",
}  # a link element that nobody follows from here


def pages_of(site: Path) -> dict[str, Page]:
    """Every HTML file of the site by its path.

    Raises ValueError where there is none: a walk over nothing would find nothing.
    """
    pages = {page.place: page for page in all_pages(site)}
    if not pages:
        raise ValueError(f"no page in {site}: build the site first (nox -s docs)")
    return pages


def broken_links(site: Path, pages: Mapping[str, Page]) -> Iterator[tuple[str, str]]:
    """(page, what is wrong) for each link to a file or an anchor that is not there."""
    anchors = {name: page.anchors for name, page in pages.items()}
    for name, page in pages.items():
        for link in dict.fromkeys(_links(page)):
            if fault := _fault(site, anchors, name, link):
                yield name, f"broken link {link}: {fault}"


def _links(page: Page) -> Iterator[str]:
    for tag, given in page.tags:
        if tag == "link" and set(given.get("rel", "").split()) & ADDRESS_ONLY:
            continue
        for attribute in POINTERS.get(tag, ()):
            link = given.get(attribute, "").strip()
            if link and not urlsplit(link).scheme and not link.startswith("//"):
                yield link


def _fault(site: Path, anchors: Mapping[str, set[str]], name: str, link: str) -> str:
    parts = urlsplit(urljoin(f"http://site/{name}", link))
    path = unquote(parts.path).lstrip("/") or "index.html"
    if (site / path).is_dir():
        path = f"{path.rstrip('/')}/index.html"
    if not (site / path).is_file():
        return f"no file {path}"
    anchor = unquote(parts.fragment)
    if anchor and path in anchors and anchor not in anchors[path]:
        return f"no anchor #{anchor} in {path}"
    return ""
