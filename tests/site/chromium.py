"""A headless Chromium that is found on this machine and talks to nobody else."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright
from served import Served, serve

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "msedge",
)
HOW_TO_GET_ONE = (
    "no Chromium found: install one (Debian: apt-get install chromium; elsewhere: "
    "python -m playwright install chromium) or name it in GPT2HW_CHROMIUM"
)
QUIET = (
    "--no-sandbox",  # a container's root may have no other way
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


def find() -> str | None:
    """The path of a Chromium: GPT2HW_CHROMIUM, one on PATH, or Playwright's own."""
    named = os.environ.get("GPT2HW_CHROMIUM")
    on_path = (shutil.which(name) for name in ([named] if named else NAMES))
    found = next((path for path in on_path if path), None)
    return found or (None if named else _playwrights_own())


def _playwrights_own() -> str | None:
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).is_file() else None


@dataclass(frozen=True)
class Opened:
    """A browser, and the site that it looks at."""

    browser: Browser
    served: Served


@contextmanager
def opened(executable: str, site: Path) -> Iterator[Opened]:
    """The site served on the loopback, and a browser; both closed at the end."""
    with serve(site) as served, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable, args=list(QUIET)
        )
        try:
            yield Opened(browser, served)
        finally:
            browser.close()
