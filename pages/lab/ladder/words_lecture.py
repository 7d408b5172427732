"""Sentences of the view about the lecture's experiment."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from engine.config import Init
from engine.experiments.ladder import (
    LAST,
    NEAR,
    Climbed,
    Experiment,
    Overfit,
)
from engine.lab.faults import parts_of
from engine.model import count_parameters
from engine.presets.ladder import DEPTHS, LECTURE
from ui.page_frame import Words
from ui.text.markdown import safe
from ui.text.numbers import minus

ASK = "Do the lecture's losses replicate?"
SHOWN = "Shown"
SHOWS = {"ends": "final losses", "curves": "curves"}
WROTE = "Sample from"
CURVES = "Rungs"
WORDS = Words(
    see=(
        "A lecture trains each of these for 10,000 steps: batches of 64 windows of 128 characters of Tiny"
        " Shakespeare, width 256, one head, no norm, no output matrix, no positions, Adam at 0.0003. Diamonds"
        " are the published losses; points are ours: filled for training text, open for held-out text, small"
        " for other seeds."
    ),
    why=(
        "The lecture reports training losses, and 10,000 such steps are more than eighty epochs. A model with"
        " millions of parameters overfits by then: its training loss keeps falling while its validation loss"
        " stalls or rises. Only a lower validation loss means a better model."
    ),
    attempt=(
        "Look at *curves*: a bigram model cannot memorise the text, so its two lines stay together; at which"
        " step do those of *Full block ×8* part? Open *Measure it* for the effect of the initial weights."
    ),
    texts=(
        "The lecture's text and its printed code differ in the initial weights; its losses of two and four"
        " full blocks are those of the code. [Race](/ladder?ladder_view=race&ladder_question=cuts) compares"
        " characters with small BPE vocabularies, in bits per character; the lecture's own comparison with"
        " gpt2's is in *Measure it*."
    ),
)
# Of the recipe, all else is stated.
UNKNOWN = (
    "What the lecture leaves open: its seed, and whether a published loss is that of one batch of 8,192"
    " characters or a mean. Ours is the mean over a fixed part of the training text."
)
INITS: dict[Init, str] = {"torch": "the code's", "normal": "the text's"}
# What the lecture says of the samples that it prints, at the same temperature; by rung.
LECTURE_SAYS = {
    "last": "common pairs of letters, no words",
    "mean": "less coherent than the bigram model's",
    "values": "some patterns like words, no English ones",
    "attention-4": "line breaks and pieces of words, many of them nonsense",
    "block-4": "line breaks, names of characters and English words",
}


def answer(experiment: Experiment, overfit: Overfit) -> str:
    """Says how far ours is the same, and what the best of the published numbers is."""
    last = LECTURE["block-8"]
    title = last.rung.title.lower()
    sentences = [_agreement(experiment)]
    deepest = experiment.rungs.get("block-8")
    if deepest is not None and deepest.finished:
        sentences.append(
            f"The lecture's best, **{last.loss:.2f}** for *{title}*, is a training loss after"
            f" {experiment.passes:.0f} epochs; here it is {deepest.train[-1]:.2f}, with a validation loss"
            f" of **{deepest.validation[-1]:.2f}**."
        )
    else:
        sentences.append(
            f"The lecture's best, **{last.loss:.2f}** for *{title}*, is a training loss after"
            f" **{experiment.passes:.0f} epochs** (not run here). Our `{overfit.name}`, after"
            f" {overfit.passes[-1]:.0f} epochs: training {overfit.train[-1]:.2f}, held out"
            f" **{overfit.validation[-1]:.2f}**."
        )
    return " ".join(sentences)


def _agreement(experiment: Experiment) -> str:
    compared = experiment.compared
    diverged = "".join(
        f"; *{LECTURE[name].rung.title}* diverges with {_every(len(experiment.of(name)))}"
        for name in experiment.lost
    )
    if not compared:
        return "No rung with a published loss has been trained to the end here."
    if len(compared) == 1:
        (name,) = compared
        each = experiment.rungs[name]
        verdict = f"within {NEAR:g} nats" if each.agrees else f"{_off(each)} nats off"
        return (
            f"*{LECTURE[name].rung.title}* ends at **{each.train[-1]:.2f}**; the lecture reports"
            f" {each.published:.2f}: {verdict}{diverged}."
        )
    count = f"**{len(experiment.agreeing)} of {len(compared) + len(experiment.lost)}**"
    return f"{count} published losses replicate within {NEAR:g} nats{_worst(experiment)}{diverged}."


def _every(seeds: int) -> str:
    return f"all {seeds} seeds" if seeds > 1 else "its one seed"


def _worst(experiment: Experiment) -> str:
    """Names the rung that is furthest from its published loss; nothing where all agree."""
    if len(experiment.agreeing) == len(experiment.compared):
        return ""
    name = max(experiment.compared, key=lambda name: abs(experiment.rungs[name].off or 0.0))
    off = experiment.rungs[name].off or 0.0
    return f"; *{LECTURE[name].rung.title}* ends {abs(off):.2f} {'above' if off > 0 else 'below'}"


def _off(each: Climbed) -> str:
    return minus(f"{each.off:+.2f}")


def reasons(experiment: Experiment) -> str:
    """Says for each rung that does not agree how far off it is, and how fast its loss still fell at the end,
    then what the initial weights change, and what the lecture leaves open.
    """
    lines = []
    for name in experiment.compared:
        each = experiment.rungs[name]
        if not each.agrees:
            falling = each.falling
            still = (
                ""
                if falling is None
                else f"; over the last {LAST:,} steps its training loss fell by {minus(f'{falling:.3f}')}"
            )
            lines.append(
                f"*{LECTURE[name].rung.title}* ends at {each.train[-1]:.3f}, **{_off(each)}** from the"
                f" lecture's {each.published:.2f}{still}.{_spread(experiment, name)}"
            )
    parts = (" ".join(lines), diverged(experiment), initial_weights(experiment), UNKNOWN)
    return "\n\n".join(filter(None, parts))


def _spread(experiment: Experiment, name: str) -> str:
    """Says between which losses the seeds of a rung ended, and how many did not end."""
    runs = experiment.of(name)
    ends = [each.train[-1] for each in runs if each.finished]
    if len(runs) == 1:
        return " It has one seed."
    if len(ends) == 1:
        return f" Of its {len(runs)} seeds only this one held."
    return f" Its {len(ends)} seeds end between {min(ends):.2f} and {max(ends):.2f}."


def diverged(experiment: Experiment) -> str:
    """Names the trainings that diverged, by rung and initial weights, and their precision."""
    rows = []
    for name in experiment.rungs:
        for init, whose in INITS.items():
            runs = experiment.of(name, init)
            steps = {each.diverged: each.precision for each in runs if each.diverged is not None}
            if steps:
                first, last = f"{min(steps):,}", f"{max(steps):,}"
                at = f"step {first}" if first == last else f"steps {first} to {last}"
                rows.append(
                    f"*{LECTURE[name].rung.title}* from {whose} weights {len(steps)} of {len(runs)}"
                    f" ({at}, {' and '.join(sorted(set(steps.values())))})"
                )
    if not rows:
        return ""
    return (
        "Without norms, clipping or warm-up, a training may diverge: its loss jumps and does not come back."
        f" Here: {'; '.join(rows)}."
    )


def initial_weights(experiment: Experiment) -> str:
    """Says how rungs with several seeds end from the code's and from the text's initial weights."""
    rows = []
    for name in experiment.rungs:
        losses = [[each.train[-1] for each in experiment.of(name, init) if each.finished] for init in INITS]
        if all(len(ends) > 1 for ends in losses):
            code, text = (f"{min(ends):.2f} to {max(ends):.2f}" for ends in losses)
            rows.append(f"*{LECTURE[name].rung.title}* {code} against {text}")
    if not rows:
        return ""
    return (
        "The lecture's text draws its matrices from N(0, 1/d); its printed code keeps PyTorch's default for"
        " `nn.Linear`, a third of that variance. Final training losses from the code's weights against the"
        f" text's: {'; '.join(rows)}.{_biases(experiment)}"
    )


def _biases(experiment: Experiment) -> str:
    """Says what biases in the feed-forward networks change, which the lecture's code has."""
    pairs = [
        f"{plain.train[-1]:.3f} → {each.train[-1]:.3f} (*{LECTURE[each.name].rung.title}*)"
        for each in experiment.runs
        if each.biases and each.finished
        for plain in experiment.of(each.name, each.init)
        if plain.seed == each.seed and plain.finished
    ]
    return f" Its feed-forward networks also have biases; with these: {', '.join(pairs)}." if pairs else ""


def depth(experiment: Experiment) -> str:
    """Says what depth brings with and without the feed-forward network, on held-out text."""
    parts = []
    for kind, title in (("attention", "Attention alone"), ("block", "full blocks")):
        ends = {
            n: each.validation[-1]
            for n in DEPTHS
            if (each := experiment.rungs.get(f"{kind}-{n}")) and each.finished
        }
        if len(ends) > 1:
            counts, losses = ", ".join(f"×{n}" for n in ends), ", ".join(f"{x:.2f}" for x in ends.values())
            parts.append(f"{title} {counts}: {losses}")
    if len(parts) < 2:
        return ""
    deepest = experiment.rungs.get("block-8")
    early = ""
    if deepest is not None and deepest.finished:
        step, loss = deepest.best
        early = f" *{LECTURE['block-8'].rung.title}* was at its best, {loss:.2f}, at step {step:,}."
    return f"What depth brings, as held-out losses at the end. {'; '.join(parts)}.{early}"


def figure_7_1(experiment: Experiment) -> str:
    """Says how the lecture's comparison of characters with gpt2's tokens ended here; nothing without it."""
    letters, tokens = (experiment.cuts.get(name) for name in ("cut-characters", "cut-gpt2"))
    if letters is None or tokens is None or letters.bits is None or tokens.bits is None:
        return ""
    return (
        f"The lecture's figure 7.1, repeated with one seed: *{LECTURE['block-4-sinusoidal'].rung.title}*,"
        f" {letters.of:,} steps. With characters, {letters.parameters / 1e6:.1f} million parameters: training"
        f" loss {letters.train[-1]:.2f}, held out {letters.whole:.2f} nats per character,"
        f" **{letters.bits:.2f} bits per character**. With gpt2's tokens, {tokens.parameters / 1e6:.1f}"
        f" million: {tokens.train[-1]:.2f} and {tokens.whole:.2f} nats per token, **{tokens.bits:.2f} bits"
        " per character**: it overfits far more."
    )


def table(experiment: Experiment) -> dict[str, list[Any]]:
    """Returns columns: a row for each rung of the lecture, run or not."""
    rows: list[tuple[Any, ...]] = []
    for name, published in LECTURE.items():
        each = experiment.rungs.get(name)
        rows.append(
            (
                published.rung.title,
                _parameters(name),
                _published(name),
                each.train[-1] if each else None,
                None if each is None or each.off is None else _off(each),
                each.validation[-1] if each else None,
                _reached(each),
                INITS[each.init] if each else None,
                len(experiment.of(name)),
                each.precision if each else None,
                each.processor if each else None,
            )
        )
    names = (
        *("rung", "parameters", "published, training", "ours, training", "difference", "ours, held-out"),
        *("steps", "initial weights", "seeds", "precision", "processor"),
    )
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


@lru_cache(maxsize=len(LECTURE))
def _parameters(name: str) -> int:
    rung = LECTURE[name].rung
    return count_parameters(rung.model, parts_of(rung.parts))


def _published(name: str) -> str:
    rung = LECTURE[name]
    if rung.loss is None:
        return "none"
    return f"about {rung.loss:.1f}" if rung.about else f"{rung.loss:.2f}"


def _reached(each: Climbed | None) -> str:
    if each is None:
        return "not run"
    if each.diverged is not None:
        return f"diverged by {each.diverged:,}"
    return f"{each.of:,}" if each.finished else f"{each.steps[-1]:,} of {each.of:,}"


def row_label(name: str, experiment: Experiment) -> str:
    """Returns the label beside a row of the figure."""
    title, each = LECTURE[name].rung.title, experiment.rungs.get(name)
    if each is None:
        return f"{title} (not run)"
    if each.diverged is not None:
        return f"{title} (diverged)"
    return title if each.finished else f"{title} ({each.steps[-1]:,} steps)"


def hover(each: Climbed) -> str:
    """Returns what a point says beside its loss."""
    return f"{INITS[each.init]} initial weights, seed {each.seed}, {each.precision}, {each.processor}"


def alt(experiment: Experiment) -> str:
    rungs = "; ".join(_in_words(name, each) for name, each in experiment.rungs.items())
    return f"Losses in nats per character. {rungs}. Not run: {len(experiment.missing)} rungs."


def _in_words(name: str, each: Climbed) -> str:
    ends = f"{each.train[-1]:.2f} training, {each.validation[-1]:.2f} validation"
    return (
        f"{LECTURE[name].rung.title}: {ends if each.diverged is None else 'diverged'}, published"
        f" {_published(name)}"
    )


def made(experiment: Experiment) -> str:
    about = experiment.made
    machines = ", ".join(
        f"{count} training{'s' if count > 1 else ''} in {precision} on {safe(processor)}"
        for (precision, processor), count in experiment.machines.items()
    )
    return (
        f"`{about['command']}`, {safe(str(about['date']))}: {machines}."
        f" Losses in {safe(str(about['measured']))}. It resumes where it stopped; on a GPU a"
        " training takes minutes."
    )


def readings(overfit: Overfit) -> str:
    return (
        f"`{overfit.name}`, which comes with the app: after {overfit.passes[-1]:.1f} epochs the training loss"
        f" is {overfit.train[-1]:.2f} and the validation loss {overfit.validation[-1]:.2f}, a gap of"
        f" {overfit.gap:.2f}. Both are still falling; overfitting begins where the validation loss"
        " rises."
    )


def wrote(each: Climbed) -> str:
    """Says what the sample of a replicated rung is, and what the lecture says of its own."""
    ours = (
        f"The lecture's recipe, width 256: {len(each.text)} characters at temperature 0.8, the last sample,"
        f" after {each.steps[-1]:,} steps (training loss {each.train[-1]:.2f}, {each.precision})."
    )
    theirs = LECTURE_SAYS.get(each.name)
    return f"{ours} The lecture finds in its own: {theirs}." if theirs else ours


def wrote_small(steps: int, loss: float, characters: int) -> str:
    """Says what the sample of the same rung of the short ladder is."""
    return (
        f"The same rung of our short ladder, width 64: {characters} characters at temperature 0.8, after"
        f" {steps:,} steps (validation loss {loss:.2f})."
    )
