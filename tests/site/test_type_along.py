"""Who types along has the blocks that a page shows, and no others.

So these run alone, in order, in a process of their own. A name that only a hidden block
gives (a figure's, a table's) is missing there, as in the reader's notebook.
"""

from pathlib import Path

import fences
import pytest

from alone import run_alone

ROOT = Path(__file__).parent.parent.parent
STEPS = sorted((ROOT / "docs" / "steps").glob("step*.md"))


def shown(text: str) -> str:
    """The source of all blocks of Python that a page runs and shows."""
    return "\n".join(
        fence.source
        for fence in fences.fences(text)
        if fence.language == "python" and fence.runs and fence.shown
    )


@pytest.mark.parametrize("page", STEPS, ids=lambda page: page.stem)
def test_what_a_page_shows_runs_without_what_it_hides(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert shown(text)
    done = run_alone(shown(text))
    assert done.returncode == 0, done.stderr[-2000:]


HIDDEN = """
```python exec="on" session="page"
hidden = 1
```

```python exec="on" source="above" session="page" result="text"
print(2)
```

```python { .python .not-run }
print(yours)
```
"""


def test_a_name_of_a_hidden_block_is_missing() -> None:
    assert run_alone(shown(HIDDEN)).stdout == "2\n"
    uses_it = HIDDEN.replace("print(2)", "print(2 + hidden)")
    done = run_alone(shown(uses_it))
    assert "NameError: name 'hidden' is not defined" in done.stderr
