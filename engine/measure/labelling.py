"""How often a classifier is right."""

from __future__ import annotations

import torch

from engine.classifier import Classifier
from engine.paired import LabelledRows

AT_ONCE = 256  # texts of one forward pass


@torch.inference_mode()
def labelled_right(model: Classifier, rows: LabelledRows) -> float:
    """The share of texts whose label is the likeliest to the model, 0 to 1."""
    device = model.w_label.weight.device
    right = 0
    for some in torch.arange(len(rows)).split(AT_ONCE):
        batch = rows.of(some)
        right += int((model(batch.texts.to(device)).argmax(-1).cpu() == batch.labels).sum())
    return right / len(rows)
