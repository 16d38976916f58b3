"""Draws the curve of the training: `python docs/appendix/curve.py` writes curve.svg.

Needs matplotlib (the group `docs`). Text in it is text, what would be black has the
colour of the page's text, and the ground is the page's.
"""

import csv
import hashlib
import io
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HERE = Path(__file__).parent
INK = "#010203"  # no one's colour: it becomes currentColor
LOSS, BITS = "loss-line", "bits-line"
# A page that shows the file as an image hands on no colour: these are the site's inks.
STYLE = (
    "<style>svg:root{color:#1f2328}@media (prefers-color-scheme:dark)"
    "{svg:root{color:#e4e2dc}}</style>"
)
LOOK = {
    "svg.fonttype": "none",
    "svg.hashsalt": "gpt2hw",
    "font.family": "sans-serif",
    "font.size": 11,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
}

Points = list[tuple[int, float]]


def read_curve(text: str) -> tuple[Points, Points]:
    """(step, loss in nats a token) and (step, bits per byte) of curve.csv."""
    rows = list(csv.reader(text.splitlines()))[1:]
    losses = [(int(step), float(loss)) for step, loss, _ in rows]
    bits = [(int(step), float(value)) for step, _, value in rows if value]
    return losses, bits


def fingerprint(text: str) -> str:
    """What curve.svg says of the numbers it shows: the hash of curve.csv's text."""
    return hashlib.sha256("\n".join(text.splitlines()).encode()).hexdigest()


def description(text: str) -> str:
    """What is seen, for who cannot see it."""
    losses, bits = read_curve(text)
    lowest = min(bits, key=lambda point: point[1])
    middle = (losses[0][1] + losses[-1][1]) / 2
    halfway = next(step for step, loss in losses if loss <= middle)
    return (
        f"Two curves over {losses[-1][0]:,} steps. The loss on the training windows "
        f"falls from {losses[0][1]:.2f} to {losses[-1][1]:.2f} nats a token, and half "
        f"of that fall lies before step {halfway:,}. Bits per byte on the "
        f"tales kept for choosing settings fall from {bits[0][1]:.3f} to "
        f"{bits[-1][1]:.3f}; the lowest value is that of step {lowest[0]:,}."
    )


def plot(text: str) -> str:
    """The figure as matplotlib writes it."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    losses, bits = read_curve(text)
    with mpl.rc_context(LOOK):
        figure = Figure(figsize=(5, 5), layout="constrained")
        upper, lower = figure.subplots(2, sharex=True)
        draw_line(upper, losses, LOSS, "training: nats a token")
        draw_line(lower, bits, BITS, "validation tales: bits per byte", marker="o")
        lower.set_xlabel("step")
        lower.set_xlim(left=0)
        lower.xaxis.set_major_formatter("{x:,.0f}")
        out = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(out, format="svg", transparent=True, metadata=nothing)
    return out.getvalue()


def draw_line(axes: "Axes", points: Points, name: str, title: str, **look: str) -> None:
    """One curve on its axes; the title above it tells its last value."""
    axes.plot(*zip(*points, strict=True), color=INK, gid=name, markersize=3, **look)
    axes.set_title(f"{title}; {points[-1][1]:.3f} at the end", loc="left", fontsize=11)
    axes.grid(visible=True, color=INK, alpha=0.15)


def as_page_svg(drawn: str, text: str) -> str:
    """The figure as a page takes it in: named, described, in the page's colour."""
    body = drawn[drawn.index("<svg") :]
    body = re.sub(r" <metadata>.*?</metadata>\n", "", body, flags=re.DOTALL)
    body = re.sub(r" *<style[^>]*>.*?</style>\n", "", body, flags=re.DOTALL)
    view_box = re.search(r'viewBox="[^"]*"', body)
    assert view_box
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" '
        f'xmlns:xlink="http://www.w3.org/1999/xlink" {view_box[0]} role="img" '
        f'aria-labelledby="curve-title curve-desc" '
        f'data-curve-sha256="{fingerprint(text)}" '
        f'style="width: 100%; max-width: 40rem; height: auto">\n'
        f'<title id="curve-title">The loss of the tiny model while it was trained'
        f'</title>\n<desc id="curve-desc">{description(text)}</desc>\n{STYLE}'
    )
    body = re.sub(r"<svg[^>]*>", head, body, count=1)
    body = re.sub(r"font-family: [^;]*;", "font-family: sans-serif;", body)
    body = body.replace(INK, "currentColor")
    return "\n".join(line.rstrip() for line in body.splitlines()) + "\n"


def main() -> None:
    """Draws curve.csv as curve.svg."""
    text = (HERE / "curve.csv").read_text(encoding="utf-8")
    svg = as_page_svg(plot(text), text)
    (HERE / "curve.svg").write_text(svg, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
