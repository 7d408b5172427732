"""Seconds per training step beside peers of the same size, interleaved in one run, and each step's share of
the peak of products.

    python -m benchmarks.training [--rounds 20] [--config A B C] [--precision float32 bfloat16] [--profile]

Ours is the app's own path: engine.model with its probes in place, engine.training.optim, the `classic`
architecture (learned positions, LayerNorm, GELU, biases, tied), so that all three models hold the same
parameters.

The peak is that of a large product, 2048 x 2048 x 2048, in the same arithmetic and by the same library as ours,
taken anew in every round; a step's share of it is the median over the rounds. It counts the products of a step
alone, so what a step does between them, and what its smaller products lose, is what is missing to 1. Where
that is, `--profile` says. As found on one thread without AVX-512, in float32: the products of matrices run at
the peak, those of attention, narrow as a head, at half of it, and a quarter (C) or a seventh (B) of a step is no
product: GELU, softmax, moving heads about. Fewer passes over the scores would need them unwritten, and they are
what the app shows.

float32 means float32: where the processor's "medium" products would be bfloat16 (AMX), the engine does not
use them. What they would give is measured beside it as `medium`, and is no goal.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import torch

from benchmarks.peers import EncoderGPT, PlainStep, hugging_face
from benchmarks.report import Goals, finish, table
from engine.config import ModelConfig, TrainConfig
from engine.model import build
from engine.training.batches import Batch, loss_of
from engine.training.numerics import choose, keep_memory, onednn_is_exact
from engine.training.optim import Optimiser
from studies.costs.presets import PRESETS

CONFIGS = {
    "A": (128, 4, 4, 64, 12),
    "B": (256, 4, 8, 128, 64),
    "C": (128, 4, 4, 128, 32),
}  # d_model, layers, heads, context, batch
GOALS: Goals = {
    "A.float32.vs_encoder": (">=", 2.0),
    "A.bfloat16.vs_encoder": (">=", 2.5),
    "B.float32.vs_encoder": (">=", 2.0),
    "B.bfloat16.vs_encoder": (">=", 3.0),
    "C.float32.vs_encoder": (">=", 2.0),
    "C.bfloat16.vs_encoder": (">=", 3.0),
    "B.float32.share_of_peak": (">=", 0.7),
    "C.float32.share_of_peak": (">=", 0.7),
}


def model_config(name: str) -> tuple[ModelConfig, int]:
    d_model, layers, heads, context, batch = CONFIGS[name]
    return (
        replace(PRESETS["classic"].model, d_model=d_model, n_layers=layers, n_heads=heads, context=context),
        batch,
    )


def our_step(
    config: ModelConfig, precision: str, medium: bool = False
) -> Callable[[torch.Tensor, torch.Tensor], float]:
    numerics = choose(precision, "cpu")  # type: ignore[arg-type]
    numerics = replace(numerics, matmul="medium") if medium else numerics
    model = build(config)
    optimiser = Optimiser(model, TrainConfig(), numerics)

    def step(inputs: torch.Tensor, targets: torch.Tensor) -> float:
        with numerics.scope():
            loss = loss_of(model, Batch(inputs, targets), numerics.device)
            value = float(loss.detach())
            optimiser.update(loss, 1.0)
        return value

    return step


def flops_per_step(config: ModelConfig, batch: int) -> float:
    """Multiply-adds of the matrix products, counted twice, forward and backward (3 x forward): 6 N + 12 L T d
    a token.
    """
    d, layers, t = config.d_model, config.n_layers, config.context
    forward = layers * (2 * 12 * d * d + 4 * t * d) + 2 * config.vocab_size * d
    return 3.0 * forward * t * batch


class Peak:
    """The rate of a large product in the arithmetic of our own step."""

    def __init__(self, precision: str, size: int = 2048) -> None:
        self.numerics = choose(precision, "cpu")  # type: ignore[arg-type]
        self.size = size
        self.a, self.b = (torch.randn(size, size).to(self.numerics.dtype) for _ in "ab")

    def rate(self) -> float:
        """GFLOP/s, the better of two."""
        with self.numerics.scope():
            best = min(_timed(lambda: self.a @ self.b) for _ in range(2))
        return 2 * self.size**3 / best / 1e9


def _timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def measure(name: str, precision: str, rounds: int) -> list[dict[str, object]]:
    config, batch = model_config(name)
    dtype = torch.float32 if precision == "float32" else torch.bfloat16
    torch.manual_seed(0)
    steps = {
        "glassformer": our_step(config, precision),
        "encoder": PlainStep(EncoderGPT(config), dtype),
        "hugging_face": PlainStep(hugging_face(config), dtype),
    }
    if precision == "float32" and not onednn_is_exact():
        steps["medium"] = our_step(config, precision, medium=True)
    inputs, targets = torch.randint(config.vocab_size, (2, batch, config.context))
    seconds: dict[str, list[float]] = {who: [] for who in steps}
    peak, peaks = Peak(precision), list[float]()
    repeat = 5 if name == "A" else 1  # a block of short steps: each peer then runs with its own caches warm
    for turn in range(rounds + 2):
        for who, step in steps.items():
            took = _timed(lambda step=step: [step(inputs, targets) for _ in range(repeat)]) / repeat
            if turn >= 2:
                seconds[who].append(took)
        if turn >= 2:
            peaks.append(peak.rate())
    ours, work = seconds["glassformer"], flops_per_step(config, batch) / 1e9
    rows = []
    for who, times in seconds.items():
        ratio = statistics.median(t / o for t, o in zip(times, ours, strict=True))
        rows.append(
            {
                "config": name,
                "precision": precision,
                "who": who,
                "ms": statistics.median(times) * 1e3,
                "min": min(times) * 1e3,
                "max": max(times) * 1e3,
                "ours_is": ratio,
                "GFLOP/s": work / statistics.median(times),
                "peak": statistics.median(peaks),
                "share": statistics.median(work / t / p for t, p in zip(times, peaks, strict=True)),
            }
        )
    return rows


KINDS = {
    "products of matrices": ("mm", "addmm"),
    "products of attention": ("bmm", "baddbmm"),
    "GELU": ("gelu", "gelu_backward"),
    "softmax": ("_softmax", "_softmax_backward_data"),
    "norms": ("native_layer_norm", "native_layer_norm_backward"),
    "moving": ("copy_", "cat", "clone"),
    "adding and scaling": ("add", "add_", "sum", "mul", "mul_"),
    "AdamW": ("_fused_adamw_",),
}


def profile(name: str, precision: str, steps: int = 3) -> dict[str, object]:
    """A row: the share of our own step that each of KINDS takes, and what is left."""
    config, batch = model_config(name)
    step = our_step(config, precision)
    inputs, targets = torch.randint(config.vocab_size, (2, batch, config.context))
    step(inputs, targets)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as found:
        for _ in range(steps):
            step(inputs, targets)
    spent = {event.key.removeprefix("aten::"): event.self_cpu_time_total for event in found.key_averages()}
    whole = sum(spent.values())
    shares = {kind: sum(spent.get(op, 0.0) for op in ops) / whole for kind, ops in KINDS.items()}
    row: dict[str, object] = {"config": name, "precision": precision}
    return (
        row
        | {kind: f"{share:.1%}" for kind, share in shares.items()}
        | {"rest": f"{1 - sum(shares.values()):.1%}"}
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--config", nargs="+", default=["A", "C", "B"], choices=list(CONFIGS))
    parser.add_argument(
        "--precision", nargs="+", default=["float32", "bfloat16"], choices=["float32", "bfloat16"]
    )
    parser.add_argument("--profile", action="store_true", help="where the time of our own step goes, instead")
    options = parser.parse_args()
    keep_memory()  # for all of them: one process
    if options.profile:
        table([profile(name, precision) for name in options.config for precision in options.precision])
        return
    rows: list[dict[str, object]] = []
    for name in options.config:
        for precision in options.precision:
            rows += measure(name, precision, options.rounds)
    print(choose("float32", "cpu").sentence)
    table(rows)
    figures: dict[str, float] = {}
    for row in rows:
        key = f"{row['config']}.{row['precision']}"
        figures[f"{key}.{row['who']}.ms"] = float(row["ms"])  # type: ignore[arg-type]
        if row["who"] != "glassformer":
            figures[f"{key}.vs_{row['who']}"] = float(row["ours_is"])  # type: ignore[arg-type]
        else:
            figures[f"{key}.share_of_peak"] = float(row["share"])  # type: ignore[arg-type]
            figures[f"{key}.peak"] = float(row["peak"])  # type: ignore[arg-type]
        if row["who"] == "medium":
            figures[f"{key}.medium_vs_encoder"] = figures[f"{key}.encoder.ms"] / figures[f"{key}.medium.ms"]
    finish("training", figures, {goal: bound for goal, bound in GOALS.items() if goal in figures})


if __name__ == "__main__":
    main()
