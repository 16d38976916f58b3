"""Tries every lab as a reader would: JupyterLab in a browser, Run All, three changes.

    python tests/labs/try_in_lab.py [STEM ...]

Each change is one that a `# try` of the lab proposes. Works on a copy of the labs, in a
folder of its own. Not among the tests: it takes half a minute a lab, and needs Jupyter
(the extra `labs`), playwright and a Chromium. LAB_SHOTS names a folder for pictures.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "site"))
import chromium  # noqa: E402

NOTEBOOKS = ROOT / "docs" / "notebooks"
LONGEST = 240_000  # milliseconds for a lab from top to bottom
TOKEN = "labs"  # for this server alone, which listens on the loopback
N_CHANGES = 3
# `word = " king"  # try " bread", ...` becomes `word = " bread"`; a list loses its
# first; another head is the next one; a text gets one more word.
CHANGES = (
    (re.compile(r'(\w+ = )[^#\[]+  # try ("[^"]*"|-?[\d.]+)(,.*)?'), r"\1\2"),
    (re.compile(r"(\w+ = \[)[^,\]{(]+, ([^#]+\])  # try.*"), r"\1\2"),
    (re.compile(r"(layer, head.* = 0, )0(.*)  # try.*"), r"\g<1>1\2"),
    (re.compile(r'([\w, ]+ = "[^"]*)("[^#\[]*)  # try.*'), r"\1 again\2"),
)
# Every cell in the page, not only those in sight.
SETTINGS = "@jupyterlab/notebook-extension/tracker.jupyterlab-settings"
ALL_DONE = r"""() => [...document.querySelectorAll('.jp-CodeCell .jp-InputArea-prompt')]
    .every((prompt) => /\[\d+\]/.test(prompt.textContent))"""


@contextmanager
def jupyter(folder: Path) -> Iterator[str]:
    """JupyterLab on a free port, with settings of its own; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = folder / "settings" / SETTINGS
    settings.parent.mkdir(parents=True)
    settings.write_text('{"windowingMode": "none"}', encoding="utf-8")
    server = subprocess.Popen(
        [
            *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
            *(f"--port={port}", f"--IdentityProvider.token={TOKEN}"),
            f"--ServerApp.root_dir={folder / 'notebooks'}",
        ],
        env={
            **os.environ,
            "JUPYTER_CONFIG_DIR": str(folder / "config"),
            "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}/"
    try:
        wait_for(f"{address}api?token={TOKEN}")
        yield address
    finally:
        server.terminate()
        server.wait()


def wait_for(address: str) -> None:
    """Until somebody answers there; two minutes at most."""
    for _ in range(240):
        try:
            urllib.request.urlopen(address).close()
        except OSError:
            time.sleep(0.5)
        else:
            return
    raise SystemExit("JupyterLab does not start")


def wait_until_idle(page: Page) -> None:
    """Until every cell has run and none is waiting."""
    page.wait_for_timeout(1000)
    page.wait_for_function(ALL_DONE, timeout=LONGEST)


def run_all(page: Page) -> None:
    """By the menu, again where the kernel was not there yet and nothing began."""
    begun = page.locator(".jp-InputArea-prompt").filter(has_text=re.compile(r"[*\d]"))
    for _ in range(20):
        dialog = page.locator("dialog.jp-Dialog")
        if dialog.count():  # on a slow machine: which kernel?
            print("    asked:", " ".join(dialog.first.inner_text().split())[:120])
            page.keyboard.press("Enter")
            page.wait_for_timeout(1000)
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        page.wait_for_timeout(3000)
        if begun.count():
            return


def changed(line: str) -> str | None:
    """A line with another value, where a `# try` asks for one."""
    for pattern, new in CHANGES:
        if pattern.fullmatch(line):
            return pattern.sub(new, line)
    return None


def change(page: Page, line: str) -> str:
    """Puts the changed line in a line's place and runs its cell; the new line."""
    new = changed(line)
    page.locator(".cm-line").filter(has_text=line).first.click()
    page.keyboard.press("Home")
    page.keyboard.press("Shift+End")
    page.keyboard.insert_text(new.strip())  # Home stops at the first letter
    page.keyboard.press("Control+Enter")
    wait_until_idle(page)
    return new


def faults(path: Path) -> Iterator[str]:
    """The cells of a saved notebook that did not run or that failed."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        if not cell.execution_count:
            yield f"{path.stem}, {cell.id}: did not run"
        for output in cell.outputs:
            if output.output_type == "error" or output.get("name") == "stderr":
                yield f"{path.stem}, {cell.id}: {output}"


def try_lab(page: Page, address: str, path: Path) -> list[str]:
    """Opens a lab, runs all of it, changes three values; its faults."""
    page.goto(f"{address}lab/tree/{path.name}?token={TOKEN}&reset")
    page.locator(".jp-Notebook .jp-CodeCell").first.wait_for(timeout=LONGEST)
    page.wait_for_timeout(3000)
    run_all(page)
    wait_until_idle(page)
    sources = [c.source for c in nbformat.read(path, 4).cells if c.cell_type == "code"]
    lines = [line for source in sources for line in source.splitlines()]
    made = [change(page, line) for line in list(filter(changed, lines))[:N_CHANGES]]
    page.keyboard.press("Control+s")
    page.wait_for_timeout(2000)
    if shots := os.environ.get("LAB_SHOTS"):
        page.screenshot(path=Path(shots) / f"{path.stem}.png")
    n_sliders = page.locator(".widget-inline-hbox input, .noUi-target").count()
    found = list(faults(path))
    if len(made) < N_CHANGES:
        found.append(f"{path.stem}: only {len(made)} values to change")
    print(f"{path.stem}: {n_sliders} sliders, {len(found)} faults; {made}", flush=True)
    return found


def in_a_lab_of_its_own(browser: Browser, folder: Path, stem: str) -> list[str]:
    """A fresh JupyterLab on a copy of the labs: no kernel is left from another."""
    shutil.copytree(NOTEBOOKS, folder / "notebooks")
    with jupyter(folder) as address:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(120_000)
        found = try_lab(page, address, folder / "notebooks" / f"{stem}.ipynb")
        page.close()
    return found


def main() -> int:
    """0 if no lab has a fault."""
    executable = chromium.find()
    if executable is None:
        raise SystemExit(chromium.HOW_TO_GET_ONE)
    stems = sys.argv[1:] or [lab.stem for lab in sorted(NOTEBOOKS.glob("*.ipynb"))]
    found = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable, args=list(chromium.QUIET)
        )
        for stem in stems:
            with tempfile.TemporaryDirectory() as folder:
                found += in_a_lab_of_its_own(browser, Path(folder), stem)
        browser.close()
    print(*found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
