"""Variants of a recipe: one thing changed, to be trained beside the unchanged one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from runs.state import RunSpec
from ui import content

TEXT = content.beside(__file__)
TEN = 10


@dataclass(frozen=True)
class WhatIf:
    """`change` makes the other recipe."""

    name: str
    change: Callable[[RunSpec], RunSpec]

    @property
    def label(self) -> str:
        """Returns what stands in the list and in the run's name."""
        return str(TEXT[f"what if {self.name}"])  # it leaves the page with the recipe

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


CHANGES: tuple[WhatIf, ...] = (
    WhatIf("mask", _model(causal=False, window=0)),
    WhatIf("residual", _model(wiring="none")),
    WhatIf("positions", _model(position="none")),
    WhatIf("scaling", _model(score_scale=False)),
    WhatIf("rate", _ten_times),
    WhatIf("layers", _deeper),
    WhatIf("heads", _model(n_heads=1, n_kv_heads=None, d_head=None)),
    WhatIf("feedforward", _model(ffn="none", ffn_bias=False)),
    WhatIf("norm", _model(wiring="post")),
    WhatIf("dropout", _model(dropout=0.2)),
)
WHAT_IFS: Mapping[str, WhatIf] = {one.name: one for one in CHANGES}
