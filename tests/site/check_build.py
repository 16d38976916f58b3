"""What must be true of a site after its build: `python tests/site/check_build.py SITE`.

A build can end well and be wrong: a block that calls sys.exit(0) ends it without a word
and without a site, a mistyped fence is shown instead of run, a theme asks another host
for a script. Each check yields its faults; any fault is exit status 1.
"""

import filecmp
import re
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import fences
from links import broken_links
from mkdocs.utils.yaml import yaml_load
from pages import Page, all_pages

import gpt2hw

ROOT = Path(__file__).parent.parent.parent
BOOK = "gpt2hw-book.zip"
MADE_AFTER = (
    *("404.html", "sitemap.xml", "search/search_index.js"),
    *(BOOK, "assets/social.png"),
)
# Attributes by which a tag makes a browser fetch something.
FETCHES = {
    "script": ("src",),
    "link": ("href",),
    "img": ("src", "srcset"),
    "image": ("href", "xlink:href"),
    "use": ("href", "xlink:href"),
    "iframe": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "track": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "input": ("src",),
}
NOT_FETCHED = {"canonical", "license", "prev", "next", "alternate", "author", "me"}
FOREIGN = re.compile(r"^\s*(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
IN_CSS = re.compile(
    r"(?:url\(|@import)\s*['\"]?\s*((?:[a-z]+:)?//[^'\")\s]+)", re.IGNORECASE
)
LINTED = re.compile(r"# (?:ruff: )?noqa\b|# type: ignore\b")
# Marks of Markdown that nobody turned into anything.
RAW = re.compile(
    r"\bexec=|\bsession=[\"“]|`{3}|--8<--|^:{3} \w"
    r"|\]\[(?:gpt2hw|wrong)\b|\{:? ?[.#][a-z]",
    re.MULTILINE,
)


def nav_pages(nav: object) -> Iterator[str]:
    """The sources that a navigation names, however deep."""
    if isinstance(nav, str):
        yield nav
    for inner in nav.values() if isinstance(nav, dict) else nav:
        if not isinstance(nav, str):
            yield from nav_pages(inner)


def page_of(source: str) -> str:
    """Where a source's page lies in the site."""
    return str(Path(source).with_suffix(".html").as_posix())


def missing(site: Path, sources: list[str]) -> Iterator[str]:
    """Pages of the navigation, and what is made after the last page."""
    for place in (*map(page_of, sources), *MADE_AFTER):
        if not (site / place).is_file():
            yield f"{place} was not built"


def unlinked(pages: list[Page]) -> Iterator[str]:
    """The offline copy, which the first page must lead to."""
    for page in pages:
        if page.place == "index.html" and not any(page.having("a", href=BOOK)):
            yield f"index.html: no link to {BOOK}"


def unfinished(pages: list[Page], sources: list[str]) -> Iterator[str]:
    """Pages without a title, raw Markdown in the text, code blocks with nothing in."""
    built = {page_of(source) for source in sources}
    for page in pages:
        if page.place in built and not any(page.having("h1")):
            yield f"{page.place}: no title"
        for mark in RAW.finditer(page.prose):
            around = page.prose[max(0, mark.start() - 30) : mark.end() + 40]
            yield f"{page.place}: Markdown is left as it was: {around!r}"
        # A kernel sends its output in pieces, and a line's end may be one of them.
        spaces = "" if page.place.startswith("notebooks/") else None
        n_empty = sum(not code.strip(spaces) for code in page.code)
        if n_empty:
            yield f"{page.place}: {n_empty} code blocks are empty"
        if page.place.startswith("steps/") and "made-by" not in page.classes:
            yield f"{page.place}: does not say which model made its outputs"


def foreign(site: Path, pages: list[Page]) -> Iterator[str]:
    """What a page or a style sheet would fetch from another host."""
    for page in pages:
        for tag, attributes in page.tags:
            if tag == "link" and attributes.get("rel") in NOT_FETCHED:
                continue
            for name in FETCHES.get(tag, ()):
                for address in attributes.get(name, "").split(","):
                    if FOREIGN.match(address):
                        yield f"{page.place}: <{tag} {name}> fetches {address.strip()}"
        for address in IN_CSS.findall(page.styles):
            yield f"{page.place}: a style fetches {address}"
    for sheet in sorted(site.rglob("*.css")):
        for address in IN_CSS.findall(sheet.read_text(encoding="utf-8")):
            yield f"{sheet.relative_to(site).as_posix()} fetches {address}"


def dead_links(site: Path, pages: list[Page]) -> Iterator[str]:
    """Links of the pages, and of the theme around them, that lead nowhere."""
    # 404.html is served at any address, so its links are absolute.
    by_place = {page.place: page for page in pages if page.place != "404.html"}
    for place, fault in broken_links(site, by_place):
        yield f"{place}: {fault}"


def head(pages: list[Page], sources: list[str], has_address: bool) -> Iterator[str]:
    """Descriptions of their own, canonical addresses, the version at the foot."""
    seen: dict[str, str] = {}
    built = {page_of(source) for source in sources}
    for page in pages:
        if page.place not in built:
            continue
        text = next((m["content"] for m in page.having("meta", name="description")), "")
        if not page.place.startswith("notebooks/"):  # a lab cannot have one
            if not text or text in seen:
                yield f"{page.place}: its description is {seen.get(text, 'missing')}'s"
            seen[text] = page.place
        if has_address and not any(page.having("link", rel="canonical")):
            yield f"{page.place}: no canonical address"
        if f"gpt2hw {version('gpt2hw')}" not in " ".join(page.prose.split()):
            yield f"{page.place}: the version is not at its foot"


def told_to_linters(pages: list[Page]) -> Iterator[str]:
    """Marks for tools in code that is taught; the reference has whole files."""
    for page in pages:
        if not page.place.startswith("reference/api/"):
            for mark in LINTED.findall("\n".join(page.code)):
                yield f"{page.place}: shows {mark!r}, which a linter is told"


def of_this_machine(pages: list[Page]) -> Iterator[str]:
    """Paths of the machine that built the site."""
    for page in pages:
        for path in {str(ROOT), sys.prefix, str(Path.home())} - {"/", "/usr"}:
            if path in page.prose or any(path in code for code in page.code):
                yield f"{page.place}: shows {path}, a path of this machine"


def not_the_source(source: Path, installed: Path) -> Iterator[str]:
    """Files of the installed package, which the pages ran, that are not those shown."""
    for path in sorted(source.rglob("*.py")):
        twin = installed / path.relative_to(source)
        if not twin.is_file() or not filecmp.cmp(path, twin, shallow=False):
            yield f"{path.name}: the installed package has another one; install it anew"


def faults(root: Path, site: Path) -> list[str]:
    """Everything that is wrong with the site built from `root`."""
    config = yaml_load((root / "mkdocs.yml").read_text(encoding="utf-8"))
    sources = list(nav_pages(config["nav"]))
    pages = all_pages(site)
    return [
        *missing(site, sources),
        *unlinked(pages),
        *fences.faults(root / "docs"),
        *unfinished(pages, sources),
        *foreign(site, pages),
        *dead_links(site, pages),
        *head(pages, sources, bool(config.get("site_url"))),
        *told_to_linters(pages),
        *of_this_machine(pages),
        *not_the_source(root / "src" / "gpt2hw", Path(gpt2hw.__file__).parent),
    ]


if __name__ == "__main__":
    found = faults(ROOT, Path(sys.argv[1]).resolve())
    for fault in found:
        print(f"check_build: {fault}", file=sys.stderr)
    print(f"check_build: {len(found)} faults")
    raise SystemExit(bool(found))
