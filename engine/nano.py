"""A modern GPT in one file: the model, its loss, a training loop, and sampling with a KV cache.

    python engine/nano.py                                          train on a text that comes with Python
    python engine/nano.py --text plays.txt --steps 2000            train on a text of yours
    python engine/nano.py --load checkpoints/shakespeare-modern    write with a trained model

It needs torch, and safetensors for --load; it imports nothing of this project. Read it from top to bottom:
text becomes ids of its tokens (here characters), ids become vectors, blocks of attention and feed-forward
networks refine the vectors, and the last vectors become probabilities for the next token. `engine.model` is
the same model with every choice open and every number within reach; its parameters have the same names.

Shapes: B texts in a batch, T positions, S positions attended to (the cached ones and these T), D numbers in a
vector (d_model), H heads, K numbers in a head (d_head = D / H), F hidden units (d_ff), V tokens (vocab_size).
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Config:
    """The sizes of a model. The defaults train in about a minute of one core."""

    vocab_size: int
    context: int = 64  # the most positions that are read at once
    d_model: int = 96
    n_layers: int = 3
    n_heads: int = 4
    d_ff: int = 256  # about 8/3 d_model: three matrices then hold as much as two of 4 d_model
    rope_theta: float = 10_000.0
    norm_eps: float = 1e-5


class RMSNorm(nn.Module):
    """Scales each vector to a root mean square of 1, then each number by a gain (Zhang & Sennrich 2019)."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.gain, self.eps = nn.Parameter(torch.ones(size)), eps

    def forward(self, x: Tensor) -> Tensor:  # (B, T, D) -> (B, T, D)
        mean_square = x.pow(2).mean(-1, keepdim=True)  # (B, T, 1)
        return x * torch.rsqrt(mean_square + self.eps) * self.gain


def rotations(start: int, length: int, d_head: int, theta: float) -> tuple[Tensor, Tensor]:
    """Returns the cosines and sines of RoPE's angles at positions start .. start + length - 1, (T, K/2) each.

    Pair i turns by theta^(-2i/K) from one position to the next (Su et al. 2021), the first pairs fastest.
    """
    frequency = theta ** (-torch.arange(0, d_head, 2) / d_head)  # (K/2,)
    angle = torch.arange(start, start + length).unsqueeze(1) * frequency  # (T, 1) * (K/2,) -> (T, K/2)
    return angle.cos(), angle.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotates each pair (x[i], x[i + K/2]) of queries or keys (B, H, T, K) by the angle of its position.

    The product of two rotated vectors depends on how far apart they are, not on where they stand.
    """
    a, b = x.chunk(2, dim=-1)  # (B, H, T, K/2) each
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)  # (B, H, T, K)


class Cache:
    """The rotated keys and the values of the positions read so far, of one block: (B, H, S, K) each."""

    def __init__(self) -> None:
        self.k: Tensor | None = None
        self.v: Tensor | None = None

    def __len__(self) -> int:
        return 0 if self.k is None else self.k.shape[2]

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Adds keys and values (B, H, T, K); returns all of them, (B, H, S, K) each."""
        self.k = k if self.k is None else torch.cat((self.k, k), dim=2)
        self.v = v if self.v is None else torch.cat((self.v, v), dim=2)
        return self.k, self.v


class Attention(nn.Module):
    """Lets each position gather what it needs from earlier ones (Vaswani et al. 2017)."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.n_heads, self.theta = c.n_heads, c.rope_theta
        self.w_qkv = nn.Linear(c.d_model, 3 * c.d_model, bias=False)  # W_Q, W_K and W_V, one above the other
        self.w_o = nn.Linear(c.d_model, c.d_model, bias=False)

    def forward(self, x: Tensor, cache: Cache | None = None) -> Tensor:
        B, T, D = x.shape
        start = 0 if cache is None else len(cache)
        qkv = self.w_qkv(x)  # (B, T, D) @ (D, 3D) -> (B, T, 3D)
        qkv = qkv.view(B, T, 3, self.n_heads, D // self.n_heads)  # (B, T, 3, H, K)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # (B, H, T, K) each
        cos, sin = rotations(start, T, D // self.n_heads, self.theta)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if cache is not None:
            k, v = cache.append(k, v)  # (B, H, S, K) each
        scores = q @ k.transpose(-2, -1)  # (B, H, T, K) @ (B, H, K, S) -> (B, H, T, S)
        scores = scores / math.sqrt(D // self.n_heads)  # products of K numbers would saturate the softmax
        future = torch.ones(T, start + T, dtype=torch.bool).triu(start + 1)  # the causal mask, (T, S)
        weights = scores.masked_fill(future, -math.inf).softmax(-1)  # (B, H, T, S), each row sums to 1
        gathered = weights @ v  # (B, H, T, S) @ (B, H, S, K) -> (B, H, T, K)
        return self.w_o(gathered.transpose(1, 2).reshape(B, T, D))  # (B, T, D) @ (D, D) -> (B, T, D)


class FeedForward(nn.Module):
    """Transforms each position by itself: SwiGLU, where one half gates the other (Shazeer 2020)."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.w_in = nn.Linear(c.d_model, 2 * c.d_ff, bias=False)  # the gate and what it lets pass
        self.w_out = nn.Linear(c.d_ff, c.d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gate, value = self.w_in(x).chunk(2, dim=-1)  # (B, T, D) @ (D, 2F) -> (B, T, F) each
        return self.w_out(F.silu(gate) * value)  # (B, T, F) @ (F, D) -> (B, T, D)


class Block(nn.Module):
    """Adds what attention and a feed-forward network make of the normalised stream to the stream."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.norm1, self.mixer = RMSNorm(c.d_model, c.norm_eps), Attention(c)
        self.norm2, self.ffn = RMSNorm(c.d_model, c.norm_eps), FeedForward(c)

    def forward(self, x: Tensor, cache: Cache | None = None) -> Tensor:  # (B, T, D) -> (B, T, D)
        x = x + self.mixer(self.norm1(x), cache)
        return x + self.ffn(self.norm2(x))


class GPT(nn.Module):
    """Predicts the next token at every position: ids (B, T) -> logits (B, T, V)."""

    def __init__(self, config: Config, seed: int = 0) -> None:
        super().__init__()
        self.config = c = config
        self.embedding = nn.Parameter(torch.empty(c.vocab_size, c.d_model))
        self.blocks = nn.ModuleList(Block(c) for _ in range(c.n_layers))
        self.norm_final = RMSNorm(c.d_model, c.norm_eps)
        self.unembedding = nn.Parameter(torch.empty(c.vocab_size, c.d_model))
        generator = torch.Generator().manual_seed(seed)
        for name, parameter in self.named_parameters():
            if not name.endswith("gain"):
                # Matrices that write to the stream start smaller: its size then does not grow with depth.
                writes = name.endswith(("w_o.weight", "w_out.weight"))
                nn.init.normal_(parameter, 0.0, 0.02 / math.sqrt(2 * c.n_layers if writes else 1), generator)

    def forward(self, ids: Tensor, caches: list[Cache] | None = None) -> Tensor:
        x = self.embedding[ids]  # (B, T) -> (B, T, D)
        for i, block in enumerate(self.blocks):
            x = block(x, caches[i] if caches else None)
        return self.norm_final(x) @ self.unembedding.T  # (B, T, D) @ (D, V) -> (B, T, V)

    def loss(self, ids: Tensor, targets: Tensor) -> Tensor:
        """Returns the mean of -log p(target) over all positions of ids and targets (B, T), in nats."""
        return F.cross_entropy(self(ids).flatten(0, 1), targets.flatten())  # (B T, V) and (B T,) -> ()

    @torch.inference_mode()
    def sample(self, ids: list[int], length: int, temperature: float = 0.8, seed: int = 0) -> Iterator[int]:
        """Yields `length` ids that follow the given ones, of which the last `context` are read.

        Each new token costs one position: its query meets the cached keys. When the cache is full, the
        last half of the context is read anew.
        """
        generator, context = torch.Generator().manual_seed(seed), self.config.context
        caches, ids, unread = [Cache() for _ in self.blocks], list(ids), list(ids)[-context:]
        for _ in range(length):
            if len(caches[0]) + len(unread) > context:
                caches, unread = [Cache() for _ in self.blocks], ids[-max(1, context // 2) :]
            logits = self(torch.tensor([unread]), caches)[0, -1]  # (V,)
            probabilities = (logits / temperature).softmax(-1)
            unread = [int(torch.multinomial(probabilities, 1, generator=generator))]
            ids += unread
            yield unread[0]


def train(
    model: GPT, text: Tensor, steps: int, batch_size: int = 32, rate: float = 3e-3, seed: int = 0
) -> None:
    """Trains on windows of the first nine tenths of ids (n,), and prints the loss there and on the rest."""
    cut, context = int(0.9 * len(text)), model.config.context
    splits, generator = {"train": text[:cut], "validation": text[cut:]}, torch.Generator().manual_seed(seed)
    if len(splits["validation"]) < context + 1:
        raise SystemExit(f"The text has {len(text)} characters: at least {10 * (context + 1)} are needed.")

    def batch(split: str) -> tuple[Tensor, Tensor]:  # ids and, shifted by one, what follows: (B, T) each
        starts = torch.randint(len(splits[split]) - context, (batch_size, 1), generator=generator)
        windows = splits[split][starts + torch.arange(context + 1)]  # (B, 1) + (T + 1,) -> (B, T + 1)
        return windows[:, :-1], windows[:, 1:]

    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.99), weight_decay=0.1)
    warmup, begun = min(100, steps // 10), time.perf_counter()
    for step in range(steps + 1):
        if step % max(1, steps // 10) == 0:
            with torch.inference_mode():
                losses = {s: torch.stack([model.loss(*batch(s)) for _ in range(8)]).mean() for s in splits}
            line = ", ".join(f"{split} {loss:.3f}" for split, loss in losses.items())
            print(f"step {step:5d}  loss: {line} nats per character  ({time.perf_counter() - begun:.0f} s)")
        if step == steps:
            break
        # The rate rises from 0 in the warm-up, then falls to 0 along a line.
        share = min((step + 1) / (warmup + 1), (steps - step) / (steps - warmup))
        optimizer.param_groups[0]["lr"] = rate * share
        loss = model.loss(*batch("train"))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def load(folder: Path | str) -> tuple[GPT, str]:
    """Reads a model and its alphabet from a folder of Glassformer's. Raises SystemExit for another design."""
    from safetensors.torch import load_file

    folder = Path(folder)
    c, tokenizer = (json.loads(read(folder / name)) for name in ("config.json", "tokenizer.json"))
    ours: dict = {"norm": "rmsnorm", "wiring": "pre", "ffn": "swiglu", "position": "rope"}
    ours |= {"mixer": "attention", "output_head": "linear", "n_kv_heads": c["n_heads"]}
    ours |= {"d_head": c["d_model"] // c["n_heads"]}
    ours |= dict.fromkeys(("causal", "score_scale", "output_projection", "norm_gain", "rope_fraction"), True)
    idle = {"dropout", "pooling", "output_bias", "active_experts", "router", "router_norm", "router_scale"}
    idle |= {"balance", "balance_rate"}  # of no experts
    for name in sorted(c.keys() - Config.__dataclass_fields__ - idle):
        if tokenizer["kind"] != "char" or c[name] != ours.get(name, False):
            raise SystemExit(f"{folder} is of another architecture ({name}), or not in characters.")
    model = GPT(Config(**{name: c[name] for name in Config.__dataclass_fields__}))
    weights = load_file(folder / "model.safetensors")
    model.load_state_dict({name: weight.float() for name, weight in weights.items()}, strict=True)
    return model.eval(), tokenizer["alphabet"]


def read(path: Path) -> str:
    """Returns a text file's text. Raises SystemExit where it cannot be read."""
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SystemExit(f"{path} cannot be read as a text: {error}.") from None


def built_in_text() -> str:
    """Returns the reference of the language that every Python carries, about 700,000 characters."""
    from pydoc_data.topics import topics

    return "\n\n".join(topics[name].strip() for name in sorted(topics))


def main() -> None:
    """Trains a model or loads one, and prints what it writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, help="a text file to train on (default: one that Python has)")
    parser.add_argument("--load", type=Path, help="a folder with a trained model, instead of training one")
    parser.add_argument("--steps", type=int, default=450, help="training steps (default: 450)")
    parser.add_argument("--prompt", default="\n", help="what the sample goes on from")
    parser.add_argument("--length", type=int, default=400, help="characters to write (default: 400)")
    parser.add_argument("--temperature", type=float, default=0.8, help="below 1: likelier (default: 0.8)")
    parser.add_argument("--seed", type=int, default=0, help="of weights, batches and sample (default: 0)")
    given = parser.parse_args()
    if not given.temperature > 0:
        raise SystemExit(f"--temperature {given.temperature} must be above 0: near 0 takes the likeliest.")
    if not given.prompt:
        raise SystemExit("--prompt must hold at least one character: the model goes on from it.")
    if not given.steps > 0 or not given.length >= 0:
        raise SystemExit("--steps must be at least 1, and --length at least 0.")
    torch.set_num_threads(1)  # products as small as these gain nothing from more
    if given.load:
        model, alphabet = load(given.load)
    else:
        text = read(given.text) if given.text else built_in_text()
        alphabet = "".join(sorted(set(text)))
        model = GPT(Config(len(alphabet)), given.seed)
        print(f"{sum(p.numel() for p in model.parameters()):,} parameters, {len(alphabet)} characters")
        id_of = {character: i for i, character in enumerate(alphabet)}
        train(model, torch.tensor([id_of[character] for character in text]), given.steps, seed=given.seed)
    if unknown := set(given.prompt) - set(alphabet):
        raise SystemExit(f"The model has never read {min(unknown)!r}.")
    print(given.prompt, end="")
    ids = [alphabet.index(character) for character in given.prompt]
    for i in model.sample(ids, given.length, given.temperature, given.seed):
        print(alphabet[i], end="", flush=True)
    print()


if __name__ == "__main__":
    main()
