"""The labs: how they are stored, and that each runs alone, top to bottom."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

import gpt2hw
from labs import CHAPTERS, LABS, code, printed, run, runs, stored

each_lab = pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.stem)
SLUG = re.compile(r"[a-z]+(-[a-z0-9]+)*")
INSTALL = "install"


def first_cell(lab: Path) -> str:
    """The source of the first cell that runs."""
    return code(stored(lab))[0].source


def test_there_is_a_lab_for_each_chapter() -> None:
    assert [lab.stem for lab in LABS] == [chapter.stem for chapter in CHAPTERS]


@each_lab
def test_a_lab_is_stored_without_outputs_and_with_ids_that_last(lab: Path) -> None:
    notebook = stored(lab)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    for cell in code(notebook):
        assert not cell.outputs, f"{cell.id} has outputs"
        assert cell.execution_count is None, f"{cell.id} has a number"
    ids = [cell.id for cell in notebook.cells]
    assert len(set(ids)) == len(ids)
    assert ids[:3] == ["title", INSTALL, "setup"]
    for name in ids:  # names, not the random letters of an editor
        assert SLUG.fullmatch(name), name


@each_lab
def test_a_lab_asks_for_a_kernel_that_everyone_has(lab: Path) -> None:
    assert stored(lab).metadata.kernelspec == {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    }


@each_lab
def test_the_first_cell_is_the_same_everywhere_and_tells_where_python_is(
    lab: Path,
) -> None:
    assert first_cell(lab) == first_cell(LABS[0])
    told = printed(code(runs()[lab].result())[0])
    assert told == f"gpt2hw {gpt2hw.__version__} in {sys.executable}\n"


def first_cell_without(missing: str) -> subprocess.CompletedProcess[str]:
    """The first cell, run where one package is not installed."""
    without = f"import sys; sys.modules[{missing!r}] = None\n" + first_cell(LABS[0])
    return subprocess.run(
        [sys.executable, "-c", without],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def test_the_first_cell_asks_for_no_hypothesis() -> None:
    assert first_cell_without("hypothesis").returncode == 0


def test_the_first_cell_says_how_to_install_what_is_missing() -> None:
    done = first_cell_without("gpt2hw")
    assert done.returncode == 1
    assert "%pip install" in done.stderr
    assert sys.executable in done.stderr
    assert "Traceback" not in done.stderr


@each_lab
def test_a_lab_imports_only_what_its_extra_installs(lab: Path) -> None:
    installed = {"gpt2hw", "torch", "regex", "hypothesis", "jaxtyping"}
    for cell in code(stored(lab)):
        for node in ast.walk(ast.parse(cell.source)):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or "."]
            for name in names:
                top = name.split(".")[0]
                assert top in installed | sys.stdlib_module_names, f"{cell.id}: {name}"


@each_lab
def test_a_lab_is_made_of_guesses_that_can_be_changed(lab: Path) -> None:
    notebook = stored(lab)
    prose = [c.source for c in notebook.cells if c.cell_type == "markdown"]
    guesses = [text for text in prose if "**Predict.**" in text]
    answers = [text for text in prose if "<summary>Explain</summary>" in text]
    assert 5 <= len(answers) <= 10
    assert len(guesses) >= len(answers)
    assert sum("# try" in cell.source for cell in code(notebook)) >= 5
    assert any("Break it" in text for text in prose)
    for text in answers:  # Markdown inside needs the blank lines
        assert "</summary>\n\n" in text
        assert text.endswith("\n\n</details>")


@each_lab
def test_a_lab_leads_to_its_chapter_and_to_the_next(lab: Path) -> None:
    prose = [c.source for c in stored(lab).cells if c.cell_type == "markdown"]
    assert f"](../steps/{lab.stem}.md)" in prose[0]
    for text in prose:
        for link in re.findall(r"\]\(([^)#]+)", text):
            if "://" not in link:
                assert (lab.parent / link).is_file(), link


@each_lab
def test_a_lab_runs_alone_in_a_clean_kernel(lab: Path) -> None:
    notebook = runs()[lab].result()  # a cell that fails is an error here
    for cell in code(notebook):
        for output in cell.outputs:
            assert output.get("name") != "stderr", f"{cell.id}: {output.text}"
            assert "application/vnd.jupyter.widget-view+json" not in output.get(
                "data", {}
            )


@each_lab
def test_what_is_broken_on_purpose_is_found_and_the_exercises_begin_green(
    lab: Path,
) -> None:
    cells = code(runs()[lab].result())
    assert "is broken:\n    " in "".join(map(printed, cells))
    checks = [cell for cell in cells if cell.id.startswith("exercise-check")]
    assert checks
    for cell in checks:
        assert " holds\n" in printed(cell)
        assert "broken" not in printed(cell), cell.id


@pytest.mark.parametrize("still", [True, False])
def test_a_slider_is_shown_where_it_can_move(still: bool) -> None:
    notebook = stored(LABS[0])
    notebook.cells = notebook.cells[1:2]
    notebook.cells[
        0
    ].source = "from gpt2hw.figures import slide\nslide(lambda n: '#' * n, n=[1, 2])"
    (cell,) = run(notebook, still=still).cells
    kinds = {kind for output in cell.outputs for kind in output.data}
    assert ("application/vnd.jupyter.widget-view+json" in kinds) is not still
    assert ("text/html" in kinds) is still


def test_a_cell_that_fails_ends_the_run() -> None:
    notebook = stored(LABS[0])
    notebook.cells = notebook.cells[:3]
    notebook.cells[-1].source = "1 / 0"
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        run(notebook)
