"""A wrong shape is seen in every room that computes; and a plain run pays nothing."""

import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import jaxtyping
import pytest
import torch

from gpt2hw import GPT2, GPT2Config, Tokenizer
from gpt2hw.attention import attend, attention_scores, softmax
from gpt2hw.bags import BagMatrix
from gpt2hw.batch_generation import Batch
from gpt2hw.batches import positions
from gpt2hw.block import LayerNorm, normalize
from gpt2hw.continuing import Row
from gpt2hw.embeddings import embed
from gpt2hw.evaluation import token_losses
from gpt2hw.fast import MatrixLinear
from gpt2hw.fast_block import many_queries
from gpt2hw.fast_cache import state_after_one_token
from gpt2hw.generation import mask_unknown_ids
from gpt2hw.half import one_row
from gpt2hw.heads import induction_score
from gpt2hw.int8 import Int8Matrix
from gpt2hw.kv_cache import LayerCache
from gpt2hw.linear import Linear
from gpt2hw.many_rows import by_plain_tensors
from gpt2hw.model import unembed
from gpt2hw.one_token import OneToken
from gpt2hw.rows import RowMatrix
from gpt2hw.sampling import keep_top_p
from gpt2hw.tracing import _trace_block
from gpt2hw.writing import Writing

MODEL = GPT2.random(GPT2Config(n_vocab=5, n_ctx=4, n_embd=6, n_head=2, n_layer=1))
IDS = torch.tensor([3, 1])

ROW = Row("", [1], len, Writing(Tokenizer([]), 1, "length", ()))


class OneRowTooFew(GPT2):
    """A model that forgets the axis of the batch."""

    def last_logits(self, ids, cache=None, *, mask=None):
        return torch.zeros(5)


# One wrong shape for each room; its own annotations must see it, not another room's.
PLANTED = {
    "linear": lambda: Linear(weight=torch.zeros(2, 3), bias=torch.zeros(2)),
    "embeddings": lambda: embed(IDS, torch.zeros(5, 6), torch.zeros(4, 1)),
    "attention": lambda: attention_scores(torch.zeros(2, 3), torch.zeros(2, 2, 3)),
    "block": lambda: LayerNorm(weight=torch.zeros(1), bias=torch.zeros(6), eps=1e-5),
    "model": lambda: unembed(torch.zeros(2, 5), torch.zeros(5, 6)),
    "kv_cache": lambda: LayerCache(k=torch.zeros(2, 4, 3), v=torch.zeros(2, 5, 3)),
    "bags": lambda: BagMatrix(torch.zeros(3, 4).T)(torch.zeros(1, 4)),
    "rows": lambda: RowMatrix(torch.zeros(4, 3))(torch.zeros(1, 4)),
    "half": lambda: one_row(torch.zeros(1, 3), torch.zeros(4, 2).half()),
    "int8": lambda: Int8Matrix(torch.zeros(4, 2).to(torch.int8), torch.ones(3)),
    "fast": lambda: MatrixLinear.of(RowMatrix(torch.zeros(4, 3)), torch.zeros(3)),
    "many_rows": lambda: by_plain_tensors(torch.zeros(1, 3), torch.zeros(4, 2)),
    "fast_block": lambda: many_queries(
        *(torch.zeros(2, 3),) * 3, torch.ones(3, 2).bool()
    ),
    "one_token": lambda: OneToken(MODEL, torch.zeros(1, 2, 2, 4)),
    "fast_cache": lambda: state_after_one_token(
        MODEL, torch.zeros(2).long(), MODEL.new_cache()
    ),
    "batches": lambda: positions(torch.ones(1, 3)),
    "continuing": lambda: ROW.go_on(torch.zeros(1, 5)),
    "batch_generation": lambda: Batch(OneRowTooFew(**vars(MODEL))).next_logits([ROW]),
    "pretrained": lambda: replace(MODEL, wpe=torch.zeros(4, 7)),
    "sampling": lambda: keep_top_p(torch.zeros(1, 5), 1.0),
    "generation": lambda: mask_unknown_ids(torch.zeros(5, 1), 3),
    "heads": lambda: induction_score(torch.zeros(2, 3, 4)),
    "evaluation": lambda: token_losses(torch.zeros(3, 5), torch.zeros(2, 3).long()),
    "tracing": lambda: _trace_block(MODEL.h[0], torch.zeros(6), "h.0", {}),
}
# In a plain run some go on with the wrong numbers, and some fail later, elsewhere.
LATER = (IndexError, RuntimeError, ValueError)


def checked_rooms(config: pytest.Config) -> set[str]:
    """The rooms whose annotations conftest.py turns into checks."""
    plugins = config.pluginmanager.get_plugins()
    lists = [getattr(plugin, "ROOMS_THAT_COMPUTE", ()) for plugin in plugins]
    return {room for rooms in lists for room in rooms}


def test_a_wrong_shape_is_planted_in_every_room_that_computes(pytestconfig):
    assert set(PLANTED) == checked_rooms(pytestconfig)


@pytest.mark.parametrize("room", PLANTED)
def test_a_wrong_shape_is_seen_in_its_room(room):
    with pytest.raises(jaxtyping.TypeCheckError, match=rf"gpt2hw\.{room}\."):
        PLANTED[room]()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: softmax(torch.zeros(3, dtype=torch.int64)),
        lambda: normalize(torch.tensor(1.0), 1e-5),
        lambda: embed(torch.zeros(2), torch.zeros(5, 6), torch.zeros(4, 6)),
        lambda: attend(torch.zeros(1, 2), torch.zeros(3, 2), torch.zeros(4, 2)),
        lambda: MODEL.forward(torch.zeros(2, 2)),
    ],
)
def test_a_wrong_kind_of_number_and_a_missing_axis_are_seen(wrong):
    with pytest.raises(jaxtyping.TypeCheckError):
        wrong()


def test_a_wrong_result_is_seen_too():
    """A slice past the last position is empty, and its sum has no rows: no error."""
    with pytest.raises(jaxtyping.TypeCheckError, match="return value"):
        embed(IDS[:1], MODEL.wte, MODEL.wpe, n_past=4)


def in_a_plain_run() -> None:
    """What the subprocess below runs: no checker is there, nothing is checked."""
    MODEL(IDS, MODEL.new_cache())
    for planted in PLANTED.values():
        with suppress(*LATER):  # a TypeCheckError is none of these
            planted()
    assert "beartype" not in sys.modules
    assert "typeguard" not in sys.modules


def test_a_plain_run_checks_no_shapes_and_loads_no_checker():
    code = "import test_shapes; test_shapes.in_a_plain_run(); print('done')"
    here = Path(__file__).parent
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("done\n", "")
