"""The walk finds each kind of fault, planted one at a time in a page that has none."""

import os
from collections.abc import Iterator
from pathlib import Path

import chromium
import pytest
import visit
from links import broken_links, pages_of

NAME = "index.html"
SOUND = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>A page</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">
</head><body><main><article><h1 id="top">A page</h1>
<p>It leads <a href="#top">to its top</a>.</p>HERE</article></main></body></html>
"""
KATEX = '<span class="arithmatex">\\(\\nomacro\\)</span>'
MISSING = "no Chromium, or no axe-core in build/npm (nox -s docs brings it)"


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Opened]:
    """A browser for all tests here; the folder that it is served changes."""
    executable = chromium.find()
    if not executable or not visit.AXE.is_file():
        assert not os.environ.get("CI"), MISSING
        pytest.skip(MISSING)
    with chromium.opened(executable, tmp_path_factory.mktemp("site")) as both:
        yield both


def faults(opened: chromium.Opened, html: str, form: visit.Form) -> list[str]:
    """What the walk says of a page with this in its text."""
    page = opened.served.site / NAME
    page.write_text(SOUND.replace("HERE", html), encoding="utf-8")
    found, _ = visit.look(opened, NAME, form)
    pages = pages_of(opened.served.site)
    return [*(fault for _, fault in broken_links(opened.served.site, pages)), *found]


LIGHT, DARK, PHONE = visit.FORMS


@pytest.mark.parametrize("form", visit.FORMS, ids=lambda form: form.name)
def test_a_sound_page_has_no_fault_in_any_form(
    opened: chromium.Opened, form: visit.Form
) -> None:
    assert faults(opened, "", form) == []


PLANTED = {
    "a link to no file": ('<a href="gone.html">gone</a>', "no file gone.html"),
    "a link to no anchor": ('<a href="#gone">gone</a>', "no anchor #gone"),
    "a foreign image": (
        '<img src="https://example.org/a.png" alt="A">',
        "foreign request: https://example.org/a.png",
    ),
    "a foreign script": (
        '<script src="//example.org/a.js"></script>',
        "foreign request: http://example.org/a.js",
    ),
    "a foreign socket": (
        "<script>new WebSocket('ws://example.org/')</script>",
        "console: WebSocket connection to 'ws://example.org/' failed",
    ),
    "a request that fails": ("<script>fetch('gone.json')</script>", "/gone.json"),
    "an error on the console": ("<script>console.error('Oh')</script>", "console: Oh"),
    "an uncaught exception": ("<script>nothing()</script>", "script: nothing is not"),
    "a formula that is not set": (KATEX, "mathematics not set: \\(\\nomacro"),
    "a figure without a name": ('<svg role="img"></svg>', "without a role or a name"),
    "a figure without a role": (
        '<svg aria-label="A"></svg>',
        "without a role or a name",
    ),
    "an image without words": ('<img src="data:," alt="">', "an image without words"),
    "faint text": ('<p style="color:#aaa">faint</p>', "axe color-contrast (serious)"),
    "a nameless field": ("<input>", "axe label (critical)"),
    "buttons too small to be hit": (
        '<button style="all:unset;width:9px;height:9px" aria-label="A"></button>' * 2,
        "axe target-size (serious)",
    ),
    "faint text in a fold": (
        '<details><summary>More</summary><p style="color:#aaa">faint</p></details>',
        "axe color-contrast (serious)",
    ),
}


@pytest.mark.parametrize(("html", "words"), PLANTED.values(), ids=PLANTED.keys())
def test_a_planted_fault_is_found(
    opened: chromium.Opened, html: str, words: str
) -> None:
    found = faults(opened, html, LIGHT)
    assert any(words in fault for fault in found), found


def test_a_wide_element_is_found_on_a_phone(opened: chromium.Opened) -> None:
    wide = '<p id="wide" style="width:500px">wide</p>'
    assert not faults(opened, wide, LIGHT)
    (fault,) = faults(opened, wide, PHONE)
    assert "horizontal scroll: 508 pixels wide in 360" in fault
    assert 'id="wide"' in fault


def test_text_that_spills_out_of_its_box_is_found_on_a_phone(
    opened: chromium.Opened,
) -> None:
    (fault,) = faults(opened, f'<pre id="long">{"x" * 90}</pre>', PHONE)
    assert "horizontal scroll" in fault
    assert 'id="long"' in fault


def test_what_scrolls_by_itself_may_be_wide(opened: chromium.Opened) -> None:
    scrolls = (
        '<div style="overflow:auto" tabindex="0"><p style="width:500px">w</p></div>'
    )
    assert not faults(opened, scrolls, PHONE)


def test_a_colour_that_only_fails_in_the_dark_is_found_there(
    opened: chromium.Opened,
) -> None:
    style = "<style>@media (prefers-color-scheme: dark) {p {color: #aaa}}</style>"
    assert not faults(opened, style, LIGHT)
    assert any("color-contrast" in fault for fault in faults(opened, style, DARK))


def test_a_page_weighs_what_its_load_fetched_by_workers_too(
    opened: chromium.Opened,
) -> None:
    (opened.served.site / "heavy.json").write_bytes(b" " * visit.MOST_BYTES)
    (opened.served.site / "worker.js").write_text("fetch('heavy.json')")
    found = faults(opened, "<script>new Worker('worker.js')</script>", LIGHT)
    assert any(fault.startswith("weighs 1,500,") for fault in found), found


def test_a_page_whose_search_finds_nothing_is_told(opened: chromium.Opened) -> None:
    field = '<label>Search <input role="textbox"></label>'
    assert not faults(opened, field, LIGHT)
    found = visit.search(opened, NAME, "softmax", patience=1)
    assert found == ["the search does not find softmax"]


def test_a_site_without_pages_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="build the site first"):
        pages_of(tmp_path)


def test_links_leave_a_page_in_any_of_their_forms(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b" / "index.html").write_text('<h1 id="ä">A</h1><a href="..">up</a>')
    (tmp_path / "index.html").write_text(
        '<a href="a%20b/#%C3%A4">A</a><a href="mailto:a@example.org">m</a>'
        '<a href="https://example.org/x">x</a><svg><a href="a b/#gone">g</a></svg>'
    )
    found = [fault for _, fault in broken_links(tmp_path, pages_of(tmp_path))]
    assert found == ["broken link a b/#gone: no anchor #gone in a b/index.html"]
