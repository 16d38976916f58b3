"""Every public function explains itself, and the examples in the docstrings run."""

import ast
import doctest
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import gpt2hw

SOURCE = Path(gpt2hw.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

# The rooms whose functions are taught: each shows a worked example, and so does each
# public class of theirs that the package hands on.
TAUGHT = (
    *("layout", "header", "safetensors", "bpe", "tokenizer"),
    *("linear", "embeddings", "attention", "block", "model", "kv_cache"),
    *("sampling", "generation", "tracing"),
)
# "room.name" of what shows none, with the reason.
EXCUSED = {
    "bpe.merge_short": "merge shows the result, which is the same",
    "bpe.merge_long": "merge shows the result, which is the same",
}


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def definitions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Public functions, classes and methods: dotted name and docstring."""
    for node in ast.iter_child_nodes(tree):
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        if isinstance(node, kinds) and not node.name.startswith("_"):
            yield prefix + node.name, ast.get_docstring(node) or ""
            if isinstance(node, ast.ClassDef):
                yield from definitions(node, f"{prefix}{node.name}.")


def examples(path: Path) -> list[doctest.DocTest]:
    module = importlib.import_module(module_name(path))
    return [test for test in doctest.DocTestFinder().find(module) if test.examples]


EXAMPLES = {test.name: test for path in FILES for test in examples(path)}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_in_a_docstring_gives_what_it_shows(name: str) -> None:
    wrong: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    runner.run(EXAMPLES[name], out=wrong.append)
    assert not runner.failures, "".join(wrong)


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_no_example_is_overlooked(path: Path) -> None:
    written = re.findall(r"^ *>>> ", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert sum(len(test.examples) for test in examples(path)) == len(written)


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_every_public_function_and_class_has_a_docstring(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), f"{path.name} does not say what the room is for"
    assert not [name for name, docstring in definitions(tree) if not docstring]


@pytest.mark.parametrize("room", TAUGHT)
def test_every_taught_function_shows_an_example(room: str) -> None:
    tree = ast.parse((SOURCE / f"{room}.py").read_text(encoding="utf-8"))
    # A method's example serves its class.
    shown = {name.split(".")[0] for name, text in definitions(tree) if ">>> " in text}
    taught = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    taught |= set(gpt2hw._ROOMS.get(room, ()))
    missing = {name for name in taught - shown if not name.startswith("_")}
    bare = sorted(name for name in missing if f"{room}.{name}" not in EXCUSED)
    assert not bare, f"no example in the docstring of {', '.join(bare)}"


def test_an_excuse_is_dropped_when_the_example_is_there() -> None:
    for excused in EXCUSED:
        room, _, name = excused.partition(".")
        tree = ast.parse((SOURCE / f"{room}.py").read_text(encoding="utf-8"))
        assert ">>> " not in dict(definitions(tree))[name], excused
