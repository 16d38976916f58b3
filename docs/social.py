"""The picture that a link to the book is shown with: `python docs/social.py FILE.png`.

Drawn here, since the usual plugin fetches its typeface from another host. The pattern
is real: one head of the running model, reading `SENTENCE`.
"""

import sys
from pathlib import Path

import matplotlib as mpl
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from gpt2hw import trace
from gpt2hw.figures import running

PAPER, INK, QUIET, ACCENT = "#fbfaf7", "#1f2328", "#63625f", "#8c2f39"
SENTENCE = "Once upon a time there was a king who had three sons"
WORDS = """\
GPT-2, from the bytes of its
weight file to streamed text,
in plain tensors."""
WIDTH, HEIGHT = 1200, 630  # what the sites that show such pictures ask for


def weights() -> list[list[float]]:
    """How one head of the middle block looks back, [n_seq, n_seq]."""
    now = running()
    traced = trace(now.model, now.tokenizer.encode(SENTENCE))
    block = now.model.config.n_layer // 2
    heads = traced[f"h.{block}.attn.weights"]
    # The head that looks at one token the least: the richest to look at.
    spread = -(heads * heads.clamp_min(1e-9).log()).sum(dim=(-1, -2))
    rows: list[list[float]] = heads[int(spread.argmax())].sqrt().tolist()
    return rows


def picture() -> Figure:
    """The words on the left, the head on the right."""
    figure = Figure(figsize=(WIDTH / 100, HEIGHT / 100), dpi=100, facecolor=PAPER)
    figure.text(0.07, 0.66, "gpt2hw", size=64, color=INK)
    figure.text(0.07, 0.53, "LLM inference the hard way", size=26, color=ACCENT)
    figure.text(0.07, 0.2, WORDS, size=21, color=QUIET, linespacing=1.5)
    axes = figure.add_axes((0.57, 0.12, 0.4, 0.76))
    shades = LinearSegmentedColormap.from_list("", [PAPER, ACCENT])
    axes.imshow(weights(), cmap=shades, interpolation="nearest")
    axes.set_axis_off()
    return figure


if __name__ == "__main__":
    mpl.rcParams["font.family"] = "DejaVu Serif"  # comes with matplotlib
    picture().savefig(Path(sys.argv[1]), metadata={"Software": None})
