"""The checks after a build find what they look for, and nothing on a good page."""

from pathlib import Path

import check_build
import pages
import pytest

GOOD = """\
<!doctype html><html><head>
<meta name="description" content="What is here.">
<link rel="stylesheet" href="assets/site.css"><link rel="license" href="https://a.org/">
<link rel="canonical" href="https://a.org/"></head><body><h1 id="top">Title</h1>
<p>Text with a <a href="https://a.org">link</a>, a <a href="#top">way up</a> and
<a href="other.html#there">another</a>.</p><pre><code>f{.2}</code></pre>
<img src="data:image/png;base64,iVBORw0KGgo=" alt="A dot."></body></html>
"""
OTHER = '<h1 id="there">Other</h1>'


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "site.css").write_text("p {color: red}", encoding="utf-8")
    (tmp_path / "index.html").write_text(GOOD, encoding="utf-8")
    (tmp_path / "other.html").write_text(OTHER, encoding="utf-8")
    return tmp_path


def told(site: Path) -> list[str]:
    made = pages.all_pages(site)
    return [
        *check_build.unfinished(made, ["index.md"]),
        *check_build.foreign(site, made),
        *check_build.dead_links(site, made),
    ]


def test_a_good_page_has_no_fault(site: Path) -> None:
    assert told(site) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("assets/site.css", "https://cdn.org/site.css"),
        ("assets/site.css", "//cdn.org/site.css"),
        ("<body>", '<body><script src="https://cdn.org/x.js"></script>'),
        ("<body>", '<body><iframe src="http://cdn.org"></iframe>'),
        ("<body>", '<body><img srcset="a.png 1x, https://cdn.org/b.png 2x">'),
        ("<body>", '<body><svg><use href="https://cdn.org/i.svg#a"></use></svg>'),
        ("<body>", '<body style="background: url(https://cdn.org/b.png)">'),
        ("<body>", "<body><style>@import '//cdn.org/x.css';</style>"),
        ('<link rel="canonical"', '<link rel="preconnect"'),
        ("#top", "#bottom"),
        ("other.html#there", "other.html#nowhere"),
        ("other.html#there", "gone.html"),
        ("<h1", "<h2"),
        ("f{.2}", "\n"),
        ("Text", '```python exec="on"'),
        ("Text", "python exec=on"),
        ("Text", "{: .big }"),
        ("Text", "[softmax][gpt2hw.attention.softmax]"),
        ("Text", '--8<-- "made_by.md"'),
        ("Text", "\n::: gpt2hw.attention.softmax"),
    ],
)
def test_each_fault_is_found(site: Path, old: str, new: str) -> None:
    assert old in GOOD
    (site / "index.html").write_text(GOOD.replace(old, new, 1), encoding="utf-8")
    assert told(site)


def test_a_style_sheet_that_fetches_from_another_host_is_found(site: Path) -> None:
    sheet = site / "assets" / "site.css"
    sheet.write_text("@font-face {src: url('https://fonts.org/a.woff2')}", "utf-8")
    assert told(site)


def test_a_chapter_says_which_model_made_its_outputs(site: Path) -> None:
    (site / "steps").mkdir()
    chapter = site / "steps" / "step1.html"
    chapter.write_text(OTHER, encoding="utf-8")
    assert any("which model" in fault for fault in told(site))
    chapter.write_text(OTHER + '<p class="made-by">tiny</p>', encoding="utf-8")
    assert not told(site)


def test_every_page_has_a_description_of_its_own(site: Path) -> None:
    (site / "other.html").write_text(GOOD, encoding="utf-8")
    made, sources = pages.all_pages(site), ["index.md", "other.md"]
    faults = list(check_build.head(made, sources, has_address=True))
    assert any("its description is index.html's" in fault for fault in faults)


def test_an_address_asks_for_canonical_links(site: Path) -> None:
    made, sources = pages.all_pages(site), ["other.md"]
    faults = list(check_build.head(made, sources, has_address=True))
    assert any("no canonical address" in fault for fault in faults)


@pytest.mark.parametrize("mark", ["noqa", "noqa: S101", "type: ignore[misc]"])
def test_what_a_linter_is_told_is_found_in_taught_code(site: Path, mark: str) -> None:
    code = GOOD.replace("f{.2}", f"f(2)  # {mark}")
    (site / "index.html").write_text(code, encoding="utf-8")
    (fault,) = check_build.told_to_linters(pages.all_pages(site))
    assert fault.startswith("index.html: shows")
    (site / "reference" / "api").mkdir(parents=True)
    (site / "index.html").rename(site / "reference" / "api" / "room.html")
    assert not list(check_build.told_to_linters(pages.all_pages(site)))


def test_a_path_of_the_building_machine_is_found(site: Path) -> None:
    here = GOOD.replace("Text", f"From {check_build.ROOT}/src.")
    (site / "index.html").write_text(here, encoding="utf-8")
    assert list(check_build.of_this_machine(pages.all_pages(site)))


def test_an_installed_package_that_is_not_the_source_is_found(tmp_path: Path) -> None:
    for folder in ("source", "installed"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "room.py").write_text(folder, encoding="utf-8")
    source, installed = tmp_path / "source", tmp_path / "installed"
    assert list(check_build.not_the_source(source, installed))
    assert not list(check_build.not_the_source(source, source))
