"""Every classic mistake is caught, by name, and none stands without what catches it."""

import inspect
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
sys.path.insert(0, str(DOCS))

from wrong.catalogue import ENTRIES, ROOMS  # noqa: E402


@pytest.mark.parametrize("e", ENTRIES, ids=lambda e: e.name)
def test_the_named_rule_tells_the_mistake_from_the_right_piece(e):
    assert e.complaint(e.right) is None
    complaint = e.complaint(e.wrong)
    assert complaint, f"{e.name} survives {e.rule.__name__}"
    assert len(complaint) > 15, f"{complaint!r} tells a learner nothing"


def test_every_wrong_variant_is_in_the_catalogue():
    listed = {(e.wrong.__module__, e.wrong.__name__) for e in ENTRIES}
    for room in ROOMS:
        for name, piece in inspect.getmembers(room):
            is_own = getattr(piece, "__module__", None) == room.__name__
            if is_own and callable(piece) and not name.startswith("_"):
                assert (room.__name__, name) in listed, f"{room.__name__}.{name}"
    assert len(listed) == len(ENTRIES) >= 25


def test_every_rule_is_a_public_property_of_the_package():
    for e in ENTRIES:
        assert e.rule.__module__.startswith("gpt2hw.properties."), e.name
        assert e.rule.__doc__, e.rule
