"""The whole model as one picture, in which every block is a door to its step."""

from collections.abc import Mapping, Sequence

from gpt2hw.figures.doors import (
    CODE,
    INK,
    INNER,
    LEFT,
    NARROW,
    STREAM,
    WIDE,
    Door,
    Models,
    Pieces,
)
from gpt2hw.figures.svg import Figure
from gpt2hw.layout import n_parameters

FILE = Door("1", "The weight file", "all matrices below")
TOKENIZER = Door("2", "Tokenizer", "text to ids")
EMBEDDINGS = Door(
    "3",
    "Embeddings",
    "ids to vectors",
    (("wte", ("n_vocab", "n_embd")), ("wpe", ("n_ctx", "n_embd"))),
)
ONE_HEAD = Door(
    "4a",
    "Attention, one head",
    "who looks at whom",
    (("ln_1", ("n_embd",)), ("c_attn", ("n_embd", "3 n_embd"))),
)
ALL_HEADS = Door("4b", "All heads together", rows=(("c_proj", ("n_embd", "n_embd")),))
MLP = Door(
    "5",
    "MLP",
    "each token by itself",
    (
        ("ln_2", ("n_embd",)),
        ("c_fc", ("n_embd", "n_inner")),
        ("c_proj", ("n_inner", "n_embd")),
    ),
)
BLOCK = Door("5", "Block")
HEAD = Door(
    "6",
    "Final norm, logits",
    "vectors to scores",
    (("ln_f", ("n_embd",)), ("wte.T", ("n_embd", "n_vocab"))),
)
SAMPLING = Door("7", "Sampling", "scores to one id")
CACHE = Door("8", "KV cache", "only the new id goes round")


def architecture(
    models: Models,
    doors: Mapping[str, str],
    *,
    prompt: str,
    answer: str,
    narrow: bool = False,
) -> Figure:
    """GPT-2 from text to text; `doors` maps a step ("4a") to its page's address.

    `models` are one or two names with their shapes; `answer` is what the running model
    says after `prompt`. `narrow` is the same picture for a page 360 pixels wide.
    """
    drawing = _Drawing(NARROW if narrow else WIDE, models, doors)
    height = drawing.all(prompt, answer)
    figure = drawing.canvas.figure(height, _said(models))
    # Links in an image are out of a screen reader's reach; in a group they are not.
    svg = figure.svg.replace('role="img"', 'role="group"', 1)
    svg = svg.replace('class="figure"', 'class="figure architecture"', 1)
    return Figure(svg=svg, alt=figure.alt)


class _Drawing(Pieces):
    """Puts one piece below the other; each method gives the height where it ends."""

    def all(self, prompt: str, answer: str) -> float:
        """The picture from top to bottom."""
        y = self.said(self.file(0) + 8, prompt)
        y = self.block(TOKENIZER, self.arrow(y, 20))
        y = loop = self.arrow(y, 30, "ids", "n_seq")
        y = self.block(EMBEDDINGS, y)
        y = self.blocks(self.arrow(y, 30, "x", "n_seq", "n_embd"))
        y = self.block(HEAD, self.arrow(y, 30, "x", "n_seq", "n_embd"))
        y = self.block(SAMPLING, self.arrow(y, 30, "logits", "n_seq", "n_vocab"))
        self.way_back(y - 18, loop + 18)
        y = self.arrow(y, self.cache(y))
        return self.said(y + 6, answer) + 6

    def file(self, y: float) -> float:
        """The door to the weight file: the head of the table that the rows make."""
        plan = self.plan
        left = plan.name - 12 if plan.aside else LEFT
        self.box(FILE, left, y, plan.width - left - 2, 36)
        line = y + 60
        for (name, config), edge in zip(self.models, plan.columns, strict=False):
            bold = f"{INK};font-weight:600"
            self.text(edge, line, name, text_anchor="end", style=bold)
            self.text(edge, line + 22, f"{n_parameters(config):,}", text_anchor="end")
        self.text(left + (12 if plan.aside else 0), line + 22, "parameters")
        return y if plan.aside else line + 34

    def blocks(self, y: float) -> float:
        """The block that is repeated: two branches that add to the stream."""
        canvas, top, first = self.canvas, y, y + 36
        n_before = len(canvas.elements)
        y = self.branch(first, (ONE_HEAD, ALL_HEADS)) + 14
        y = self.branch(y, (MLP,)) + 12
        inside = canvas.elements[n_before:]
        del canvas.elements[n_before:]
        self.box(BLOCK, LEFT, top, self.plan.right - LEFT, y - top)
        canvas.elements += inside
        self.times(top + 22)
        self.stream((STREAM, first - 4), (STREAM, y))
        return y

    def branch(self, y: float, doors: Sequence[Door]) -> float:
        """Out of the stream, through the doors, and added to it again."""
        top = y
        for door in doors:
            y = self.block(door, y, x=INNER, least=34) + 6
        y -= 6
        for height in (top + 17, y - 12):
            self.stream((STREAM, height), (INNER, height))
        self.canvas.add("circle", class_="plus", cx=STREAM, cy=y - 12, r=8)
        self.text(STREAM, y - 7, "+", text_anchor="middle")
        return y

    def times(self, y: float) -> None:
        """How often the block is repeated in each model."""
        times = [f"× {config.n_layer}" for _, config in self.models]
        if not self.plan.aside:
            self.text(104, y, " or ".join(times))
            return
        self.text(self.plan.name, y, "h.0, h.1, …", style=CODE, font_size=14)
        for word, edge in zip(times, self.plan.columns, strict=False):
            self.text(edge, y, word, text_anchor="end")

    def cache(self, y: float) -> float:
        """The door to what spares work on the way back, beside the way out.

        Returns how long the way out has to be to pass it.
        """
        plan = self.plan
        if not plan.aside:
            left, top = STREAM + 34, y + 22
            self.box(CACHE, left, top, plan.right - left, 56)
            self.canvas.line([(left + 22, y), (left + 22, top)], dashes="3 4")
            return 22 + 56 + 8
        left = plan.name - 12
        self.box(CACHE, left, y - 36, plan.width - left - 2, 36)
        self.canvas.line([(plan.right, y - 18), (left, y - 18)], dashes="3 4")
        return 22

    def way_back(self, low: float, high: float) -> None:
        """From the sampled id up to the embeddings."""
        self.stream((LEFT, low), (8, low), (8, high), (LEFT, high))
        self.stream((LEFT - 7, high - 4), (LEFT - 1, high), (LEFT - 7, high + 4))


def _said(models: Models) -> str:
    shapes = "; ".join(
        f"{name}: {config.n_layer} blocks, {config.n_head} heads, n_embd "
        f"{config.n_embd}, {n_parameters(config):,} parameters"
        for name, config in models
    )
    return (
        "The model as a column of blocks, each a link to its step: tokenizer, "
        "embeddings, the repeated block of attention and MLP, final norm and logits, "
        "sampling, with the KV cache beside it and a way back for the next id. "
        f"{shapes}."
    )
