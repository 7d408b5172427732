"""A bug put into an existing model: other parts, the same weights."""

from __future__ import annotations

from engine.model import Transformer, build, materialise
from engine.parts.registry import HEALTHY, Parts
from studies.lab.faults import FAULTS, PARTS

FUNCTIONS = ("stack", "mask", "targets", "split")


def fitting(model: Transformer) -> dict[str, str]:
    """Returns the faults that replace a part of this model: name -> title."""
    if model.parts is not HEALTHY:
        return {}
    return {name: fault.title for name, fault in FAULTS.items() if _acts(PARTS[fault.parts], model)}


def grafted(model: Transformer, fault: str) -> Transformer:
    """Returns a model of the fault's parts with the same weights. Raises KeyError for an unknown fault."""
    sick = materialise(build(model.config, device="meta", parts=PARTS[FAULTS[fault].parts]), "cpu")
    sick.load_state_dict(model.state_dict())
    return sick.requires_grad_(False).eval()


def _acts(parts: Parts, model: Transformer) -> bool:
    c = model.config
    if parts.mode is not HEALTHY.mode and c.dropout > 0:
        return True
    if parts.mask is not HEALTHY.mask and not c.causal:
        return False
    classes = ("norm", "position", "mixer", "feedforward", "wiring", "output")
    others = (getattr(parts, kind)(c) is not getattr(HEALTHY, kind)(c) for kind in classes)
    return any(others) or any(getattr(parts, name) is not getattr(HEALTHY, name) for name in FUNCTIONS)
