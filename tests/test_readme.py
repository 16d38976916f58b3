"""What README.md shows is so: its commands, its examples, its shapes."""

import doctest
import json
import re
from pathlib import Path

import pytest

from gpt2hw import GPT2Config
from gpt2hw.layout import n_parameters
from test_house import HOUSE, SOURCE, rooms_imported

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
TINY = json.loads(
    (ROOT / "src/gpt2hw/models/tiny/config.json").read_text(encoding="utf-8")
)


def blocks(language: str) -> list[str]:
    """The fenced blocks of README.md in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def commands(language: str) -> list[str]:
    """The two commands, as a newcomer types them."""
    return [b.strip() for b in blocks(language) if " -m venv " in b]


def test_ci_types_the_two_commands_as_they_stand_in_the_readme() -> None:
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert re.findall(r"^as_typed '(.*)'$", script, re.MULTILINE) == commands("sh")


def test_the_workflow_types_the_first_command_on_windows_and_macos() -> None:
    workflow = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    runs = re.findall(r"- run: (.*)$", workflow, re.MULTILINE)
    assert commands("powershell")[0] in runs
    assert commands("sh")[0] in runs


def test_the_commands_of_both_shells_do_the_same() -> None:
    def steps(command: str) -> list[str]:
        parts = (
            re.sub(r"^\.venv\\Scripts\\", "", p) for p in re.split("; | && ", command)
        )
        return [p for p in parts if " -m venv " not in p and "activate" not in p]

    assert list(map(steps, commands("powershell"))) == list(map(steps, commands("sh")))


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_an_example_gives_what_it_shows(number: int) -> None:
    example = doctest.DocTestParser().get_doctest(
        blocks("python")[number], {}, f"README.md, example {number}", None, None
    )
    wrong: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    runner.run(example, out=wrong.append)
    assert not runner.failures, "".join(wrong)


def test_the_picture_has_the_shapes_of_both_models() -> None:
    picture = next(b for b in blocks("text") if "GPT-2 124M" in b)
    rows = [re.findall(r"\[([^\]]*)\]", line) for line in picture.splitlines()]
    rows = [row for row in rows if len(row) == 3]
    assert len(rows) == 10
    for axes, *shapes in rows:
        for config, shape in zip(
            (GPT2Config.from_dict(TINY), GPT2Config()), shapes, strict=True
        ):
            sizes = {n: getattr(config, n) for n in (*vars(config), "d_head")}
            named = [eval(axis, {}, sizes) for axis in axes.split(", ")]
            assert named == [int(n) for n in shape.split(", ")], axes


def test_the_picture_has_the_sizes_of_both_models() -> None:
    for config in (GPT2Config.from_dict(TINY), GPT2Config()):
        assert f"({n_parameters(config):,}" in README
        assert f" {config.n_head} heads of {config.d_head}" in README
        assert re.search(rf" × {config.n_layer}\s", README)


def test_the_rooms_are_listed_in_the_order_of_their_imports() -> None:
    plan = next(block for block in blocks("text") if block.startswith("src/gpt2hw/"))
    listed = [re.split(" {3,}", line.strip())[0] for line in plan.splitlines()]
    rooms = [name for line in listed for name in line.split() if name in HOUSE]
    assert rooms == [name for name in HOUSE if name != "__main__"]


def prose(text: str) -> str:
    """The words of a text, one space apart, without its fenced blocks."""
    words = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return " ".join(words.replace("{ #to-type-along }", "").split())


def test_the_readme_says_how_to_type_along_in_the_words_of_the_book() -> None:
    told = (ROOT / "docs/includes/type_along.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^```bash .*\n(.*)\n```", told, re.MULTILINE)
    assert f"{command}\n" in blocks("sh")
    assert prose(told) in prose(README)


def taught_files() -> list[str]:
    """The files of the table of steps, in its order, each once."""
    rows = re.findall(r"^\| \d+[ab]? \| (`.*?`) \|", README, re.MULTILINE)
    names = [name for row in rows for name in re.findall(r"`(\w+)\.py`", row)]
    return list(dict.fromkeys(names))


def test_a_taught_file_imports_what_the_readme_says() -> None:
    told = prose(README.split("In this order, each file", 1)[1].split("\n\n", 1)[0])
    passed_over, ahead = told.split("A few reach ahead")
    extra = set(re.findall(r"`(\w+)/?`", passed_over))
    taught, reaching = taught_files(), set()
    for n, name in enumerate(taught):
        source = (SOURCE / f"{name}.py").read_text(encoding="utf-8")
        more = rooms_imported(source) - set(taught[: n + 1]) - extra
        assert more <= set(taught), f"{name} imports {sorted(more - set(taught))}"
        reaching |= {name} if more else set()
    assert reaching == set(re.findall(r"`(\w+)`", ahead.split("Then put")[0]))
