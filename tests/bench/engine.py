"""The engine's bars, measured on this machine: `nox -s bench -- [PROSE CODE]`.

Each row says what was asked, what was found, and whether the bar is met. Comparisons
run in turn in one process (A B A B ...), and the median counts, since machines drift.
PROSE and CODE are text files of at least 2 MB for the tokenizer; without them, prose
is text that the tiny model writes, and code is Python's standard library.
"""

import statistics
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import torch
from measuring import load, report, results, write_settings

from gpt2hw import GPT2, GPT2Config, Sampler, Tokenizer, generate, write_safetensors
from gpt2hw.hub import SHIPPED
from gpt2hw.layout import n_parameters, parameter_shapes

MEGABYTE = 1_000_000


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


# Commands


def bench_commands() -> None:
    """Whole processes, median of 11; and what they import."""
    for arguments in (["--help"], ["tokenize", "Hello world"], ["inspect"]):
        command = [sys.executable, "-m", "gpt2hw", *arguments]
        times = [
            seconds(
                lambda c=command: subprocess.run(c, capture_output=True, check=True)
            )
            for _ in range(11)
        ]
        report(f"gpt2hw {' '.join(arguments)}", statistics.median(times), 0.5, "s")
        heavy = _imports(arguments) & {"torch", "jaxtyping", "numpy", "requests"}
        report(f"  heavy imports {sorted(heavy) or ''}", len(heavy), 0, "modules")
    first = [_first_piece() for _ in range(3)]
    report("gpt2hw generate: first piece", statistics.median(first), 3, "s")


def _imports(arguments: list[str]) -> set[str]:
    script = textwrap.dedent(f"""
        import contextlib, io, sys
        from gpt2hw.cli import main
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            main({arguments!r})
        print(*sys.modules, file=sys.stderr)
    """)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True
    )
    return set(done.stderr.split())


def _first_piece() -> float:
    """Seconds from the start of the process to the first text after the prompt."""
    prompt = b"Once upon a time"
    start = time.perf_counter()
    command = [sys.executable, "-m", "gpt2hw", "generate", prompt.decode()]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(len(prompt) + 1)
        found = time.perf_counter() - start
        process.stdout.read()
    return found


# Loading


def bench_loading(folder: Path) -> None:
    """A 124M F32 checkpoint with its 12 mask buffers, in the page cache."""
    config = GPT2Config()
    write_checkpoint(folder, config)
    rows = [load(folder) for _ in range(6)]
    took, memory, _ = map(statistics.median, zip(*rows[1:], strict=True))
    report("load 124M from the page cache", took, 1, "s")
    ratio = memory / (4 * n_parameters(config))
    report("load 124M: peak memory / bytes of parameters", ratio, 1.1, "x")


def write_checkpoint(folder: Path, config: GPT2Config) -> None:
    generator = torch.Generator().manual_seed(0)
    tensors = {
        name: torch.empty(shape).normal_(0, 0.02, generator=generator)
        for name, shape in parameter_shapes(config).items()
    }
    mask = torch.ones(config.n_ctx, config.n_ctx).tril()[None, None]
    tensors |= {f"h.{layer}.attn.bias": mask for layer in range(config.n_layer)}
    write_safetensors(folder / "model.safetensors", tensors, {"format": "pt"})
    write_settings(folder, config)


# Tokenizer


def bench_tokenizer(prose: Path | None, code: Path | None) -> None:
    """Against tiktoken, one thread, 2 MB, a new Tokenizer each run, median of 7."""
    for kind, text in (("prose", prose_text(prose)), ("code", code_text(code))):
        ratios = []
        for _ in range(7):
            ours, theirs = Tokenizer.from_pretrained("gpt2"), tiktoken_gpt2()
            mine = seconds(lambda t=ours, s=text: t.encode(s))
            reference = seconds(lambda t=theirs, s=text: t.encode_ordinary(s))
            ratios.append(reference / mine)
        assert ours.encode(text) == theirs.encode_ordinary(text)
        share = statistics.median(ratios)
        report(
            f"tokenizer on {kind}: speed / tiktoken's", share, 0.33, "x", at_least=True
        )
    tokenizer = Tokenizer.from_pretrained("gpt2")
    short, long = (
        seconds(lambda n=n: tokenizer.encode("a" * n)) for n in (10**5, 10**6)
    )
    report("one million 'a'", long, 5, "s")
    report("one million 'a' / a hundred thousand", long / short, 15, "x")


def tiktoken_gpt2() -> "object":
    import tiktoken

    ours = Tokenizer.from_pretrained("gpt2")
    ranks = {ours.token_bytes(i): i for i in range(ours.eot_id)}
    words = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++"
    pattern = words + r"|\s++$|\s+(?!\S)|\s"  # as tiktoken writes GPT-2's
    return tiktoken.Encoding(
        name="gpt2", pat_str=pattern, mergeable_ranks=ranks, special_tokens={}
    )


def _two_megabytes(text: str) -> str:
    data = text.encode()
    return (data * (2 * MEGABYTE // len(data) + 1))[: 2 * MEGABYTE].decode(
        errors="ignore"
    )


def prose_text(path: Path | None) -> str:
    if path is not None:
        return _two_megabytes(path.read_text(encoding="utf-8"))
    model, tokenizer = GPT2.from_pretrained("tiny"), Tokenizer.from_pretrained("tiny")
    n_new = model.config.n_ctx - 1
    sampler = Sampler(temperature=0.9, seed=1)
    tales = [
        generate(model, tokenizer, "", max_new_tokens=n_new, sampler=sampler).text
        for _ in range(60)
    ]
    return _two_megabytes("\n\n".join(tales))


def code_text(path: Path | None) -> str:
    if path is not None:
        return _two_megabytes(path.read_text(encoding="utf-8"))
    library = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    texts = (p.read_text(encoding="utf-8", errors="ignore") for p in library)
    return _two_megabytes("".join(texts))


# Decoding


def bench_decoding(folder: Path) -> None:
    """Tokens a second with a cache at the 124M shape, against transformers."""
    import transformers

    theirs = transformers.GPT2LMHeadModel.from_pretrained(folder, dtype=torch.float32)
    ours = GPT2.from_pretrained(folder)
    ids = torch.randint(0, 50257, (64,), generator=torch.Generator().manual_seed(1))
    ratios = []
    for _ in range(5):
        mine, reference = _decode_ours(ours, ids), decode_theirs(theirs, ids)
        ratios.append(reference / mine)
        print(
            f"      decode: {1 / mine:.1f} tokens/s, transformers {1 / reference:.1f}"
        )
    speed = statistics.median(ratios)
    report(
        "decode 124M with cache: speed / transformers'", speed, 1, "x", at_least=True
    )


N_NEW = 24


@torch.inference_mode()  # as `generate` has it
def _decode_ours(model: GPT2, ids: torch.Tensor) -> float:
    cache = model.new_cache()
    token = int(model(ids, cache)[-1].argmax())
    start = time.perf_counter()
    for _ in range(N_NEW):
        token = int(model([token], cache)[-1].argmax())
    return (time.perf_counter() - start) / N_NEW


@torch.inference_mode()
def decode_theirs(model: "torch.nn.Module", ids: torch.Tensor) -> float:
    out = model(ids[None], use_cache=True)
    start = time.perf_counter()
    for _ in range(N_NEW):
        token = out.logits[:, -1:].argmax(-1)
        out = model(token, past_key_values=out.past_key_values, use_cache=True)
    int(out.logits[0, -1].argmax())
    return (time.perf_counter() - start) / N_NEW


def main() -> int:
    files = [Path(argument) for argument in sys.argv[1:]]
    if len(files) not in (0, 2):
        print("usage: nox -s bench -- [PROSE CODE]", file=sys.stderr)
        return 2
    prose, code = files or (None, None)
    threads, here = torch.get_num_threads(), SHIPPED.parent
    print(f"torch {torch.__version__}, {threads} threads, package in {here.name}")
    bench_commands()
    bench_tokenizer(prose, code)
    with tempfile.TemporaryDirectory() as folder:
        bench_loading(Path(folder))
        bench_decoding(Path(folder))
    print(f"{sum(results)} of {len(results)} bars met")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
