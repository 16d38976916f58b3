"""What a mistake is put against: the right piece, and the property that catches it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Piece = Callable[..., Any]


@dataclass(frozen=True)
class Entry:
    """A mistake, the piece whose place it takes, and the property that tells them.

    `rule` is the property by its name; `check` is that property on chosen inputs.
    """

    wrong: Piece
    right: Piece
    rule: Callable[..., None]
    check: Callable[[Piece], None]

    @property
    def name(self) -> str:
        """The variant's full name, as in wrong.attention.softmax_over_queries."""
        return f"{self.wrong.__module__}.{self.wrong.__name__}"

    def complaint(self, piece: Piece) -> str | None:
        """What the property says of a piece in this place: None if it holds."""
        try:
            self.check(piece)
        except AssertionError as error:
            return str(error)
        return None


def entry(wrong: Piece, right: Piece, rule: Piece, *inputs: Any) -> Entry:
    """An entry whose property takes the piece first and then these inputs."""
    return Entry(wrong, right, rule, lambda piece: rule(piece, *inputs))
