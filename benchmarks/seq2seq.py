"""Seconds per training step of an encoder-decoder beside torch.nn.Transformer of the same size, and what keeping
keys and values gains when it writes; each pair interleaved in one run.

    python -m benchmarks.seq2seq [--rounds 15] [--config A B] [--precision float32 bfloat16]

Both hold the same parameters (biases everywhere, a norm after each stack, one embedding for sources, targets
and the output) and learn from the same padded batches with the same masks. Ours is the app's own path:
studies.pairs.seq2seq with its probes in place, engine.training.optim. Theirs is eager, with fused AdamW, as in a
tutorial.

Writing: greedy, one source at a time and 64 at once, to the full length (no target ends early), with keys and
values of target and source kept, and without.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.report import Goals, finish, table
from engine.config import ModelConfig, TrainConfig
from engine.training.numerics import choose, keep_memory
from engine.training.optim import Optimiser
from studies.pairs.config import Seq2SeqConfig
from studies.pairs.dataset import Rows, padded
from studies.pairs.generate import pair_steps, write_targets
from studies.pairs.seq2seq import Seq2Seq, build_pair
from studies.pairs.tokenizer import BEGIN, END, PAD
from studies.pairs.train import PairBatch, pair_loss, teacher_forced

VOCAB, WRITTEN = 40, 48
CONFIGS = {"A": (64, 2, 4, 24, 64), "B": (128, 3, 4, 48, 64)}  # d_model, layers, heads, length, batch
GOALS: Goals = {
    # In float32 1.08 to 1.47 times, by the processor: most of a step is products, which both have.
    **{f"{c}.float32.vs_torch": (">=", 1.05) for c in CONFIGS},
    **{f"{c}.bfloat16.vs_torch": (">=", 1.3) for c in CONFIGS},
    "cache_gains.one": (">=", 1.7),
    "cache_gains.many": (">=", 2.0),
}
WARM = 2  # rounds that are not counted


def config_of(name: str) -> tuple[Seq2SeqConfig, int, int]:
    d_model, layers, heads, length, batch = CONFIGS[name]
    both = ModelConfig(
        vocab_size=VOCAB,
        context=length + 2,
        d_model=d_model,
        n_layers=layers,
        n_heads=heads,
        ffn="relu",
        attention_bias=True,
        ffn_bias=True,
        norm_bias=True,
    )
    return Seq2SeqConfig.of(both), length, batch


def batch_of(length: int, count: int) -> PairBatch:
    """Random pairs of half to the whole length."""
    generator = torch.Generator().manual_seed(0)

    def text() -> list[int]:
        size = int(torch.randint(length // 2, length + 1, (), generator=generator))
        return torch.randint(3, VOCAB, (size,), generator=generator).tolist()

    pairs = [(text(), text()) for _ in range(count)]
    sources, targets = [[*s, END] for s, _ in pairs], [[BEGIN, *t, END] for _, t in pairs]
    return teacher_forced(Rows(padded(sources), padded(targets)))


class TorchPair(nn.Module):
    """torch.nn.Transformer: pre-norm, ReLU, learned positions, one embedding."""

    def __init__(self, c: Seq2SeqConfig) -> None:
        super().__init__()
        d = c.decoder
        self.embedding = nn.Embedding(VOCAB, d.d_model)
        self.source_place, self.target_place = (nn.Embedding(d.context, d.d_model) for _ in range(2))
        self.both = nn.Transformer(
            d.d_model,
            d.n_heads,
            d.n_layers,
            d.n_layers,
            4 * d.d_model,
            dropout=0.0,
            batch_first=True,
            norm_first=True,
        )

    def forward(self, sources: Tensor, inputs: Tensor) -> Tensor:
        empty = sources == PAD
        x = self.embedding(sources) + self.source_place.weight[: sources.shape[1]]
        y = self.embedding(inputs) + self.target_place.weight[: inputs.shape[1]]
        causal = nn.Transformer.generate_square_subsequent_mask(inputs.shape[1], dtype=y.dtype)
        mask = torch.zeros_like(empty, dtype=y.dtype).masked_fill(empty, float("-inf"))
        out = self.both(
            x,
            y,
            tgt_mask=causal,
            src_key_padding_mask=mask,
            memory_key_padding_mask=mask,
            tgt_is_causal=True,
        )
        return F.linear(out, self.embedding.weight)


def our_step(config: Seq2SeqConfig, precision: str) -> tuple[Callable[[PairBatch], float], int]:
    numerics = choose(precision, "cpu")  # type: ignore[arg-type]
    model = build_pair(config)
    optimiser = Optimiser(model, TrainConfig(), numerics)

    def step(batch: PairBatch) -> float:
        with numerics.scope():
            loss = pair_loss(model, batch)
            value = float(loss.detach())
            optimiser.update(loss, 1.0)
        return value

    return step, sum(p.numel() for p in model.parameters())


def their_step(config: Seq2SeqConfig, dtype: torch.dtype) -> tuple[Callable[[PairBatch], float], int]:
    model = TorchPair(config).to(dtype)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    def step(batch: PairBatch) -> float:
        optimiser.zero_grad(set_to_none=True)
        logits = model(batch.sources, batch.inputs)
        loss = F.cross_entropy(logits.flatten(0, 1).float(), batch.targets.flatten(), ignore_index=-1)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        return loss.item()

    return step, sum(p.numel() for p in model.parameters())


def taken(contenders: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Contender -> seconds in each round; a round runs each once."""
    seconds: dict[str, list[float]] = {who: [] for who in contenders}
    for turn in range(rounds + WARM):
        for who, run in contenders.items():
            started = time.perf_counter()
            run()
            if turn >= WARM:
                seconds[who].append(time.perf_counter() - started)
    return seconds


def ratio(slow: list[float], fast: list[float]) -> float:
    """How many times as long `slow` takes: the median over rounds."""
    return statistics.median(s / f for s, f in zip(slow, fast, strict=True))


def training(name: str, precision: str, rounds: int) -> dict[str, list[float]]:
    config, length, count = config_of(name)
    torch.manual_seed(0)
    batch = batch_of(length, count)
    dtype = torch.float32 if precision == "float32" else torch.bfloat16
    (ours, own), (theirs, others) = our_step(config, precision), their_step(config, dtype)
    if own != others:
        raise RuntimeError(f"ours has {own:,} parameters, theirs {others:,}")
    return taken({"glassformer": lambda: ours(batch), "torch": lambda: theirs(batch)}, rounds)


def endless() -> Seq2Seq:
    """A model that never says that it is done: the logit of END is 0, and some other is above that."""
    sizes = ModelConfig(
        vocab_size=VOCAB, context=WRITTEN, d_model=128, n_layers=3, n_heads=4, tie_embeddings=False
    )
    model = build_pair(Seq2SeqConfig.of(sizes)).eval().requires_grad_(False)
    assert model.unembedding is not None
    model.unembedding[END] = 0
    return model


def writing(count: int, rounds: int) -> dict[str, list[float]]:
    model = endless()
    sources = torch.randint(3, VOCAB, (count, WRITTEN), generator=torch.Generator().manual_seed(1))

    def writer(cached: bool) -> Callable[[], object]:
        def write() -> None:
            if count == 1:  # what a page asks for
                lengths = [sum(1 for _ in pair_steps(model, sources[0].tolist(), cached=cached))]
            else:
                lengths = [len(ids) for ids in write_targets(model, sources, cached=cached)]
            if any(length != WRITTEN for length in lengths):
                raise RuntimeError("a target is shorter than it should be")

        return write

    return taken({"cached": writer(True), "uncached": writer(False)}, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--config", nargs="+", default=list(CONFIGS), choices=list(CONFIGS))
    parser.add_argument(
        "--precision", nargs="+", default=["float32", "bfloat16"], choices=["float32", "bfloat16"]
    )
    options = parser.parse_args()
    keep_memory()  # for all of them: one process
    figures: dict[str, float] = {}
    rows: list[dict[str, object]] = []

    def told(what: str, seconds: dict[str, list[float]], slow: str, fast: str) -> float:
        times = ratio(seconds[slow], seconds[fast])
        for who, each in seconds.items():
            figures[f"{what}.{who}.ms"] = statistics.median(each) * 1e3
            rows.append({"what": what, "who": who, "ms": figures[f"{what}.{who}.ms"], "min": min(each) * 1e3})
        return times

    for name in options.config:
        for precision in options.precision:
            seconds = training(name, precision, options.rounds)
            figures[f"{name}.{precision}.vs_torch"] = told(
                f"{name}.{precision}", seconds, "torch", "glassformer"
            )
    for many, count in (("one", 1), ("many", 64)):
        seconds = writing(count, options.rounds)
        figures[f"cache_gains.{many}"] = told(f"writing {many}", seconds, "uncached", "cached")
    print(choose("float32", "cpu").sentence)
    table(rows)
    finish("seq2seq", figures, {goal: bound for goal, bound in GOALS.items() if goal in figures})


if __name__ == "__main__":
    main()
