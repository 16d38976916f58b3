"""Downloads among faults: servers that misbehave, processes that die, disks that fill.

    nox -s chaos                             200 faults, a new seed each time
    nox -s chaos -- --faults 1000 --seed 7   as many, and as they were before

Each round publishes a model, draws faults, and starts `gpt2hw download` in one process
or two, a few times. After each time these rules must hold:

- a file under its final name is whole, and one of those that were published;
- a process that says it ended well left all files, and all of one commit;
- no traceback, and no exit status but ours;
- the token came to the hub's own host alone, and is in no output and no file;
- a file was asked for a bounded number of times.

A last, undisturbed run then ends well. The seed draws the faults; when exactly a
process dies also depends on the machine.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import draws

from downloads import (
    COMMAND,
    NAME,
    TOKEN,
    clean_environment,
    drafts,
    files_in,
    finish,
    repository,
    start,
)
from hub_server import Fault, Hub

# Ended well, failed, interrupted, ended from outside. A signal that meets Python on its
# way out ends it without its word; a shell says 130 for -2 as well.
STATUSES = {0, 1, 130, *(-n for n in (signal.SIGINT, signal.SIGTERM, 9))}
MOST_TRIES = 5
REDIRECTS = 10
LIMITED = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0}))\n"


@dataclass
class Chaos:
    """One run: what is drawn, what is published, and what was done so far."""

    chance: random.Random
    hub: Hub
    elsewhere: Hub
    root: Path
    done: Counter[str] = field(default_factory=Counter)
    states: list[dict[str, Any]] = field(default_factory=list)
    n_runs: int = 0
    story: list[str] = field(default_factory=list)

    # --- a round ---

    def round(self, number: int) -> None:
        """A folder of its own, from nothing to a whole model, through faults."""
        self.story, self.states = [], []
        self.hub.commits.clear()
        self.publish()
        folder = self.root / f"round{number}"
        for _ in range(self.chance.randint(1, 4)):
            self.disturb_what_is_there(folder)
            self.disturbed_run(folder)
        self.hub.faults.clear()
        statuses = self.run(folder, [start_in(self, folder)])
        whole = self.is_one_state(files_in(folder))
        self.expect(statuses == [0] and whole, "the undisturbed run ends well")
        left = [draft.name for draft in drafts(folder)]
        self.expect(not left, f"and leaves no draft, not {left}")

    def publish(self) -> None:
        """Another state of the model, as the next commit."""
        n = len(self.states)
        size = self.chance.choice([5_000, 300_000, 3_000_000])
        self.states.append(repository(size, seed=self.chance.getrandbits(32)))
        self.hub.put(NAME, self.states[-1], commit=f"{n:040x}")

    def disturbed_run(self, folder: Path) -> None:
        drawn = [self.network_fault() for _ in range(self.chance.randint(0, 3))]
        n_processes = 2 if self.chance.random() < 0.15 else 1
        processes = [self.started(folder) for _ in range(n_processes)]
        if n_processes == 2:
            self.count("two at once")
        if self.chance.random() < 0.5:
            self.end_one(processes[0])
        self.run(folder, processes, drawn)
        self.hub.faults.clear()

    # --- faults ---

    def count(self, what: str) -> None:
        self.done[what.split(" (")[0]] += 1
        self.story.append(what)

    @property
    def n_faults(self) -> int:
        """How many there were; to be slow, or two, is none by itself."""
        return self.done.total() - self.done["two at once"] - self.done["slow"]

    def network_fault(self) -> Fault:
        kinds = draws.changes(self.chance, self.elsewhere.url, self.publish)
        change, which = draws.network_fault(self.chance, kinds, self.count)
        return self.hub.fault(change, **which)

    def disturb_what_is_there(self, folder: Path) -> None:
        """Damages, now and then, what an earlier run left beside the files."""
        records = sorted((folder / ".gpt2hw").glob("*.json"))
        left = drafts(folder) + records
        if left and self.chance.random() < 0.2:
            path = self.chance.choice(left)
            what = draws.damaged(self.chance, path)
            kind = "record" if path in records else "draft"
            self.count(f"{what} in a {kind} ({path.name})")

    def end_one(self, process: Any) -> None:
        """Ends a process from outside, at some time of its short life."""
        posix = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
        number = self.chance.choice(posix if os.name == "posix" else [signal.SIGTERM])
        self.wait_for_a_request()
        time.sleep(self.chance.random() ** 2 * 0.3)
        if process.poll() is None:
            process.send_signal(number)
            self.count(number.name)

    def wait_for_a_request(self) -> None:
        """Until the process has come so far (Python itself takes its time to start)."""
        for _ in range(500):
            if self.hub.log:
                return
            time.sleep(0.01)

    # --- processes and rules ---

    def started(self, folder: Path) -> Any:
        """A download, perhaps one that may write only so much."""
        if os.name == "posix" and self.chance.random() < 0.15:
            size = self.chance.choice([0, 100, 2_000, 100_000, 1_000_000])
            self.count(f"full disk ({size})")
            return start_in(self, folder, LIMITED.format(size) + COMMAND)
        return start_in(self, folder)

    def run(
        self, folder: Path, processes: list[Any], drawn: list[Fault] | None = None
    ) -> list[int]:
        """Waits for the processes, and holds what they left against the rules."""
        ended = [finish(process) for process in processes]
        self.n_runs += len(processes)
        for status, out, errors in ended:
            self.story.append(f"  -> {status} {errors.strip()}")
            self.expect(status in STATUSES, f"an exit status of ours, not {status}")
            self.expect("Traceback" not in errors, "no traceback")
            self.expect(TOKEN not in out + errors, "no token in the output")
        found = files_in(folder)
        for name, content in found.items():
            right = [state.get(name) for state in self.states]
            self.expect(content in right, f"{name} is whole")
        if any(status == 0 for status, _, _ in ended):
            self.expect(self.is_one_state(found), "ended well: all, of one commit")
        self.keep_the_token(folder)
        self.keep_the_bound(len(processes), len(drawn or []))
        self.hub.log.clear()
        return [status for status, _, _ in ended]

    def is_one_state(self, found: dict[str, bytes]) -> bool:
        """Whether these are all files, of one commit where the hub named commits."""
        is_named = not any(line.startswith("no headers") for line in self.story)
        return found in self.states or (
            not is_named and set(found) == set(self.states[0])
        )

    def keep_the_token(self, folder: Path) -> None:
        abroad = self.hub.requests(host="cdn") + self.elsewhere.log
        leaked = {seen.authorization for seen in abroad} - {None}
        self.expect(not leaked, "no token outside its host")
        for path in folder.rglob("*"):
            if path.is_file():
                self.expect(TOKEN.encode() not in path.read_bytes(), "no token on disk")

    def keep_the_bound(self, n_processes: int, n_faults: int) -> None:
        """A fault that brought progress buys more tries: at most one fault's six."""
        tries = Counter((seen.file, seen.host) for seen in self.hub.log)
        bound = (MOST_TRIES + 6 * n_faults) * (REDIRECTS + 1) * n_processes
        most = max(tries.values(), default=0)
        self.expect(most <= bound, f"{most} tries, at most {bound}")

    def expect(self, holds: bool, rule: str) -> None:
        if not holds:
            story = "\n".join(self.story)
            raise SystemExit(f"BROKEN: {rule}\nin this round:\n{story}")


def start_in(chaos: Chaos, folder: Path, code: str = COMMAND) -> Any:
    """`gpt2hw download` into the folder, with a token."""
    environment = {"HF_TOKEN": TOKEN}
    return start(NAME, "--directory", folder, code=code, environment=environment)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument(
        "--seed", type=int, default=random.SystemRandom().getrandbits(32)
    )
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    with Hub() as hub, Hub() as elsewhere, tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "home").mkdir()
        environment = clean_environment(hub, root)
        os.environ.clear()
        os.environ.update(environment)
        chaos = Chaos(random.Random(asked.seed), hub, elsewhere, root)
        number = 0
        while chaos.n_faults < asked.faults:
            chaos.round(number)
            number += 1
        errors = hub.errors + elsewhere.errors
    if errors:
        raise SystemExit(f"the hub itself failed: {errors}")
    for what, n in chaos.done.most_common():
        print(f"{n:5} {what}")
    print(f"{chaos.n_faults} faults in {chaos.n_runs} runs, {number} rounds: kept")


if __name__ == "__main__":
    main()
