"""The checks of this project: the same here, in CI and on a contributor's machine.

    nox                                    lint, types, tests, golden, mutants,
                                           labs, docs, site
    nox -s tests -- tests/test_attention.py -k softmax
    nox -s serve                           the book at http://localhost:8000
    nox -s bench                           the bars on time and memory; never in CI
    nox -s bench-speed                     speed and memory in every precision
    nox -s bench-peers                     the same work by other engines, beside
    nox -s fuzz -- --minutes 60            hostile inputs; one minute unless told
    nox -s mutation                        small faults in the taught rooms; slow
    nox -s mutation -- bpe layout          in these rooms alone
    nox -s chaos -- --seed 7               downloads among faults; 200 unless told
    nox -s gpt2                            the real GPT-2 against published facts
    nox -s train -- CORPUS FOLDER          the tiny model anew (docs/appendix)
    nox -s train -- --score FOLDER TEXT    its bits per byte on a text
    python tests/labs/try_in_lab.py        the labs in JupyterLab; no session, slow

Each session has an environment of its own under `.nox/`, which later runs use again.
The package in it is installed as a reader would have it, not linked to the source, so
that a file which the wheel lacks is noticed.

What pip is told by its environment variables holds here too: on Linux,
`PIP_EXTRA_INDEX_URL` (see README.md) gives every session torch's CPU build.
"""

import nox

nox.needs_version = ">=2025.2.9"
# pip, not uv: a machine's settings for pip (an index, a folder of wheels) decide where
# torch comes from, and uv does not read them.
nox.options.default_venv_backend = "venv"
nox.options.reuse_venv = "yes"
nox.options.sessions = [
    *("lint", "types", "tests", "golden", "mutants"),
    *("labs", "docs", "site"),
]

PYPROJECT = nox.project.load_toml("pyproject.toml")


def group(name: str) -> tuple[str, ...]:
    """The requirements of a dependency group of pyproject.toml."""
    return nox.project.dependency_groups(PYPROJECT, name)


@nox.session
def lint(session: nox.Session) -> None:
    """Style and common faults (ruff), over every Python file."""
    session.install(*group("lint"))
    session.run("ruff", "check", *session.posargs)
    session.run("ruff", "format", "--check")


@nox.session
def types(session: nox.Session) -> None:
    """Types of the package, strictly (mypy)."""
    session.install(".[properties]", *group("types"))
    session.run("mypy", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """The rules of every room."""
    session.install(".[properties]", *group("test"))
    # These have sessions of their own, with what they need.
    elsewhere = [f"--ignore=tests/{name}" for name in ("golden", "labs", "site")]
    session.run("pytest", *elsewhere, *session.posargs)


@nox.session
def golden(session: nox.Session) -> None:
    """The tiny model's outputs as they are on file, and GPT-2's published ones."""
    session.install(".[properties]", *group("test"))
    session.run("pytest", "tests/golden", *session.posargs)


@nox.session
def mutants(session: nox.Session) -> None:
    """Each mistake of docs/wrong in its right piece's place, and who catches it."""
    session.install(".[properties]")
    session.run("python", "-m", "wrong.catalogue", env={"PYTHONPATH": "docs"})


@nox.session
def labs(session: nox.Session) -> None:
    """Each notebook, top to bottom, with the package and its extra `labs` alone."""
    session.install(".[labs]", "beartype", "pytest")  # tests/conftest.py has beartype
    session.run("pytest", "tests/labs", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """The book, strictly, into site/; then the tests of its frame."""
    session.install(".[labs,properties]", *group("docs"), *group("test"))
    session.run("python", "docs/build.py", *session.posargs)
    session.run("pytest", "tests/site")


@nox.session
def site(session: nox.Session) -> None:
    """Walks the built book in a browser; pictures of it go to site-screenshots/."""
    session.install("pytest>=8", *group("site"))
    # Without the conftest.py of the package's tests, which would want all they want.
    alone = ("--confcutdir", "tests/site")
    session.run("pytest", *alone, "tests/site/test_walk.py")
    session.run("python", "tests/site/walk.py", *session.posargs)


@nox.session
def serve(session: nox.Session) -> None:
    """The book in a browser, made anew when a page changes."""
    session.install("--editable", ".[labs,properties]", *group("docs"))
    session.run("python", "docs/build.py", "--serve")


@nox.session
def bench(session: nox.Session) -> None:
    """Time and memory beside the neighbours': `nox -s bench -- PROSE CODE`."""
    session.install(".[properties]", *group("test"))
    session.run("python", "tests/bench/engine.py", *session.posargs)
    session.run("python", "tests/bench/shards.py")
    session.run("python", "tests/bench/download.py")


@nox.session(name="bench-speed")
def bench_speed(session: nox.Session) -> None:
    """Tokens a second and memory, in every precision, on a machine that rests."""
    session.install(".[properties]", *group("test"))
    session.run("python", "tests/bench/speed.py", *session.posargs)


@nox.session(name="bench-peers")
def bench_peers(session: nox.Session) -> None:
    """Beside other engines and tokenizers; llama.cpp is compiled for this machine."""
    session.install(".", *group("peers"), "--no-binary", "llama-cpp-python")
    session.run("python", "tests/bench/peers/run.py", *session.posargs)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Hostile inputs, by hypothesis: only the package's own errors may come out."""
    session.install(".[properties]", *group("test"))
    session.run("python", "tests/fuzz/fuzz.py", *session.posargs)


@nox.session
def chaos(session: nox.Session) -> None:
    """Downloads among faults: `nox -s chaos -- --faults 200 --seed N`."""
    session.install(".[properties]", *group("test"))
    session.run("python", "tests/chaos/chaos.py", *session.posargs)


@nox.session
def gpt2(session: nox.Session) -> None:
    """Downloads GPT-2 (548 MB) and checks it: `nox -s gpt2 -- gpt2 gpt2-medium`."""
    session.install(".")
    session.run("python", "tests/published/gpt2_check.py", *session.posargs)


@nox.session
def mutation(session: nox.Session) -> None:
    """Small faults in the taught rooms, one at a time: does a test notice each?"""
    session.install(".[properties]", *group("test"), *group("mutation"))
    tools = [f"tests/mutation/{name}.py" for name in ("mutants", "swap")]
    session.run("python", "-m", "doctest", *tools)
    session.run("python", "tests/mutation/run.py", *session.posargs)


@nox.session
def train(session: nox.Session) -> None:
    """Trains the tiny model, or scores a folder (see the top of this file)."""
    session.install(".")
    if session.posargs[:1] == ["--score"]:
        session.run("python", "docs/appendix/score.py", *session.posargs[1:])
        return
    corpus, folder, *options = session.posargs
    merges = f"{folder}/tokenizer"
    session.run("python", "docs/appendix/train_bpe.py", corpus, merges)
    session.run(
        "python", "docs/appendix/train_tiny.py", corpus, merges, folder, *options
    )
