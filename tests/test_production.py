"""What docs/production.md marks as run is run: the code of the page, as it stands."""

import re
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "production.md"


def test_the_pages_code_for_transformers_runs_and_what_it_asserts_holds():
    page = PAGE.read_text(encoding="utf-8")
    (code,) = re.findall(
        r'^```python \{[^}\n]*title="run by tests/test_production.py"\}\n(.*?)^```',
        page,
        re.DOTALL | re.MULTILINE,
    )
    assert "assert ids == ours.prompt_ids + ours.ids" in code
    names: dict[str, object] = {}
    exec(compile(code, PAGE.name, "exec"), names)
    assert len(names["ours"].ids) == 40
