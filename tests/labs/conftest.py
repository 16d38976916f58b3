"""The labs need Jupyter's machinery to run: `nox -s labs`."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("nbclient") else ["test_*.py"]
