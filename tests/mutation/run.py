"""Mutation testing of the taught rooms: does a test notice each small fault?

    nox -s mutation                      every mutant of every room
    nox -s mutation -- bpe layout        these rooms alone
    nox -s mutation -- --sample 20       20 mutants of each room, the same each time
    nox -s mutation -- --keep FILE       what became of each mutant goes there, as JSON

A mutant is a room with one small fault, made by mutmut (see mutants.py). It is killed
where a test of that room fails (rooms.py says which tests those are), the room cannot
be imported, or a test hangs (arena.py says after how long). It has survived where all
pass. A survivor is a rule that no test checks, or a change that changes nothing.
The former wants a test; the latter stands in survivors.toml, with the reason.

The exit status is 1 where a survivor is not listed, where fewer than 90 per cent of
those that are not listed were killed, or where the list names a mutant that is no more.
The working tree is never written to: the tests run in a copy (arena.py).
"""

import argparse
import json
import random
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from arena import Arena, BrokenRoomError, copy_project
from mutants import Mutant, mutants_of
from rooms import TESTS, tests_of
from swap import changed_codes

HERE = Path(__file__).parent
BAR = 0.90
SEED = 2019
HEADING = f"{'room':<16}{'mutants':>9}{'killed':>9}{'(timed out)':>13}{'listed':>9}"
HEADING += f"{'unlisted':>10}{'score':>9}"

Key = tuple[str, str, str]


@dataclass
class Row:
    """What became of a room's mutants."""

    room: str
    killed: int = 0
    timed_out: int = 0
    listed: list[Mutant] = field(default_factory=list)
    unlisted: list[Mutant] = field(default_factory=list)

    def add(self, other: "Row") -> None:
        self.killed += other.killed
        self.timed_out += other.timed_out
        self.listed += other.listed
        self.unlisted += other.unlisted

    @property
    def score(self) -> float:
        """Killed, of those that are not listed."""
        counted = self.killed + len(self.unlisted)
        return self.killed / counted if counted else 1.0

    def __str__(self) -> str:
        n_listed, n_unlisted = len(self.listed), len(self.unlisted)
        n_all = self.killed + n_listed + n_unlisted
        cells = f"{self.room:<16}{n_all:>9}{self.killed:>9}{self.timed_out:>13}"
        return cells + f"{n_listed:>9}{n_unlisted:>10}{self.score:>9.1%}"


class Judge:
    """Runs the mutants of the rooms asked for, and prints what became of them."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        kinds = tomllib.loads((HERE / "survivors.toml").read_text(encoding="utf-8"))
        self.listed: set[Key] = {
            tuple(change) for kind in kinds["kind"] for change in kind["changes"]
        }
        self.n_wordings = 0

    def __call__(self, arena: Arena) -> int:
        """The exit status."""
        start = time.monotonic()
        total, stale = Row("all"), set[Key]()
        print(HEADING, flush=True)
        for room in self.options.rooms or TESTS:
            source = (arena.folder / f"src/gpt2hw/{room}.py").read_text("utf-8")
            mutants, n_wordings = mutants_of(room, source)
            self.n_wordings += n_wordings
            listed = {key for key in self.listed if key[0].startswith(f"{room}.")}
            stale |= listed - {mutant.key for mutant in mutants}
            row = self.run_room(arena, room, source, mutants)
            print(row, flush=True)
            total.add(row)
        minutes = (time.monotonic() - start) / 60
        print(total)
        self.explain(total, stale, minutes)
        return int(bool(total.unlisted or stale) or total.score < BAR)

    def run_room(
        self, arena: Arena, room: str, right: str, mutants: list[Mutant]
    ) -> Row:
        """Tests the room as it is, then each of its mutants."""
        path, tests, row = (
            arena.folder / f"src/gpt2hw/{room}.py",
            tests_of(room),
            Row(room),
        )
        if arena.rehearse(tests, path) != "passed":
            raise BrokenRoomError(f"the tests of {room} fail, and nothing is mutated")
        for compiled in path.parent.glob(f"__pycache__/{room}.*"):
            compiled.unlink()
        n_asked = self.options.sample or len(mutants)
        if n_asked < len(mutants):
            mutants = random.Random(f"{SEED} {room}").sample(mutants, n_asked)
        swaps = [
            changed_codes(right, mutant.source, str(path)) or {} for mutant in mutants
        ]
        quick = arena.run_quickly(tests, swaps)
        for mutant, result in zip(mutants, quick, strict=True):
            if result in ("", "passed"):
                path.write_text(mutant.source, encoding="utf-8")
                self.enter(row, mutant, arena.run_from_the_start(tests), arena)
            else:
                self.enter(row, mutant, result, arena)
        path.write_text(right, encoding="utf-8")
        return row

    def enter(self, row: Row, mutant: Mutant, result: str, arena: Arena) -> None:
        """Counts one mutant."""
        if result == "error":
            raise BrokenRoomError("pytest itself failed")
        if result != "passed":
            row.killed += 1
            row.timed_out += result == "time-out"
        elif mutant.key in self.listed:
            row.listed.append(mutant)
        else:
            row.unlisted.append(mutant)
        if self.options.keep:
            with self.options.keep.open("a", encoding="utf-8") as file:
                print(json.dumps([*mutant.key, result]), file=file)

    def explain(self, total: Row, stale: set[Key], minutes: float) -> None:
        """What stands below the table."""
        n_all = total.killed + len(total.listed) + len(total.unlisted)
        print(
            f"\n{minutes:.0f} minutes. Of all {n_all}, listed or not, "
            f"{total.killed / max(n_all, 1):.1%} were killed. {self.n_wordings} more "
            "would change the wording of a message alone and were not run."
        )
        if total.unlisted:
            print(
                "\nSurvivors: add a test, or list them in survivors.toml by a reason:"
            )
        for mutant in total.unlisted:
            print(f"  {json.dumps(mutant.key, ensure_ascii=False)},")
        if stale:
            print("\nsurvivors.toml lists what is no mutant any more:")
        for key in sorted(stale):
            print(f"  {json.dumps(key, ensure_ascii=False)},")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Mutation testing; see the file's top")
    parser.add_argument("rooms", nargs="*", metavar="ROOM")
    parser.add_argument("--sample", type=int, metavar="N", help="mutants of each room")
    parser.add_argument("--keep", type=lambda p: Path(p).resolve(), metavar="FILE")
    options = parser.parse_args()
    if unknown := set(options.rooms) - set(TESTS):
        parser.error(
            f"no such room: {', '.join(unknown)}; there are {', '.join(TESTS)}"
        )
    with tempfile.TemporaryDirectory(prefix="gpt2hw-mutation-") as folder:
        copy_project(HERE.parent.parent, Path(folder).resolve())
        return Arena(Path(folder).resolve(), Judge(options)).start()


if __name__ == "__main__":
    sys.exit(main())
