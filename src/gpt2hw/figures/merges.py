"""A word on its way from bytes to tokens: a row for each merge, a box for each part."""

from collections.abc import Sequence

from gpt2hw.figures.book import label
from gpt2hw.figures.checks import some
from gpt2hw.figures.colours import INK, figure_colour
from gpt2hw.figures.svg import FONT, WIDTH, Canvas, Figure, fitting, text_width
from gpt2hw.tokenizer import Step

ROW, WIDEST = 30.0, 28.0  # units: from row to row, and a byte's cell


def merge_rows(steps: Sequence[Step], *, alt: str = "", width: float = WIDTH) -> Figure:
    """One piece's steps, as `Tokenizer.explain` gives them, from above to below.

    A part is as wide as it has bytes and stays in its place, so that a merged one lies
    below the two that it was made of. Beside each row, the rank of its merge.
    """
    some("steps", steps)
    ranks = ["rank", *("" if s.rank is None else f"{s.rank:,}" for s in steps)]
    room = max(map(text_width, ranks)) + 12
    n_bytes = sum(map(len, steps[0].parts))
    cell = min(WIDEST, (width - room) / max(n_bytes, 1))
    end = n_bytes * cell + room
    canvas, y = Canvas(width), FONT + 7.0
    canvas.text(end, FONT, "rank", anchor="end")
    before: set[tuple[int, int]] = set()
    for step, rank in zip(steps, ranks[1:], strict=True):
        places = _places(step)
        for part, place in zip(step.parts, places, strict=True):
            is_new = step.rank is not None and place not in before
            _draw_part(canvas, part, place, y, cell, is_new)
        canvas.text(end, y + 18, rank, anchor="end")
        before, y = set(places), y + ROW
    return canvas.figure(y, alt or _said(steps))


def _places(step: Step) -> list[tuple[int, int]]:
    """Of each part, the byte at which it begins and the one at which it has ended."""
    places, start = [], 0
    for part in step.parts:
        places.append((start, start + len(part)))
        start += len(part)
    return places


def _draw_part(
    canvas: Canvas,
    part: bytes,
    place: tuple[int, int],
    y: float,
    cell: float,
    is_new: bool,
) -> None:
    x, wide = place[0] * cell + 1, (place[1] - place[0]) * cell - 2
    colour = figure_colour(1)
    if is_new:
        canvas.rect(x, y, wide, ROW - 5, fill=colour, opacity=0.35, stroke=colour)
    else:
        canvas.rect(x, y, wide, ROW - 5, stroke=INK, stroke_opacity=0.4)
    word = fitting(_label(part), wide, mono=True)
    canvas.text(x + wide / 2, y + 17, word, anchor="middle", mono=True)


def _label(part: bytes) -> str:
    """The text of a part as a token's label; a piece of a letter as its bytes."""
    try:
        return label(part.decode("utf-8"))
    except UnicodeDecodeError:
        return part.hex()


def _said(steps: Sequence[Step]) -> str:
    word = _label(b"".join(steps[0].parts))
    made = [
        f"rank {step.rank:,} makes {_label(step.merged)}"
        for step in steps
        if step.rank is not None and step.merged is not None
    ]
    last = ", ".join(map(_label, steps[-1].parts))
    merges = f"{len(made)} merges: {'; '.join(made)}" if made else "no merge"
    return f"{word} from {len(steps[0].parts)} bytes by {merges}. At the end: {last}."
