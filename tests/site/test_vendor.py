"""What npm brought is copied whole, or the build ends: docs/vendor.py."""

import runpy
from pathlib import Path

import pytest

VENDOR = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "vendor.py"))
copy, WANTED = VENDOR["copy"], VENDOR["WANTED"]


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """A node_modules that holds a file for each pattern."""
    for patterns in WANTED.values():
        for pattern in patterns:
            file = tmp_path / "node_modules" / pattern.replace("*", "any")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(pattern)
    return tmp_path / "node_modules"


def test_each_file_is_copied_to_its_folder(modules: Path, tmp_path: Path) -> None:
    n_files = copy(modules, tmp_path / "vendor")
    files = [path for path in (tmp_path / "vendor").rglob("*") if path.is_file()]
    assert len(files) == n_files == sum(map(len, WANTED.values()))
    assert (tmp_path / "vendor" / "katex" / "katex.min.js").is_file()
    assert (tmp_path / "vendor" / "licences" / "katex.txt").is_file()


def test_a_file_that_a_new_version_lacks_ends_the_build(
    modules: Path, tmp_path: Path
) -> None:
    (modules / "katex" / "dist" / "katex.min.js").unlink()
    with pytest.raises(SystemExit, match=r"katex\.min\.js"):
        copy(modules, tmp_path / "vendor")


def test_what_an_older_build_left_is_gone(modules: Path, tmp_path: Path) -> None:
    left = tmp_path / "vendor" / "fonts" / "old.woff2"
    left.parent.mkdir(parents=True)
    left.write_text("")
    copy(modules, tmp_path / "vendor")
    assert not left.exists()
