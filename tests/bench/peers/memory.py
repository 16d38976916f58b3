"""What the machine's memory allows, measured in the same rounds as the engines.

A token cannot come sooner than its weights are read, but for what of them is still in
a cache. Here 256 MB are read, and next to nothing is computed.
"""

import statistics

import torch

from gpt2hw import GPT2Config
from gpt2hw.benchmark import READ_AT_ONCE, _reading
from gpt2hw.layout import n_parameters


def tokens_of_reading_alone(config: GPT2Config, threads: int) -> float:
    """Tokens a second in float32 if a token took nothing but reading its weights.

    By the fastest of the kernels of `gpt2hw bench`; all parameters but positions are
    read.
    """
    torch.set_num_threads(threads)
    with torch.inference_mode():
        seconds = min(
            statistics.median(work() for _ in range(5)) for _, work in _reading()
        )
    n_read = n_parameters(config) - config.n_ctx * config.n_embd
    return READ_AT_ONCE / seconds / (4 * n_read)
