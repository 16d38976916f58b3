"""Trains the tiny model and exports it in Hugging Face's layout, F16.

    python docs/appendix/train_tiny.py CORPUS TOKENIZER OUT [--steps N]

`CORPUS` is a folder as `corpus.py` describes it, `TOKENIZER` a folder written by
`train_bpe.py`, `OUT` receives `config.json`, `model.safetensors`, the tokenizer's
files, `recipe.json`, the checkpoint (`state.pt`: run the same command again to go on)
and the curve (`curve.csv`: step, loss in nats a token, bits per byte on the tales that
are kept for choosing settings).

torch.nn is used here, for training alone; the package runs the result by hand. Muon
needs torch 2.9 or later.
The recipe: Muon for the matrices inside the blocks, AdamW for the rest; the learning
rate warms up, stays, and falls in a straight line to zero over the last part of the
run, in which the share of novels falls too.
"""

import argparse
import csv
import json
import math
import random
import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from corpus import Corpus, read_corpus
from torch import Tensor, nn

from gpt2hw import Tokenizer, write_safetensors


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the result, apart from the corpus and the machine."""

    n_ctx: int = 256
    n_embd: int = 192
    n_head: int = 6
    n_layer: int = 4
    steps: int = 7_500
    batch: int = 16  # windows of n_ctx tokens a step
    muon_lr: float = 0.03
    adam_lr: float = 0.006
    weight_decay: float = 0.1
    dropout: float = 0.0
    warmup: int = 200
    decay: float = 0.5  # the last part of the run, in which the rates fall to zero
    novels_first: float = 0.5  # share of windows from novels, until the decay begins
    novels_last: float = 0.2  # the same at the end
    seed: int = 1


class Attention(nn.Module):
    def __init__(self, r: Recipe) -> None:
        super().__init__()
        self.n_head = r.n_head
        self.c_attn = nn.Linear(r.n_embd, 3 * r.n_embd)
        self.c_proj = nn.Linear(r.n_embd, r.n_embd)

    def forward(self, x: Tensor) -> Tensor:
        batch, n_seq, n_embd = x.shape
        heads = self.c_attn(x).view(batch, n_seq, 3, self.n_head, n_embd // self.n_head)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(mixed.transpose(1, 2).reshape(batch, n_seq, n_embd))


class MLP(nn.Module):
    def __init__(self, r: Recipe) -> None:
        super().__init__()
        self.c_fc = nn.Linear(r.n_embd, 4 * r.n_embd)
        self.c_proj = nn.Linear(4 * r.n_embd, r.n_embd)

    def forward(self, x: Tensor) -> Tensor:
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, r: Recipe) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(r.n_embd)
        self.attn = Attention(r)
        self.ln_2 = nn.LayerNorm(r.n_embd)
        self.mlp = MLP(r)
        self.drop = nn.Dropout(r.dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.drop(self.attn(self.ln_1(x)))
        return x + self.drop(self.mlp(self.ln_2(x)))


class TinyGPT2(nn.Module):
    """GPT-2's architecture with the checkpoint's names."""

    def __init__(self, r: Recipe, n_vocab: int) -> None:
        super().__init__()
        self.wte = nn.Embedding(n_vocab, r.n_embd)
        self.wpe = nn.Embedding(r.n_ctx, r.n_embd)
        self.h = nn.ModuleList(Block(r) for _ in range(r.n_layer))
        self.ln_f = nn.LayerNorm(r.n_embd)
        self.drop = nn.Dropout(r.dropout)
        for name, parameter in self.named_parameters():
            if name.endswith("weight") and parameter.ndim == 2:
                nn.init.normal_(parameter, std=0.02)
            if name.endswith("c_proj.weight"):
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * r.n_layer))

    def forward(self, ids: Tensor, targets: Tensor) -> Tensor:
        """The mean cross entropy, in nats, of each target after the ids before it."""
        x = self.drop(self.wte(ids) + self.wpe.weight[: ids.shape[1]])
        for block in self.h:
            x = block(x)
        logits = self.ln_f(x) @ self.wte.weight.T
        return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


class Windows:
    """Random windows of token ids; documents are joined by the end-of-text id."""

    def __init__(self, corpus: Corpus, tokenizer: Tokenizer, r: Recipe) -> None:
        self.n_ctx = r.n_ctx
        self.tales = self._stream(corpus.tales, tokenizer, r.seed)
        self.novels = self._stream(corpus.novels, tokenizer, r.seed)
        self.validation = self._stream(corpus.validation, tokenizer, r.seed)
        self.validation_bytes = sum(len(t.encode()) for t in corpus.validation)

    @staticmethod
    def _stream(texts: list[str], tokenizer: Tokenizer, seed: int) -> Tensor:
        texts = random.Random(seed).sample(texts, len(texts))
        ids = [i for t in texts for i in [tokenizer.eot_id, *tokenizer.encode(t)]]
        return torch.tensor(ids or [tokenizer.eot_id])

    def batch(self, size: int, novels: float, generator: torch.Generator) -> Tensor:
        """[size, n_ctx + 1] ids: a window and, one to the right, its targets."""
        rows = []
        for _ in range(size):
            from_novels = torch.rand((), generator=generator).item() < novels
            stream = (
                self.novels
                if from_novels and len(self.novels) > self.n_ctx
                else self.tales
            )
            start = int(
                torch.randint(len(stream) - self.n_ctx, (), generator=generator)
            )
            rows.append(stream[start : start + self.n_ctx + 1])
        return torch.stack(rows)


def schedule(step: int, r: Recipe) -> tuple[float, float]:
    """(factor on the learning rates, share of novels) at a step."""
    left = (r.steps - step) / (r.decay * r.steps)
    factor = min(1.0, (step + 1) / r.warmup, left)
    share = r.novels_last + (r.novels_first - r.novels_last) * min(1.0, left)
    return factor, share


@torch.no_grad()
def validation_bits(model: nn.Module, windows: Windows) -> float:
    """Bits per byte on the tales kept for choosing settings (windows side by side)."""
    model.eval()
    ids, n_ctx = windows.validation, windows.n_ctx
    total = 0.0
    for start in range(0, len(ids) - 1, n_ctx):
        window = ids[start : start + n_ctx + 1][None]
        total += float(model(window[:, :-1], window[:, 1:])) * (window.shape[1] - 1)
    model.train()
    return total / math.log(2) / windows.validation_bytes


class Trainer:
    """The model, what moves it, and how far it has come."""

    def __init__(self, r: Recipe, windows: Windows, n_vocab: int, out: Path) -> None:
        torch.manual_seed(r.seed)
        self.r, self.windows, self.out = r, windows, out
        self.generator = torch.Generator().manual_seed(r.seed)
        self.model = TinyGPT2(r, n_vocab)
        self.step = 0
        named = dict(self.model.named_parameters())
        in_blocks = [p for n, p in named.items() if n.startswith("h.") and p.ndim == 2]
        vectors = [p for p in named.values() if p.ndim == 1]
        embeddings = [self.model.wte.weight, self.model.wpe.weight]
        self.clipped = embeddings + vectors  # Muon scales its steps by itself
        groups = [
            {"params": embeddings, "weight_decay": r.weight_decay / 10},
            {"params": vectors, "weight_decay": 0.0},
        ]
        muon = torch.optim.Muon(in_blocks, lr=r.muon_lr, weight_decay=r.weight_decay)
        adam = torch.optim.AdamW(groups, lr=r.adam_lr, betas=(0.9, 0.95))
        self.optimizers = [(muon, r.muon_lr), (adam, r.adam_lr)]

    def take_step(self) -> float:
        """One batch: its loss, in nats a token."""
        factor, share = schedule(self.step, self.r)
        rows = self.windows.batch(self.r.batch, share, self.generator)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = self.model(rows[:, :-1], rows[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(self.clipped, 1.0)
        for optimizer, rate in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate * factor
            optimizer.step()
            optimizer.zero_grad()
        self.step += 1
        return loss.item()

    def save(self) -> None:
        """Writes the checkpoint, whole or not at all."""
        state = {
            "model": self.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer, _ in self.optimizers],
            "generator": self.generator.get_state(),
            "step": self.step,
        }
        torch.save(state, self.out / "state.tmp")
        (self.out / "state.tmp").replace(self.out / "state.pt")

    def resume(self) -> None:
        """Goes on from the checkpoint, if there is one."""
        if not (self.out / "state.pt").exists():
            return
        state = torch.load(self.out / "state.pt", weights_only=True)
        self.model.load_state_dict(state["model"])
        for (optimizer, _), saved in zip(
            self.optimizers, state["optimizers"], strict=True
        ):
            optimizer.load_state_dict(saved)
        self.generator.set_state(state["generator"])
        self.step = state["step"]

    def report(self, losses: list[float]) -> None:
        """A line of the curve: step, mean loss, and bits per byte on the validation."""
        is_full = self.step % 500 == 0 or self.step == self.r.steps
        bits = f"{validation_bits(self.model, self.windows):.4f}" if is_full else ""
        row = [self.step, f"{sum(losses) / len(losses):.4f}", bits]
        with (self.out / "curve.csv").open("a", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow(row)
        print(*row, flush=True)


def train(
    corpus: Path, tokenizer_folder: Path, out: Path, r: Recipe, minutes: float
) -> None:
    """Trains, saves a checkpoint every 250 steps, and exports at the end."""
    out.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer.from_pretrained(tokenizer_folder)
    windows = Windows(read_corpus(corpus), tokenizer, r)
    trainer = Trainer(r, windows, tokenizer.n_vocab, out)
    trainer.resume()
    deadline, losses = time.monotonic() + 60 * minutes, []
    while trainer.step < r.steps and time.monotonic() < deadline:
        losses.append(trainer.take_step())
        if trainer.step % 100 == 0 or trainer.step == r.steps:
            trainer.report(losses)
            losses = []
        if trainer.step % 250 == 0:
            trainer.save()
    trainer.save()
    export(trainer.model, r, tokenizer_folder, out)


def export(model: TinyGPT2, r: Recipe, tokenizer_folder: Path, out: Path) -> None:
    """Writes the folder that the package ships: F16, matrices stored [in, out]."""
    tensors = {}
    for name, parameter in model.state_dict().items():
        inside = name.startswith("h.") and parameter.ndim == 2
        tensors[name] = (
            (parameter.T if inside else parameter).to(torch.float16).contiguous()
        )
    write_safetensors(out / "model.safetensors", tensors, {"format": "pt"})
    n_vocab = model.wte.weight.shape[0]
    config = {
        "activation_function": "gelu_new",
        "architectures": ["GPT2LMHeadModel"],
        "attn_pdrop": r.dropout,
        "bos_token_id": n_vocab - 1,
        "embd_pdrop": r.dropout,
        "eos_token_id": n_vocab - 1,
        "initializer_range": 0.02,
        "layer_norm_epsilon": 1e-5,
        "model_type": "gpt2",
        "n_ctx": r.n_ctx,
        "n_embd": r.n_embd,
        "n_head": r.n_head,
        "n_inner": None,
        "n_layer": r.n_layer,
        "n_positions": r.n_ctx,
        "resid_pdrop": r.dropout,
        "vocab_size": n_vocab,
    }
    (out / "config.json").write_text(
        json.dumps(config, indent=2) + "\n", encoding="utf-8"
    )
    (out / "recipe.json").write_text(
        json.dumps(asdict(r), indent=2) + "\n", encoding="utf-8"
    )
    for name in ("vocab.json", "merges.txt"):
        shutil.copyfile(tokenizer_folder / name, out / name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="stop after this time"
    )
    for name, value in asdict(Recipe()).items():
        parser.add_argument(
            f"--{name.replace('_', '-')}", type=type(value), default=value
        )
    args = vars(parser.parse_args())
    paths = [args.pop(name) for name in ("corpus", "tokenizer", "out")]
    minutes = args.pop("minutes")
    train(*paths, Recipe(**args), minutes)


if __name__ == "__main__":
    main()
