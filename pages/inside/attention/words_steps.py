"""Sentences and formulas of the view Step by step."""

from __future__ import annotations

from engine.measure.attention import single_head
from engine.measure.attention.single_head import Lengths, Stages, WrittenOut
from ui.model_bar import Subject
from ui.text.markdown import safe
from ui.text.numbers import counted, scientific

STAGES = ("q, k, v", "q·k", "÷ √d", "mask", "softmax", "· v", "W_O")


FORMULAS = {
    "q, k, v": (
        "$q = x W_Q$, $k = x W_K$, $v = x W_V$. Each token produces a query (a question), a key (a label) and"
        " a value (a message)."
    ),
    "q·k": (
        "$s_{ij} = q_i \\cdot k_j$. How well key $j$ matches query $i$: a dot product of any sign and size."
    ),
    "÷ √d": ("$s_{ij} / \\sqrt{d_{head}}$. Scaling keeps the standard deviation near 1 at any head width."),
    "mask": "$s_{ij} + M_{ij}$, with $M_{ij} = -\\infty$ where $j > i$. The grey half is the future.",
    "softmax": "$p_{ij} = e^{s_{ij}} / \\sum_k e^{s_{ik}}$. Each row becomes weights that sum to 1.",
    "· v": "$z_i = \\sum_j p_{ij} v_j$. The average of the values, weighted by attention.",
    "W_O": "$z_i W_O$, with this head's rows of $W_O$. What this head adds to the residual stream.",
}


OWN_WEIGHTS = "this model's mixer turns scores into weights in its own way, not written out here."


STAGE, KEY, TO_STREAM = "Stage", "Key token", "written to the stream"
KEY_TITLE = "{label} at {key}, weight {weight:.4f}"
STRONGEST = "the strongest: {title}"
STAGE_ALT = "{name} of head {layer}.{head}: one row for each query, one column for each key."


def parts_alt(parts: list[str], layer: int, head: int) -> str:
    return (
        f"{', '.join(parts)} of head {layer}.{head}: one row for each token, one column for each dimension."
    )


def recomputed(gap: float) -> str:
    return (
        "Recomputed from the recorded `q_rot`, `k_rot` and `v`: the pattern differs from the recorded one by"
        f" at most {scientific(gap, 0)}."
    )


def written(lengths: Lengths, layer: int) -> str:
    """Says how long a vector the head writes at one token."""
    return (
        f"At this token the head writes a vector of norm {lengths.head:.3f}; all heads of block {layer}"
        f" together write one of norm {lengths.together:.3f}. Stream norm before: {lengths.before:.3f}."
    )


def formula(stage: str, stages: Stages) -> str:
    """Returns the formula of a stage, or that it is not written out."""
    if stage == "softmax" and stages.exponentials is None:
        return f"$p_{{ij}}$: {OWN_WEIGHTS}"
    return scaled(stages) if stage == "÷ √d" else FORMULAS[stage]


def scaled(stages: Stages) -> str:
    kind = single_head.scaled_by(stages.divisor, stages.q.shape[1])
    if kind == "own":
        return "$s_{ij}$, computed by this model's mixer from the products."
    if kind == "none":
        return (
            "$s_{ij}$ unscaled: this model's mixer does not scale them. The spread of the scores grows with"
            " the width of the head."
        )
    return FORMULAS["÷ √d"] if kind == "root" else f"$s_{{ij}} / {stages.divisor:.4f}$, in this model."


def names_of(stages: Stages) -> dict[str, str]:
    """Returns the names of the stages: the one of the division by √d only where there is one."""
    divides = single_head.scaled_by(stages.divisor, stages.q.shape[1]) == "root"
    return {stage: stage if divides or stage != "÷ √d" else "scores" for stage in STAGES}


def variant(subject: Subject, stage: str, stages: Stages) -> str:
    """Says how this model differs, in a sentence."""
    config = subject.config
    turns = "rotate" in subject.model.parts.position(config).enters
    text = ""
    if stage == "q, k, v" and config.mixer == "shared_qk":
        text = " This model's queries and keys are the same vectors."
    elif stage == "q·k" and (config.qk_norm or turns):
        done = {
            "normalised (QK-norm)": config.qk_norm,
            "rotated by their position (RoPE)": turns,
        }
        text = f" Before that, q and k are {' and '.join(what for what, is_done in done.items() if is_done)}."
    elif stage == "÷ √d" and stages.bias is not None:
        text = " This model's position scheme also adds a distance bias here; it is included."
    elif stage == "mask" and not config.causal:
        text = " **This model is an encoder: it has no causal mask, so this stage changes nothing.**"
    elif stage == "W_O" and not config.output_projection:
        text = " **This model has no output projection: the head's slice of the stream gets z directly.**"
    return text


def arithmetic(labels: list[str], w: WrittenOut, query: int, key: int) -> str:
    """Returns the way from q and k to one weight, written out (Markdown)."""
    here, there = (f"{safe(labels[i])} (position {i})" for i in (query, key))
    lines = [f"**Why {here} gives {w.weight:.4f} of its weight to {there}**\n"]
    width = len(w.pairs)
    terms = " + ".join(f"({q:.2f})({k:.2f})" for q, k in w.pairs[:3])
    rest = f" + \\ldots\\ ({width - 3}\\ more)" if width > 3 else ""
    lines.append(f"$q \\cdot k = {terms}{rest} = {w.raw:.4f}$\n")
    lines.append(divided(w))
    if w.bias is not None:
        lines.append(f"$s + \\text{{bias}} = {w.scaled:.4f} + ({w.bias:.4f}) = {w.masked:.4f}$\n")
    if w.exponential is None:
        lines.append(f"$p = {w.weight:.4f}$, of its {counted(w.seen, 'visible key')}: {OWN_WEIGHTS}")
        return "\n".join(lines)
    lines.append(f"$e^{{s - \\max}} = e^{{{w.masked:.4f} - ({w.largest:.4f})}} = {w.exponential:.4f}$\n")
    lines.append(
        f"$p = {w.exponential:.4f} / {w.total:.4f} = {w.weight:.4f}$, summed over its"
        f" {counted(w.seen, 'visible key')}."
    )
    return "\n".join(lines)


def divided(w: WrittenOut) -> str:
    """From the product to the score."""
    width = len(w.pairs)
    return {
        "root": f"$s = {w.raw:.4f} / \\sqrt{{{width}}} = {w.scaled:.4f}$\n",
        "none": f"$s = {w.scaled:.4f}$: the unscaled product.\n",
        "number": f"$s = {w.raw:.4f} / {w.divisor or 1:.4f} = {w.scaled:.4f}$\n",
        "own": f"$s = {w.scaled:.4f}$, computed by this model's mixer from the product.\n",
    }[single_head.scaled_by(w.divisor, width)]
