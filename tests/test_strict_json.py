"""JSON by the letter of its standard, for files that anyone may have written."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpt2hw.strict_json import MAX_DEPTH, parse_object

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=10,
)


@given(st.dictionaries(TEXTS, VALUES), st.booleans())
def test_what_the_standard_allows_is_read_as_python_reads_it(value, ascii_only):
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert parse_object(text.encode()) == json.loads(text)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff{}", "not UTF-8 at byte 0"),
        (b'{"\xed\xa0\x80": 1}', "not UTF-8 at byte 2"),
        ("\ufeff{}".encode(), "BOM"),
        (b"{}\0", "Extra data"),
        (b"{}{}", "Extra data"),
        (b"\x0c{}", "not JSON"),
        (b"[]", "a JSON list"),
        (b"null", "a JSON NoneType"),
        (b'{"a": 1,}', "not JSON"),
        (b"{'a': 1}", "not JSON"),
        (b'{"a": 01}', "not JSON"),
        (b'{"a": +1}', "not JSON"),
        (b'{"a\x01": 1}', "control character"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "-Infinity"),
        (b'{"a": 1e400}', "too large"),
        (b'{"a": ' + b"9" * 5000 + b"}", "5000 digits"),
        (b'{"a": "\\ud83d"}', "lone surrogate"),
        (b'{"a": [["\\udc00"]]}', "lone surrogate"),
        (b'{"\\ud83d": 1}', "lone surrogate"),
    ],
)
def test_what_the_standard_forbids_is_refused_with_the_reason(raw, reason):
    with pytest.raises(ValueError, match=reason):
        parse_object(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a": 1, "a": 1}',
        b'{"a": 1, "\\u0061": 2}',
        b'{"b": {"a": 1, "a": 2}}',
        b'{"b": [{"a": 1, "a": 2}]}',
    ],
)
def test_a_key_that_stands_twice_is_refused_at_every_level(raw):
    with pytest.raises(ValueError, match="the key 'a' appears twice"):
        parse_object(raw)


def test_a_pair_of_escaped_surrogates_is_the_character_it_stands_for():
    assert parse_object(b'{"\\ud83d\\ude00": 1}') == {"\U0001f600": 1}


def test_minus_zero_is_no_whole_number():
    assert type(parse_object(b'{"a": -0}')["a"]) is float


@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize("depth", [MAX_DEPTH, 1000, 100_000])
def test_deep_nesting_is_refused(opening, depth):
    closing = {"[": "]", '{"a":': "}"}[opening]
    text = '{"a":' + opening * depth + "1" + closing * depth + "}"
    with pytest.raises(ValueError, match="deeper than 100 levels"):
        parse_object(text.encode())
