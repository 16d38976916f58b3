"""Every picture of the book, drawn from real tensors as inline SVG.

A figure is a `Figure`: printed it is HTML, in a notebook it shows itself. It takes its
ink and its fonts from the page, its axis colours from CSS variables (`AXIS_COLOURS`),
and it says in words what is seen.

>>> import torch
>>> print(heat_map(torch.eye(2), ["a", "b"], ["a", "b"]).alt)
Heat map, 2 rows by 2 columns. Largest in each row: a: a (1), b: b (1).
"""

from gpt2hw.figures.bits import float_bits
from gpt2hw.figures.book import Running, running, token_labels
from gpt2hw.figures.boxes import Box, axis_sizes, shape_flow
from gpt2hw.figures.charts import bar_chart, bar_charts, line_plot
from gpt2hw.figures.colours import AXIS_COLOURS, FIGURE_COLOURS
from gpt2hw.figures.grids import cell_grids
from gpt2hw.figures.masks import mask_grid
from gpt2hw.figures.matrices import heat_map, heat_maps
from gpt2hw.figures.merges import merge_rows
from gpt2hw.figures.rooflines import roofline
from gpt2hw.figures.sliders import slide
from gpt2hw.figures.streams import residual_stream
from gpt2hw.figures.strips import byte_strip, ledger, token_strip
from gpt2hw.figures.svg import Figure

__all__ = [
    "AXIS_COLOURS",
    "FIGURE_COLOURS",
    "Box",
    "Figure",
    "Running",
    "axis_sizes",
    "bar_chart",
    "bar_charts",
    "byte_strip",
    "cell_grids",
    "float_bits",
    "heat_map",
    "heat_maps",
    "ledger",
    "line_plot",
    "mask_grid",
    "merge_rows",
    "residual_stream",
    "roofline",
    "running",
    "shape_flow",
    "slide",
    "token_labels",
    "token_strip",
]
