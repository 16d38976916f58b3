"""Memory for weights: it is what was asked for, and it is the tensor's own."""

import mmap

import pytest
import torch

from gpt2hw import huge_pages
from gpt2hw.huge_pages import HUGE_PAGE, empty


@pytest.mark.parametrize("n", [0, 1, HUGE_PAGE // 4 - 1, HUGE_PAGE // 4, HUGE_PAGE])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int8])
def test_a_tensor_has_the_shape_and_type_that_were_asked_for_and_can_be_filled(
    n, dtype
):
    tensor = empty((1, n), dtype)
    tensor.fill_(3)
    assert (tensor.shape, tensor.dtype) == ((1, n), dtype)
    assert tensor.is_contiguous()
    assert (tensor == 3).all()


def test_two_tensors_share_no_memory():
    one, other = empty((HUGE_PAGE,), torch.int8), empty((HUGE_PAGE,), torch.int8)
    one.fill_(1)
    other.fill_(2)
    assert (one == 1).all()


def test_a_system_without_huge_pages_gives_plain_memory(monkeypatch):
    monkeypatch.delattr(mmap, "MADV_HUGEPAGE", raising=False)
    assert huge_pages.empty((HUGE_PAGE,), torch.int8).shape == (HUGE_PAGE,)


if hasattr(mmap, "MADV_HUGEPAGE"):  # Linux

    def test_a_large_tensor_asks_for_them_and_a_small_one_does_not(monkeypatch):
        asked = []

        class Memory(mmap.mmap):
            def madvise(self, option: int) -> None:
                asked.append(option)

        monkeypatch.setattr(huge_pages.mmap, "mmap", Memory)
        huge_pages.empty((HUGE_PAGE - 1,), torch.int8)
        assert asked == []
        huge_pages.empty((HUGE_PAGE // 4,), torch.float32)
        assert asked == [mmap.MADV_HUGEPAGE]

    def test_a_kernel_that_refuses_them_gives_plain_pages(monkeypatch):
        def refused(*_):
            raise OSError("EINVAL")

        class Memory(mmap.mmap):
            madvise = refused

        monkeypatch.setattr(huge_pages.mmap, "mmap", Memory)
        assert huge_pages.empty((HUGE_PAGE,), torch.int8).shape == (HUGE_PAGE,)

    def test_what_there_is_no_room_for_is_told_in_torch_s_words(monkeypatch):
        def refused(*_, **__):
            raise OSError("ENOMEM")

        monkeypatch.setattr(huge_pages.mmap, "mmap", refused)
        assert huge_pages.empty((HUGE_PAGE,), torch.int8).shape == (HUGE_PAGE,)
        with pytest.raises(RuntimeError, match="allocate"):
            huge_pages.empty((2**50,), torch.int8)
