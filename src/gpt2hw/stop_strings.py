"""Stop strings in text that is shown as it is written.

A stop string may arrive in parts, over several tokens, and nothing of it may be shown;
so the last characters wait as long as they could be the start of one.
"""

from collections.abc import Sequence


class TextUntilStop:
    """Lets text pass up to a stop string; `text` is what has passed so far.

    Of the stop strings in what has been pushed, the one that begins first cuts. From
    then on `stopped` is True and nothing passes.

    >>> gate = TextUntilStop(["END"])
    >>> gate.push("the E"), gate.push("asy EN"), gate.push("D."), gate.stopped
    ('the ', 'Easy ', '', True)
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self.stops = stops
        self.text = ""
        self.stopped = False
        self._held = ""

    def push(self, characters: str) -> str:
        """Adds characters; returns those that are now sure to stay."""
        if self.stopped:
            return ""
        self._held += characters
        starts = [self._held.find(stop) for stop in self.stops if stop in self._held]
        if starts:
            self.stopped = True
            shown = self._release(min(starts))
            self._held = ""
            return shown
        return self._release(len(self._held) - self._n_doubtful())

    def flush(self) -> str:
        """The end: what still waited was no stop string."""
        return self._release(len(self._held))

    def _n_doubtful(self) -> int:
        """How many of the last characters are the start of a stop string."""
        longest = max(map(len, self.stops), default=0)
        for n in range(min(longest, len(self._held)), 0, -1):
            if any(stop.startswith(self._held[-n:]) for stop in self.stops):
                return n
        return 0

    def _release(self, n: int) -> str:
        shown, self._held = self._held[:n], self._held[n:]
        self.text += shown
        return shown
