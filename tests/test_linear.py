"""The linear map: which way round the matrix lies."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 -- its usual name
from transformers.pytorch_utils import Conv1D

from gpt2hw.linear import Linear
from gpt2hw.properties.drawn import normal


def test_the_matrix_stands_right_of_x_and_is_not_transposed():
    linear = Linear(
        weight=torch.tensor([[1.0, 2.0], [3.0, 4.0]]), bias=torch.tensor([0.0, 10.0])
    )
    assert linear(torch.tensor([1.0, 0.0])).tolist() == [1.0, 12.0]  # x W.T: [1, 13]


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
