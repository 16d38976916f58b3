"""The wheel and the sdist, built and installed as a reader gets them.

The new environments take the dependencies from the one that runs the tests, so that
nothing is downloaded.
"""

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import gpt2hw

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "gpt2hw"
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COV"))}


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=CLEAN | {"PYTHONUTF8": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder]
    run(*build, ROOT, cwd=folder)
    return folder


@pytest.fixture(scope="session", params=["*.whl", "*.tar.gz"], ids=["wheel", "sdist"])
def installed(
    request: pytest.FixtureRequest,
    built: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The folder of programs of a new environment with the package in it."""
    (artefact,) = built.glob(request.param)
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    where = "import sysconfig; print(sysconfig.get_path('purelib'), end='')"
    site = Path(run(programs / "python", "-c", where, cwd=folder))
    (site / "dependencies.pth").write_text(
        sysconfig.get_path("purelib"), encoding="utf-8"
    )
    # The environment that runs the tests has the package too: it must not count.
    options = ["--ignore-installed", "--no-deps", "--no-build-isolation", "--no-index"]
    run(programs / "python", "-m", "pip", "install", *options, artefact, cwd=folder)
    return programs


def files(folder: Path) -> dict[str, bytes]:
    """The files below a folder, by their names in it; caches are passed over."""
    found = {p.relative_to(folder): p for p in folder.rglob("*") if p.is_file()}
    return {
        name.as_posix(): path.read_bytes()
        for name, path in found.items()
        if name.suffix != ".pyc" and not any(part[0] == "." for part in name.parts)
    }


@pytest.fixture(scope="session")
def package(installed: Path) -> Path:
    """The folder of the package that was installed."""
    code = "import gpt2hw; print(gpt2hw.__path__[0], end='')"
    return Path(run(installed / "python", "-c", code, cwd=installed))


def test_the_installed_package_is_the_one_that_is_imported(
    installed: Path, package: Path
) -> None:
    assert package.is_relative_to(installed.parent)


def test_the_installed_package_knows_its_version(installed: Path) -> None:
    code = "import gpt2hw, importlib.metadata as m; print(m.version('gpt2hw'), end='')"
    assert run(installed / "python", "-c", code, cwd=installed) == gpt2hw.__version__


def test_the_installed_files_are_those_of_the_source(package: Path) -> None:
    assert (package / "py.typed").is_file()
    assert files(package) == files(SOURCE)


def test_the_installed_program_starts_and_tells_a_story(installed: Path) -> None:
    assert "generate" in run(installed / "gpt2hw", "--help", cwd=installed)
    story = run(installed / "gpt2hw", "generate", "Once upon a time", cwd=installed)
    assert len(story.split()) > 10


def test_the_licences_and_notices_are_inside_the_wheel(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        info = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        texts = {
            name: archive.read(name).decode("utf-8")
            for name in archive.namelist()
            if Path(name).name in {"LICENSE", "NOTICE"}
        }
        metadata = archive.read(info).decode("utf-8")
    licences = {n: t for n, t in texts.items() if "/licenses/" in n}
    assert len(licences) == metadata.count("\nLicense-File: ") >= 3
    everything = "\n".join(licences.values())
    assert "Copyright (c) 2026 The gpt2hw contributors" in everything
    assert "Software Copyright (c) 2019 OpenAI" in everything
    assert "Copyright 2021 UCI Digital Learning Lab" in everything
    # Beside the files that they speak of, too.
    for model in ("gpt2", "tiny"):
        assert f"gpt2hw/models/{model}/NOTICE" in texts


def test_the_sdist_holds_what_its_tests_and_its_wheel_need(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    needed = {"LICENSE", "README.md", "noxfile.py", "pyproject.toml", "CITATION.cff"}
    needed |= {
        f"{top}/{name}" for top in ("src", "tests") for name in files(ROOT / top)
    }
    assert needed <= held


def test_the_wheel_of_the_sdist_is_the_wheel_of_the_source(
    built: Path, tmp_path: Path
) -> None:
    build = [sys.executable, "-m", "build", "--no-isolation", "--wheel"]
    run(*build, "--outdir", tmp_path, ROOT, cwd=tmp_path)
    (of_sdist,), (of_source,) = built.glob("*.whl"), tmp_path.glob("*.whl")
    with zipfile.ZipFile(of_sdist) as one, zipfile.ZipFile(of_source) as other:
        contents = [{n: z.read(n) for n in z.namelist()} for z in (one, other)]
    assert contents[0] == contents[1]
