"""The curve of the training, from curve.csv: two plots, and what they show in words."""

import csv
from pathlib import Path

from gpt2hw.figures import Figure, line_plot

CSV = Path(__file__).with_suffix(".csv")

Points = list[tuple[int, float]]


def read_curve(text: str) -> tuple[Points, Points]:
    """(step, loss in nats a token) and (step, bits per byte) of curve.csv."""
    rows = list(csv.reader(text.splitlines()))[1:]
    losses = [(int(step), float(loss)) for step, loss, _ in rows]
    bits = [(int(step), float(value)) for step, _, value in rows if value]
    return losses, bits


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


def plots(text: str) -> list[Figure]:
    """The loss on the training windows, and below it the bits per byte."""
    losses, bits = read_curve(text)
    (first, _), (last, _) = losses[0], losses[-1]
    loss = _plot("training windows", losses, "nats a token").captioned(
        f"While it was trained: the loss on the training windows, from step {first:,} "
        f"to step {last:,}; at the end {losses[-1][1]:.3f}. The axis does not begin "
        "at 0."
    )
    worth = _plot("validation tales", bits, "bits per byte", markers=True).captioned(
        "Over the same steps: bits per byte on the validation tales; at the end "
        f"{bits[-1][1]:.3f}. The axis does not begin at 0."
    )
    return [loss, worth]


def _plot(name: str, points: Points, unit: str, markers: bool = False) -> Figure:
    """One curve over the steps, on an axis that covers it and not much more."""
    steps, values = zip(*points, strict=True)
    return line_plot(
        {name: (steps, values)},
        x_title="step",
        y_title=f"{name}: {unit}",
        y_from=min(values),
        markers=markers,
        height=200,
    )
