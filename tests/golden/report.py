"""Found beside expected, in a form that a person can judge at a glance."""

from collections.abc import Callable, Sequence

# What other processors, and other releases of torch, may differ by.
LOGIT_TOLERANCE = 1e-3
# Below this distance between the two likeliest ids, which comes first is anyone's.
LEAST_GAP = 1e-2


def table(
    what: str, found: Sequence[float], expected: Sequence[float], tolerance: float
) -> str:
    """The first five values, each OK or NOT OK, and the largest difference of all."""
    pairs = list(zip(found, expected, strict=True))
    differences = [abs(f - e) for f, e in pairs]
    lines = [f"{what}: {verdict(max(differences), tolerance)}"]
    lines += ["       found     expected   difference"]
    for (f, e), gap in list(zip(pairs, differences, strict=True))[:5]:
        lines += [f"{f:12.5f} {e:12.5f} {gap:12.6f}  {verdict(gap, tolerance)}"]
    lines += [
        f"largest difference of {len(pairs)}: {max(differences):.6f}, "
        f"allowed: {tolerance:g}"
    ]
    return "\n".join(lines)


def verdict(difference: float, tolerance: float) -> str:
    """OK, if the difference is within the tolerance; NaN is not."""
    return "OK" if difference <= tolerance else "NOT OK"


def same_numbers(
    what: str, found: Sequence[float], expected: Sequence[float], tolerance: float
) -> None:
    """AssertionError with the table, unless all agree within the tolerance."""
    shown = table(what, found, expected, tolerance)
    assert f"{what}: OK" in shown, shown


def same_ids(
    what: str,
    found: Sequence[int],
    expected: Sequence[int],
    decode: Callable[[Sequence[int]], str] = str,
) -> None:
    """AssertionError that shows where two sequences of ids part."""
    if list(found) == list(expected):
        return
    both = enumerate(zip(found, expected, strict=False))
    at = next((i for i, (f, e) in both if f != e), min(len(found), len(expected)))
    raise AssertionError(
        f"{what}: NOT OK\n"
        f"the first {at} of {len(expected)} ids agree, then\n"
        f"   found {list(found[at : at + 5])} {decode(found[at : at + 5])!r}\n"
        f"expected {list(expected[at : at + 5])} {decode(expected[at : at + 5])!r}"
    )
