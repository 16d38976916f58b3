"""Where a tokenizer's files lie: from a model's name or folder to two paths.

Every published size of GPT-2 has one and the same tokenizer, so its merges come with
this package, and the names of the published sizes need no download.
"""

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpt2hw.config import PUBLISHED
from gpt2hw.errors import CheckpointError, TokenizerError
from gpt2hw.folder import read_settings
from gpt2hw.hub import find_or_download_tokenizer
from gpt2hw.hub.places import SHIPPED, is_path, short_name
from gpt2hw.vocabulary import END_OF_TEXT, Pair, made_tokens

GPT2_MERGES = SHIPPED / "gpt2" / "merges.txt"
GPT2_N_VOCAB = PUBLISHED["gpt2"].n_vocab


def find_files(name_or_folder: str | os.PathLike[str]) -> tuple[Path, Path | None]:
    """The merges.txt and, where there is one, the vocab.json of a model.

    Those of a model that is not here are downloaded, without its weights. A folder
    without merges.txt is taken to use GPT-2's if its config.json says that it knows as
    many tokens, with a warning; else it is a TokenizerError.

    >>> find_files("gpt2-xl")[1] is None
    True
    """
    if not is_path(name_or_folder) and short_name(str(name_or_folder)) in PUBLISHED:
        return GPT2_MERGES, None
    folder = find_or_download_tokenizer(name_or_folder)
    merges, vocab = folder / "merges.txt", folder / "vocab.json"
    # A link to nothing is there too: its reader refuses it, and ids stay right.
    vocab_if_there = vocab if os.path.lexists(vocab) else None
    if os.path.lexists(merges):
        return merges, vocab_if_there
    if _n_vocab(folder) != GPT2_N_VOCAB:
        raise TokenizerError(
            f"{folder} has no merges.txt, and its config.json has no vocab_size of"
            f" {GPT2_N_VOCAB}, as GPT-2's has: put the model's merges.txt (and"
            " vocab.json) there"
        )
    warnings.warn(
        f"{folder} has no merges.txt: GPT-2's is used, as the model knows"
        f" {GPT2_N_VOCAB} tokens",
        stacklevel=3,
    )
    return GPT2_MERGES, vocab_if_there


def _n_vocab(folder: Path) -> object:
    """What config.json says of the vocabulary's size, None where it says nothing."""
    try:
        return read_settings(folder).get("vocab_size")
    except CheckpointError:
        return None


def tokens_are_gpt2s(
    merges_path: str | os.PathLike[str],
    merges: Sequence[Pair],
    vocab: Mapping[str, int] | None,
) -> bool:
    """Whether these are GPT-2's merges (line ends aside), and its tokens, in any order.

    Of GPT-2's tokens a test shows that each may be looked up without merging.
    """
    raw = Path(merges_path).read_bytes().replace(b"\r\n", b"\n")
    if raw != GPT2_MERGES.read_bytes():
        return False
    return vocab is None or vocab.keys() == {*made_tokens(merges), END_OF_TEXT}
