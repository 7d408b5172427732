"""Why residual connections? The same models trained with and without them, from the same weights, on the same
windows: `python -m studies.experiments no-residual` writes `checkpoints/residuals.json`, which the app shows.

He et al. 2015 ("Deep residual learning for image recognition") brought them in; that tokens become alike
without them is Dong et al. 2021 ("Attention is not all you need").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from engine.config import ModelConfig, Norm, TrainConfig, Wiring
from engine.data import corpora
from engine.data.corpus import Corpus
from engine.data.progress import Progress, Steps, finish
from engine.recording import record
from engine.training.records import Step
from engine.training.train import train
from studies.experiments.command import (
    complete,
    folder_options,
    from_json,
    made,
    reading,
    require_all,
    require_recipe,
    strided,
)
from studies.residual.gradient_by_depth import Plan, fresh, measure
from studies.residual.stream import outputs

PATH = Path(__file__).resolve().parents[2] / "checkpoints" / "residuals.json"
DEPTHS = (1, 2, 4, 8)
NORMS: tuple[Norm, ...] = ("layernorm", "none")
STEPS, STRIDE = 300, 10  # the losses of STRIDE steps are one point of a curve
WIDTH, HEADS, CONTEXT, BATCH, RATE, WARMUP, SEED = 64, 4, 64, 8, 1e-3, 20, 0
CLOSE = 0.2  # nats: nearer than that to a loss counts as being there
Learned = Literal["nothing", "counts", "less", "more"]


@dataclass(frozen=True, eq=False)
class TrainedStack:
    """A model with or without residual connections. `losses` (point,): training loss in nats, the mean of
    STRIDE steps each. Before its first step, at the output of each block (block,): `gradients`, the norm of d
    loss / d stream, and `alike`, the mean cosine of two tokens' vectors: 1 where all are the same.
    """

    losses: np.ndarray = field(repr=False)
    gradients: np.ndarray = field(repr=False)
    alike: np.ndarray = field(repr=False)

    @property
    def loss(self) -> float:
        """The loss at the end of the training."""
        return float(self.losses[-1])

    @property
    def last_alike(self) -> float:
        """The mean cosine after the last block."""
        return float(self.alike[-1])

    @property
    def reached(self) -> float:
        """The share of the last block's gradient that arrives at the first; NaN where that has none."""
        last = float(self.gradients[-1])
        return float(self.gradients[0]) / last if last > 0 else float("nan")


@dataclass(frozen=True, eq=False)
class Pair:
    """The two models of one depth: `added`, with residual connections, and `replaced`, without. `uniform` and
    `counting` are the losses of knowing nothing, and of knowing how often each token occurs, nats. `points`
    (point,) are the steps after which the losses stand. `made` says where and when, of a stored pair.
    """

    depth: int
    norm: Norm
    uniform: float
    counting: float
    added: TrainedStack
    replaced: TrainedStack
    made: str = ""

    @property
    def points(self) -> np.ndarray:
        return STRIDE * np.arange(1, len(self.added.losses) + 1)

    @property
    def steps(self) -> int:
        return int(self.points[-1])

    @property
    def learned(self) -> Learned:
        """The progress of the model without residual connections, in a word."""
        loss = self.replaced.loss
        if loss > self.uniform - CLOSE:
            return "nothing"
        return "counts" if loss > self.counting - CLOSE else "less" if loss > self.added.loss else "more"


def compare(depth: int, norm: Norm, corpus: Corpus, steps: int = STEPS) -> Steps[Pair]:
    """Trains both models, with a progress after each step: live in the app, and for all depths in `main`."""
    kinds: tuple[Wiring, ...] = ("pre", "none")
    both = []
    for n, wiring in enumerate(kinds):
        losses = []
        for loss in _losses(depth, norm, wiring, corpus, steps):
            losses.append(loss)
            yield Progress(n * steps + len(losses), len(kinds) * steps)
        points = strided(losses, STRIDE)
        both.append(TrainedStack(points, *_before(depth, norm, wiring, corpus)))
    added, replaced = both
    return Pair(depth, norm, corpus.baselines["uniform"], corpus.baselines["unigram"], added, replaced)


def _losses(depth: int, norm: Norm, wiring: Wiring, corpus: Corpus, steps: int) -> Iterator[float]:
    """The loss of each step."""
    model = ModelConfig(
        vocab_size=corpus.vocab_size,
        context=CONTEXT,
        d_model=WIDTH,
        n_layers=depth,
        n_heads=HEADS,
        norm=norm,
        wiring=wiring,
    )
    how = TrainConfig(
        steps=steps,
        batch_size=BATCH,
        learning_rate=RATE,
        warmup_steps=WARMUP,
        precision="float32",
        seed=SEED,
        eval_every=0,
        eval_tokens=CONTEXT,
        sample_every=0,
        tokenizer=corpus.cut,
    )
    # Without norms and residual connections numbers get so small that a processor takes a hundred times as
    # long over each. The setting is the calling thread's alone.
    torch.set_flush_denormal(True)
    try:
        for event in train(model, how, corpus, device="cpu"):
            if isinstance(event, Step):
                yield event.loss
    finally:
        torch.set_flush_denormal(False)


def _before(depth: int, norm: Norm, wiring: Wiring, corpus: Corpus) -> tuple[np.ndarray, np.ndarray]:
    """(gradients, alike), both (block,), of the model before its first step."""
    plan = Plan(
        (depth,), (wiring,), norm, seeds=1, d_model=WIDTH, n_heads=HEADS, context=CONTEXT, batch=BATCH
    )
    (profile,) = measure(plan, corpus.train, corpus.vocab_size)
    model = fresh(plan, wiring, depth, SEED, corpus.vocab_size)
    recording = record(model, corpus.train[:CONTEXT].tolist())
    return profile.gradients[1:], np.array([likeness(stream) for stream in outputs(recording)[1:]])


def likeness(stream: np.ndarray) -> float:
    """Returns the mean cosine between the vectors of two different tokens: stream (query, d_model).

    >>> likeness(np.array([[1.0, 0.0], [0.0, 2.0]])), likeness(np.array([[1.0, 0.0], [3.0, 0.0]]))
    (0.0, 1.0)
    """
    x = stream.astype(np.float64)
    lengths = np.linalg.norm(x, axis=-1, keepdims=True)
    x = np.divide(x, lengths, out=np.zeros_like(x), where=lengths > 0)
    n = len(x)
    return float((np.square(x.sum(0)).sum() - np.square(x).sum()) / (n * (n - 1)))


# What is shipped ----------------------------------------------------------------------------------


PLANS: tuple[tuple[int, Norm], ...] = tuple((depth, norm) for norm in NORMS for depth in DEPTHS)


def recipe() -> dict[str, Any]:
    """Returns the settings that all pairs share."""
    return {
        "model": {"d_model": WIDTH, "n_heads": HEADS, "context": CONTEXT, "seed": SEED},
        "train": {"steps": STEPS, "batch_size": BATCH, "learning_rate": RATE, "warmup_steps": WARMUP},
    }


def shipped(path: Path = PATH) -> dict[tuple[int, Norm], Pair]:
    """Reads the stored pairs by (depth, norm). Raises CheckpointError, also where one is not stored."""
    pairs = opened(path)
    require_all(pairs, PLANS, path, "no-residual")
    return pairs


def opened(path: Path) -> dict[tuple[int, Norm], Pair]:
    """Reads the pairs that are stored so far. Raises CheckpointError, also for a file of another recipe."""
    with reading(path, "no-residual") as stored:
        require_recipe(stored, recipe(), path)
        return {(row["depth"], row["norm"]): from_json(Pair, row) for row in stored["pairs"]}


def main(arguments: Sequence[str] | None = None) -> None:
    def ends(pair: Pair) -> str:
        return f"{pair.added.loss:.3f} added, {pair.replaced.loss:.3f} replaced"

    file = folder_options(__doc__).parse_args(arguments).into / PATH.name
    corpus = corpora.load("shakespeare")
    about = {
        "made_by": "python -m studies.experiments no-residual",
        "corpus": corpus.name,
        **recipe(),
    }
    complete(
        file,
        PLANS,
        opened,
        lambda plan: replace(finish(compare(plan[0], plan[1], corpus)), made=made("no-residual")),
        ends,
        lambda rows: about | {"pairs": [*rows.values()]},
    )
