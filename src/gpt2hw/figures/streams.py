"""The residual stream: what each part writes into it, and how large the writing is."""

from collections.abc import Sequence

from gpt2hw.figures.checks import finite, some
from gpt2hw.figures.colours import axis_colour, figure_colour
from gpt2hw.figures.svg import FONT, WIDTH, Canvas, Figure, text_width


def residual_stream(
    parts: Sequence[tuple[str, float]],
    *,
    unit: str = "norm",
    form: str = "{:.1f}",
    alt: str = "",
    width: float = WIDTH,
) -> Figure:
    """The stream as a line from top to bottom; each part's arrow is as long as it adds.

    `parts`: (name, amount) in the order of writing, as ("embed", 3.1),
    ("h.0.attn", 2.0), ...
    """
    some("parts", parts)
    finite("parts", [amount for _, amount in parts], least=0)
    most = max(amount for _, amount in parts) or 1
    left = max(text_width(name, mono=True) for name, _ in parts) + 12
    right = max(text_width(form.format(a)) for _, a in parts) + 14
    canvas, step, top = Canvas(width), 30.0, 30.0
    stream = left + 8
    span = width - stream - right - 10
    canvas.text(stream + 14, FONT, f"{unit} of what is added")
    end = top + len(parts) * step
    colour = axis_colour("n_embd")
    canvas.line([(stream, top - 10), (stream, end + 4)], colour=colour, width=6)
    canvas.text(stream, end + 24, "x", anchor="middle", mono=True, colour=colour)
    for i, (name, amount) in enumerate(parts):
        y = top + (i + 0.5) * step
        kind = 0 if "attn" in name else 1 if "mlp" in name else 2
        far = stream + 10 + max(amount / most * span, 1)
        canvas.text(left - 8, y + 5, name, anchor="end", mono=True)
        canvas.rect(
            stream + 6,
            y - 7,
            far - stream - 6,
            14,
            fill=figure_colour(kind),
            opacity=0.75,
        )
        canvas.text(far + 6, y + 5, form.format(amount))
    said = ", ".join(f"{name} {form.format(amount)}" for name, amount in parts)
    return canvas.figure(end + 30, alt or f"What each part adds ({unit}): {said}.")
