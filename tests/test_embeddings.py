"""Step 3: a row of wte for what the token is, a row of wpe for where it stands."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from gpt2hw.embeddings import embed
from gpt2hw.properties.drawn import batch_shapes
from gpt2hw.properties.embeddings import (
    each_row_is_token_plus_position,
    the_count_goes_on_after_a_cut,
)
from gpt2hw.properties.seeded import normal

WTE, WPE = normal(11, 4, seed=1), normal(60, 4, seed=2)


@st.composite
def sequences(draw, min_n_seq=1):
    """Ids [*batch, n_seq] of the vocabulary above, and a number of tokens before."""
    n_past = draw(st.integers(0, 40))
    n_seq = draw(st.integers(min_n_seq, 60 - n_past))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    shape = (*draw(batch_shapes()), n_seq)
    return torch.randint(11, shape, generator=generator), n_past


@given(sequences())
@settings(deadline=None, max_examples=40)
def test_each_row_is_its_tokens_vector_plus_its_positions(drawn):
    ids, n_past = drawn
    each_row_is_token_plus_position(embed, ids, WTE, WPE, n_past)


@given(sequences(min_n_seq=2), st.data())
@settings(deadline=None, max_examples=40)
def test_the_count_of_positions_goes_on_after_a_cut(drawn, data):
    ids, _ = drawn
    cut = data.draw(st.integers(1, ids.shape[-1] - 1))
    the_count_goes_on_after_a_cut(embed, ids, WTE, WPE, cut)


@given(sequences())
@settings(deadline=None, max_examples=20)
def test_it_equals_torchs_embedding_of_ids_and_of_positions(drawn):
    ids, n_past = drawn
    positions = torch.arange(n_past, n_past + ids.shape[-1])
    expected = F.embedding(ids, WTE) + F.embedding(positions, WPE)
    assert torch.equal(embed(ids, WTE, WPE, n_past), expected)


def test_after_50_tokens_the_next_one_stands_at_position_50():
    found = embed(torch.tensor([3]), WTE, WPE, n_past=50)
    assert torch.equal(found, (WTE[3] + WPE[50]).view(1, 4))


def test_the_same_token_twice_gives_two_vectors():
    first, second = embed(torch.tensor([5, 5]), WTE, WPE)
    assert not torch.equal(first, second)


@pytest.mark.parametrize(
    ("property_", "arguments"),
    [(each_row_is_token_plus_position, (7,)), (the_count_goes_on_after_a_cut, (2,))],
)
def test_positions_that_begin_again_at_0_are_caught(property_, arguments):
    def begins_again(ids, wte, wpe, n_past=0):
        return embed(ids, wte, wpe, 0)

    with pytest.raises(AssertionError):
        property_(begins_again, torch.tensor([1, 2, 3]), WTE, WPE, *arguments)
