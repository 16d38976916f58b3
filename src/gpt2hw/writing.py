"""A text that is being written: ids become text, until something ends it."""

from collections.abc import Iterable

from gpt2hw.request import FinishReason
from gpt2hw.stop_strings import TextUntilStop
from gpt2hw.tokenizer import Tokenizer


class Writing:
    """Ids go in, pieces of whole characters come out.

    `limit` is how many ids there may be, `at_limit` the finish_reason of that many.
    Once it `is_done`, no more ids are to come; then `finish` gives the rest. `text`,
    `ids` and `finish_reason` are those of the Completion.

    >>> writing = Writing(Tokenizer([]), 3, "length", stops=())
    >>> [writing.push(new_id) for new_id in (158, 246, 225)]
    ['', '', '☃']
    >>> writing.is_done, writing.finish(), writing.text, writing.finish_reason
    (True, '', '☃', 'length')
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        limit: int,
        at_limit: FinishReason,
        stops: Iterable[str],
    ) -> None:
        self.ids: list[int] = []
        self.finish_reason = at_limit
        self.is_done = limit == 0
        self._limit = limit
        self._eot_id = tokenizer.eot_id
        self._decoder = tokenizer.stream_decoder()
        self._gate = TextUntilStop(tuple(stops))

    @property
    def text(self) -> str:
        """The text so far, up to where it was cut."""
        return self._gate.text

    def push(self, new_id: int) -> str:
        """Takes the next id; returns what of the text is certain now."""
        self.ids.append(new_id)
        self.is_done = len(self.ids) == self._limit
        if new_id == self._eot_id:
            self.finish_reason, self.is_done = "end_of_text", True
            return ""
        piece = self._gate.push(self._decoder.push(new_id))
        self.is_done |= self._gate.stopped
        return piece

    def finish(self) -> str:
        """Returns the rest of the text; after it the finish_reason is certain."""
        piece = self._gate.push(self._decoder.flush()) + self._gate.flush()
        if self._gate.stopped and self.finish_reason != "end_of_text":
            self.finish_reason = "stop"
        return piece
