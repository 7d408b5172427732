"""Attention without the causal mask: what a model does with later tokens, and without any."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
import torch.nn.functional as F

from engine.checkpoints import model_with
from engine.errors import ConfigError
from engine.model import Transformer
from engine.recording import next_token_losses, record
from engine.training.batches import Batch


@dataclass(frozen=True, eq=False)
class UnmaskedPatterns:
    """One text as one model reads it. `patterns` (layer, head, query, key). `chances` (token,): the model's
    probability of each token. A decoder's are of the text without its first token, those of a model that
    fills blanks of each token hidden in turn.
    """

    patterns: np.ndarray = field(repr=False)
    chances: np.ndarray

    def weights(self, layer: int | None) -> np.ndarray:
        """Returns the mean of the heads of a layer, or of all layers: (query, key)."""
        chosen = self.patterns if layer is None else self.patterns[layer : layer + 1]
        return chosen.mean((0, 1), dtype=np.float64)

    def ahead(self, layer: int | None) -> float:
        """Returns the share of weight on later tokens, 0 to 1: a mean over the queries that have any."""
        weights = self.weights(layer)
        return float(np.triu(weights, 1).sum(-1)[:-1].mean())


def opened(model: Transformer) -> Transformer:
    """Returns the same weights without the causal mask. Raises ConfigError for a model that has none."""
    if not model.config.causal:
        raise ConfigError("causal", False, "must be True: a model without the mask has none to take away")
    return model_with(replace(model.config, causal=False), dict(model.named_parameters()))


def read(model: Transformer, ids: Sequence[int], blank: int | None = None) -> UnmaskedPatterns:
    """Reads a text of two tokens or more, or fills its `blank`s. Raises ShapeError as `record`."""
    result = record(model, ids, only={"pattern", "logits"})
    chances = np.exp(-next_token_losses(result)) if blank is None else _filled(model, ids, blank)
    return UnmaskedPatterns(result.stacked("pattern"), chances)


@torch.inference_mode()
def _filled(model: Transformer, ids: Sequence[int], blank: int) -> np.ndarray:
    """Returns the probability of each token where it alone is hidden: (token,)."""
    text = torch.tensor(ids)
    rows = text.repeat(len(text), 1)  # (hidden token, position)
    rows.fill_diagonal_(blank)
    places = torch.arange(len(text))
    chances = model(rows)[places, places].double().softmax(-1)  # (hidden token, vocab)
    return chances[places, text].numpy()


@torch.inference_mode()
def continue_text(
    model: Transformer, ids: Sequence[int], count: int, blank: int | None = None, seed: int = 0
) -> list[int]:
    """Writes `count` tokens at temperature 0.8, without a cache; with `blank`, fills one at the end."""
    generator = torch.Generator().manual_seed(seed)
    text, hole = list(ids), [] if blank is None else [blank]
    for _ in range(count):
        seen = [*text[len(hole) - model.config.context :], *hole]
        logits = model(torch.tensor([seen]))[0, -1].double() / 0.8
        if blank is not None:
            logits[blank] = -torch.inf
        text.append(int(torch.multinomial(logits.softmax(-1), 1, generator=generator)))
    return text[len(ids) :]


@torch.inference_mode()
def end_loss(model: Transformer, windows: Iterable[Batch]) -> float:
    """Returns the mean loss of what follows each window, nats: of a token that is not written yet."""
    result = [
        F.cross_entropy(model(some.inputs)[:, -1].float(), some.targets[:, -1], reduction="none")
        for some in windows
    ]
    return float(torch.cat(result).mean())
