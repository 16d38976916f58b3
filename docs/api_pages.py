"""Writes the pages of the API reference and their part of mkdocs.yml's navigation.

    python docs/api_pages.py

One page a room: the room itself, its rules (`gpt2hw.properties`), its classic mistakes
(`docs/wrong`). Run it after a room has come or gone; tests/site/test_api_pages.py says
when that was forgotten.
"""

import ast
from pathlib import Path

DOCS = Path(__file__).resolve().parent
SOURCE = DOCS.parent / "src" / "gpt2hw"
CONFIG = DOCS.parent / "mkdocs.yml"
PAGES = DOCS / "reference" / "api"

# In the order of the book; a room that stands nowhere comes last, under OTHERS.
GROUPS = {
    "1. Weights": ["header", "safetensors", "config", "layout", "loader", "pretrained"],
    "2. Tokens": ["vocabulary", "splitting", "bpe", "tokenizer", "stream_decoder"],
    "3. to 6. The model": ["embeddings", "linear", "attention", "block", "model"],
    "7. Text": ["sampling", "generation", "stop_strings", "request"],
    "8. The cache": ["kv_cache"],
    "9. and 10. Speed": [
        *(
            "bags",
            "rows",
            "many_rows",
            "fast_block",
            "fast",
            "one_token",
            "fast_cache",
            "huge_pages",
            "mapped",
        ),
        *("batches", "batch_generation", "half", "int8", "precisions"),
    ],
    "Looking inside": [
        "tracing",
        "heads",
        "evaluation",
        "inspection",
        "figures",
        "cli",
    ],
}
OTHERS = "More rooms"
SHARED = "Rules and mistakes"
INDEX = """\
---
description: Every room of the package, in the order of the book, in a line each.
---

# The rooms

One file is one concept. Each page here has a room's functions with their examples, the
rules that guard them, the classic mistakes, and the file as it is.

```python exec="on" session="api"
import api_pages

print(api_pages.first_lines())
```
"""
HEAD = """\
---
description: {description}
---

# {title}
"""
ENTRY = """
::: {name}
    options:
      extra: {{as: api}}
"""


def modules(folder: Path, package: str) -> list[str]:
    """Dotted names of a package and of all that lies in it, or of a single file."""
    if not folder.is_dir():
        return [package]
    inside = sorted(p.stem for p in folder.glob("*.py") if not p.stem.startswith("__"))
    return [package, *(f"{package}.{name}" for name in inside)]


def rooms() -> list[str]:
    """Every room, files and folders alike."""
    files = {path.stem for path in SOURCE.glob("*.py")} - {"__init__", "__main__"}
    folders = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    return sorted((files | folders) - {"properties"})


def room_page(room: str) -> str:
    """The page of one room, its rules and its mistakes."""
    about = f"The API of gpt2hw.{room}: signatures, examples, and the whole file."
    names = modules(SOURCE / room, f"gpt2hw.{room}")
    for folder, package in (
        (SOURCE / "properties", "gpt2hw.properties"),
        (DOCS / "wrong", "wrong"),
    ):
        if (folder / f"{room}.py").is_file():
            names.append(f"{package}.{room}")
    return page(room, about, names)


def page(title: str, about: str, names: list[str]) -> str:
    """A page that shows these modules."""
    head = HEAD.format(title=title, description=f'"{about}"')
    return head + "".join(ENTRY.format(name=name) for name in names)


def rest(folder: Path, package: str) -> list[str]:
    """The modules of a package that stand on no room's page."""
    taken = {f"{package}.{room}" for room in rooms()}
    return [name for name in modules(folder, package) if name not in taken]


def first_lines() -> str:
    """The rooms by group, each with the first line of its docstring, as Markdown."""
    text = ""
    for title, members in groups().items():
        text += f"\n## {title}\n\n"
        for name in members:
            line = _about(name).split("\n")[0].replace("*", r"\*")
            text += f"- [{name}]({name}.html): {line}\n"
    return text


def _about(name: str) -> str:
    """The docstring of a room, or of a package of rules or mistakes."""
    for path in (SOURCE / name, DOCS / name):
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if file.is_file():
            return ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return ""


def pages() -> dict[str, str]:
    """File name -> text, of every page."""
    rules = rest(SOURCE / "properties", "gpt2hw.properties")
    mistakes = rest(DOCS / "wrong", "wrong")
    how = "What the rules of all rooms share: how results are compared, cases drawn."
    which = "The catalogue of the classic mistakes: which rule catches each."
    return {
        "index.md": INDEX,
        **{f"{room}.md": room_page(room) for room in rooms()},
        "properties.md": page("properties", how, rules),
        "wrong.md": page("wrong", which, mistakes),
    }


def groups() -> dict[str, list[str]]:
    """Title -> pages; every room has its place."""
    placed = {room for group in GROUPS.values() for room in group}
    others = [room for room in rooms() if room not in placed]
    return {**GROUPS, OTHERS: others, SHARED: ["properties", "wrong"]}


def navigation() -> str:
    """The lines of mkdocs.yml that list the pages."""
    lines = ["      - API:", "          - The rooms: reference/api/index.md"]
    for title, members in groups().items():
        lines.append(f"          - {title}:")
        lines += [
            f"              - {name}: reference/api/{name}.md" for name in members
        ]
    return "\n".join(lines) + "\n"


def with_navigation(config: str) -> str:
    """mkdocs.yml with its list of API pages written anew."""
    before, start, after = config.partition("      - API:\n")
    _, end, tail = after.partition("\n  - ")
    if not start or not end:
        raise SystemExit("mkdocs.yml: no entry API between others in the navigation")
    return before + navigation() + end.lstrip("\n") + tail


def main() -> None:
    """Writes what has changed and removes what is gone."""
    wanted = pages()
    for path in PAGES.glob("*.md"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (PAGES / name).write_text(text, encoding="utf-8")
    config = CONFIG.read_text(encoding="utf-8")
    CONFIG.write_text(with_navigation(config), encoding="utf-8")


if __name__ == "__main__":
    main()
