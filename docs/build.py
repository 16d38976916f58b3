"""Builds the site, and what can only be made beside it.

    python docs/build.py                    all of it into site/, strictly, and checked
    python docs/build.py --serve            the pages at http://localhost:8000, made
                                            anew when a page changes; after a change
                                            of the package, start it again
    python docs/build.py --draft            all pages, past warnings (a link to a page
                                            that is not written yet), unchecked
    python docs/build.py --page steps/step4a_attention.md --site FOLDER
                                            one page, in seconds, without the checks

`GPT2HW_MODEL` names the model that makes the outputs (a name or a folder; tiny unless
set), `GPT2HW_SITE_URL` and `GPT2HW_REPO_URL` the addresses of the site and of the code.
"""

import argparse
import os
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
BOOK = "gpt2hw-book.zip"

# A config for one page: the rest is left out of the build, and so are the links to it.
ONE_PAGE = """\
INHERIT: mkdocs.yml
strict: false
exclude_docs: |
  /**/*.md
  /**/*.ipynb
  *.py
  /wrong/
  /templates/
  /overrides/
  /includes/
  /package.json
  !/{page}
nav: [{page}]
"""


def environment() -> dict[str, str]:
    """What the pages need: docs/ to import `wrong` from, and the version to name."""
    path = [str(DOCS), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
        "GPT2HW_VERSION": version("gpt2hw"),
        "MPLBACKEND": "Agg",
        "GPT2HW_STILL": "1",  # no sliders in a lab: on a page they are dead
        "NO_MKDOCS_2_WARNING": "1",  # a notice of the theme's
    }


def python(*command: str, given: str | None = None) -> None:
    """Runs Python on `command`, from the top of the repository; its failure is ours."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment(),
        input=given,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.returncode)


def vendor() -> None:
    """Fonts, KaTeX and what else npm carries, into docs/assets/vendor."""
    python(str(DOCS / "vendor.py"))


def pack(site: Path) -> None:
    """The whole site as one file, to unpack and read without a network."""
    book = site / BOOK
    book.unlink(missing_ok=True)
    files = sorted(path for path in site.rglob("*") if path.is_file())
    with zipfile.ZipFile(book, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files:
            archive.write(path, Path("gpt2hw-book") / path.relative_to(site))


def checked_site(site: Path) -> Path:
    """The folder for the site, which a build empties: it may hold an older site."""
    is_ours = site == ROOT / "site" or (site / "404.html").is_file()
    if is_ours or not site.exists() or (site.is_dir() and not any(site.iterdir())):
        return site
    raise SystemExit(f"--site: {site} holds something else, and would be emptied")


def make_pages(site: Path, *, draft: bool = False) -> None:
    """Every page. What was there goes first: it could hide what is missing."""
    shutil.rmtree(site, ignore_errors=True)
    strictly = "--no-strict" if draft else "--strict"
    python("-m", "mkdocs", "build", strictly, "--site-dir", str(site))


def clean_search(site: Path) -> None:
    """Takes the labs' code out of the search, where the build got so far."""
    if (site / "search").is_dir():
        python(str(DOCS / "labs_in_search.py"), str(site))


def build(site: Path) -> None:
    """The whole site, checked."""
    make_pages(site)
    # A block may have ended that command quietly: then there is no site to add to.
    if site.is_dir():
        clean_search(site)
        python(str(DOCS / "social.py"), str(site / "assets" / "social.png"))
        pack(site)
    python(str(ROOT / "tests" / "site" / "check_build.py"), str(site))


def try_the_model() -> None:
    """Ends in one line where the model that is to make the outputs cannot be had."""
    from gpt2hw import GPT2HWError
    from gpt2hw.figures import running

    try:
        running()
    except GPT2HWError as error:
        raise SystemExit(f"GPT2HW_MODEL: {error}") from None


def build_one(page: str, site: Path) -> None:
    """One page into `site`; links to pages that are left out are not followed."""
    if not (DOCS / page).is_file():
        raise SystemExit(f"--page: docs/ has no {page}")
    config = ONE_PAGE.format(page=page)
    command = ["mkdocs", "build", "--config-file", "-", "--site-dir", str(site)]
    python("-m", *command, given=config)
    clean_search(site)


def main() -> None:
    """Does what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--page", help="only this page, by its path under docs/")
    parser.add_argument("--site", type=Path, default=ROOT / "site")
    parser.add_argument("--serve", action="store_true", help="build and watch")
    parser.add_argument("--draft", action="store_true", help="go on past warnings")
    options = parser.parse_args()
    site = checked_site(options.site.resolve())
    try_the_model()
    if options.page:
        build_one(options.page, site)
        return
    vendor()
    if options.serve:
        python("-m", "mkdocs", "serve", "--livereload")
        return
    if options.draft:
        make_pages(site, draft=True)
        clean_search(site)
        return
    build(site)


if __name__ == "__main__":
    main()
