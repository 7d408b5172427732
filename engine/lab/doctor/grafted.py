"""A bug put into a model that is there already: other parts, the same weights."""

from __future__ import annotations

from engine.lab.faults import FAULTS, PARTS
from engine.model import Transformer, build
from engine.parts.protocols import Parts
from engine.parts.registry import HEALTHY

FUNCTIONS = ("stack", "mask", "targets", "split")


def fitting(model: Transformer) -> dict[str, str]:
    """The faults that would change something in this model, name -> title: those made of other parts for what
    it has. What a fault changes before the first step alone is nothing to a model that is trained.
    """
    if model.parts is not HEALTHY:
        return {}
    return {name: fault.title for name, fault in FAULTS.items() if _acts(PARTS[fault.parts], model)}


def grafted(model: Transformer, fault: str) -> Transformer:
    """The same weights in a model with the fault's parts. Raises KeyError for a fault that there is not."""
    sick = build(model.config, device="meta", parts=PARTS[FAULTS[fault].parts]).to_empty(device="cpu")
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
