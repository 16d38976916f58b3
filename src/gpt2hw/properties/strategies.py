"""hypothesis's strategies; without hypothesis, word of what to install.

Rules do not need it, only what draws cases for them.
"""

try:
    from hypothesis import strategies as st
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        "cases for the rules are drawn by hypothesis, which is not installed: type "
        'pip install ".[labs]" in a clone, or pip install hypothesis',
        name=missing.name,
    ) from None

__all__ = ["st"]
