"""Step 9: mistakes in the product with few rows."""

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from gpt2hw.bags import BagMatrix, cut
from gpt2hw.properties import rows as rules
from gpt2hw.properties.seeded import normal
from gpt2hw.rows import RowMatrix, product_by_blocks
from wrong.entry import entry

N_BLOCKS = N_BAGS = 4


def product_of_the_first_bag(x: Tensor, values: Tensor) -> Tensor:
    """Takes the first core's bag for the sum: with one thread, it is."""
    numbers, starts = cut(x.shape[-1], N_BAGS)
    return embedding_bag(
        numbers, values.T, starts, mode="sum", per_sample_weights=x[0]
    )[:1]


def product_of_bags_numbered_anew(x: Tensor, values: Tensor) -> Tensor:
    """Counts the inputs of each bag from 0, where they go on from the bag before."""
    n_in = x.shape[-1]
    numbers = torch.arange(n_in // N_BAGS).repeat(N_BAGS)
    starts = torch.arange(0, n_in, n_in // N_BAGS)
    bags = embedding_bag(numbers, values.T, starts, mode="sum", per_sample_weights=x[0])
    return bags.sum(dim=0, keepdim=True)


def product_without_the_rest(x: Tensor, values: Tensor) -> Tensor:
    """Cuts what goes into blocks evenly, and forgets the rows that are left over."""
    n_out, n_in = values.shape
    even = values[: n_out - n_out % N_BLOCKS]
    return product_by_blocks(x, even.view(N_BLOCKS, -1, n_in), values[:0])


def product_of_blocks_of_inputs(x: Tensor, values: Tensor) -> Tensor:
    """Cuts the matrix as it lies in GPT-2's file, [n_in, n_out]: blocks of inputs."""
    in_the_file = values.T.contiguous()
    blocks = in_the_file.view(N_BLOCKS, -1, x.shape[-1])
    return product_by_blocks(x, blocks, values[:0])


def product_right_for_one_row(x: Tensor, values: Tensor) -> Tensor:
    """Reads the blocks' outputs as rows, where they are columns: one row is both."""
    n_in = x.shape[-1]
    blocks = values.view(N_BLOCKS, -1, n_in)
    found = torch.bmm(blocks, x.T.expand(N_BLOCKS, n_in, len(x)))
    return found.reshape(len(x), -1)


def product_with_the_row_copied(x: Tensor, values: Tensor) -> Tensor:
    """Gives each block a row of its own: right, and another kernel."""
    n_in = x.shape[-1]
    blocks = values.view(N_BLOCKS, -1, n_in)
    columns = x.T.expand(N_BLOCKS, n_in, len(x)).contiguous()
    return torch.bmm(blocks, columns).flatten(end_dim=1).T


def product_that_turns_the_matrix(x: Tensor, values: Tensor) -> Tensor:
    """Turns the matrix at each token, not once at load: right, and slow."""
    in_the_file = values.T.contiguous()
    return x @ in_the_file


# What catches them


def _by_blocks(x: Tensor, values: Tensor) -> Tensor:
    return RowMatrix(values)(x)


def _by_bags(x: Tensor, values: Tensor) -> Tensor:
    before = torch.get_num_threads()
    torch.set_num_threads(N_BAGS)  # with one there would be one bag
    try:
        return BagMatrix.of(values)(x)
    finally:
        torch.set_num_threads(before)


ONE, THREE = normal(1, 64), normal(3, 64)
EQUAL, SMALL = rules.blocks_equal_one_product, rules.nothing_large_is_made
ENTRIES = [
    entry(wrong, right, rule, x, normal(n, 64, seed=1))
    for wrong, right, rule, x, n in (
        (product_of_the_first_bag, _by_bags, EQUAL, ONE, 18),
        (product_of_bags_numbered_anew, _by_bags, EQUAL, ONE, 18),
        (product_without_the_rest, _by_blocks, EQUAL, ONE, 18),
        (product_of_blocks_of_inputs, _by_blocks, EQUAL, ONE, 64),
        (product_right_for_one_row, _by_blocks, EQUAL, THREE, 16),
        (product_with_the_row_copied, _by_blocks, SMALL, ONE, 16),
        (product_that_turns_the_matrix, _by_blocks, SMALL, ONE, 16),
    )
]
