"""The linear map: which way round the matrix lies."""

import pytest
import torch
import torch.nn.functional as F
from transformers.pytorch_utils import Conv1D

from gpt2hw.linear import Linear
from gpt2hw.properties.linear import rows_of_the_matrix_are_inputs
from gpt2hw.properties.seeded import normal


def test_the_matrix_stands_right_of_x_and_is_not_transposed():
    rows_of_the_matrix_are_inputs(Linear.__call__)


@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_it_is_what_hugging_face_calls_conv1d(batch):
    linear = Linear(weight=normal(6, 4, seed=1), bias=normal(4, seed=2))
    conv1d = Conv1D(nf=4, nx=6)
    conv1d.load_state_dict({"weight": linear.weight, "bias": linear.bias})
    x = normal(*batch, 6, seed=3)
    with torch.no_grad():
        torch.testing.assert_close(linear(x), conv1d(x))


def test_torchs_own_linear_wants_the_matrix_the_other_way_round():
    linear = Linear(weight=normal(6, 4, seed=1), bias=normal(4, seed=2))
    x = normal(3, 6, seed=3)
    torch.testing.assert_close(linear(x), F.linear(x, linear.weight.T, linear.bias))
