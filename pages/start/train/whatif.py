"""Variants of a recipe: one thing changed, to be trained beside the unchanged one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from engine.service.state import RunSpec

TEN = 10


@dataclass(frozen=True)
class WhatIf:
    """`label` stands in the list and in the run's name; `change` makes the other recipe."""

    label: str
    change: Callable[[RunSpec], RunSpec]

    def applied(self, spec: RunSpec) -> RunSpec:
        """Returns the recipe with this one thing changed, and named after it."""
        return replace(self.change(spec), name=self.label)


def _model(**fields: Any) -> Callable[[RunSpec], RunSpec]:
    return lambda spec: replace(spec, model=replace(spec.model, **fields))


def _ten_times(spec: RunSpec) -> RunSpec:
    """Multiplies both learning rates by ten: of Muon's matrices and of AdamW's tables."""
    train = spec.train
    faster = {name: TEN * getattr(train, name) for name in ("learning_rate", "muon_learning_rate")}
    return replace(spec, train=replace(train, **faster))


def _deeper(spec: RunSpec) -> RunSpec:
    return replace(spec, model=replace(spec.model, n_layers=2 * spec.model.n_layers))


WHAT_IFS: Mapping[str, WhatIf] = {
    "mask": WhatIf("no causal mask", _model(causal=False, window=0)),
    "residual": WhatIf("no residual", _model(wiring="none")),
    "positions": WhatIf("no positions", _model(position="none")),
    "scaling": WhatIf("no scaling by √d", _model(score_scale=False)),
    "rate": WhatIf("ten times the learning rate", _ten_times),
    "layers": WhatIf("twice the layers", _deeper),
    "heads": WhatIf("one head", _model(n_heads=1, n_kv_heads=None, d_head=None)),
    "feedforward": WhatIf("no feed-forward", _model(ffn="none", ffn_bias=False)),
    "norm": WhatIf("post-norm", _model(wiring="post")),
    "dropout": WhatIf("dropout 0.2", _model(dropout=0.2)),
}
