"""The plan of the house: what may import what, what is light, what lies at the top."""

import ast
import importlib
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import gpt2hw

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "gpt2hw"

# Imports run one way, down this list: a room may import the rooms that stand before it.
LIGHT_ROOMS = (
    *("errors", "doors", "config", "layout", "files", "strict_json", "folder"),
    *("wrong_files", "tensor_info", "header", "shards"),
    "hub",
    *("vocabulary", "bpe", "splitting", "stream_decoder", "tokenizer_files"),
    *("tokenizer", "stop_strings", "request", "writing", "inspection"),
)
ROOMS_WITH_TORCH = (
    *("huge_pages", "safetensors", "mapped"),
    *("linear", "embeddings", "attention", "block", "model"),
    *("kv_cache", "many_rows", "bags", "rows", "half", "int8"),
    *("fast_block", "fast", "one_token", "fast_cache", "precisions", "batches"),
    *("loader", "initialization", "ids", "pretrained"),
    *("sampling", "continuing", "batch_generation", "generation"),
    *("tracing", "heads", "evaluation", "benchmark", "figures"),
)
HOUSE = (*LIGHT_ROOMS, *ROOMS_WITH_TORCH, "cli", "__main__")
HEAVY = {"torch", "jaxtyping", "numpy", "requests"}

TOP_LEVEL = {
    *("README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff"),
    *("pyproject.toml", "noxfile.py", "mkdocs.yml"),
    *("docs", "src", "tests"),
}


def imported(source: str) -> set[str]:
    """The modules that a source file names in imports, `from a import b` as a.b."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def rooms_imported(source: str) -> set[str]:
    """The rooms of this package that a source file imports from.

    A public name taken from the package itself counts as an import of its room.
    """
    room_of = {name: room for room, names in gpt2hw._ROOMS.items() for name in names}
    inside = (name.split(".") for name in imported(source))
    return {room_of.get(p[1], p[1]) for p in inside if p[0] == "gpt2hw" and len(p) > 1}


def room(path: Path) -> str:
    """The room that a file belongs to: its own name, or that of its folder."""
    return path.relative_to(SOURCE).with_suffix("").parts[0]


FILES = sorted(SOURCE.rglob("*.py"))
IN_ROOMS = [path for path in FILES if room(path) not in {"__init__", "properties"}]


def file_id(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def test_every_kind_of_import_is_seen() -> None:
    source = (
        "import gpt2hw.a\nfrom gpt2hw.b import x\ndef f():\n from gpt2hw import c, GPT2"
    )
    assert rooms_imported(source) == {"a", "b", "c", "pretrained"}


@pytest.mark.parametrize("path", IN_ROOMS, ids=file_id)
def test_a_room_imports_only_rooms_below_it(path: Path) -> None:
    here = room(path)
    assert here in HOUSE, f"{here} has no place in HOUSE yet: say what may import it"
    below = set(HOUSE[: HOUSE.index(here)])
    above = rooms_imported(path.read_text(encoding="utf-8")) - below - {here}
    assert not above, f"{here} imports {sorted(above)}, which do not stand below it"


def test_the_house_lists_no_room_that_is_gone() -> None:
    assert set(HOUSE) == {room(path) for path in IN_ROOMS}


def test_no_module_bears_the_name_of_a_public_function() -> None:
    functions = {
        node.name
        for path in IN_ROOMS
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
    }
    assert not functions & {room(path) for path in IN_ROOMS}


@pytest.mark.parametrize("path", FILES, ids=file_id)
def test_the_mathematics_is_written_by_hand(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    names = imported(source) | {
        ast.unparse(node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute)
    }
    ready_made = {n for n in names if n == "torch.nn" or n.startswith("torch.nn.")}
    assert not ready_made, f"{path.name} uses {sorted(ready_made)}"


@pytest.mark.parametrize("path", FILES, ids=file_id)
def test_what_a_file_imports_is_declared(path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    wanted = list(project["dependencies"])
    if room(path) == "properties":
        wanted += project["optional-dependencies"]["properties"]
    declared = {requirement.split(">=")[0] for requirement in wanted}
    packages = {n.split(".")[0] for n in imported(path.read_text(encoding="utf-8"))}
    assert packages - sys.stdlib_module_names - {"gpt2hw"} <= declared


def loaded_after(code: str) -> set[str]:
    """The modules that are loaded in a fresh Python once `code` has run."""
    report = "\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    run = subprocess.run(
        [sys.executable, "-c", code + report],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return set(json.loads(run.stdout.splitlines()[-1]))


@pytest.mark.parametrize("name", [*LIGHT_ROOMS, "cli"])
def test_a_light_room_waits_for_nothing_heavy(name: str) -> None:
    assert not loaded_after(f"import gpt2hw.{name}") & HEAVY


@pytest.mark.parametrize(
    "arguments", [["--help"], ["tokenize", "Hi"], ["inspect", "tiny"]]
)
def test_a_light_command_waits_for_nothing_heavy(arguments: list[str]) -> None:
    code = f"""
import sys
from gpt2hw.cli import main
sys.argv = ["gpt2hw", *{arguments}]
try:
    main()
except SystemExit as done:
    assert not done.code, done.code
"""
    assert not loaded_after(code) & HEAVY


def test_the_package_loads_a_room_when_a_name_is_asked_for() -> None:
    loaded = loaded_after("import gpt2hw")
    assert not {name for name in loaded if name.startswith("gpt2hw.")}
    loaded = loaded_after("from gpt2hw import GPT2Config")
    assert {n for n in loaded if n.startswith("gpt2hw.")} <= {
        "gpt2hw.config",
        "gpt2hw.errors",
    }


@pytest.mark.parametrize("name", gpt2hw.__all__)
def test_a_public_name_is_the_one_of_its_room(name: str) -> None:
    module = importlib.import_module(f"gpt2hw.{gpt2hw._ROOM_OF[name]}")
    assert getattr(gpt2hw, name) is getattr(module, name)
    assert name in dir(gpt2hw)


def test_every_name_of_the_rooms_is_handed_on_once() -> None:
    names = [name for names in gpt2hw._ROOMS.values() for name in names]
    assert sorted(names) == sorted(gpt2hw.__all__)


def test_a_wrong_name_is_an_attribute_error_that_says_it() -> None:
    with pytest.raises(AttributeError, match="'gpt2hw' has no attribute 'GPT3'"):
        _ = gpt2hw.GPT3  # type: ignore[attr-defined]
    with pytest.raises(ImportError, match="GPT3"):
        from gpt2hw import GPT3  # type: ignore[attr-defined]  # noqa: F401


def test_the_top_of_the_repository_stays_small() -> None:
    ignored = {
        line.strip("/\n")
        for line in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    }
    here = {p.name for p in ROOT.iterdir() if not p.name.startswith(".")}
    here.discard("PKG-INFO")  # where the tests run from the sdist
    assert here - ignored - {"__pycache__"} <= TOP_LEVEL
