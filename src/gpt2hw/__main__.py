"""`python -m gpt2hw` is `gpt2hw`."""

from gpt2hw.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
