"""An encoder that says which of some labels a text has: BERT's way of being trained for a task."""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.config import Init, ModelConfig
from engine.errors import ConfigError
from engine.model import Transformer, materialise
from engine.parts.initial import InitialValues, initialise
from engine.parts.masks import padding_mask
from engine.parts.protocols import Parts
from engine.parts.registry import HEALTHY
from engine.probe import Probe, identity


class Classifier(nn.Module):
    """An encoder with a pooler, and W_label (label, d_model) with its bias on the pooled vector (Devlin et
    al. 2018, 4.1). `config` is the encoder's resolved configuration.
    """

    initial_values: ClassVar[InitialValues] = {"w_label": "matrix"}

    def __init__(self, config: ModelConfig, labels: int, pad: int = 0, parts: Parts = HEALTHY) -> None:
        super().__init__()
        _check(config, labels)
        self.encoder = Transformer(config, parts)
        self.parts, self.config, self.pad = parts, self.encoder.config, pad
        self.w_label = nn.Linear(config.d_model, labels)

    def forward(self, tokens: Tensor, probe: Probe = identity) -> Tensor:
        """tokens (batch, position) int64, filled up with `pad` -> logits of the labels (batch, label). Raises
        ShapeError as the encoder does, and for a text of padding alone.
        """
        padding = padding_mask(tokens, self.pad, self.encoder.embedding) if tokens.dim() == 2 else None
        pooled = self.encoder.pooled(self.encoder(tokens, probe, padding=padding), probe, padding)
        pooled = F.dropout(pooled, self.config.dropout, self.training)
        return probe("label_logits", self.w_label(pooled))


def _check(config: ModelConfig, labels: int) -> None:
    if config.causal:
        raise ConfigError(
            "causal", True, "must be False for a classifier: each of its tokens sees the whole text"
        )
    if config.output_head != "none" or not config.pooler:
        raise ConfigError("pooler", config.pooler, "must be True, and output_head 'none', for a classifier")
    if labels < 2:
        raise ConfigError("labels", labels, "must be at least 2: with fewer there is nothing to tell apart")


def build_classifier(
    config: ModelConfig,
    labels: int,
    seed: int = 0,
    device: str | torch.device = "cpu",
    parts: Parts = HEALTHY,
    init: Init = "scaled",
) -> Classifier:
    """A classifier with its initial weights, as `engine.model.build` makes a Transformer.

    Raises ConfigError when the configuration cannot be built.
    """
    with torch.device("meta"):
        model = Classifier(config, labels, parts=parts)
    if torch.device(device).type != "meta":
        materialise(model, device)
        initialise(model, seed, init)
    return model
