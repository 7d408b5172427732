"""What each step of a forward pass computes, as a formula. The parts say it; here it is collected."""

from __future__ import annotations

from engine.config import ResolvedConfig
from engine.parts.formula import Formula
from engine.parts.registry import HEALTHY, Parts

__all__ = ["Formula", "formula", "formulas"]


def formula(name: str, c: ResolvedConfig, parts: Parts = HEALTHY) -> Formula:
    """The formula of an activation (bare name). Raises KeyError for a name without one."""
    return formulas(c, parts)[name]


def formulas(c: ResolvedConfig, parts: Parts = HEALTHY) -> dict[str, Formula]:
    """Those of every activation of a model, and of what no probe sees on the way to one, by bare name."""
    position, norm = parts.position(c), parts.norm(c).formula(c)
    found = {
        **_FIXED,
        **dict.fromkeys(("norm1", "norm2", "norm_final"), norm),
        **position.formulas(c),
        **parts.mixer(c).formulas(c),
        **parts.feedforward(c).formulas(c),
        **parts.wiring(c).formulas(),
    }
    for name in {"q_rot", "k_rot"} & found.keys():
        found[name] = position.turned(found[name], c)
    if "scores" in found:
        found["scores"] = position.biased(found["scores"], c)
    return found


_FIXED: dict[str, Formula] = {
    "tokens": (r"t \in \{0, \dots, V-1\}^T", "the ids of the text"),
    "embed": (r"x = E[t]", "row t of the table E, for each token"),
    "resid_pre": (r"x = \mathrm{embed} + \mathrm{pos\_embed}", "embed + pos_embed"),
    "mask": (r"M_{ij} = 0 \text{ if } j \le i, \text{ else } -\infty", "0 where key ≤ query, else −∞"),
    "masked_scores": (r"\mathrm{masked} = \mathrm{scores} + M", "scores + mask"),
    "logits": (r"\mathrm{logits} = x\,W_U", "x · W_U"),
    "probabilities": (r"p_i = \frac{e^{\ell_i}}{\sum_j e^{\ell_j}}", "softmax over vocab"),
}
