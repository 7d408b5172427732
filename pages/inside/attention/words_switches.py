"""Sentences of the view of the switches."""

from __future__ import annotations

from engine.config import ResolvedConfig
from engine.measure.attention.ablation import (
    Ablation,
    Comparison,
    Consequence,
    MostMissedHead,
    Order,
    Switches,
    changes_nothing,
    is_silent,
    writes_a_bias,
)
from engine.measure.shapes.formulas import formulas
from engine.model import Transformer
from engine.parts.registry import Parts
from ui.model_bar import Subject
from ui.page_frame import Words
from ui.text.markdown import safe
from ui.text.numbers import nats

QUESTION = "What breaks without each part?"
STRIP = "The position whose prediction is compared"
MASK, SCALE, POSITION = "Mask", "Scale", "Position"
ABLATED, NONE_ABLATED = "Ablated heads (block.head)", "none: all heads are on"
ALL, BLOCK, NONE, SEED = "All", "Block", "None", "Seed"
HOW, ORDER = "Replace with", "Earlier tokens"
ABLATIONS: dict[Ablation, str] = {"zero": "zero", "mean": "its mean"}
ORDERS: dict[Order, str] = {"kept": "as written", "shuffled": "shuffled", "reversed": "reversed"}
MASK_HINT = "Off: every token also sees the ones after it."
NO_MASK_HINT = "This model is an encoder: it has no causal mask."
SCALE_HINT = "Off: the scores are the unscaled products q·k."
ALL_HINT = "Switches every head off."
NONE_HINT = "Switches every head back on."
WHERE = "**Where the prediction changed**"
KL, KL_ALT = "KL (nats)", "KL divergence between the prediction before and after, one bar for each position."
EACH, EACH_HINT = "Every head, one at a time", "Ablates each head on its own."
EACH_MEASURED = "Each head in turn"
EACH_ALT = "Mean KL divergence when one head is switched off, one cell for each block and head."
POSITION_HINT = "Off: {off}."
CANDIDATES_ALT = "The likeliest tokens after position {position}, before and after the change."


def block_button(layer: int) -> tuple[str, str]:
    """Returns the label and the hint of the button for one block's heads."""
    return f"Block {layer}", f"Ablates only the heads of block {layer}."


def question(causal: bool, token: str) -> str:
    return f"**What comes after {token}?**" if causal else f"**Which token is at {token}?**"


FIRST = "As an example, the heads of block 0 are ablated. “None” switches every head back on."


def _heads(off: tuple[tuple[int, int], ...], layers: int, heads: int) -> str:
    """Some heads, in words."""
    if len(off) == layers * heads:
        return "any head"
    blocks = {layer for layer, _ in off}
    if len(blocks) == 1 and len(off) == heads > 1:
        return f"the heads of block {min(blocks)}"
    if len(off) == 1:
        return f"head {off[0][0]}.{off[0][1]}"
    return f"{len(off)} heads"


def without(switches: Switches, layers: int, heads: int) -> str:
    """Names what is off.

    >>> without(Switches(mask=False, heads_off=((1, 3),)), 4, 4)
    'Without the mask and head 1.3'
    """
    parts = [
        name
        for name, on in (
            ("the mask", switches.mask),
            ("the scale", switches.scale),
            ("positions", switches.position),
        )
        if not on
    ]
    if switches.heads_off:
        parts.append(_heads(switches.heads_off, layers, heads))
    moved = {"shuffled": "earlier tokens shuffled", "reversed": "earlier tokens reversed"}.get(switches.order)
    if not parts:
        return f"With {moved}" if moved else "With everything on"
    named = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
    return f"Without {named}" + (f", and with {moved}" if moved else "")


def switched(
    subject: Subject, switches: Switches, comparison: Comparison, read: Consequence, position: int
) -> str:
    """Says what the model lost (Markdown)."""
    (first, p), (then, q) = read.first_before, read.first_after
    token, guessed, other = (
        safe(word) for word in (subject.labels[position], subject.vocabulary[first], subject.vocabulary[then])
    )
    here = f"after “{token}”" if subject.config.causal else f"at “{token}”"
    if changes_nothing(switches):
        return (
            f"Nothing is ablated: {here} the model expects “{guessed}” (**{p:.0%}**). Switch something off."
        )
    guess = (
        f"{here} the top prediction changes from “{guessed}” (**{p:.0%}**) to “{other}” (**{q:.0%}**)"
        if first != then
        else f"{here} the model still expects “{guessed}”, with **{q:.0%}** instead of **{p:.0%}**"
    )
    off = without(switches, subject.config.n_layers, subject.config.n_heads)
    if comparison.loss_before is None or comparison.loss_after is None:
        return f"{off}, {guess}."
    noun = "token" if subject.is_pretrained else "character"
    of = f"from position {comparison.start} onwards" if comparison.start else "on this text"
    return (
        f"{off}, the loss {of} goes from **{comparison.loss_before:.2f}** to"
        f" **{nats(comparison.loss_after, noun)}**, and {guess}."
    )


Metric = tuple[str, str, str | None, str]  # label, value, difference and caption


def loss_metric(comparison: Comparison, read: Consequence, causal: bool) -> Metric:
    """Returns the loss after the change, or why there is none."""
    if read.change is None:
        why = (
            "no token follows the chosen one"
            if causal
            else "this model fills in masked tokens; it does not predict the next one"
        )
        return "Loss on this text", "–", None, f"Not measured: {why}."
    delta = f"{read.change:+.3f}" if abs(read.change) >= 0.0005 else None
    start = f", from position {comparison.start} onwards" if comparison.start else ""
    caption = f"{comparison.loss_before:.3f} before{start}"
    return "Loss on this text, nats per token", f"{comparison.loss_after:.3f}", delta, caption


def kl_metric(read: Consequence, label: str, position: int) -> Metric:
    title = f"KL at {safe(label)} (position {position})"
    return title, f"{read.kl:.3f} nats", None, "KL(before ‖ after) of the prediction there"


def mean_metric(read: Consequence) -> Metric:
    caption = "over the positions that hold the same tokens as before"
    return "KL, mean over positions", f"{read.mean_kl:.3f} nats", None, caption


def remarks(config: ResolvedConfig, model: Transformer, switches: Switches) -> list[str]:
    """Returns what is worth knowing of these switches and this model (Markdown)."""
    lines = []
    if changes_nothing(switches):
        lines.append("Nothing is ablated, so nothing has changed yet.")
    if not switches.mask:
        lines.append(
            "Without the mask, each position sees the very token it should predict, but the model never"
            " learned to use it, so the loss need not fall."
        )
    if not model.parts.mixer(config).card.scored and not switches.scale:
        lines.append("This model's mixer is a plain mean: it has no scores, so there is nothing to scale.")
    elif not config.score_scale and not switches.scale:
        lines.append("Like T5, this model does not scale its scores, so there is nothing to switch off.")
    if is_silent(config, switches):
        rest = (
            "except the output bias $b_O$, which every token still gets"
            if writes_a_bias(model)
            else "exactly as if there were no attention"
        )
        lines.append(f"Every head is off: attention writes nothing, {rest}.")
    return lines


def how_removed(config: ResolvedConfig, parts: Parts) -> str:
    """Says what each switch replaces in this model (Markdown)."""
    scheme = parts.position(config)
    left_out = "`pos_embed` is left out." if "embed" in scheme.enters else ""
    scores = formulas(config, parts)["scores"][1]
    return f"""
- **Mask**: `masked_scores` is replaced by `scores`, so the softmax runs over all keys.
- **Scale**: `scores`, here {scores}, is replaced by the unscaled q · kᵀ. A position bias on the scores
  stays.
- **Position** ({config.position}): {scheme.card.off}. {left_out}
- **Heads**: the head's `z` is set to zero, or at every position to its mean over this text. Zero removes
  more, including anything the head writes on every text. The mean is taken over the whole text, so it
  carries a little information from later tokens.
- **Earlier tokens**, those before the chosen one, are reordered; the chosen one and everything after it
  stay in place. Only positions from there onwards are compared.
"""


def missed_most(missed: MostMissedHead) -> str:
    """Says which head is needed most, and least, on its own."""
    return (
        f"Ablated on its own, head {missed.layer}.{missed.head} matters most on this text: without it the"
        f" prediction moves by {missed.most:.3f} nats on average. The least important head moves it by"
        f" {missed.least:.4f}. Heads can stand in for each other, so these effects are not additive."
    )


SWITCHES = Words(
    see=(
        "*Ablation*: remove a part and see what changes. Right, the likeliest tokens before and after. Under"
        " *Measure it*, how far the prediction moves at each position: KL(before ‖ after) in nats, where 0"
        " means no change."
    ),
    why="A pattern shows where a head attends. Only an intervention shows whether the model *needs* it.",
    attempt=(
        "Ablate one head at a time until you find one that this text does not need. Then remove positions:"
        " does the prediction survive?"
    ),
)
