"""What docs/build.py is asked for and cannot do ends in one line, before any page."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def build(*arguments: str, model: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "docs/build.py", *arguments],
        cwd=ROOT,
        env={**os.environ, "GPT2HW_MODEL": model, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.mark.parametrize(
    ("page", "model", "named"),
    [
        ("steps/step3_embeddings.md", "./no-such-folder", "no-such-folder"),
        ("steps/no_such_step.md", "tiny", "no_such_step.md"),
    ],
)
def test_a_model_or_a_page_that_is_not_there_ends_the_build(
    tmp_path: Path, page: str, model: str, named: str
) -> None:
    done = build("--page", page, "--site", str(tmp_path / "site"), model=model)
    assert done.returncode == 1
    assert named in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize("options", [[], ["--page", "about/licence.md"]])
def test_a_folder_that_holds_anything_but_a_site_is_not_emptied(
    tmp_path: Path, options: list[str]
) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    done = build(*options, "--site", str(tmp_path), model="tiny")
    assert done.returncode == 1
    assert "would be emptied" in done.stderr
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"


def test_no_page_asks_for_a_form_of_date_that_windows_lacks() -> None:
    for template in (ROOT / "docs" / "overrides").rglob("*.html"):
        found = re.findall(r"strftime\([^)]*%-", template.read_text(encoding="utf-8"))
        assert not found, template.name
