"""A skipped test is a failed one, unless its reason is listed and holds here."""

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from allowed_skips import ALLOWED, is_allowed, is_listed

TESTS = Path(__file__).parent

PLANTED = """
import pytest

def test_in_its_body(): pytest.skip("not today")

@pytest.mark.skip(reason="not today")
def test_by_a_mark(): ...

@pytest.mark.skip
def test_by_a_bare_mark(): ...

@pytest.mark.skipif(True, reason="not today")
def test_by_a_condition(): ...

@pytest.fixture
def weights(): pytest.skip("not today")

def test_in_a_fixture(weights): ...

def test_for_a_library(): pytest.importorskip("no_such_library")

@pytest.mark.parametrize("n", [])
def test_without_cases(n): ...

@pytest.mark.xfail(reason="not today")
def test_expected_to_fail(): raise ValueError

@pytest.mark.xfail(reason="not today", run=False)
def test_expected_to_fail_unseen(): raise ValueError

@pytest.mark.skip(reason="needs named pipes, or so")
def test_with_more_than_a_listed_reason(): ...
"""
SKIPPED_WHILE_READ = """
import pytest

pytest.skip("not today", allow_module_level=True)
"""
ALLOWED_ONES = """
import pytest

@pytest.mark.skip(reason="the folder of gpt2 has no config.json")
def test_whose_reason_is_listed(): ...

def test_that_runs(): ...
"""


def run_pytest(folder: Path, text: str) -> tuple[int, dict[str, str]]:
    """The exit status, and each test's outcome, of a plain run in a folder.

    The folder has one test file and this project's conftest.py.
    """
    for name in ("conftest.py", "allowed_skips.py"):
        shutil.copy(TESTS / name, folder)
    (folder / "test_planted.py").write_text(text, encoding="utf-8")
    options = ["-c", TESTS.parent / "pyproject.toml", "--rootdir", folder, "-rA"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, folder],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
    )
    lines = re.findall(
        r"^([A-Z]+) test_planted\.py(?:::(\w+))?", done.stdout, re.MULTILINE
    )
    return done.returncode, {name: outcome for outcome, name in lines}


def test_a_skip_without_a_listed_reason_fails_the_run(tmp_path: Path) -> None:
    status, outcomes = run_pytest(tmp_path, PLANTED)
    planted = re.findall(r"^def (test_\w+)", PLANTED, re.MULTILINE)
    assert len(planted) == 10
    assert status == 1
    assert set(outcomes) == set(planted)
    # What goes wrong before a test's body is an error in pytest's words.
    assert set(outcomes.values()) == {"FAILED", "ERROR"}


def test_a_file_that_is_skipped_while_it_is_read_fails_the_run(tmp_path: Path) -> None:
    status, outcomes = run_pytest(tmp_path, SKIPPED_WHILE_READ)
    assert (status, outcomes) == (2, {"": "ERROR"})


def test_a_skip_for_a_listed_reason_is_let_through(tmp_path: Path) -> None:
    status, outcomes = run_pytest(tmp_path, ALLOWED_ONES)
    assert status == 0
    assert outcomes == {"test_that_runs": "PASSED"}  # pytest names no skipped test


def reasons(tree: ast.Module) -> Iterator[str]:
    """The reasons of skips in a file; of an f-string, with X for what is filled in."""
    named = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr in {"skip", "skipif", "xfail"}:
            given = [k.value for k in node.keywords if k.arg == "reason"]
            given += node.args[:1] if node.func.attr != "skipif" else []
            yield text_of(given[0], named) if given else ""


def text_of(node: ast.expr, named: dict[str, ast.expr]) -> str:
    """A string as it is written, there or under a name at the top of the file."""
    if isinstance(node, ast.Name) and node.id in named:
        return text_of(named[node.id], {})
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(value, named) for value in node.values)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return "X"


FILES = sorted(TESTS.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(TESTS).as_posix())
def test_every_reason_in_the_tests_is_listed_whatever_the_machine(path: Path) -> None:
    found = list(reasons(ast.parse(path.read_text(encoding="utf-8"))))
    assert not [reason for reason in found if not is_listed(reason)]


def test_a_reason_of_another_machine_is_not_allowed_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reason = "needs POSIX signals or terminals"
    monkeypatch.setattr("allowed_skips.os", SimpleNamespace(name="posix"))
    assert is_listed(reason)
    assert not is_allowed(reason)
    monkeypatch.setattr("allowed_skips.os", SimpleNamespace(name="nt"))
    assert is_allowed(reason)


def test_every_listed_reason_says_why_and_is_a_text_of_its_own() -> None:
    for allowed in ALLOWED:
        assert len(allowed.why) > 20, allowed.reason
        assert not re.fullmatch(allowed.reason, "not today")
        assert not re.fullmatch(allowed.reason, "")
