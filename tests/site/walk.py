"""Walks a built site in a real browser: `nox -s site`.

    python tests/site/walk.py [--site site] [--shots site-screenshots] [PAGE ...]

Every page is loaded with an empty cache in light, in dark and at 360 pixels. It must
load without an error on the console, ask nobody but its own host, lead nowhere that is
not there, not scroll sideways on a phone, weigh less than 1.5 MB, set its mathematics,
name its figures, and give axe-core no serious or critical finding by WCAG 2.2 AA.
A picture of each page in each form goes to the folder of screenshots.
"""

import argparse
import os
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import chromium
from links import broken_links, pages_of
from visit import FORMS, look, search

ROOT = Path(__file__).resolve().parents[2]
HOME = "index.html"
Faults = dict[str, list[str]]


def walk(
    site: Path, executable: str, shots: Path | None = None, only: Iterable[str] = ()
) -> Faults:
    """The faults of each page that has any; a line for each page as it goes."""
    pages = pages_of(site)
    names = list(only) or list(pages)
    faults: Faults = {name: [] for name in names}
    for name, fault in broken_links(site, pages):
        if name in faults:
            faults[name].append(fault)
    # A few browsers, each with a part of the pages: neighbours are long alike.
    n_browsers = min(4, os.cpu_count() or 1, len(names))
    parts = [names[i::n_browsers] for i in range(n_browsers)]
    with ProcessPoolExecutor(len(parts), get_context("spawn")) as pool:
        for found in pool.map(partial(walk_part, site, executable, shots), parts):
            for name, more in found.items():
                faults[name] += more
    return {name: found for name, found in faults.items() if found}


def walk_part(
    site: Path, executable: str, shots: Path | None, names: list[str]
) -> Faults:
    """These pages in one browser, in every form."""
    faults: Faults = {}
    with chromium.opened(executable, site) as opened:
        for name in names:
            faults[name], heaviest = [], 0
            for form in FORMS:
                found, weight = look(opened, name, form, shots)
                heaviest = max(heaviest, weight)
                faults[name] += [f"{form.name}: {fault}" for fault in found]
            if name == HOME:
                faults[name] += search(opened, name, "attention")
            print(f"{heaviest / 1000:6.0f} kB  {name}", flush=True)
    return faults


def main() -> int:
    """0 if no page has a fault, or if there is no browser and no CI to insist."""
    parser = argparse.ArgumentParser(description="Walks a built site in Chromium.")
    parser.add_argument("--site", type=Path, default=ROOT / "site")
    parser.add_argument("--shots", type=Path, default=ROOT / "site-screenshots")
    parser.add_argument("pages", nargs="*", help="only these, by their path")
    options = parser.parse_args()
    executable = chromium.find()
    if executable is None:
        needed = bool(os.environ.get("CI"))
        print(f"site: {'failed' if needed else 'skipped'}, {chromium.HOW_TO_GET_ONE}")
        return 1 if needed else 0
    faults = walk(options.site.resolve(), executable, options.shots, options.pages)
    for name, found in faults.items():
        print(name, *(f"    {fault}" for fault in found), sep="\n")
    n_faults = sum(len(found) for found in faults.values())
    print(f"{n_faults} faults on {len(faults)} pages; pictures in {options.shots}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
