"""Text from ids that come one by one: whole characters only.

A token may end in the middle of a character ("地" is three bytes in two tokens), so its
bytes are held back until the character is whole.

Source: the Unicode Standard, section 3.9 (one U+FFFD for each maximal broken part);
Python's `codecs`, incremental decoders.
"""

import codecs
from collections.abc import Callable


class StreamDecoder:
    """Decodes ids one at a time; the pieces joined are `Tokenizer.decode` of them all.

    `token_bytes` gives the bytes of an id. Bytes that are no UTF-8 become U+FFFD, as in
    `decode`.

    >>> decoder = StreamDecoder({0: b"\\xe5\\x9c", 1: b"\\xb0!"}.__getitem__)
    >>> decoder.push(0), decoder.push(1), decoder.flush()
    ('', '地!', '')
    """

    def __init__(self, token_bytes: Callable[[int], bytes]) -> None:
        self._token_bytes = token_bytes
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token_id: int) -> str:
        """The characters that this id completes, maybe none."""
        return self._utf8.decode(self._token_bytes(token_id))

    def flush(self) -> str:
        """The end: one U+FFFD for an unfinished character. Then it may start anew."""
        return self._utf8.decode(b"", final=True)
