"""Which files a published name stands for, down to the last bit.

A model in this table is asked for at one commit, and other bytes are refused, whoever
sends them. The others are taken from `main`, as the hub has it that day; what its
headers say of their sizes and hashes is checked then.

Source: the files of openai-community/gpt2 on Hugging Face's hub at that commit. The
size and the hash of the weights stand in several public projects that check them;
those of merges.txt are those of the file that comes with this package.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Pinned:
    """A commit, and the size in bytes and the SHA-256 of each file that is wanted."""

    commit: str
    files: dict[str, tuple[int, str]]


PINNED = {
    "openai-community/gpt2": Pinned(
        commit="607a30d783dfa663caf39e06633721c8d4cfcd7e",
        files={
            "config.json": (
                665,
                "0daed7749b4f02b8f76240d5444551d7b08712dab4d0adb8239c56ba823bb7b4",
            ),
            "model.safetensors": (
                548_105_171,
                "248dfc3911869ec493c76e65bf2fcf7f615828b0254c12b473182f0f81d3a707",
            ),
        },
    )
}
