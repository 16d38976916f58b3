"""The reasons for which a test may be skipped; conftest.py fails every other skip.

A reason is allowed where the machine really lacks what it names: each entry has a
condition, and a skip whose condition does not hold is a failure too. So a rule that
only Windows may skip cannot fall silent on Linux.
"""

import importlib.util
import os
import platform
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


def on_windows() -> bool:
    return os.name == "nt"


def outside_ci() -> bool:
    """CI has all that can be installed: nothing of that kind is skipped there."""
    return not os.environ.get("CI")


def always() -> bool:
    return True


def as_root() -> bool:
    """Nothing is forbidden to root, so a refusal by the system cannot be had."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def without_cuda() -> bool:
    import torch

    return not torch.cuda.is_available()


def without_mps() -> bool:
    import torch

    return not torch.backends.mps.is_available()


@dataclass(frozen=True)
class Allowed:
    """A reason, as a pattern of its whole text; where it holds; why no way round."""

    reason: str
    where: Callable[[], bool]
    why: str


def elsewhere_than_on_x86() -> bool:
    return platform.machine().lower() not in ("x86_64", "amd64")


ALLOWED = (
    Allowed(
        r"only x86 uses numbers at odd places",
        elsewhere_than_on_x86,
        "another processor may end the process that does",
    ),
    Allowed(
        r"the weights of [\w-]+ are not here: put them into models/[\w-]+",
        always,
        "OpenAI's weights are 0.5 to 6 GB; the package does not ship them",
    ),
    Allowed(
        r"the folder of gpt2 has no \S+",
        always,
        "the reader's folder of gpt2 may hold only what the model needs",
    ),
    Allowed(
        r"this torch has no \w+",
        always,
        "the oldest torch that we take lacks some of safetensors' number formats",
    ),
    Allowed(
        r"no CUDA device.*",
        without_cuda,
        "a graphics card cannot be imitated",
    ),
    Allowed(
        r"no MPS device.*",
        without_mps,
        "Apple's graphics processor cannot be imitated",
    ),
    Allowed(
        r"could not import 'playwright': .*",
        lambda: importlib.util.find_spec("playwright") is None,
        "tests/site runs in a session of its own, which has it",
    ),
    Allowed(
        r"no Chromium.*",
        outside_ci,
        "the site's tests need a browser, which pip does not install",
    ),
    Allowed(r"root may .*", as_root, "a refusal by the system cannot be had as root"),
    Allowed(r"needs named pipes", on_windows, "Windows has no os.mkfifo"),
    Allowed(r"Windows has no FIFOs", on_windows, "Windows has no os.mkfifo"),
    Allowed(
        r"POSIX files and links|(symbolic )?links need a privilege there",
        on_windows,
        "there a link needs a privilege, and files have no POSIX permissions",
    ),
    Allowed(
        r"its hollow file would take 548 MB of the disk",
        on_windows,
        "a file with holes takes its whole size there",
    ),
    Allowed(
        r"needs POSIX signals or terminals|arguments are no bytes on Windows",
        on_windows,
        "a Windows process knows neither",
    ),
    Allowed(
        r"Windows keeps a folder that is in use",
        on_windows,
        "the working directory cannot be removed there",
    ),
    Allowed(
        r"needs a list of open files",
        lambda: not Path("/dev/fd").is_dir(),
        "which files are open is read from /dev/fd",
    ),
    Allowed(
        r"the file system has no such name",
        lambda: on_windows() or sys.platform == "darwin",
        "names that are no UTF-8 are refused by some file systems",
    ),
)


def is_listed(reason: str) -> bool:
    """Whether the list has this reason, on whatever machine."""
    return any(re.fullmatch(allowed.reason, reason) for allowed in ALLOWED)


def is_allowed(reason: str) -> bool:
    """Whether the list has this reason and its condition holds on this machine."""
    return any(
        re.fullmatch(allowed.reason, reason) and allowed.where() for allowed in ALLOWED
    )
