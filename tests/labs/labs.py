"""The labs as they are stored, and a run of one in a kernel of its own."""

import os
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

ROOT = Path(__file__).parents[2]
LABS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
CHAPTERS = sorted((ROOT / "docs" / "steps").glob("*.md"))
LONGEST_CELL = 120  # seconds, on a machine that has other things to do


def stored(lab: Path) -> NotebookNode:
    """The notebook, as its file says."""
    return nbformat.read(lab, as_version=nbformat.NO_CONVERT)


def code(notebook: NotebookNode) -> list[NotebookNode]:
    """The cells that run."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def printed(cell: NotebookNode) -> str:
    """What a cell wrote, pictures and values aside."""
    return "".join(o.text for o in cell.outputs if o.output_type == "stream")


def run(notebook: NotebookNode) -> NotebookNode:
    """Top to bottom in a fresh kernel, in an empty folder, as when downloaded alone."""
    alone = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    alone |= {"GPT2HW_STILL": "1", "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        place = {"metadata": {"path": folder}}
        client = NotebookClient(notebook, timeout=LONGEST_CELL, resources=place)
        client.execute(env=alone)
    return notebook


@cache
def runs() -> dict[Path, Future[NotebookNode]]:
    """A run of each lab, two at a time; they begin with the first that is asked for."""
    pool = ThreadPoolExecutor(2)
    return {lab: pool.submit(run, stored(lab)) for lab in LABS}
