"""Every public piece of a taught room is shown in the one chapter that teaches it."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src" / "gpt2hw"
STEPS = ROOT / "docs" / "steps"
SNIPPET = re.compile(r"^[ \t]*#* ?:{3} +([\w.]+)", re.MULTILINE)

# A room that two chapters teach, and what the second of them has.
SHARED = {
    "attention": {
        "4b": {
            "causal_mask",
            "attention_weights",
            "split_heads",
            "merge_heads",
            "CausalSelfAttention",
        }
    }
}
UNWRITTEN: set[str] = set()  # steps whose chapter is still to come


def steps() -> dict[str, list[str]]:
    """README's table: step -> the rooms that it teaches."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+[ab]?) \| ([^|]+) \|", readme, re.MULTILINE)
    return {step: re.findall(r"`(\w+)\.py`", rooms) for step, rooms in rows}


def public(room: str) -> set[str]:
    """The functions and classes of a room that bear no underscore."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    tree = ast.parse((SOURCE / f"{room}.py").read_text(encoding="utf-8"))
    names = {node.name for node in tree.body if isinstance(node, kinds)}
    return {name for name in names if not name.startswith("_")}


def taught(step: str) -> set[str]:
    """What a chapter has to show, as room.name."""
    pieces: set[str] = set()
    for room in steps()[step]:
        names = public(room)
        for other, theirs in SHARED.get(room, {}).items():
            names = names & theirs if other == step else names - theirs
        pieces |= {f"{room}.{name}" for name in names}
    return pieces


def shown_in(text: str) -> set[str]:
    """The pieces that a chapter shows, whole or by a method of theirs."""
    symbols = (name.split(".") for name in SNIPPET.findall(text))
    return {
        ".".join(parts[1:3])
        for parts in symbols
        if parts[0] == "gpt2hw" and len(parts) > 2 and parts[1] != "properties"
    }


def chapters() -> dict[str, Path]:
    """Step -> its chapter, of those that are written."""
    files = sorted(STEPS.glob("step*.md"))
    return {re.findall(r"step(\d+[ab]?)_", path.name)[0]: path for path in files}


EVERY = {step: taught(step) for step in steps()}


def test_the_table_names_rooms_that_exist_and_pieces_that_they_have() -> None:
    assert len(EVERY) == 11
    assert all(EVERY.values())
    for room, shares in SHARED.items():
        assert set().union(*shares.values()) <= public(room)


def test_a_chapter_is_written_or_listed_as_unwritten() -> None:
    assert set(chapters()) == set(EVERY) - UNWRITTEN


@pytest.mark.parametrize("step", sorted(set(EVERY) - UNWRITTEN))
def test_a_chapter_shows_every_piece_that_it_teaches(step: str) -> None:
    shown = shown_in(chapters()[step].read_text(encoding="utf-8"))
    assert not EVERY[step] - shown, f"step {step} does not show these pieces"


@pytest.mark.parametrize("step", sorted(set(EVERY) - UNWRITTEN))
def test_a_chapter_shows_no_piece_that_another_teaches(step: str) -> None:
    shown = shown_in(chapters()[step].read_text(encoding="utf-8"))
    others = set().union(*(EVERY[other] for other in EVERY if other != step))
    assert not shown & others, f"step {step} shows what another chapter teaches"


def test_a_method_counts_as_its_class_and_a_rule_as_nothing() -> None:
    text = "::: gpt2hw.attention.A.go\n\n    ::: gpt2hw.properties.attention.f\n"
    assert shown_in(text + "## ::: gpt2hw.bpe.merge") == {"attention.A", "bpe.merge"}
