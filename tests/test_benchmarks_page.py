"""docs/benchmarks.md tells what docs/measurements/peers.json holds, and that is whole.

Nothing is measured here, and no figure is judged.
"""

import copy
import doctest
import re
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs" / "measurements"))
sys.path.insert(0, str(ROOT / "tests" / "bench" / "peers"))

import peers  # noqa: E402
from bars import BARS, ratios  # noqa: E402

PAGE = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
ENGINES = [name for names in peers.BITS.values() for name in names]
FLOATS = list(peers.BITS[32])
ROWS = {
    "decode": ENGINES,
    "prompt": ENGINES,
    "several": FLOATS,
    "start": ["gpt2hw float32", "transformers float32"],
    "tokenizer": ["gpt2hw", "tiktoken", "tokenizers"],
}
WORKS = [(work, part) for part, works in peers.PARTS.items() for work in works]


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return peers.read()


def test_the_helpers_examples_hold() -> None:
    assert doctest.testmod(peers).failed == 0


WITHOUT_THE_TESTS_OWN = """
import runpy, sys
sys.modules.update(dict.fromkeys(["pytest", "hypothesis"]))  # not to be had
sys.argv = sys.argv[1:]
sys.path[0] = sys.argv[0].removesuffix("run.py")
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_what_is_measured_beside_peers_needs_no_test_tool() -> None:
    script = ROOT / "tests" / "bench" / "peers" / "run.py"
    words = [sys.executable, "-c", WITHOUT_THE_TESTS_OWN, str(script), "--help"]
    done = subprocess.run(words, capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "--rounds" in done.stdout


@pytest.mark.parametrize(("work", "part"), WORKS)
def test_every_row_of_the_page_was_measured(
    found: dict[str, Any], work: str, part: str
) -> None:
    assert list(peers.rows(found, work)) == ROWS[part]


@pytest.mark.parametrize(("work", "part"), WORKS)
def test_a_median_is_that_of_its_rounds(
    found: dict[str, Any], work: str, part: str
) -> None:
    for row in peers.rows(found, work).values():
        assert len(row["rounds"]) == peers.n_rounds(found) >= 5
        assert row["median"] == pytest.approx(median(row["rounds"]), rel=1e-3)
        assert [row["least"], row["most"]] == [min(row["rounds"]), max(row["rounds"])]


def test_each_bar_was_measured_and_its_ratio_is_that_of_its_rounds(
    found: dict[str, Any],
) -> None:
    assert [one["what"] for one in found["ratios"]] == [bar.what for bar in BARS]
    assert ratios(found["work"]) == found["ratios"]
    for one in found["ratios"]:
        again = peers.paired(found, one["ours"], one["theirs"])
        assert one["ratio"] == pytest.approx(again, abs=1e-3)


def test_what_the_memory_allows_is_told(found: dict[str, Any]) -> None:
    changed = copy.deepcopy(found)
    rows = peers.rows(changed, "limit of memory")
    assert len(rows["float32"]["rounds"]) == peers.n_rounds(found)
    rows["float32"] = {"median": 80, "least": 40, "most": 160, "rounds": [40, 80, 160]}
    speeds = ([30, 64, 80], [36, 72, 150], [20, 40, 80], [4, 8, 16])
    for name, rounds in zip(FLOATS, speeds, strict=True):
        peers.rows(changed, "at 64")[name]["rounds"] = rounds
    told = peers.limit(changed)
    assert (
        "80.0 tokens a second (40.0 in the slowest round, 160 in the fastest)" in told
    )
    assert "gpt2hw float32 reaches 75% of it" in told
    assert told.endswith(
        "Of the same limit, llama.cpp f32 reaches 90%, CTranslate2 float32 reaches "
        "50% and transformers float32 reaches 10%."
    )


def test_the_system_s_share_of_a_start_is_told(found: dict[str, Any]) -> None:
    assert list(peers.rows(found, "system")) == ROWS["start"]
    changed = copy.deepcopy(found)
    for seconds, row in enumerate(peers.rows(changed, "system").values(), start=1):
        row |= {"median": seconds, "least": seconds / 2, "most": seconds * 2}
    assert (
        "1.00 s for gpt2hw (0.50 to 2.00 from round to round) and "
        "2.00 s for transformers (1.00 to 4.00 from round to round)."
    ) in peers.system(changed)


def test_every_engine_computed_the_same_logits(found: dict[str, Any]) -> None:
    assert list(found["logits_differ"]) == ENGINES
    for name in FLOATS:
        assert found["logits_differ"][name] < 0.02  # llama.cpp's, for no known reason


def test_it_says_where_and_when_and_of_what(found: dict[str, Any]) -> None:
    told = peers.machine(found)
    for fact in ("date", "processor", "threads", "python"):
        assert str(found[fact]) in told
    assert all(f"{name} {v}" in told for name, v in found["versions"].items())
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", found["date"])


def test_a_peer_that_is_faster_is_named_and_the_sentence_follows_the_figures(
    found: dict[str, Any],
) -> None:
    changed = copy.deepcopy(found)
    rows = peers.rows(changed, "at 64")
    rows["gpt2hw float32"]["rounds"] = [100.0] * 3
    for peer, speed in zip(FLOATS[1:], (125.0, 50.0, 101.0), strict=True):
        rows[peer]["rounds"] = [speed] * 3
    first, second, third = FLOATS[1:]
    line = peers.of_bits(changed, "at 64").splitlines()[0]
    assert line == (
        f"- gpt2hw float32 is 2.00 times as fast as {second} and as fast as {third}. "
        f"Faster than gpt2hw float32 here: **{first}** (1.25 times)."
    )


def test_less_is_faster_where_time_is_measured(found: dict[str, Any]) -> None:
    changed = copy.deepcopy(found)
    rows = peers.rows(changed, "prompt of 512")
    rows["gpt2hw float16"]["rounds"] = [300.0]
    rows["llama.cpp f16"]["rounds"] = [150.0]
    assert "**llama.cpp f16** (2.00 times)" in peers.of_bits(changed, "prompt of 512")


def test_a_floor_that_is_missed_is_marked(found: dict[str, Any]) -> None:
    one = {**found["ratios"][0], "floor": 1.0}
    for ratio, marked in ((0.99, True), (1.0, False)):
        table = peers.ratio_table({"ratios": [{**one, "ratio": ratio}]})
        assert ("(missed)" in table) is marked


def test_why_a_floor_is_missed_is_told_and_only_then(found: dict[str, Any]) -> None:
    def told(ratio: float) -> str:
        changed = [{**one, "ratio": ratio, "floor": 1.0} for one in found["ratios"]]
        return peers.why_missed({"ratios": changed})

    assert told(1.0) == ""
    assert told(0.9).split("\n\n") == list(peers.WHY.values())


def test_no_figure_of_the_measurement_is_typed_into_the_page() -> None:
    prose = re.sub(r"^```.*?^```", "", PAGE, flags=re.DOTALL | re.MULTILINE)
    prose = re.sub(r"\[.*?\]\(.*?\)", "", prose)
    allowed = {"124", "2", "48", "32", "16", "8", "8.5", "4.5", "64", "1"}
    numbers = re.findall(r"(?<![\w.])\d+(?:\.\d+)?", prose)
    assert set(numbers) <= allowed
