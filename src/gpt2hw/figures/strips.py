"""Strips that are read from left to right: tokens of a text, bytes of a file, parts."""

from collections.abc import Mapping, Sequence

from gpt2hw.figures.checks import as_many, finite, some
from gpt2hw.figures.colours import INK, figure_colour
from gpt2hw.figures.svg import WIDTH, Canvas, Figure, fitting, text_width

PADS = (10.0, 6.0)  # around a token: less where that saves a line


def token_strip(
    pieces: Sequence[str],
    ids: Sequence[int] = (),
    *,
    alt: str = "",
    width: float = WIDTH,
) -> Figure:
    """A text cut into its tokens, each in a box, its id below; broken into lines.

    `pieces` as `token_labels` gives them (a space is a middle dot).
    """
    as_many("ids", ids, len(pieces))
    canvas, y = Canvas(width), 0.0
    step = 56.0 if ids else 34.0
    words = [fitting(piece, width - 10, mono=True) for piece in pieces]
    numbers = [str(i) for i in ids] or [""] * len(words)
    rooms = [
        max(text_width(word, mono=True), text_width(n))
        for word, n in zip(words, numbers, strict=True)
    ]
    pad = min(PADS, key=lambda pad: len(_lines(rooms, pad, width)))
    for line in _balanced(rooms, pad, width):
        x = 0.0
        for i in line:
            wide = rooms[i] + pad
            canvas.rect(x, y, wide - 2, 26, fill=figure_colour(i % 2), opacity=0.2)
            middle = x + wide / 2 - 1
            canvas.text(middle, y + 18, words[i], anchor="middle", mono=True)
            if ids:
                canvas.text(middle, y + 43, numbers[i], anchor="middle")
            x += wide
        y += step
    said = " ".join(f"{p} ({ids[i]})" if ids else p for i, p in enumerate(pieces))
    return canvas.figure(y - 6, alt or f"{len(pieces)} tokens: {said}")


def _lines(rooms: Sequence[float], pad: float, width: float) -> list[list[int]]:
    """The places of boxes, broken into lines of no more than `width`."""
    lines: list[list[int]] = [[]]
    x = 0.0
    for i, room in enumerate(rooms):
        if lines[-1] and x + room + pad > width:
            lines.append([])
            x = 0.0
        lines[-1].append(i)
        x += room + pad
    return lines


def _balanced(rooms: Sequence[float], pad: float, width: float) -> list[list[int]]:
    """As few lines as `_lines` makes, and the last not much shorter than the others.

    >>> _balanced([30.0] * 5, 10.0, 165.0)
    [[0, 1, 2], [3, 4]]
    """
    lines = _lines(rooms, pad, width)
    for tenths in (9, 8, 7, 6):
        shorter = _lines(rooms, pad, width * tenths / 10)
        if len(shorter) > len(lines):
            break
        lines = shorter
    return lines


def byte_strip(
    parts: Sequence[tuple[str, int]],
    *,
    details: Sequence[str] = (),
    alt: str = "",
    width: float = WIDTH,
) -> Figure:
    """The layout of a file: parts in order, (name, bytes); `details` a line for each.

    A part too short to be seen is widened, so the strip is not quite to scale; below,
    each part has its first byte, its length, and its detail.
    """
    some("parts", parts)
    finite("parts", [n for _, n in parts], least=0)
    total = sum(n for _, n in parts)
    least = 14.0
    shares = [max(n / (total or 1) * width, least) for _, n in parts]
    shares = [s * width / sum(shares) for s in shares]
    canvas, x, y, start = Canvas(width), 0.0, 56.0, 0
    said = []
    for i, ((name, n_bytes), share) in enumerate(zip(parts, shares, strict=True)):
        canvas.rect(x, 4, share - 2, 34, fill=figure_colour(i), opacity=0.45)
        canvas.rect(0, y, 14, 14, fill=figure_colour(i), opacity=0.45)
        line = f"{name}: {n_bytes:,} bytes from byte {start:,}"
        canvas.text(22, y + 13, line)
        y += 23
        if i < len(details) and details[i]:
            canvas.text(22, y + 13, details[i])
            y += 23
        said.append(line)
        x, start = x + share, start + n_bytes
    text = f"A file of {total:,} bytes, from left to right: {'; '.join(said)}."
    return canvas.figure(y + 2, alt or text)


def ledger(
    parts: Mapping[str, int] | Sequence[tuple[str, int]],
    *,
    unit: str = "",
    alt: str = "",
    width: float = WIDTH,
) -> Figure:
    """A number as the sum of its parts: one bar to scale, then a line for each part."""
    pairs = list(parts.items()) if isinstance(parts, Mapping) else list(parts)
    some("parts", pairs)
    finite("parts", [n for _, n in pairs], least=0)
    total = sum(n for _, n in pairs)
    whole = total or 1
    canvas, x, y = Canvas(width), 0.0, 54.0
    for i, (name, n) in enumerate(pairs):
        share = n / whole * width
        canvas.rect(x, 4, max(share - 1, 0.5), 34, fill=figure_colour(i), opacity=0.6)
        canvas.rect(0, y, 14, 14, fill=figure_colour(i), opacity=0.6)
        canvas.text(22, y + 13, name)
        canvas.text(width - 66, y + 13, f"{n:,}", anchor="end")
        canvas.text(width, y + 13, _percent(n, whole), anchor="end")
        x, y = x + share, y + 23
    canvas.line([(0, y + 1), (width, y + 1)], colour=INK, opacity=0.5)
    canvas.text(22, y + 18, "together", bold=True)
    canvas.text(width - 66, y + 18, f"{total:,}", anchor="end", bold=True)
    said = ", ".join(f"{name} {n:,} ({_percent(n, whole)})" for name, n in pairs)
    unit = f" {unit}" if unit else ""
    return canvas.figure(y + 28, alt or f"{total:,}{unit}, made of {said}.")


def _percent(n: int, total: int) -> str:
    """The share in per cent; one that is there is never written as nothing."""
    return "<0.1%" if 0 < n < total / 2000 else f"{n / total:.1%}"
