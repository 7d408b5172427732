"""The half of an encoder-decoder that reads, as a model of its own: whatever looks into an encoder can look
into it.
"""

from __future__ import annotations

import torch

from engine.model import Transformer
from engine.seq2seq import Seq2Seq


def reader_of(model: Seq2Seq) -> Transformer:
    """An encoder without an output head whose last vectors are the memory that `model.encode` makes of one
    source without padding: the same weights, not a copy.
    """
    with torch.device("meta"):
        made = Transformer(model.config.encoder, model.parts)
    weights = {"embedding": model.embedding, **model.encoder.state_dict(keep_vars=True)}
    made.load_state_dict(weights, strict=True, assign=True)
    return made.train(model.training)
