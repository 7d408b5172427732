"""SmolLM2 with smaller KV caches, over three passages: `python -m studies.experiments smaller-caches` writes
`checkpoints/caches.json`. Passages that are stored already are not read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.data import corpora
from engine.data.progress import finish
from studies.experiments.command import complete, folder_options, made, read_runs, require_all
from studies.generation.smaller_cache import BITS, Shrinking, losses, passages, ways
from studies.weights.pretrained import library

PATH = Path(__file__).resolve().parents[2] / "checkpoints" / "caches.json"
COMMAND, MODEL, CORPUS = "smaller-caches", "smollm2-135m", "shakespeare"
LENGTH, PASSAGES = 512, (0, 1, 2)


@dataclass(frozen=True)
class CacheLoss:
    """The loss with a smaller cache, nats per token."""

    way: Shrinking
    loss: float


@dataclass(frozen=True)
class CacheRun:
    """One passage, by its number, read with every cache. `made` says where and when."""

    plan: int
    losses: tuple[CacheLoss, ...]
    made: str = ""


def read_passage(number: int) -> CacheRun:
    """Reads a passage with every cache that the view offers. Raises GlassformerError."""
    loaded = library.load(MODEL, 10**10, None)
    text = passages(corpora.load(CORPUS), loaded.tokenizer, LENGTH, number, 1)
    cuts = dict.fromkeys(way for bits in BITS[:3] for way in ways(LENGTH, bits))
    measured = finish(losses(loaded.model, text, tuple(cuts)))
    return CacheRun(number, tuple(CacheLoss(*each) for each in measured.items()), made(COMMAND))


def stored(path: Path = PATH) -> tuple[CacheRun, ...]:
    """Reads the passages that are stored so far. Raises CheckpointError."""
    return read_runs(path, COMMAND, CacheRun)


def shipped(path: Path = PATH) -> tuple[dict[Shrinking, float], ...]:
    """Reads the losses of every passage. Raises CheckpointError, also where a passage or a way is missing."""
    runs = stored(path)
    require_all({run.plan for run in runs}, PASSAGES, path, COMMAND)
    each = tuple({row.way: row.loss for row in run.losses} for run in runs)
    for bits in BITS[:3]:
        for losses_by_way in each:
            require_all(losses_by_way, ways(LENGTH, bits), path, COMMAND)
    return each


def main(arguments: Sequence[str] | None = None) -> None:
    file = folder_options(__doc__).parse_args(arguments).into / PATH.name
    complete(file, PASSAGES, stored, read_passage, lambda run: f"full {run.losses[0].loss:.4f}")
