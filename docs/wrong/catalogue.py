"""All mistakes, by the room that they stand in for: `nox -s mutants`.

Each is put in its right piece's place, and the property that is named beside it must
fail there, with a message that tells a learner what is wrong. One that survives fails
the run.
"""

import sys

from wrong import (
    attention,
    batches,
    block,
    embeddings,
    generation,
    half,
    header,
    int8,
    kv_cache,
    model,
    rows,
    sampling,
    tokenizer,
)
from wrong.entry import Entry

ROOMS = (
    header,
    tokenizer,
    embeddings,
    attention,
    block,
    model,
    sampling,
    generation,
    kv_cache,
    rows,
    batches,
    half,
    int8,
)
ENTRIES: list[Entry] = [e for room in ROOMS for e in room.ENTRIES]


def main() -> int:
    """Prints each variant, who caught it and by what words; 1 if one survives."""
    n_caught = 0
    for e in ENTRIES:
        fault, complaint = e.complaint(e.right), e.complaint(e.wrong)
        caught = fault is None and complaint is not None
        n_caught += caught
        print(f"{'caught  ' if caught else 'SURVIVED'}  {e.name}")
        print(f"    by {e.rule.__module__}.{e.rule.__name__}")
        print(f"    {complaint if fault is None else f'the right piece: {fault}'}")
    print(f"{n_caught} passed, {len(ENTRIES) - n_caught} failed")
    return 0 if n_caught == len(ENTRIES) else 1


if __name__ == "__main__":
    sys.exit(main())
