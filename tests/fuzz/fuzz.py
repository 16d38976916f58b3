"""Hostile inputs by the thousand: only the package's own errors may come out.

    nox -s fuzz                  one minute
    nox -s fuzz -- --minutes 60  an hour

Each target takes an input that hypothesis makes, from good ones that are damaged to
plain noise, and asserts what must hold. The targets run in turn, each time with new
examples, until the time is up; a failure is shrunk to its smallest input and ends the
run. The last line counts the inputs.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent.parent))

from gpt2hw import (
    CheckpointError,
    GPT2Config,
    Tokenizer,
    TokenizerError,
    generate,
    read_header,
    read_safetensors,
)
from gpt2hw.folder import read_config, read_settings
from gpt2hw.hub import SHIPPED
from gpt2hw.properties import drawn_files, drawn_texts
from gpt2hw.properties import generation as generation_rules
from gpt2hw.properties import header as header_rules
from gpt2hw.properties import tokenizer as tokenizer_rules
from gpt2hw.vocabulary import read_merges, read_vocabulary
from tokenizer_judges import ids_by_tiktoken

FOLDER = Path(tempfile.mkdtemp(prefix="gpt2hw-fuzz-"))
TINY = Tokenizer.from_pretrained("tiny")
GPT2_TOKENIZER = Tokenizer.from_pretrained("gpt2")
counts: Counter[str] = Counter()

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
noise = st.binary(max_size=200)


@st.composite
def damaged(draw: st.DrawFn, good: bytes) -> bytes:
    """A good file of which some bytes are changed, lost or doubled."""
    raw = bytearray(good)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(raw)))
        raw[at : at + draw(st.integers(0, 5))] = draw(st.binary(max_size=5))
    return bytes(raw)


def written(raw: bytes, name: str) -> Path:
    path = FOLDER / name
    path.write_bytes(raw)
    return path


def header(raw: bytes) -> None:
    header_rules.answers_or_refuses(read_header, written(raw, "model.safetensors"))


def tensors(raw: bytes) -> None:
    path = written(raw, "model.safetensors")
    if header_rules.answers_or_refuses(read_safetensors, path):
        header_rules.tensors_cover_the_data(read_header, path)


def only(errors: type[Exception], read: Callable[[], object]) -> object:
    """What `read` gives, or None where it refuses by one of these errors."""
    try:
        return read()
    except errors as error:
        if not str(error):
            raise AssertionError("an error without a message") from error
        return None


def merges(raw: bytes) -> None:
    only(TokenizerError, lambda: read_merges(written(raw, "merges.txt")))


def vocabulary(raw: bytes) -> None:
    only(TokenizerError, lambda: read_vocabulary(written(raw, "vocab.json")))


def tokenizer_of_a_folder(pair: tuple[bytes, bytes]) -> None:
    paths = written(pair[0], "merges.txt"), written(pair[1], "vocab.json")
    found = only(TokenizerError, lambda: Tokenizer.from_files(*paths))
    if isinstance(found, Tokenizer):
        tokenizer_rules.text_survives(found.encode, found.decode, "a b é 👍\n")


def config(settings_: object) -> None:
    raw = json.dumps(settings_).encode()
    written(raw, "config.json")
    found = only(CheckpointError, lambda: read_config(FOLDER))
    assert found is None or isinstance(found, GPT2Config)


def encoding(text: str) -> None:
    tokenizer_rules.ids_equal(GPT2_TOKENIZER.encode, ids_by_tiktoken, text)
    tokenizer_rules.text_survives(GPT2_TOKENIZER.encode, GPT2_TOKENIZER.decode, text)


def any_string(text: str) -> None:
    only(TokenizerError, lambda: GPT2_TOKENIZER.encode(text, allow_special=True))


def stream_decoder(ids: list[int]) -> None:
    tokenizer_rules.stream_equals_decode(
        GPT2_TOKENIZER.stream_decoder, GPT2_TOKENIZER.decode, ids
    )


def stop_strings(pair: tuple[list[int], list[str]]) -> None:
    generation_rules.writes_the_script(generate, TINY, *pair)


SETTINGS = read_settings(SHIPPED / "tiny")
small_merges = b"#version: 0.2\nt h\nth e\n\xc4\xa0 t\n"
small_vocabulary = json.dumps(Tokenizer([("t", "h"), ("th", "e")])._vocab).encode()
any_header = (
    drawn_files.good_files()
    | drawn_files.edited_files()
    | drawn_files.damaged_files()
    | noise
)
surrogates = st.characters(categories=["Cs", "L", "Z"])
TARGETS: dict[Callable[..., None], st.SearchStrategy] = {
    header: any_header,
    tensors: any_header,
    merges: damaged(small_merges) | noise,
    vocabulary: damaged(small_vocabulary) | json_values.map(json.dumps).map(str.encode),
    tokenizer_of_a_folder: st.tuples(damaged(small_merges), damaged(small_vocabulary)),
    config: st.dictionaries(st.sampled_from([*SETTINGS]), json_values).map(
        lambda changes: SETTINGS | changes
    )
    | json_values,
    encoding: drawn_texts.nasty_texts(60),
    any_string: st.lists(surrogates | st.sampled_from(drawn_texts.NASTY)).map("".join),
    stream_decoder: st.lists(st.integers(0, 50256), max_size=20),
    stop_strings: drawn_texts.scripts_and_stops(TINY),
}


def run(target: Callable[..., None], inputs: st.SearchStrategy, n: int, s: int) -> None:
    """`n` new inputs for one target."""

    @seed(s)
    @settings(
        max_examples=n,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(inputs)
    def once(value: object) -> None:
        counts[target.__name__] += 1
        target(value)

    once()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=random.randrange(10**9))
    parser.add_argument("--inputs", type=int, default=200, help="a target, each turn")
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    end, s = time.monotonic() + 60 * args.minutes, args.seed
    while time.monotonic() < end:
        for target, inputs in TARGETS.items():
            run(target, inputs, args.inputs, s)
            s += 1
    for name, n in counts.items():
        print(f"{n:>9,}  {name}")
    print(f"{sum(counts.values()):>9,}  inputs, no foreign exception")
    return 0


if __name__ == "__main__":
    sys.exit(main())
