"""What docs/build.py is asked for and cannot do ends in one line, before any page."""

import os
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
