"""`gpt2hw evaluate`: how well a model predicts a text.

With GPT-2 large and WikiText-2's raw test set, its lines joined by two newlines, the
command is `gpt2hw evaluate FILE --model gpt2-large`, and with `--stride 1024` for
windows side by side; `gpt2hw.evaluation` has the source, and what is published there.
"""

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from gpt2hw.cli import console
from gpt2hw.cli.options import Device, Model, Precision, Threads, load
from gpt2hw.cli.text import counted, legible
from gpt2hw.cli.usage import must_be, whole
from gpt2hw.errors import GPT2HWError
from gpt2hw.files import file_path, not_a_file

if TYPE_CHECKING:
    from gpt2hw.evaluation import Evaluation

ENDLESS = ("a folder", "a device", "a socket")  # a pipe ends, as in <(zcat text.gz)
Progress = Callable[[int, int], object]


def evaluate(
    file: Annotated[
        str, typer.Argument(metavar="FILE|-", help="the text to score, in UTF-8")
    ],
    model: Model = "tiny",
    window: Annotated[
        int | None,
        typer.Option(
            "--window",
            parser=whole("--window", 2),
            metavar="N",
            help="how many tokens the model sees at once [default: all its positions]",
        ),
    ] = None,
    stride: Annotated[
        int | None,
        typer.Option(
            "--stride",
            parser=whole("--stride", 1),
            metavar="N",
            help="how far the window moves on [default: half the window]",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="print the same as JSON")
    ] = False,
    precision: Precision = "float32",
    threads: Threads = None,
    device: Device = "cpu",
) -> None:
    """Tell how well a model predicts a text.

    The text is scored as it stands, as one string, its last newline included: each
    token but the first counts once. Perplexity is per token, so it can be compared
    only between models with the same tokenizer; bits per byte can be compared between
    any. If FILE is -, the text is read from standard input.
    """
    name = "standard input" if file == "-" else legible(file)
    text = console.read_input() if file == "-" else read_text(file)
    if not text:
        raise GPT2HWError(f"{name} is empty: there is nothing to score")
    engine, tokenizer = load(model, device, threads, precision)
    if len(tokenizer.encode(text[:1000])) < 2:
        raise GPT2HWError(
            f"{name} has one token: the first has nothing before it, and is not scored"
        )
    window, stride = checked(window, stride, engine.config.n_ctx)
    from gpt2hw.evaluation import evaluate as score

    with progress_bar() as progress:
        found = score(
            engine, tokenizer, text, window=window, stride=stride, progress=progress
        )
    if as_json:
        about = {"model": legible(model), "file": name}
        console.print_json(about | as_dict(found, window, stride))
    else:
        print_scores(found, window, stride)


def read_text(file: str) -> str:
    """The text in a file, its line ends as they are.

    Raises GPT2HWError for what is no text in UTF-8, ValueError for what can be no
    file's name, and OSError that names the file.
    """
    instead = not_a_file(file)
    if instead in ENDLESS:
        raise GPT2HWError(f"{legible(file)} is {instead}, not a text")
    path = file_path(file)
    try:
        raw = path.read_bytes()
    except OSError as error:  # one that comes in mid-file does not name it
        raise OSError(error.errno, error.strerror, file) from None
    return console.utf8(raw, legible(file))


def checked(window: int | None, stride: int | None, n_ctx: int) -> tuple[int, int]:
    """Window and stride, filled in; WrongUse for one that is too large.

    >>> checked(None, None, 1024)
    (1024, 512)
    """
    if window is None:
        window = n_ctx
    elif window > n_ctx:
        rule = f"an integer from 2 to {n_ctx}, the model's positions"
        raise must_be("--window", rule, window)
    if stride is None:
        stride = window // 2
    elif stride > window:
        raise must_be("--stride", f"an integer from 1 to {window}, the window", stride)
    return window, stride


@contextmanager
def progress_bar() -> Iterator[Progress | None]:
    """What to call with (done, all), shown as a bar; None where nobody looks on."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress

    from gpt2hw.cli.screen import rich_console

    columns = (
        progress.TextColumn("scoring"),
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(
        *columns,
        console=rich_console(sys.stderr),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as shown:
        task = shown.add_task("", total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


def as_dict(found: "Evaluation", window: int, stride: int) -> dict[str, object]:
    """The scores for other programs; JSON has no infinity, so null stands for it."""
    scores = {"perplexity": found.perplexity, "bits_per_byte": found.bits_per_byte}
    return {
        **{what: n if math.isfinite(n) else None for what, n in scores.items()},
        "n_tokens": found.n_tokens,
        "n_bytes": found.n_bytes,
        "window": window,
        "stride": stride,
        "method": method(window, stride),
    }


def print_scores(found: "Evaluation", window: int, stride: int) -> None:
    """Prints the scores, of how much, and how they were made."""
    from gpt2hw.cli.screen import dim, show

    rows = [
        ("perplexity", f"{found.perplexity:,.2f}", "per token"),
        ("bits per byte", f"{found.bits_per_byte:,.4f}", "of UTF-8"),
        ("scored", f"{found.n_tokens:,}", counted(found.n_tokens, "token").split()[1]),
        ("text", f"{found.n_bytes:,}", counted(found.n_bytes, "byte").split()[1]),
    ]
    width = max(len(number) for _, number, _ in rows)
    lines = [f"{what:13}  {number:>{width}} {unit}" for what, number, unit in rows]
    show(*lines, dim(method(window, stride)))


def method(window: int, stride: int) -> str:
    """How the scores are made, in one sentence.

    >>> method(1024, 1024)
    'windows of 1,024 tokens side by side; the first token of each is not scored'
    """
    if stride == window:
        return (
            f"windows of {window:,} tokens side by side; the first token of each is not"
            " scored"
        )
    return (
        f"windows of {window:,} tokens, each {stride:,} further on; each token but the"
        f" first is scored once, with at least {window - stride:,} before it once the"
        " text has as many"
    )
