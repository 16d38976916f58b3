"""A canvas that writes SVG, and the figure that comes of it.

Nothing but the standard library: text stays text (the reader can search and copy it,
and it takes the page's font), black is the page's ink, and the same data give the same
bytes.
"""

import hashlib
import re
from dataclasses import dataclass, replace
from html import escape
from unicodedata import east_asian_width

from gpt2hw.figures.colours import INK

WIDTH = 480  # units; shown at 360 pixels of screen, a letter of 15 is 10 pixels high
FONT = 15
# What no XML may hold, not even escaped: a control character has a picture in Unicode.
_PICTURES = {n: 0x2400 + n for n in range(32) if chr(n) not in "\n\t"} | {0x7F: 0x2421}
_NO_TEXT = re.compile("[\x80-\x9f\ud800-\udfff\ufffe\uffff]")
# An image and its mask; what is written as text has no "<" that could look like them.
_MASKED = re.compile(r'(<mask id="|<rect [^<>]* mask="url\(#)(mask-[0-9]+)-ID')
MONO = "var(--figure-mono, monospace)"


@dataclass(frozen=True, repr=False)
class Figure:
    """A picture as inline SVG, with words for those who do not see it.

    `print` it in a page, or leave it as the last value of a notebook's cell. `note` is
    how it is to be read, whatever the caption is; it ends the text below it.
    """

    svg: str
    alt: str
    caption: str = ""
    note: str = ""

    def __str__(self) -> str:
        """The HTML of the figure, on one line."""
        words = " ".join(filter(None, (self.caption, self.note)))
        below = f"<figcaption>{escaped(words)}</figcaption>" if words else ""
        opening = '<figure class="drawn" data-search-exclude="">'
        return f"{opening}{self.svg}{below}</figure>"

    def __repr__(self) -> str:
        """What a terminal shows of it: the words."""
        return f"Figure({self.alt!r})"

    def _repr_html_(self) -> str:
        return str(self)

    def captioned(self, caption: str) -> "Figure":
        """The same picture with a line of text below it."""
        return replace(self, caption=caption)


def number(x: float) -> str:
    """A coordinate, to a hundredth of a unit.

    >>> number(3.0), number(2.678)
    ('3', '2.68')
    """
    text = f"{x:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def visible(text: str) -> str:
    r"""The text with a picture for each control character but line feed and tab.

    What is no character at all becomes the sign for that.

    >>> visible("a\0b"), visible("\ud800")
    ('a␀b', '\ufffd')
    """
    return _NO_TEXT.sub("\ufffd", text.translate(_PICTURES))


def escaped(text: str) -> str:
    """A text as it may stand in the SVG, also between quotation marks.

    >>> escaped('a < "b"')
    'a &lt; &quot;b&quot;'
    """
    return escape(visible(text))


def text_width(text: str, mono: bool = False, size: float = FONT) -> float:
    """About how many units a line of text takes; the page's font decides.

    >>> text_width("four", mono=True)
    36.0
    """
    wide = sum(2 if east_asian_width(c) in "WF" else 1 for c in text)
    return wide * size * (0.6 if mono else 0.56)


def fitting(text: str, room: float, mono: bool = False) -> str:
    """The text, or as much of its start as takes no more than `room` units.

    A token may be 128 characters long.

    >>> fitting("-" * 66, 60, mono=True)
    '-----…'
    """
    if text_width(text, mono) <= room:
        return text
    while text and text_width(f"{text}…", mono) > room:
        text = text[:-1]
    return f"{text}…"


class Canvas:
    """Collects the elements of one picture; `figure` ends it."""

    def __init__(self, width: float = WIDTH) -> None:
        self.width = width
        self.elements: list[str] = []
        self.masks: list[str] = []

    def add(
        self, tag: str, inside: str = "", style: str = "", /, **given: object
    ) -> None:
        """An element; attributes with `_` for `-`, numbers to a hundredth."""
        given = {"style": style or None} | given
        attributes = "".join(
            f' {key.strip("_").replace("_", "-")}="{escaped(_value(value))}"'
            for key, value in given.items()
            if value is not None
        )
        self.elements.append(f"<{tag}{attributes}>{inside}</{tag}>")

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        anchor: str = "start",
        colour: str = INK,
        mono: bool = False,
        bold: bool = False,
        turn: float = 0,
    ) -> None:
        """A line of text, its baseline at y; `turn` in degrees around its start."""
        style = f"fill:{colour}" + (f";font-family:{MONO}" if mono else "")
        style += ";font-weight:600" if bold else ""
        self.add(
            "text",
            escape(visible(text), quote=False),
            style=style + ";white-space:pre",
            x=x,
            y=y,
            text_anchor=None if anchor == "start" else anchor,
            transform=f"rotate({number(turn)} {number(x)} {number(y)})"
            if turn
            else None,
        )

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str = "none",
        opacity: float = 1,
        stroke: str = "none",
        stroke_opacity: float | None = None,
        dashes: str | None = None,
        tip: str = "",
    ) -> None:
        """A rectangle; `tip` is shown where a mouse rests on it."""
        self.add(
            "rect",
            f"<title>{escape(visible(tip), quote=False)}</title>" if tip else "",
            style=f"fill:{fill};stroke:{stroke}",
            x=x,
            y=y,
            width=width,
            height=height,
            fill_opacity=None if opacity == 1 else opacity,
            stroke_opacity=stroke_opacity,
            stroke_dasharray=dashes,
        )

    def line(
        self,
        points: list[tuple[float, float]],
        *,
        colour: str = INK,
        width: float = 1,
        opacity: float = 1,
        dashes: str | None = None,
    ) -> None:
        """A line through points."""
        self.add(
            "polyline",
            style=f"fill:none;stroke:{colour}",
            points=" ".join(f"{number(x)},{number(y)}" for x, y in points),
            stroke_width=width,
            stroke_opacity=None if opacity == 1 else opacity,
            stroke_dasharray=dashes,
        )

    def image(
        self, x: float, y: float, width: float, height: float, uri: str, colour: str
    ) -> None:
        """A picture of opacities, in one colour: the page may change the colour."""
        name = f"mask-{len(self.masks)}-ID"
        at = f' x="{number(x)}" y="{number(y)}"'
        at += f' width="{number(width)}" height="{number(height)}"'
        self.masks.append(
            f'<mask id="{name}" maskUnits="userSpaceOnUse"{at}><image{at} href="{uri}" '
            'preserveAspectRatio="none" style="image-rendering:pixelated"></image>'
            "</mask>"
        )
        self.add(
            "rect",
            style=f"fill:{colour}",
            x=x,
            y=y,
            width=width,
            height=height,
            mask=f"url(#{name})",
        )

    def figure(self, height: float, alt: str) -> Figure:
        """The picture, `height` units high; ids are made of what is in it."""
        alt = visible(alt.replace("\n", " "))
        masks = f"<defs>{''.join(self.masks)}</defs>" if self.masks else ""
        inside = masks + "".join(self.elements)
        name = hashlib.sha256((inside + alt).encode()).hexdigest()[:10]
        inside = _MASKED.sub(rf"\1\2-{name}", inside)
        size = f"{number(self.width)} {number(height)}"
        most = f"max-width:{number(self.width * 1.2)}px"
        svg = (
            f'<svg class="figure" role="img" viewBox="0 0 {size}" width="100%" '
            f'aria-label="{escape(alt)}" font-size="{FONT}" '
            f'style="font-family:inherit;{most};height:auto">'
            f"<title>{escape(alt, quote=False)}</title>"
            f"{inside}</svg>"
        )
        return Figure(svg=svg, alt=alt)


def _value(value: object) -> str:
    return number(value) if isinstance(value, int | float) else str(value)
