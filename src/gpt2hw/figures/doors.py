"""The pieces of which the picture of the architecture is put together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpt2hw.config import GPT2Config
from gpt2hw.figures.boxes import axis_length, axis_sizes
from gpt2hw.figures.colours import axis_colour
from gpt2hw.figures.svg import MONO, Canvas, escaped, text_width

Models = Sequence[tuple[str, GPT2Config]]
Shape = tuple[str, ...]

INK = "fill:currentColor"
CODE = f"{INK};font-family:{MONO}"
NUMBERS = f"{INK};font-variant-numeric:tabular-nums lining-nums"
LEFT, STREAM, INNER = 26.0, 54.0, 74.0  # of the blocks, the stream, what is in a block


@dataclass(frozen=True)
class Door:
    """A block of the picture: its step, what it does, and the matrices it holds."""

    step: str
    title: str
    note: str = ""
    rows: tuple[tuple[str, Shape], ...] = ()


@dataclass(frozen=True)
class Plan:
    """Where things stand: beside the blocks on a wide page, inside them on a phone."""

    width: float
    right: float  # end of the blocks
    name: float  # start of a matrix's name
    axes: float  # start of its axes
    columns: tuple[float, float]  # ends of its shapes in the models
    row: float
    aside: bool


WIDE = Plan(860, 330, 366, 440, (722, 856), row=25, aside=True)
NARROW = Plan(400, 398, 84, 152, (262, 384), row=46, aside=False)


class Pieces:
    """Draws blocks, arrows and shapes; `doors` maps a step to an address."""

    def __init__(self, plan: Plan, models: Models, doors: Mapping[str, str]) -> None:
        self.plan, self.models, self.doors = plan, models, doors
        self.canvas = Canvas(plan.width)
        self.sizes = [axis_sizes(config) for _, config in models]

    def text(self, x: float, y: float, text: str, **given: object) -> None:
        """A line of text in ink unless `style` says otherwise."""
        given.setdefault("style", INK)
        self.canvas.add("text", escaped(text), x=x, y=y, **given)

    def box(self, door: Door, x: float, y: float, width: float, height: float) -> None:
        """A rectangle with title and step, a link where the step has an address."""
        canvas, start = self.canvas, len(self.canvas.elements)
        size = {"width": width, "height": height, "rx": 3}
        canvas.add("rect", class_="door__ground", x=x, y=y, **size)
        self.title(door, x + 12, y + 22, x + width - 56, height)
        step = {"class_": "door__step", "text_anchor": "end", "font_size": 13}
        self.text(x + width - 10, y + 22, f"step {door.step}", style=None, **step)
        inside = "".join(canvas.elements[start:])
        del canvas.elements[start:]
        if href := self.doors.get(door.step):
            canvas.add("a", inside, class_="door", href=href)
        else:
            canvas.add("g", inside, class_="door")

    def title(self, door: Door, x: float, y: float, end: float, height: float) -> None:
        """The name, and what the door is for: below it, or beside it if that fits."""
        low = height >= 48 and (self.plan.aside or not door.rows)
        at = f'x="{x:g}" dy="20"' if low else 'dx="4"'
        inside = f'<tspan font-weight="600">{escaped(door.title)}</tspan>'
        if low or x + text_width(f"{door.title} {door.note}") <= end:
            note = escaped(door.note)
            inside += f' <tspan {at} class="door__note" font-size="14">{note}</tspan>'
        self.canvas.add("text", inside, style=INK, x=x, y=y)

    def block(self, door: Door, y: float, x: float = LEFT, least: float = 36) -> float:
        """A door with its matrices, beside it or inside it; the height of its end."""
        rows = len(door.rows) * self.plan.row
        height = max(least, rows) if self.plan.aside else least + rows
        inset = 8 if x > LEFT else 0
        self.box(door, x, y, self.plan.right - inset - x, height)
        top = y + (height - rows) / 2 if self.plan.aside else y + least - 6
        for i, (name, axes) in enumerate(door.rows):
            self.matrix(name, axes, top + i * self.plan.row)
        return y + height

    def matrix(self, name: str, axes: Shape, top: float) -> None:
        """A row: name, axes, and the shape in each model."""
        y = top + 17
        self.text(self.plan.name, y, name, style=CODE, font_size=14)
        self.shape(self.plan.axes, y, axes, axes)
        y += 0 if self.plan.aside else 21
        for sizes, edge in zip(self.sizes, self.plan.columns, strict=False):
            lengths = [str(axis_length(axis, sizes)) for axis in axes]
            self.shape(edge, y, lengths, axes, text_anchor="end")

    def shape(
        self,
        x: float,
        y: float,
        words: Sequence[str],
        axes: Shape,
        of: str = "",
        **given: object,
    ) -> None:
        """[192, 576], each number in its axis's colour; `of` stands before it."""
        spans = ", ".join(
            f'<tspan style="fill:{axis_colour(axis)}">{escaped(word)}</tspan>'
            for word, axis in zip(words, axes, strict=True)
        )
        inside = f"{escaped(of)} [{spans}]".strip()
        self.canvas.add("text", inside, style=NUMBERS, x=x, y=y, **given)

    def arrow(self, y: float, length: float, of: str = "", *axes: str) -> float:
        """Down the stream; `of` says what flows, and in which shape."""
        tip = y + length
        self.stream((STREAM, y + 2), (STREAM, tip - 2))
        self.stream((STREAM - 4, tip - 8), (STREAM, tip - 2), (STREAM + 4, tip - 8))
        if of:
            self.shape(STREAM + 16, y + length / 2 + 5, axes, axes, of)
        return tip

    def stream(self, *points: tuple[float, float]) -> None:
        """The strong line along which vectors go."""
        self.canvas.line(list(points), width=1.6)

    def said(self, y: float, text: str) -> float:
        """A piece of text that goes in or comes out."""
        style = f"{INK};font-style:italic;font-family:var(--serif, serif)"
        self.text(LEFT, y + 18, f"“{text}”", style=style, font_size=18)
        return y + 26
