"""One set of random weights in each engine's own format.

The folder is a checkpoint of GPT-2 124M's shape in Hugging Face's layout, with GPT-2's
tokenizer and the mask buffers that the published file has. CTranslate2 and llama.cpp
get theirs from it, by their own converter and their own quantizer.
"""

import contextlib
import json
import shutil
import sys
from pathlib import Path

import llama
import torch
from measuring import write_settings
from start import PUBLISHED
from torch import Tensor

from checkpoints import random_tensors, write_as_published
from gpt2hw import GPT2Config, write_safetensors
from gpt2hw.tokenizer_files import GPT2_MERGES
from gpt2hw.vocabulary import derive_vocabulary, read_merges

CONFIG = GPT2Config()
# llama.cpp's numbers for the kinds of its files (enum llama_ftype).
GGUF_TYPES = {"f32": 0, "f16": 1, "q8_0": 7, "q4_0": 2}
Tensors = dict[str, Tensor]


def prepare(folder: Path) -> None:
    """All that the engines read; what is there already is taken as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    done = folder / "done"
    if done.exists():
        return
    tensors = random_tensors(CONFIG, deviation=0.02)
    write_checkpoint(folder, tensors)
    write_gguf(folder / "f32.gguf", tensors)
    for name in set(GGUF_TYPES) - {"f32"}:
        quantize(folder / "f32.gguf", folder / f"{name}.gguf", GGUF_TYPES[name])
    write_ctranslate2(folder)
    write_published(folder, tensors)
    done.touch()


def write_checkpoint(folder: Path, tensors: Tensors) -> None:
    """config.json, model.safetensors, and the tokenizer in both of its layouts."""
    from transformers import AutoTokenizer

    write_safetensors(
        folder / "model.safetensors", with_buffers(tensors), {"format": "pt"}
    )
    write_settings(folder, CONFIG)
    (folder / "merges.txt").write_bytes(GPT2_MERGES.read_bytes())
    vocabulary = json.dumps(derive_vocabulary(read_merges(GPT2_MERGES)))
    (folder / "vocab.json").write_text(vocabulary, encoding="utf-8")
    AutoTokenizer.from_pretrained(folder).save_pretrained(folder)  # tokenizer.json


def with_buffers(tensors: Tensors) -> Tensors:
    """The parameters, and the mask of each block, as the published file has them."""
    mask = torch.ones(CONFIG.n_ctx, CONFIG.n_ctx).tril()[None, None]
    return tensors | {f"h.{layer}.attn.bias": mask for layer in range(CONFIG.n_layer)}


def write_published(folder: Path, tensors: Tensors) -> None:
    """The same model in a folder of its own, its file laid as the published one."""
    published = folder / PUBLISHED
    published.mkdir(exist_ok=True)
    for file in folder.glob("*.json"):
        shutil.copy(file, published)
    shutil.copy(folder / "merges.txt", published)
    write_as_published(published / "model.safetensors", with_buffers(tensors))


def write_gguf(path: Path, tensors: Tensors) -> None:
    """A GGUF file in float32, of type gpt2 and without a tokenizer: ids go in."""
    import gguf

    writer = gguf.GGUFWriter(path, "gpt2")
    writer.add_block_count(CONFIG.n_layer)
    writer.add_context_length(CONFIG.n_ctx)
    writer.add_embedding_length(CONFIG.n_embd)
    writer.add_feed_forward_length(4 * CONFIG.n_embd)
    writer.add_head_count(CONFIG.n_head)
    writer.add_layer_norm_eps(CONFIG.layer_norm_epsilon)
    writer.add_file_type(GGUF_TYPES["f32"])
    writer.add_tokenizer_model("none")
    writer.add_vocab_size(CONFIG.n_vocab)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.GPT2, CONFIG.n_layer)
    for name, tensor in tensors.items():
        theirs = names.get_name(name, try_suffixes=(".weight", ".bias"))
        # In a block, ours are stored [in, out], theirs [out, in].
        matrix = tensor.ndim == 2 and name.startswith("h.")
        writer.add_tensor(theirs, (tensor.T if matrix else tensor).contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def quantize(source: Path, target: Path, kind: int) -> None:
    """By llama.cpp's own quantizer, as its command of that name does it."""
    import llama_cpp

    llama.silence()
    settings = llama_cpp.llama_model_quantize_default_params()
    settings.ftype = kind
    failed = llama_cpp.llama_model_quantize(
        str(source).encode(), str(target).encode(), settings
    )
    if failed:
        raise RuntimeError(f"llama.cpp could not write {target}")


def write_ctranslate2(folder: Path) -> None:
    """By CTranslate2's own converter, from the folder."""
    from ctranslate2.converters import TransformersConverter

    with contextlib.redirect_stdout(sys.stderr):
        TransformersConverter(str(folder)).convert(str(folder / "ctranslate2"))
