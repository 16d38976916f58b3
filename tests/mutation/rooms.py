"""The rooms that are mutated, and the tests that each of them answers to."""

# Beside these, the examples in the room's own docstrings.
TESTS = {
    "config": ("test_config.py",),
    "layout": ("test_layout.py",),
    "tensor_info": ("test_header.py",),
    "header": ("test_header.py",),
    "vocabulary": ("test_vocabulary.py",),
    "bpe": ("test_bpe.py",),
    "splitting": ("test_splitting.py",),
    "stream_decoder": ("test_stream_decoder.py",),
    "tokenizer": ("test_tokenizer.py", "test_vocabulary.py"),
    "linear": ("test_linear.py",),
    "embeddings": ("test_embeddings.py",),
    "attention": ("test_attention.py",),
    "block": ("test_block.py",),
    "model": ("test_model.py",),
    "kv_cache": ("test_kv_cache.py",),
    "many_rows": ("test_many_rows.py",),
    "bags": ("test_bags.py",),
    "rows": ("test_rows.py",),
    "half": ("test_half.py", "test_precision.py"),
    "int8": ("test_int8.py", "test_precision.py"),
    "fast": ("test_fast.py",),
    "fast_block": ("test_fast_block.py",),
    "one_token": ("test_one_token.py",),
    "fast_cache": ("test_fast_cache.py", "test_one_token.py"),
    "batches": ("test_batches.py", "test_fast_cache.py"),
    "sampling": ("test_sampling.py",),
    "stop_strings": ("test_generation.py",),
    "writing": ("test_generation.py",),
    "continuing": ("test_generation.py", "test_batches.py"),
    "generation": ("test_generation.py", "test_batches.py"),
}


def tests_of(room: str) -> list[str]:
    """The arguments for pytest."""
    return [f"src/gpt2hw/{room}.py", *(f"tests/{name}" for name in TESTS[room])]
