"""The labs as they are stored, and a run of one in a kernel of its own.

    python tests/labs/labs.py < docs/notebooks/step4a_attention.ipynb

runs a notebook top to bottom and prints it with its outputs.
"""

import os
import subprocess
import sys
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from traitlets.config import Config

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


def run(notebook: NotebookNode, *, still: bool = True) -> NotebookNode:
    """With outputs, run as when downloaded alone; RuntimeError where a cell fails.

    `still`: with pictures in the place of sliders. In a process of its own: the client
    leaves sockets and loops behind.
    """
    alone = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    alone |= {"GPT2HW_STILL": "1" * still, "OMP_NUM_THREADS": "1", "PYTHONUTF8": "1"}
    done = subprocess.run(
        [sys.executable, __file__],
        input=nbformat.writes(notebook),
        env=alone,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return nbformat.reads(done.stdout, as_version=nbformat.NO_CONVERT)


@cache
def runs() -> dict[Path, Future[NotebookNode]]:
    """A run of each lab, two at a time; they begin when the first is asked for."""
    pool = ThreadPoolExecutor(2)
    return {lab: pool.submit(run, stored(lab)) for lab in LABS}


def main() -> None:
    """Standard input to standard output, in an empty folder.

    The kernel is talked to over files in a folder of its own. Of ports, it would be
    told some that were free a moment ago, and somebody else may have them when it
    begins. (On Windows there is nothing but ports.)
    """
    notebook = nbformat.reads(sys.stdin.read(), as_version=nbformat.NO_CONVERT)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as own:
        by_files = {"transport": "ipc", "ip": f"{own}/kernel"}
        over = Config(KernelManager={} if os.name == "nt" else by_files)
        place = {"metadata": {"path": folder}}
        NotebookClient(
            notebook, timeout=LONGEST_CELL, resources=place, config=over
        ).execute()
    print(nbformat.writes(notebook))


if __name__ == "__main__":
    main()
