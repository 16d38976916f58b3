"""Tensors as boxes with coloured edges: what goes into what, in which shape."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gpt2hw.config import GPT2Config
from gpt2hw.figures.colours import axis_colour
from gpt2hw.figures.svg import FONT, WIDTH, Canvas, Figure, text_width

Sizes = Sequence[tuple[str, Mapping[str, int]]]

# How long an axis is drawn: not to scale, but alike in all boxes of a picture.
LENGTHS = {
    "n_seq": 56.0,
    "n_past": 56.0,
    "n_kv": 56.0,
    "n_embd": 76.0,
    "n_head": 50.0,
    "d_head": 56.0,
    "n_vocab": 118.0,
    "n_ctx": 100.0,
    "n_inner": 110.0,
}
SIDE = 24.0  # for the name of the vertical axis
SHEET = 6.0  # how far one sheet of a stack stands behind the next
GAPS = (10.0, 26.0)  # least and most room between a box and a sign
SHORTEST = 0.8  # of its length above, an axis on a crowded line


@dataclass(frozen=True, init=False)
class Box:
    """A tensor: its name and its axes, as Box("x", "n_seq", "n_embd").

    An axis may be a multiple ("3 n_embd") or a number ("1"). A third axis, in front,
    is drawn as a stack of sheets.
    """

    name: str
    axes: tuple[str, ...]

    def __init__(self, name: str, *axes: str) -> None:
        if not axes or not all(re.fullmatch(r"(\d+ )*\S+", axis) for axis in axes):
            raise ValueError(
                f"axes: must be names or numbers, as '3 n_embd', not {axes!r:.80}"
            )
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "axes", axes)


def shape_flow(
    steps: Sequence[Box | str],
    *,
    sizes: Sizes = (),
    alt: str = "",
    width: float = WIDTH,
) -> Figure:
    """Tensors and what is done to them, left to right: boxes, and signs between.

    `steps`: Box("x", "n_seq", "n_embd"), "@", Box(...), "=", Box(...); "" starts a new
    line, and a line may be words alone. `sizes` names models and their axes' lengths
    (`axis_sizes`): below each box stands its shape in each.
    """
    canvas, y = Canvas(width), 0.0
    lines: list[list[Box | str]] = [[]]
    for step in steps:
        if step == "":
            lines.append([])
        else:
            lines[-1].append(step)
    scale = _scale(lines, width, sizes)
    for line in lines:
        y = _draw_line(canvas, line, y, sizes, scale) + 22
    figure = canvas.figure(y - 16, alt or _said(steps, sizes))
    return replace(figure, note=_note(sizes))


def _note(sizes: Sizes) -> str:
    """How the boxes are to be read."""
    models = ", then in ".join(model for model, _ in sizes)
    below = f"Below each box: its shape in {models}. " if sizes else ""
    return f"{below}Boxes are not to scale."


def _scale(lines: Sequence[Sequence[Box | str]], width: float, sizes: Sizes) -> float:
    """How much shorter all axes are drawn, so that no line is crowded."""
    scale = 1.0
    while scale > SHORTEST and any(
        _needs(line, sizes, scale) > width for line in lines
    ):
        scale -= 0.02
    return scale


def _needs(line: Sequence[Box | str], sizes: Sizes, scale: float) -> float:
    if not any(isinstance(step, Box) for step in line):
        return 0.0  # words alone
    rooms = sum(_room(step, sizes, scale) for step in line)
    return rooms + GAPS[0] * (len(line) - 1)


def axis_sizes(config: GPT2Config, **more: int) -> dict[str, int]:
    """The length of each axis in a model; `more` for those of a call (n_seq=6).

    >>> axis_sizes(GPT2Config(), n_seq=6)["d_head"]
    64
    """
    names = ("n_vocab", "n_ctx", "n_embd", "n_head", "d_head", "n_inner")
    return {name: int(getattr(config, name)) for name in names} | more


def axis_length(axis: str, sizes: Mapping[str, int]) -> int:
    """The length of an axis or of a multiple of one.

    >>> axis_length("3 n_embd", {"n_embd": 768})
    2304
    """
    product = 1
    for word in axis.split():
        if not word.isdigit() and word not in sizes:
            raise ValueError(f"sizes: the axis {word!r:.80} has no length there")
        product *= int(word) if word.isdigit() else sizes[word]
    return product


def _shape(box: Box, sizes: Mapping[str, int]) -> str:
    return f"[{', '.join(str(axis_length(axis, sizes)) for axis in box.axes)}]"


def _said(steps: Sequence[Box | str], sizes: Sizes) -> str:
    boxes = [step for step in steps if isinstance(step, Box)]
    text = " ".join(
        f"{s.name} [{', '.join(s.axes)}]" if isinstance(s, Box) else s for s in steps
    )
    for model, lengths in sizes:
        shapes = (f"{box.name} {_shape(box, lengths)}" for box in boxes)
        text += f". In {model}: {', '.join(shapes)}"
    return f"Shapes: {text}."


def _wide(box: Box, scale: float) -> float:
    return _length(box.axes[-1]) * scale


def _high(box: Box, scale: float) -> float:
    return _length(box.axes[-2]) * scale if len(box.axes) > 1 else 16.0


def _length(axis: str) -> float:
    *factors, name = axis.split()
    times = 1.0 + 0.5 * (int(factors[0]) - 1) if factors else 1.0
    return LENGTHS.get(name, 26.0) * times


def _sides(box: Box) -> tuple[float, float]:
    """The room at the left and the right of a box, for the names of its axes."""
    front = 2 * SHEET + 6 + text_width(box.axes[0]) if len(box.axes) > 2 else 0.0
    return (SIDE if len(box.axes) > 1 else 0.0), front


def _room(step: Box | str, sizes: Sizes, scale: float) -> float:
    if isinstance(step, str):
        return max(text_width(step), FONT)  # "@" is wider than most
    texts = [step.name, *(_shape(step, lengths) for _, lengths in sizes)]
    longest = max(text_width(t) for t in texts)
    wide, (left, right) = _wide(step, scale), _sides(step)
    over = max(longest - wide, 0.0) / 2  # what stands over the box's edges
    return max(left, over) + wide + max(right, over)


def _draw_line(
    canvas: Canvas, line: Sequence[Box | str], y: float, sizes: Sizes, scale: float
) -> float:
    """One line of boxes from y down; returns where it ends."""
    boxes = [step for step in line if isinstance(step, Box)]
    if not boxes:
        canvas.text(SIDE, y + 8, " ".join(str(step) for step in line))
        return y + 4
    rooms = [_room(step, sizes, scale) for step in line]
    gap = (canvas.width - sum(rooms)) / max(len(line) - 1, 1)
    gap = max(2.0, min(gap, GAPS[1]))
    tall = max(_high(box, scale) for box in boxes)
    top = y + 42 + (2 * SHEET if any(len(box.axes) > 2 for box in boxes) else 0)
    x = 0.0
    for step, room in zip(line, rooms, strict=True):
        if isinstance(step, str):
            canvas.text(x + room / 2, top + tall / 2 + 5, step, anchor="middle")
        else:
            wide, high = _wide(step, scale), _high(step, scale)
            left = x + max(_sides(step)[0], (room - wide) / 2 - _sides(step)[1])
            corner = (left, top + (tall - high) / 2)
            _draw_box(canvas, step, corner, (wide, high))
            for n, (_, lengths) in enumerate(sizes):
                middle, below = left + wide / 2, top + tall + 21 + 20 * n
                canvas.text(middle, below, _shape(step, lengths), anchor="middle")
        x += room + gap
    return top + tall + 8 + 20 * len(sizes)


def _draw_box(
    canvas: Canvas, box: Box, at: tuple[float, float], size: tuple[float, float]
) -> None:
    (left, top), (wide, high) = at, size
    colours = [axis_colour(axis) for axis in box.axes]
    middle, lift = left + wide / 2, 0.0
    if len(box.axes) > 2:
        lift = 2 * SHEET
        for behind in (2 * SHEET, SHEET):
            canvas.rect(left + behind, top - behind, wide, high, stroke=colours[0])
        aside = left + wide + lift + 5
        canvas.text(aside, top + high / 2 - lift / 2, box.axes[0], colour=colours[0])
    canvas.text(middle, top - lift - 27, box.name, anchor="middle", bold=True)
    canvas.text(
        middle, top - lift - 8, box.axes[-1], anchor="middle", colour=colours[-1]
    )
    canvas.rect(left, top, wide, high, fill=colours[-1], opacity=0.14)
    canvas.line([(left, top), (left + wide, top)], colour=colours[-1], width=4)
    if len(box.axes) > 1:
        canvas.line([(left, top), (left, top + high)], colour=colours[-2], width=4)
        beside = (left - 8, top + high / 2)
        canvas.text(
            *beside, box.axes[-2], anchor="middle", turn=-90, colour=colours[-2]
        )
