"""The built pages as data: tags with their attributes, and the text between them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

Attributes = dict[str, str]


@dataclass
class Page:
    """One HTML file: `place` under the site, its tags, and its text by element."""

    place: str
    tags: list[tuple[str, Attributes]] = field(default_factory=list)
    prose: str = ""  # what is neither code nor script
    code: list[str] = field(default_factory=list)  # the text of each <pre>
    styles: str = ""

    @property
    def anchors(self) -> set[str]:
        """What a link to this page may end in."""
        named = {a["name"] for tag, a in self.tags if tag == "a" and "name" in a}
        return {a["id"] for _, a in self.tags if "id" in a} | named

    @property
    def classes(self) -> set[str]:
        """Every class that a tag bears."""
        return {name for _, a in self.tags for name in a.get("class", "").split()}

    def having(self, tag: str, **wanted: str) -> Iterator[Attributes]:
        """The attributes of each `tag` that has the wanted ones."""
        for name, attributes in self.tags:
            if name == tag and wanted.items() <= attributes.items():
                yield attributes


class _Reader(HTMLParser):
    def __init__(self, place: str) -> None:
        super().__init__(convert_charrefs=True)
        self.page = Page(place)
        self.inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.page.tags.append((tag, attributes))
        self.page.styles += attributes.get("style", "") + "\n"
        if tag in ("pre", "script", "style"):
            self.inside.append(tag)
        if tag == "pre":
            self.page.code.append("")

    def handle_endtag(self, tag: str) -> None:
        if self.inside and self.inside[-1] == tag:
            self.inside.pop()

    def handle_data(self, data: str) -> None:
        where = self.inside[-1] if self.inside else ""
        if where == "pre":
            self.page.code[-1] += data
        elif where == "style":
            self.page.styles += data
        elif not where:
            self.page.prose += data


def read(path: Path, site: Path) -> Page:
    """One page of the site."""
    reader = _Reader(path.relative_to(site).as_posix())
    reader.feed(path.read_text(encoding="utf-8"))
    reader.close()
    return reader.page


def all_pages(site: Path) -> list[Page]:
    """Every page of the site, by its place."""
    return [read(path, site) for path in sorted(site.rglob("*.html"))]
