"""A book of three pages in the frame of the real one, to plant faults in.

It has the real configuration, templates and checks, but one chapter, one entry in the
reference, and a package of one small room, so that a build takes a second or two.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import check_build
import fences
from mkdocs.utils.yaml import yaml_load
from pages import all_pages

ROOT = Path(__file__).parent.parent.parent
CHAPTER = "steps/step2_pairs.md"
ROOM = '''\
"""Pairs."""

from itertools import pairwise


def find_lowest(parts: list[str], ranks: dict) -> tuple[int, int] | None:
    """Rank and position of the pair to merge next.

    This paragraph stands in the reference alone.
    """
    ranked = [(ranks[p], i) for i, p in enumerate(pairwise(parts)) if p in ranks]
    return min(ranked, default=None)


def later() -> None:
    """Soon."""
'''
TEXT = """\
---
description: How the lowest pair is found.
---

# Merges

::: gpt2hw.pairs.find_lowest

[The entry][gpt2hw.pairs.find_lowest].

```python exec="on" source="above" session="step2_pairs" result="text"
from gpt2hw.pairs import find_lowest

print(find_lowest(["a", "b", "a", "b"], {("a", "b"): 7}))
```

<p class="made-by">No model.</p>
"""
ENTRY = """\
# pairs

::: gpt2hw.pairs
    options:
      extra: {as: api}
"""
NAVIGATION = f"""
nav:
  - Home: index.md
  - {CHAPTER}
  - reference/api/pairs.md
"""


@dataclass
class Book:
    """A folder with a book in it."""

    root: Path

    @property
    def chapter(self) -> Path:
        return self.root / "docs" / CHAPTER

    @property
    def room(self) -> Path:
        return self.root / "src" / "gpt2hw" / "pairs.py"

    @property
    def page(self) -> str:
        """The chapter as it was built."""
        place = check_build.page_of(CHAPTER)
        return (self.root / "site" / place).read_text(encoding="utf-8")

    def edit(self, path: Path, old: str, new: str) -> None:
        """Puts `new` in the place of `old`, which must stand there."""
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{path.name} has no {old!r}"
        path.write_text(text.replace(old, new), encoding="utf-8")

    def build(self) -> subprocess.CompletedProcess[str]:
        """`docs/build.py`, up to the pages."""
        code = "import build; build.make_pages(build.ROOT / 'site')"
        path = [str(self.root / "src"), str(self.root / "docs")]
        return subprocess.run(
            [sys.executable, "-c", code],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    def faults(self) -> Iterator[str]:
        """Those checks after a build that ask for no more than pages."""
        text = (self.root / "mkdocs.yml").read_text(encoding="utf-8")
        sources = list(check_build.nav_pages(yaml_load(text)["nav"]))
        site = self.root / "site"
        made = all_pages(site)
        later = {check_build.BOOK, "assets/social.png"}
        for fault in check_build.missing(site, sources):
            if fault.split()[0] not in later:
                yield fault
        yield from fences.faults(self.root / "docs")
        yield from check_build.unfinished(made, sources)
        yield from check_build.foreign(site, made)


def write(root: Path) -> Book:
    """The little book in an empty folder."""
    docs, package = root / "docs", root / "src" / "gpt2hw"
    for folder in (docs / "steps", docs / "reference" / "api", package):
        folder.mkdir(parents=True)
    for folder in ("templates", "includes"):
        shutil.copytree(ROOT / "docs" / folder, docs / folder)
    (docs / "overrides").mkdir()
    shutil.copy(ROOT / "docs" / "build.py", docs)
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    frame, _, _ = config.partition("\nnav:\n")
    # No notebooks here, and what runs them takes seconds to import.
    frame = re.sub(r"  - mkdocs-jupyter:\n(?: {6}.*\n)+", "", frame)
    for path, text in (
        (root / "mkdocs.yml", frame + NAVIGATION),
        (package / "__init__.py", '"""A little package."""\n'),
        (package / "pairs.py", ROOM),
        (docs / "index.md", "# A little book\n"),
        (docs / CHAPTER, TEXT),
        (docs / "reference" / "api" / "pairs.md", ENTRY),
    ):
        path.write_text(text, encoding="utf-8")
    return Book(root)
