"""What a training really keeps for backward."""

from __future__ import annotations

import torch

from engine.config import ModelConfig
from engine.model import build
from engine.parts.registry import HEALTHY, Parts
from engine.training.batches import Batch, loss_of

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def kept(config: ModelConfig, batch: int, tokens: int, dtype: str, parts: Parts = HEALTHY) -> int:
    """Bytes of floating-point numbers that autograd really holds for backward, each storage once, without the
    parameters. The loss is the engine's: in float32 whatever the model computes in.
    """
    model = build(config, parts=parts).to(DTYPES[dtype]).train()
    own, found, alive = {p.untyped_storage().data_ptr() for p in model.parameters()}, {}, []

    def pack(t: torch.Tensor) -> torch.Tensor:
        alive.append(t)
        if t.dtype.is_floating_point and t.untyped_storage().data_ptr() not in own:
            found[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        return t

    ids = torch.zeros(batch, tokens, dtype=torch.int64)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        loss_of(model, Batch(ids, ids), torch.device("cpu"))
    return sum(found.values())
