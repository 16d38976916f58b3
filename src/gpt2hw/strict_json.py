"""JSON as its standard has it, for a text from a source that nobody vouches for.

Python's parser is kinder than the standard and than other languages' parsers: it keeps
the last of two equal keys, takes NaN and Infinity, integers of any length, and strings
that no UTF-8 can hold. Two programs that read one file differently are how a bad file
gets past a check, so all of these are refused.

Source: RFC 8259, and the advice of RFC 7493 (I-JSON).
"""

import json
import math
from collections import Counter
from collections.abc import Iterable
from typing import Any, NoReturn

MAX_DEPTH = 100
MAX_INTEGER_DIGITS = 20  # as many as 2**64 - 1 has


def parse_object(raw: bytes) -> dict[str, Any]:
    """The JSON object in `raw`, white space around it allowed; else a ValueError.

    >>> parse_object(b' {"shape": [2, 3]}  ')
    {'shape': [2, 3]}
    >>> parse_object(b'{"a": 1, "a": 2}')
    Traceback (most recent call last):
    ValueError: the key 'a' appears twice
    """
    try:
        value = json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_int=_integer,
            parse_float=_finite,
        )
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels") from None
    if not isinstance(value, dict):
        raise ValueError(f"a JSON {type(value).__name__}, not an object")  # noqa: TRY004
    check_texts(value)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these pairs, whose keys must differ."""
    unique = dict(pairs)
    if len(unique) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        key = next(key for key, n in counts.items() if n > 1)
        raise ValueError(f"the key {key!r:.80} appears twice")
    return unique


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _integer(text: str) -> int | float:
    """The integer; -0 stays a float, as it is no natural number."""
    if len(text) > MAX_INTEGER_DIGITS:
        raise ValueError(f"an integer of {len(text)} digits: {text[:20]}...")
    return int(text) if text != "-0" else -0.0


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text[:20]} is too large")
    return number


def check_texts(value: Any, depth: int = 1) -> None:
    """Refuses, with a ValueError, half a surrogate pair, and nesting that is too deep.

    >>> check_texts(["ok", {"a": "\\ud83d"}])
    Traceback (most recent call last):
    ValueError: the string '\\ud83d' has a lone surrogate at position 0
    """
    if depth > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, dict):
        _check_keys(value)
        check_texts(list(value.values()), depth)
    elif isinstance(value, list):
        for inner in value:
            if type(inner) is not int:  # a vocabulary has fifty thousand of these
                check_texts(inner, depth + 1)


def _check_keys(keys: Iterable[str]) -> None:
    try:
        _check_text("\n".join(keys))  # and as many keys
    except ValueError:
        for key in keys:
            _check_text(key)


def _check_text(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"the string {text[:40]!r} has a lone surrogate at position {error.start}"
        ) from None
