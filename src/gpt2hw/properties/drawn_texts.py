"""Texts, merges and scripts to try the rules on, by hypothesis."""

import unicodedata
from functools import cache

from gpt2hw.properties.strategies import st
from gpt2hw.properties.tokenizer import Pair
from gpt2hw.tokenizer import Tokenizer

# What tokenizers are known to treat unlike one another.
ENGLISH = ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "’s", "don't", "a", "Zz")
SPACES = (" ", "  ", "\n", "\r\n", "\t", "\x0b", "\x1c", "\x1f", "\x85", "\xa0")
WIDE_SPACES = ("\u1680", "\u180e", "\u2003", "\u200b", "\u2028", "\u202f", "\u3000")
NUMBERS = ("1", "42", "²", "½", "Ⅷ", "٣", "四", "𝟙")
MARKS = ("e\u0301", "\u0301", "नमस्ते", "ก็", "\u200d", "\ufe0f", "\ufeff", "\xad")
EMOJI = ("👍", "👩\u200d👩\u200d👧", "🇫🇷", "👍🏽")
REST = ("地", "ß", "ǅ", "_", "#", "^", "<|endoftext|>", "\x00", "\x7f", "�", "\ue000")
NASTY = (*ENGLISH, *SPACES, *WIDE_SPACES, *NUMBERS, *MARKS, *EMOJI, *REST)

# Blocks younger than Unicode 3.2 that have been full since Unicode 13 at the latest:
# ideographs (extension B), emoticons, mathematical digits, the letters of Adlam.
_FULL_BLOCKS = (
    range(0x20000, 0x2A6DE),
    range(0x1F600, 0x1F650),
    range(0x1D7CE, 0x1D800),
    range(0x1E900, 0x1E944),
)


@cache
def settled_characters() -> str:
    """The characters that every library knows, whatever version of Unicode it follows.

    A letter that is new in one version is no letter to a library of the version before.
    """
    chars = {chr(code) for block in _FULL_BLOCKS for code in block}
    chars |= {c for c in map(chr, range(0x30000)) if _is_old(c)}
    return "".join(sorted(chars))


def _is_old(char: str) -> bool:
    """Whether Unicode 3.2 had it: no surrogate, and not for private use."""
    return unicodedata.ucd_3_2_0.category(char) not in {"Cn", "Cs", "Co"}


def nasty_texts(max_size: int = 30) -> st.SearchStrategy[str]:
    """Texts made of what tokenizers stumble over, without surrogates."""
    part = st.one_of(st.sampled_from(NASTY), st.sampled_from(settled_characters()))
    return st.lists(part, max_size=max_size).map("".join)


@st.composite
def merge_tables(
    draw: st.DrawFn, letters: str = "abc", max_size: int = 12
) -> dict[Pair, int]:
    """Ranks of merges in any order, as no training gives them.

    A merge may stand before those that make its halves, and two may make one token.
    """
    tokens, pairs = dict.fromkeys(letters), dict[Pair, None]()
    for _ in range(draw(st.integers(0, max_size))):
        halves = st.sampled_from(list(tokens))
        pair = draw(halves), draw(halves)
        pairs[pair] = tokens[pair[0] + pair[1]] = None
    shuffled = draw(st.permutations(list(pairs)))
    return {pair: rank for rank, pair in enumerate(shuffled)}


@st.composite
def scripts_and_stops(
    draw: st.DrawFn, tokenizer: Tokenizer
) -> tuple[list[int], list[str]]:
    """What a model may say, and stop strings of which many appear in it.

    Tokens of whole texts, of broken bytes, and end-of-text, in any order.
    """
    texts = st.text("ab地👍é", max_size=6).map(tokenizer.encode)
    noise = st.lists(st.integers(0, tokenizer.n_vocab - 1), max_size=3)
    parts = draw(st.lists(texts | noise, min_size=1, max_size=5))
    script = [token_id for part in parts for token_id in part] or [0]
    text = tokenizer.decode(script)
    cuts = st.tuples(st.integers(0, len(text)), st.integers(1, 4))
    within = cuts.map(lambda cut: text[cut[0] : cut[0] + cut[1]]).filter(bool)
    stops = draw(st.lists(within | st.text("ab地\ufffd", min_size=1), max_size=3))
    return script, stops
