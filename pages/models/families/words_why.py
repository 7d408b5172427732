"""Sentences of the view of the reasons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.experiments.why_decoders import DRAWS, Reasons, TwoForms
from ui.page_frame import Words

QUESTION = "Why did decoder-only models win?"
REASONS = {
    "lessons": "A training signal at every token",
    "interface": "One objective, one interface",
    "cache": "A KV cache",
    "work": "Every parameter is used for every token",
}


def table(reasons: Reasons) -> dict[str, list[str]]:
    """Tabulates each family by each reason."""
    tasks, work, forms = reasons.interface, reasons.writing, reasons.forms
    paired = f"{len(forms)} paired tasks"
    pairs = f"; {paired}, {_span(form.continued for form in forms.values())}" if forms else ""
    return {
        "measured": [
            "losses from one text",
            "tasks solved, held-out problems right",
            f"FLOPs for {work.written} more tokens",
            "parameters that write a token",
        ],
        "Encoder": [
            f"{reasons.lessons.encoder:.1f}",
            "a different output for each task",
            f"{work.recomputed / 1e9:,.0f} GFLOP: everything is recomputed",
            "none: it does not write",
        ],
        "Decoder": [
            f"{reasons.lessons.decoder}",
            f"{tasks.tasks} as continuations, each at least {tasks.least:.1%}{pairs}",
            f"{work.cached / 1e9:,.0f} GFLOP",
            "100%",
        ],
        "Encoder-decoder": [
            f"{reasons.lessons.both}, from the target only",
            f"{paired}: {_span(form.paired for form in forms.values())}" if forms else "pairs only",
            f"{reasons.pair_writing / 1e9:,.0f} GFLOP: the source is cached as well",
            f"{reasons.at_work:.0%}",
        ],
    }


def _span(shares: Iterable[float]) -> str:
    """
    >>> _span([0.999, 0.98, 0.964])
    '96.4% to 99.9%'
    """
    ordered = sorted(shares)
    return f"{ordered[0]:.1%} to {ordered[-1]:.1%}"


def won(tokens: int, percent: int, reasons: Reasons) -> str:
    """Says which two weigh most, and what the one way of asking costs (Markdown)."""
    forms = reasons.forms.values()
    accuracies = (
        f" Accuracy on paired tasks written as one text is {_span(form.continued for form in forms)}; as"
        f" pairs, {_span(form.paired for form in forms)}."
        if forms
        else ""
    )
    return (
        f"A decoder gets **{reasons.lessons.times:.1f} times** as many training signals:"
        f" {reasons.lessons.decoder} losses from {tokens} tokens, against {reasons.lessons.encoder:.1f} for"
        f" an encoder with {percent}% masked. With a cache it also writes **{reasons.writing.times:.0f}"
        f" times** more cheaply than a bidirectional model.{accuracies}"
    )


def by_hand(forms: Mapping[str, TwoForms]) -> str:
    """Returns the arithmetic, and each task in both forms (Markdown)."""
    text = "; ".join(
        f"{name} {result.continued:.1%} ({result.paired:.1%}), {result.parameters[1]:,} parameters"
        for name, result in forms.items()
    )
    return BY_HAND + (f"\n\n{CAST} {text}." if text else "")


CAST = (
    "**The same task in both forms**: source and target as one text, continued by a decoder with the"
    " parameters, the steps and the pairs of the encoder-decoder; accuracy on 1,000 held-out sources (in"
    " brackets the encoder-decoder's), one run each; recorded, can no longer be repeated"
    " (`checkpoints/cast.json`):"
)


WHY = Words(
    see=(
        "Four proposed reasons why decoders won, one per row, with what this app can count. Sizes: 12 layers,"
        " 768 wide, a vocabulary of 32,000."
    ),
    why=(
        "From 2018 to 2020 the three were rivals: Google chose encoders (BERT) and encoder-decoders (T5),"
        " OpenAI decoders (GPT). By 2023 nearly every large model was a decoder. The usual reasons concern"
        " training and use, not what a model can represent."
    ),
    attempt=(
        "Mask more for the encoder: it gets more losses, but each prediction has less context. Make the text"
        " longer and see what recomputing costs."
    ),
    texts=(
        "A textbook's four reasons are a signal at every token, one objective for one architecture, one"
        " interface, and clean scaling. The second and third share a row here. Scaling is not one of the"
        " rows, since it is measured here for decoders only: [Scaling laws](/ladder?ladder_view=scaling)."
    ),
)
BY_HAND = (
    f"**Training signal**: the batches that training draws, {DRAWS:,} texts with random positions masked; a"
    " decoder predicts the next token at every position. T5 also masks 15%, and writes only what was masked"
    " (Raffel et al. 2020); here the encoder-decoder translates the first half of the text into the"
    " second.\n\n**Compute**: a token that attends to $n$ costs $f(n)$ FLOPs. With a cache $T f(T) + \\sum_n"
    " f(n)$; without, $\\sum_n n f(n)$, for $n$ from $T$ to $2T - 1$. An encoder-decoder reads the $T$"
    " source tokens once, and then each token it writes attends to those before it and to the"
    " source.\n\n**One interface**: the page Tasks trains the same decoder to copy, sort, add and more; its"
    " scores on held-out problems are in `checkpoints/tasks`. **Every parameter is used**: once the source is"
    " read, an encoder's parameters are idle. Another reason, not measured here, is that scaling laws were"
    " first found for decoders (Kaplan et al. 2020)."
)
