"""One page in one form, as a browser with an empty cache sees it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from chromium import Opened
from playwright.sync_api import ConsoleMessage, Error, Page, Route

ROOT = Path(__file__).resolve().parents[2]
CHECKS = Path(__file__).with_name("checks.js")
AXE = ROOT / "build" / "npm" / "node_modules" / "axe-core" / "axe.min.js"
MOST_BYTES = 1_500_000


@dataclass(frozen=True)
class Form:
    """A way to look at a page."""

    name: str
    width: int
    height: int
    scheme: str


FORMS = (
    Form("light", 1360, 900, "light"),
    Form("dark", 1360, 900, "dark"),
    Form("phone", 360, 740, "light"),
)


@dataclass
class Visit:
    """What was heard while a page loaded; foreign requests are stopped."""

    address: str
    faults: list[str] = field(default_factory=list)

    def console(self, message: ConsoleMessage) -> None:
        """Errors are faults; the rest is talk."""
        if message.type == "error":
            where = message.location.get("url", "")
            self.faults.append(f"console: {message.text} {where}".strip())

    def script(self, error: object) -> None:
        """A script that nobody caught."""
        self.faults.append(f"script: {error}")

    def request(self, route: Route) -> None:
        """Only the site's own host may be asked."""
        if route.request.url.startswith(self.address):
            route.continue_()
        else:
            self.faults.append(f"foreign request: {route.request.url}")
            route.abort()


@contextmanager
def visited(opened: Opened, name: str, form: Form) -> Iterator[tuple[Page, Visit]]:
    """The page when all is quiet, and the visit that collects its faults."""
    context = opened.browser.new_context(
        viewport={"width": form.width, "height": form.height},
        color_scheme=form.scheme,
        reduced_motion="reduce",
        service_workers="block",
    )
    try:
        page, visit = context.new_page(), Visit(opened.served.address)
        page.on("console", visit.console)
        page.on("pageerror", visit.script)
        context.route("**/*", visit.request)
        opened.served.reset()
        page.goto(opened.served.address + name, wait_until="networkidle")
        yield page, visit
    finally:
        context.close()


def look(
    opened: Opened, name: str, form: Form, shots: Path | None = None
) -> tuple[list[str], int]:
    """The faults of a page in a form, and the bytes of its cold load."""
    if not AXE.is_file():
        raise ValueError(f"no {AXE.relative_to(ROOT)}: build the site (nox -s docs)")
    with visited(opened, name, form) as (page, visit):
        weight = sum(opened.served.bodies().values())
        faults = visit.faults
        faults += [f"failed request: {path}" for path in opened.served.failed()]
        if weight > MOST_BYTES:
            faults.append(f"weighs {weight:,} bytes, more than {MOST_BYTES:,}")
        if shots:
            picture = name.removesuffix(".html").replace("/", "-")
            path = shots / f"{picture}-{form.name}.png"
            page.screenshot(path=path, full_page=True)
        faults += from_inside(page, is_phone=form.width <= 480)
    return faults, weight


def search(opened: Opened, name: str, word: str, patience: float = 20) -> list[str]:
    """The search of a page must find the word, in so many seconds."""
    with visited(opened, name, FORMS[0]) as (page, visit):
        page.set_default_timeout(patience * 1000)
        try:
            page.get_by_role("textbox", name="Search").press_sequentially(word)
            page.locator(".md-search-result__item").first.wait_for()
        except Error:
            return [*visit.faults, f"the search does not find {word}"]
        return visit.faults


def from_inside(page: Page, *, is_phone: bool) -> list[str]:
    """What checks.js finds."""
    page.add_script_tag(path=CHECKS)
    page.add_script_tag(path=AXE)
    faults = page.evaluate("() => [...checks.formulas(), ...checks.pictures()]")
    if is_phone:
        faults += page.evaluate("() => checks.sideways()")
    return faults + page.evaluate("() => checks.access()")
