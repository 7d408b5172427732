"""What heads do on random tokens that are read twice, where nothing but the repetition helps: they look for
the same token (duplicate), or for what followed it (induction).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from engine.data.progress import Progress, Steps
from engine.measure.attention.heads import over_queries
from engine.model import Transformer
from engine.probe import Recorder

MAX_REPEAT = 32  # tokens in the sequence that is repeated
SEQUENCES = 4  # over which is averaged


def induction_score(patterns: np.ndarray, half: int) -> np.ndarray:
    """For a sequence of `half` tokens read twice: weight from each token of the second half on the one
    *after* its first occurrence.

    (..., query, key) with 2 * half tokens -> (...), mean over the second half (Olsson et al. 2022). Query
    half + i, key i + 1.
    """
    return over_queries(np.diagonal(patterns, 1 - half, -2, -1)[..., 1:])


def duplicate_score(patterns: np.ndarray, half: int) -> np.ndarray:
    """For a sequence of `half` tokens read twice: weight from each token of the second half on its first
    occurrence.

    (..., query, key) with 2 * half tokens -> (...), mean over the second half (Wang et al. 2023). Query
    half + i, key i.
    """
    return over_queries(np.diagonal(patterns, -half, -2, -1))


@dataclass(frozen=True, eq=False)
class Repeated:
    """Both scores of every head, (layer, head) float64."""

    induction: np.ndarray
    duplicate: np.ndarray


def repeatable(model: Transformer, vocab: int | None = None) -> int:
    """How many distinct tokens (of the first `vocab` ids) a model can read twice, at most MAX_REPEAT; 0 where
    it has no mixer, or cannot read two tokens twice.
    """
    half = min(model.config.context // 2, vocab or model.config.vocab_size, MAX_REPEAT)
    return half if model.parts.mixer(model.config).present and half > 1 else 0


def repeated(
    model: Transformer,
    seed: int = 0,
    sequences: int = SEQUENCES,
    pool: np.ndarray | None = None,
    count: int = MAX_REPEAT,
) -> Steps[Repeated | None]:
    """`induction_score` and `duplicate_score` on at most `count` distinct random tokens (of the ids in
    `pool`, or of all) read twice, mean over `sequences` of them; None where `repeatable` is 0. A step is one
    sequence. The first is what `engine.measure.circuits.induction.drawn` gives for the same pool, count and
    seed.
    """
    pool = np.arange(model.config.vocab_size) if pool is None else pool
    half = min(repeatable(model, len(pool)), count)
    if not half:
        return None
    found = []
    for done in range(sequences):
        patterns = _patterns(model, np.random.default_rng(seed + done).choice(pool, half, replace=False))
        found.append((induction_score(patterns, half), duplicate_score(patterns, half)))
        yield Progress(done + 1, sequences)
    induction, duplicate = np.mean(found, axis=0)
    return Repeated(induction, duplicate)


@torch.inference_mode()
def _patterns(model: Transformer, once: np.ndarray) -> np.ndarray:
    """(layer, head, query, key) of tokens (position,) read twice."""
    device = next(model.parameters()).device
    tokens = torch.from_numpy(np.concatenate((once, once)))[None].to(device)
    recorder = Recorder({"pattern"})

    def probe(name: str, x: Tensor) -> Tensor:
        """Nobody asks for logits, and with a large vocabulary they are a fifth of the work: of one place."""
        return x[:, -1:] if name == "norm_final" else recorder(name, x)

    model(tokens, probe)
    layers = range(model.config.n_layers)
    return np.stack([recorder[f"blocks.{i}.pattern"][0].float().cpu().numpy() for i in layers])
