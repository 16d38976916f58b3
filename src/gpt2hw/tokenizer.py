import regex

END_OF_TEXT = "<|endoftext|>"
SPLIT_PATTERN = regex.compile(
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
)
_PRINTABLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
_OTHERS = [b for b in range(256) if b not in _PRINTABLE]
BYTE_TO_CHAR = {b: chr(b) for b in _PRINTABLE} | {b: chr(256 + n) for n, b in enumerate(_OTHERS)}
