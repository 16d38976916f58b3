"""The code blocks of the book's sources: each runs, or says that it does not.

The sources are read by the parser that builds the site (pymdownx.superfences), and what
runs is decided by markdown-exec's own validator; only the running is left out.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markdown import Markdown
from markdown_exec import validator

RUNNABLE = ("python", "pycon", "bash")  # as in mkdocs.yml
LIKE_RUNNABLE = ("py", "python3", "ipython", "sh", "shell", "zsh", "console", "doctest")
EXTENSIONS = ("admonition", "md_in_html", "pymdownx.details", "pymdownx.superfences")
TABBED = {"pymdownx.tabbed": {"alternate_style": True}}
# What opens a block in someone's mind, also where a parser does not agree.
MEANT = re.compile(
    r"^[ \t]*(?:`{2,}|~{2,})[ \t]*\{?[ \t]*\.?"
    rf"(?P<language>{'|'.join(RUNNABLE + LIKE_RUNNABLE)})(?![\w+-])|"
    r"^[ \t]*(?:`{2,}|~{2,}).*\bexec\b",
    re.MULTILINE,
)
NOT_BUILT = {"wrong", "templates", "overrides", "assets"}


@dataclass
class Fence:
    """One code block: its language, whether it runs, in which session, its classes.

    `shown`: whether the page shows the source of a block that it runs.
    """

    language: str
    runs: bool = False
    session: str = ""
    shown: bool = False
    classes: list[str] = field(default_factory=list)
    source: str = ""


def fences(text: str) -> list[Fence]:
    """Every block of a language that could run, as the site's parser sees it."""
    found: list[Fence] = []

    def take(
        language: str, inputs: dict[str, str], options: dict[str, Any], *rest: Any
    ) -> bool:
        runs = language in RUNNABLE and validator(language, inputs, options, *rest)
        session, shown = options.get("session", ""), bool(options.get("source"))
        options["fence"] = Fence(language, runs, session, shown)
        return True

    def keep(source: str, *_: Any, **rest: Any) -> str:
        fence = rest["options"]["fence"] if "options" in rest else _[2]["fence"]
        fence.source = source
        fence.classes = list(rest.get("classes") or [])
        found.append(fence)
        return ""

    custom = [
        {"name": name, "class": name, "validator": take, "format": keep}
        for name in RUNNABLE + LIKE_RUNNABLE
    ]
    Markdown(
        extensions=[*EXTENSIONS, *TABBED],
        extension_configs={"pymdownx.superfences": {"custom_fences": custom}, **TABBED},
    ).convert(text)
    return found


def sources(docs: Path) -> list[Path]:
    """The Markdown files of the book, the included ones among them."""
    every = sorted(docs.rglob("*.md"))
    return [p for p in every if p.relative_to(docs).parts[0] not in NOT_BUILT]


def faults_of(text: str, session: str | None) -> Iterator[str]:
    """What is wrong with one file's blocks. An included file has no session."""
    found = fences(text)
    n_meant = len(list(MEANT.finditer(text)))
    if n_meant != len(found):
        yield f"{n_meant} blocks look like code that runs, the parser sees {len(found)}"
    for fence in found:
        first = fence.source.strip().partition("\n")[0]
        name = f"the {fence.language} block {first!r}"
        if not fence.runs and "not-run" not in fence.classes:
            yield f"{name} neither runs nor bears the class .not-run"
        if fence.runs and session is not None and fence.session != session:
            yield f"{name} runs in session {fence.session!r}, not in {session!r}"
        if fence.runs and session is None and fence.session:
            yield f"{name} is included, and has a session: pages would share it"


def session_of(place: Path) -> str | None:
    """The session of a page: its name, or its folder's for an index; None: included."""
    if place.parts[0] == "includes":
        return None
    return place.parent.name or "index" if place.stem == "index" else place.stem


def faults(docs: Path) -> Iterator[str]:
    """What is wrong with the blocks of every file under docs/."""
    seen: dict[str, Path] = {}
    for path in sources(docs):
        place = path.relative_to(docs)
        session = session_of(place)
        text = path.read_text(encoding="utf-8")
        for fault in faults_of(text, session):
            yield f"{place.as_posix()}: {fault}"
        if session and any(fence.runs for fence in fences(text)):
            if session in seen:
                yield f"{place.as_posix()} and {seen[session]} share a session"
            seen[session] = place
