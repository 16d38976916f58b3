"""Labs in the search: their titles and prose, not their code and outputs.

`python docs/labs_in_search.py SITE` rewrites the index that the build has made. There,
all that a lab's cells hold stands in its first entry, which has no section.
"""

import json
import sys
from pathlib import Path

LABS = "notebooks/"


def prose_alone(entry: dict[str, str]) -> dict[str, str]:
    """An entry of the index; a lab's without code, and without its heading's mark."""
    if not entry["location"].startswith(LABS):
        return entry
    whole = "#" not in entry["location"]
    title = entry["title"].removesuffix("¶")
    return {**entry, "title": title, "text": "" if whole else entry["text"]}


def rewrite(index: Path) -> None:
    """The index as JSON, or as a script that holds the same JSON."""
    text = index.read_text(encoding="utf-8")
    start, end = text.index("{"), text.rindex("}") + 1
    found = json.loads(text[start:end])
    found["docs"] = [prose_alone(entry) for entry in found["docs"]]
    made = json.dumps(found, separators=(",", ":"))
    index.write_text(text[:start] + made + text[end:], encoding="utf-8")


if __name__ == "__main__":
    for path in sorted(Path(sys.argv[1]).glob("search/search_index.*")):
        rewrite(path)
