"""Where mutants meet the tests: a copy of the project, and a fork for each.

One pytest starts, loads the libraries (torch, transformers and the like, but nothing
of gpt2hw) and stops before it collects. From there it forks, so that no mutant sees
another. There are two ways, and a mutant survives where it survives both:

- Quickly: a fork collects the tests of the room as it is. For each mutant it forks
  again, and the child exchanges the code of the mutated function. What the tests made
  when they were loaded was made by the right code, as in mutmut's own runs.
- From the start: the child finds the mutated file in the copy and loads everything
  anew. This also serves where a constant is mutated, or the default of an argument.
"""

import gc
import importlib
import importlib.util
import json
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from forks import NOT_SWAPPED, end_of, fork
from swap import Codes, functions_of, swap

COPIED = ("src", "tests", "pyproject.toml")
# Loaded once, before the forks.
LIBRARIES = (
    *("torch", "torch.nn.functional", "jaxtyping", "beartype", "numpy", "regex"),
    *("hypothesis.strategies", "tiktoken", "tokenizers", "safetensors.torch"),
    *("transformers.models.gpt2.modeling_gpt2", "doctest", "difflib", "platformdirs"),
)
HANGING_S = 2.0  # seconds of one test, beyond four times what it took before


def copy_project(root: Path, folder: Path) -> None:
    """Copies what the tests need: nothing outside of `folder` is ever written."""
    caches = shutil.ignore_patterns("__pycache__", ".*")
    for name in COPIED:
        if (root / name).is_dir():
            shutil.copytree(root / name, folder / name, ignore=caches)
        else:
            shutil.copy(root / name, folder / name)


class BrokenRoomError(Exception):
    """The tests fail though nothing is mutated, or pytest itself does."""


class _InChildError(Exception):
    """Unwinds the script in a child, whose way leads on to the tests."""


class Arena:
    """A pytest that forks before it collects; in a child it is a plain pytest.

    `script` is what the parent does instead of testing: it is given the arena, runs
    the mutants, and returns the exit status.
    """

    def __init__(self, folder: Path, script: Callable[["Arena"], int]) -> None:
        self.folder, self.script = folder, script
        self.log, self.reports = folder / "log.txt", folder / "reports.jsonl"
        self.results = folder / "results.json"
        self.in_child = False
        self.status = 1  # until the script says otherwise
        self.swaps: Sequence[Codes] = ()  # what a child is to run in forks of its own
        self.seconds: dict[str, float] = {}  # what each test took when all was right
        self.kills: Counter[str] = Counter()  # by each test of this room, so far

    def start(self) -> int:
        """Runs the script; gives its exit status. In a child it does not return."""
        os.chdir(self.folder)
        source, tests = str(self.folder / "src"), str(self.folder / "tests")
        os.environ["PYTHONPATH"] = source  # for what the tests start
        sys.path[:0] = [source, tests]
        options = ["-x", "-q", "-s", "-p", "no:cacheprovider", "--basetemp", "tmp"]
        options += ["--doctest-modules", "-o", "doctest_optionflags=ELLIPSIS"]
        status = pytest.main([*options, "tests"], plugins=[self])
        if self.in_child:
            os._exit(int(status))
        return self.status

    # --- in the parent, as the script asks ---

    def rehearse(self, tests: list[str], room: Path) -> str:
        """Runs a room's tests with nothing mutated, and notes how long each takes."""
        self.room, self.limit_s = room, 600
        self.kills.clear()
        self.seconds.clear()
        result = self._run(tests, keep_bytecode=True)
        self.seconds = {name: seconds for name, _, seconds in self._reported()}
        self.limit_s = round(4 * sum(self.seconds.values())) + 20
        return result

    def run_from_the_start(self, tests: list[str]) -> str:
        """Runs the tests on the copy as it is: "passed", "failed" or "time-out"."""
        return self._run(tests)

    def run_quickly(self, tests: list[str], swaps: Sequence[Codes]) -> list[str]:
        """Runs the tests with each exchange of code; "" where one is impossible."""
        if not any(swaps):
            return [""] * len(swaps)
        self.swaps = swaps
        self.limit_s, limit_s = 36_000, self.limit_s  # it does no testing itself
        self.results.unlink(missing_ok=True)
        self._run(tests)
        self.swaps, self.limit_s = (), limit_s
        if not self.results.exists():
            raise BrokenRoomError("the tests cannot be collected")
        found: list[str] = json.loads(self.results.read_text(encoding="utf-8"))
        return found

    def _run(self, tests: list[str], *, keep_bytecode: bool = False) -> str:
        child = self._fork()
        if child == 0:
            # A stale pyc is known by its second and its size, which mutants may share.
            sys.dont_write_bytecode = not keep_bytecode
            self.config.args[:] = tests
            raise _InChildError
        return self._end_of(child)

    def _fork(self) -> int:
        self.reports.write_text("", encoding="utf-8")
        child = fork(self.log, self.limit_s)
        self.in_child = self.in_child or child == 0
        return child

    def _end_of(self, child: int) -> str:
        result = end_of(child, self.limit_s)
        self.kills.update(name for name, failed, _ in self._reported() if failed)
        return result

    def _reported(self) -> list[tuple[str, bool, float]]:
        lines = self.reports.read_text(encoding="utf-8").split("\n")
        return [tuple(json.loads(line)) for line in lines if line.endswith("]")]

    # --- in a child ---

    def _swap_in_forks(self) -> None:
        """Runs the tests that were collected once for each exchange, in a fork."""
        functions = functions_of(str(self.room))
        gc.collect()
        gc.freeze()
        results = []
        for codes in self.swaps:
            self.limit_s = 600
            child = self._fork() if codes else None
            if child == 0:
                if not swap(functions, codes):
                    os._exit(NOT_SWAPPED)
                return
            results.append(self._end_of(child) if child else "")
        self.results.write_text(json.dumps(results), encoding="utf-8")
        os._exit(0)

    # --- what pytest calls ---

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> Iterator[None]:
        """The script, then no tests; in a child, the tests that were asked for."""
        for library in LIBRARIES:
            importlib.import_module(library)
        _fewer_examples()
        self._check_where_the_package_comes_from()
        gc.collect()
        gc.freeze()  # pytest collects garbage: not in what all children share
        self.config = session.config
        try:
            self.status = self.script(self)
        except _InChildError:
            return (yield)
        except BrokenRoomError as error:
            pytest.exit(f"{error}\n{self.log.read_text('utf-8')}", returncode=1)
        pytest.exit("all mutants have run", returncode=0)

    def _check_where_the_package_comes_from(self) -> None:
        loaded = [name for name in sys.modules if name.partition(".")[0] == "gpt2hw"]
        assert not loaded, f"{loaded} are there before any mutant"
        package = importlib.util.find_spec("gpt2hw")
        assert package is not None
        assert Path(str(package.origin)).is_relative_to(self.folder), package.origin

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """First the tests that killed most so far, then the quick ones."""
        if self.swaps:
            self._swap_in_forks()
        session.items.sort(
            key=lambda i: (-self.kills[i.nodeid], self.seconds.get(i.nodeid, 0))
        )

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Winds the alarm clock that ends a test which hangs."""
        if self.seconds:
            limit_s = HANGING_S + 4 * self.seconds.get(item.nodeid, 0)
            signal.setitimer(signal.ITIMER_PROF, limit_s)  # of processor time

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tells the parent of each test that ended, and how."""
        if report.when == "call" or report.failed:
            line = json.dumps([report.nodeid, report.failed, report.duration])
            with self.reports.open("a", encoding="utf-8") as file:
                file.write(line + "\n")


def _fewer_examples() -> None:
    """The same examples for every mutant, few of them, and no smaller one sought."""
    # Not before pytest, which rewrites it.
    from hypothesis import HealthCheck, Phase, settings

    settings.register_profile(
        "mutation",
        deadline=None,
        derandomize=True,
        database=None,
        max_examples=30,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),  # slow on a busy machine is no kill
    )
    settings.load_profile("mutation")
