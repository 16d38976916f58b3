"""The judges of the tokenizer: tiktoken and tokenizers, built from our merges.

tiktoken's own getter fetches GPT-2's files from the network, so its Encoding is made
here; the pattern is written out once more, so that a change of ours is noticed.
The table of bytes that it gets is made from the vocabulary that we derive, so a wrong
vocabulary would go unnoticed by it: what guards that is the sha256 of OpenAI's
vocab.json, in test_vocabulary.py.
"""

import tiktoken
import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from gpt2hw import Tokenizer
from gpt2hw.tokenizer_files import GPT2_MERGES, find_files
from gpt2hw.vocabulary import (
    END_OF_TEXT,
    Pair,
    derive_vocabulary,
    read_merges,
    unspell,
)

GPT2_PATTERN = (
    r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
)


def tiktoken_encoding(merges: list[Pair]) -> tiktoken.Encoding:
    """GPT-2's encoding by tiktoken: bytes, and their ranks, which are the ids."""
    ids = derive_vocabulary(merges)
    end = ids.pop(END_OF_TEXT)
    return tiktoken.Encoding(
        "gpt2-from-merges",
        pat_str=GPT2_PATTERN,
        mergeable_ranks={unspell(token): index for token, index in ids.items()},
        special_tokens={END_OF_TEXT: end},
    )


def byte_level_bpe(
    merges: list[Pair], vocab: dict[str, int] | None = None
) -> tokenizers.Tokenizer:
    """Hugging Face's byte-level BPE of these merges."""
    vocab = derive_vocabulary(merges) if vocab is None else vocab
    judge = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=merges))
    judge.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    judge.decoder = decoders.ByteLevel()
    return judge


MERGES = read_merges(GPT2_MERGES)
GPT2 = Tokenizer.from_pretrained("gpt2")
TINY = Tokenizer.from_pretrained("tiny")
TIKTOKEN = tiktoken_encoding(MERGES)
HUGGING_FACE = byte_level_bpe(MERGES)
TINY_BY_HUGGING_FACE = byte_level_bpe(read_merges(find_files("tiny")[0]))


def ids_by_tiktoken(text: str) -> list[int]:
    return TIKTOKEN.encode_ordinary(text)


def ids_by_tokenizers(text: str) -> list[int]:
    return HUGGING_FACE.encode(text).ids
