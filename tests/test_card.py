"""The tiny model's card tells what is: its figures are those of the shipped files.

What needs the corpus is measured by commands of docs/appendix and stands in
measured.json, with the hash of the weights that it is true of.
"""

import doctest
import json
import re
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from gpt2hw import GPT2, Tokenizer

ROOT = Path(__file__).parent.parent
APPENDIX = ROOT / "docs" / "appendix"
sys.path.insert(0, str(APPENDIX))

import card  # noqa: E402
import check_samples  # noqa: E402
import choose_sampling  # noqa: E402
import corpus  # noqa: E402
import curve  # noqa: E402
import measured  # noqa: E402
import prose  # noqa: E402
import samples  # noqa: E402
import tables  # noqa: E402
from train_tiny import Recipe  # noqa: E402

CARD = (APPENDIX / "tiny_model.md").read_text(encoding="utf-8")
CURVE = (APPENDIX / "curve.csv").read_text(encoding="utf-8")
PAGE = (APPENDIX / "samples.md").read_text(encoding="utf-8")
FOUND = measured.read()
TEXTS = samples.texts_of(PAGE)


def test_every_table_of_the_card_is_made_from_what_is_on_file() -> None:
    assert tables.fill(CARD) == CARD, "run: python docs/appendix/card.py"


def test_a_figure_that_is_changed_by_hand_is_noticed() -> None:
    bits = f"{FOUND['heldout']['bits_per_byte']:.4f}"
    assert bits in CARD
    assert tables.fill(CARD.replace(bits, "1.0000")) == CARD


@pytest.mark.parametrize("name", FOUND)
def test_what_is_on_file_is_true_of_the_shipped_weights(name: str) -> None:
    weights = measured.sha256(measured.TINY / "model.safetensors")
    assert FOUND[name]["weights"] == weights, "run: python docs/appendix/card.py CORPUS"


def test_the_card_keeps_the_bar_on_the_held_out_tales() -> None:
    assert FOUND["heldout"]["bits_per_byte"] <= 1.40
    assert FOUND["heldout"]["n_bytes"] == 236_021


def test_the_tales_differ_more_among_themselves_than_the_three_sets_do() -> None:
    sets = [FOUND["heldout"], *(FOUND["tales"][k] for k in ("validation", "trained"))]
    means = [found["bits_per_byte"] for found in sets]
    for found in sets[1:]:
        assert found["highest"] - found["lowest"] > max(means) - min(means)
    assert FOUND["tales"]["trained"]["bits_per_byte"] == min(means)


def test_the_heads_score_as_the_card_says() -> None:
    again = card.score_heads()
    for kind in ("scores", "highest_induction"):
        for now, filed in zip(again[kind], FOUND["heads"][kind], strict=True):
            assert now == pytest.approx(filed, abs=0.002)
    assert again["level"] == FOUND["heads"]["level"]


def test_a_new_training_follows_the_recipe_of_the_card() -> None:
    filed = json.loads((APPENDIX / "recipe.json").read_text(encoding="utf-8"))
    assert asdict(Recipe()) == filed


def test_the_curve_ends_with_the_last_step_of_the_recipe() -> None:
    losses, bits = curve.read_curve(CURVE)
    assert losses[-1][0] == bits[-1][0] == Recipe().steps


def test_the_card_names_the_ebooks_of_the_notice() -> None:
    notice = (measured.TINY / "NOTICE").read_text(encoding="utf-8")
    numbers = re.findall(r"^ +(\d+)  ", notice, re.MULTILINE)
    named = re.findall(r"ebooks ([\d, \nand]+)", CARD)
    assert sorted(re.findall(r"\d+", " ".join(named)), key=int) == sorted(
        numbers, key=int
    )
    assert len(numbers) == 24


def test_the_numbers_in_the_cards_prose_are_those_of_the_code() -> None:
    assert f"one tale of FairytaleQA in {corpus.VALIDATION_EVERY}." in CARD
    assert "pieces of fewer than 300\ncharacters" in CARD
    kept = corpus.split_at_headings(f"A TALE\n\n{'a' * 300}\n\nANOTHER\n\n{'b' * 299}")
    assert kept == ["a" * 300]
    assert f"at least {choose_sampling.KNOWN:.0%}".replace("%", " per cent") in CARD
    assert f"at most {choose_sampling.AGAIN:.0%}".replace("%", " per cent") in CARD
    assert f"seeds {samples.SEEDS[0]}\nto {samples.SEEDS[-1]}" in CARD


# The figure


@pytest.mark.parametrize("which", [0, 1], ids=["loss", "bits"])
def test_each_line_of_the_figure_has_the_numbers_of_the_curve(which: int) -> None:
    points = curve.read_curve(CURVE)[which]
    svg = curve.plots(CURVE)[which].svg
    (line,) = re.findall(r'points="([^"]*)" stroke-width="2.5"', svg)
    drawn = [tuple(map(float, point.split(","))) for point in line.split()]
    assert len(drawn) == len(points)
    for axis in (0, 1):  # a straight scale through the first point and the last
        at, value = [p[axis] for p in drawn], [p[axis] for p in points]
        scale = (at[-1] - at[0]) / (value[-1] - value[0])
        expected = [at[0] + scale * (v - value[0]) for v in value]
        assert at == pytest.approx(expected, abs=0.02)
        assert (scale > 0) == (axis == 0)  # a larger value stands higher


def test_each_plot_of_the_curve_has_a_caption_with_its_last_value() -> None:
    ends = [points[-1][1] for points in curve.read_curve(CURVE)]
    for plot, end in zip(curve.plots(CURVE), ends, strict=True):
        assert f"at the end {end:.3f}." in plot.caption


# The samples


def test_none_of_the_twenty_samples_is_left_out() -> None:
    seeds = re.findall(r"^## Seed (\d+)$", PAGE, re.MULTILINE)
    assert [int(seed) for seed in seeds] == list(samples.SEEDS) == list(range(1, 21))
    assert len(TEXTS) == 20
    for seed, (text, _) in zip(samples.SEEDS, TEXTS, strict=True):
        assert text.startswith(samples.prompt_of(seed))


def test_the_samples_are_what_the_shipped_model_writes() -> None:
    model, tokenizer = GPT2.from_pretrained("tiny"), Tokenizer.from_pretrained("tiny")
    alike = 0
    for seed, (text, _) in zip(samples.SEEDS, TEXTS, strict=True):
        done = samples.sample(model, tokenizer, seed, n_new=30)
        alike += text.startswith((done.prompt + done.text).rstrip())
    # Another processor may decide a draw at a border otherwise.
    assert alike >= 18, "run: python docs/appendix/card.py CORPUS"


def test_no_sample_says_a_sentence_twice() -> None:
    for text, _ in TEXTS:
        assert prose.repeated(text) == []


def test_at_least_98_per_cent_of_the_words_occur_in_the_corpus() -> None:
    filed = FOUND["samples"]
    counted = check_samples.count(TEXTS)
    assert {name: filed[name] for name in counted} == counted
    assert 1 - len(filed["unknown"]) / filed["n_words"] >= 0.98
    written = [w for text, cut in TEXTS for w in prose.whole_words(text, is_cut=cut)]
    assert not [word for word in filed["unknown"] if word not in written]


def test_how_samples_are_drawn_was_chosen_by_the_rule_on_other_seeds() -> None:
    filed = FOUND["sampling"]
    first, last = filed["seeds"]
    assert not set(samples.SEEDS) & set(range(first, last + 1))
    assert filed["chosen"].items() <= choose_sampling.best(filed["grid"]).items()


def test_a_sample_reads_back_as_it_was_written() -> None:
    class Done:
        prompt, finish_reason = "The fox", "length"
        text = " said_so [1] <b>\n\n(1)\n- a\n1. b `c` #d\\e"

    page = samples.as_markdown({3: Done()})
    assert samples.texts_of(page) == [(Done.prompt + Done.text, True)]


@pytest.mark.parametrize(
    "module", [card, choose_sampling, prose, samples], ids=lambda m: m.__name__
)
def test_the_examples_of_the_appendix_give_what_they_show(module) -> None:
    found = doctest.testmod(module)
    assert found.attempted
    assert not found.failed
