"""The formula of every step of a forward pass, collected from the parts."""

from __future__ import annotations

from engine.config import ResolvedConfig
from engine.parts.registry import HEALTHY, Parts
from studies.costs.cards import Formula
from studies.costs.cards.table import card_of


def formulas(
    c: ResolvedConfig, parts: Parts = HEALTHY, crossing: bool = False, padded: bool = False
) -> dict[str, Formula]:
    """Returns the formula of every activation of a model, and of unseen tensors on the way to one, by bare
    name. `crossing`: of a decoder that reads a memory; `padded`: its source has a padding mask.
    """
    position, norm = parts.position(c), card_of(parts.norm(c)).formula(c)
    result = {
        **_FIXED,
        **_entered(c, "embed" in position.enters),
        **dict.fromkeys(("norm_embed", "norm1", "norm2", "norm_final"), norm),
        **card_of(position).formulas(c),
        **card_of(parts.mixer(c)).formulas(c),
        **card_of(parts.feedforward(c)).formulas(c),
        **card_of(parts.wiring(c)).formulas(),
        **card_of(parts.output(c)).formulas(c),
    }
    for name in {"q_rot", "k_rot"} & result.keys():
        result[name] = card_of(position).turned(result[name], c)
    if "scores" in result:
        result["scores"] = card_of(position).biased(result["scores"], c)
    if padded and not c.causal:
        result["masked_scores"] = _PADDED
    return result | (_crossed(c, parts) if crossing else {})


def _crossed(c: ResolvedConfig, parts: Parts) -> dict[str, Formula]:
    """Returns the mixer's formulas under the names of a cross-attention, where no position acts."""
    own = card_of(parts.mixer(c)).formulas(c)
    result = {f"cross_{'out' if name == 'attn_out' else name}": formula for name, formula in own.items()}
    bias, plus = (r" + b", " + b") if c.attention_bias else ("", "")
    return {
        **result,
        **card_of(parts.crossing(c)).formulas(),
        "cross_norm": card_of(parts.norm(c)).formula(c),
        "cross_masked_scores": _PADDED,
        "cross_q_flat": (rf"q = x\,W_Q{bias}", f"x · W_Q{plus}: queries from the decoder's stream"),
        "cross_q_heads": (r"(d) \to (H, d_{head})", "split into heads"),
        "cross_kv_flat": (
            rf"[k, v] = m\,[W_K, W_V]{bias}",
            f"memory · [W_K, W_V]{plus}: keys and values from the encoder's output",
        ),
        "cross_kv_heads": (r"(d) \to (H_{kv}, d_{head})", "split into k and v, and each into heads"),
    }


_PADDED: Formula = (
    r"\mathrm{masked} = \mathrm{scores} + P",
    "scores + padding mask: −∞ after a source's end",
)


def _entered(c: ResolvedConfig, added: bool) -> dict[str, Formula]:
    """Returns the formulas before the first block: `added` where positions are added there."""
    sums = ["embed", *(["pos_embed"] if added else []), *(["type_embed"] if c.token_types else [])]
    latex = " + ".join(rf"\mathrm{{{name.replace('_', chr(92) + '_')}}}" for name in sums)
    times, by = (r"\sqrt{d}\,", ", times √d") if c.embedding_scale else ("", "")
    return {
        "embed": (rf"x = {times}E[t]", f"row t of the table E, for each token{by}"),
        "type_embed": (r"s = S[\mathrm{type}]", "the row of the table S for the token's segment"),
        "resid_pre": (rf"x = {latex}", " + ".join(sums)),
    }


_FIXED: dict[str, Formula] = {
    "tokens": (r"t \in \{0, \dots, V-1\}^T", "the ids of the text"),
    "mask": (r"M_{ij} = 0 \text{ if } j \le i, \text{ else } -\infty", "0 where key ≤ query, else −∞"),
    "masked_scores": (r"\mathrm{masked} = \mathrm{scores} + M", "scores + mask"),
    "pool_first": (r"x_0", "the first token's vector"),
    "pool_in": (r"u = x_0\,W + b", "that vector · W + b"),
    "pooled": (r"p = \tanh(u)", "tanh of it"),
    "probabilities": (r"p_i = \frac{e^{\ell_i}}{\sum_j e^{\ell_j}}", "softmax over vocab"),
}
