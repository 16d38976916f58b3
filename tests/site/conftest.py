"""The tests of the book need what builds it or what walks it: `nox -s docs`, `site`."""

from importlib.util import find_spec

collect_ignore_glob = []
if not find_spec("mkdocs"):
    collect_ignore_glob += ["test_[!w]*.py"]  # all but test_walk.py
if not find_spec("playwright"):
    collect_ignore_glob += ["test_walk.py"]
