"""What holds for every test: shapes are checked, and no test is skipped unseen.

Shapes in annotations are checked while the tests run (jaxtyping with beartype). A test
that is skipped, or expected to fail, for a reason that `allowed_skips.py` does not list
has failed; so has a file that is skipped while it is read.
"""

import os
import signal
from collections.abc import Generator

# One thread, before torch is there: on small tensors, threads that wait for one another
# cost more than they save, and on a busy machine ten times as much.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# No test asks the network for a model by accident; those of downloading clear it.
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest
from hypothesis import settings
from jaxtyping import install_import_hook

from allowed_skips import is_allowed

ROOMS_THAT_COMPUTE = (
    "linear",
    "embeddings",
    "attention",
    "block",
    "model",
    "kv_cache",
    "many_rows",
    "bags",
    "rows",
    "half",
    "int8",
    "fast_block",
    "fast",
    "one_token",
    "fast_cache",
    "batches",
    "pretrained",
    "sampling",
    "continuing",
    "batch_generation",
    "generation",
    "tracing",
    "heads",
    "evaluation",
)
install_import_hook(
    [f"gpt2hw.{room}" for room in ROOMS_THAT_COMPUTE], "beartype.beartype"
)

# What runs in the background of a shell script is started deaf to Ctrl-C, and so are
# its children; the tests of Ctrl-C want them to hear it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: a busy machine is no fault. In CI the examples are the same each time.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


def fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turns a report of a skip into one of a failure, unless its reason is listed."""
    if not report.skipped:
        return
    reason = getattr(report, "wasxfail", None)
    if reason is None:  # (file, line, "Skipped: the reason")
        reason = report.longrepr[2].removeprefix("Skipped: ")
    if not is_allowed(reason):
        where = "tests/allowed_skips.py does not allow it here"
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} was skipped: {reason!r}; {where}"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[
    None, pytest.TestReport, pytest.TestReport
]:
    """Looks at each test once pytest has made up its mind about it."""
    report = yield
    fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[
    None, pytest.CollectReport, pytest.CollectReport
]:
    """Looks at each file once it has been read."""
    report = yield
    fail_if_skipped(report)
    return report
