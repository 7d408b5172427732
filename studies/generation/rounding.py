"""Cost of computing in lower precision: the same text read in it and exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from engine.data.progress import Progress, Steps
from engine.errors import ShapeError
from engine.model import Transformer
from engine.sample.decoder import Decoder
from studies.generation.row_products import Arithmetic
from studies.generation.single_row import Products


@dataclass(frozen=True)
class Rounding:
    """Effect of rounding on a text: differences of logits from the exact ones, change of the loss."""

    arithmetic: Arithmetic
    tokens: int
    largest: float  # difference of a logit, anywhere in the text, absolute
    mean: float  # of all differences, absolute
    spread: float  # standard deviation of the exact logits: what a difference is held against
    exact: float  # nats per token of the text after its first, in the model's own arithmetic
    loss: float  # and in this one
    alike: float  # share of the places where both have the same likeliest token

    @property
    def change(self) -> float:
        """The change of the loss, in nats per token; below 0 if rounding happened to suit the text."""
        return self.loss - self.exact


@torch.inference_mode()
def rounding(model: Transformer, ids: Sequence[int], products: Products) -> Steps[Rounding]:
    """Reads at least two ids, one at a time, with `products` (`studies.generation.single_row.ready`), and all
    at once in the model's own arithmetic. There are as many steps as ids. Raises ShapeError for fewer.
    """
    if len(ids) < 2:
        raise ShapeError("a loss needs at least two tokens: one is read, and the next one is foretold")
    exact = model(torch.tensor([list(ids)], device=model.embedding.device))[0].float()  # (query, vocab)
    decoder = Decoder(model, len(ids), products)
    largest = total = nats = exact_nats = 0.0
    alike = 0
    for place, token in enumerate(ids):
        logits, wanted = decoder.read([token]).float(), exact[place]
        away = (logits - wanted).abs()
        largest, total = max(largest, float(away.max())), total + float(away.mean())
        alike += int(logits.argmax() == wanted.argmax())
        if place + 1 < len(ids):
            following = ids[place + 1]
            nats -= float(logits.log_softmax(-1)[following])
            exact_nats -= float(wanted.log_softmax(-1)[following])
        yield Progress(place + 1, len(ids))
    count, told = len(ids), len(ids) - 1
    spread = float(exact.std(dim=-1).mean())
    means = total / count, spread, exact_nats / told, nats / told, alike / count
    return Rounding(products.arithmetic, count, largest, *means)
