"""Sentences of the view about the lecture's experiment."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from engine.experiments.ladder import (
    LAST,
    NEAR,
    Climbed,
    Experiment,
    Overfit,
)
from engine.lab.faults import parts_of
from engine.model import count_parameters
from engine.presets.ladder import LECTURE
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
        " are the published losses; points are ours: filled for training text, open for held-out text."
    ),
    why=(
        "The lecture reports training losses, and 10,000 such steps are more than eighty epochs. A model with"
        " millions of parameters overfits by then: its training loss keeps falling while its validation loss"
        " stalls or rises. Only a lower validation loss means a better model."
    ),
    attempt=(
        "Open *Measure it*: in our own model the two losses separate. Look at *curves*: a bigram model"
        " cannot memorise the text, so its two lines stay together."
    ),
    texts=(
        "The lecture also trains the four blocks on gpt2's tokens, 28.6 million parameters against 2.9 with"
        " characters, 3,000 steps each (its figure 7.1). These are its published sizes: it has not been run"
        " here. [Race](/ladder?ladder_view=race&ladder_question=cuts) compares characters with smaller"
        " vocabularies, in bits per character."
    ),
)
# Of the recipe, all else is stated.
UNKNOWN = (
    "What the lecture leaves open: its seed, and whether a published loss is that of one batch of 8,192"
    " characters or a mean. Ours is the mean over a fixed part of the training text, with seed 1337. Its text"
    " draws the matrices from N(0, 1/d), as here; its printed code keeps PyTorch's default for"
    " `nn.Linear`, a third of that variance, and gives the feed-forward networks biases."
)
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
    if not compared:
        return "No rung with a published loss has been trained to the end here."
    if len(compared) == 1:
        (name,) = compared
        each = experiment.rungs[name]
        verdict = f"within {NEAR:g} nats" if each.agrees else f"{_off(each)} nats off"
        return (
            f"*{LECTURE[name].rung.title}* ends at **{each.train[-1]:.2f}**; the lecture reports"
            f" {each.published:.2f}: {verdict}."
        )
    count = f"**{len(experiment.agreeing)} of {len(compared)}**"
    return f"{count} published losses replicate within {NEAR:g} nats{_worst(experiment)}."


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
    """Says for each rung that does not agree how far off it is, and how fast its loss still fell at the end;
    then what the lecture leaves open. Nothing where all agree.
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
                f" lecture's {each.published:.2f}{still}."
            )
    off = [experiment.rungs[name].off or 0.0 for name in experiment.compared]
    if len(lines) > 1 and all(each > 0 for each in off if abs(each) > NEAR):
        lines.append("All of these lie above; with one seed each, that does not tell a recipe from chance.")
    return f"{' '.join(lines)} {UNKNOWN}" if lines else ""


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
                each.precision if each else None,
                each.processor if each else None,
            )
        )
    names = (
        *("rung", "parameters", "published, training", "ours, training", "difference", "ours, held-out"),
        *("steps", "precision", "processor"),
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
    return f"{each.of:,}" if each.finished else f"{each.steps[-1]:,} of {each.of:,}"


def row_label(name: str, each: Climbed | None) -> str:
    """Returns the label beside a row of the figure."""
    title = LECTURE[name].rung.title
    if each is None:
        return f"{title} (not run)"
    return title if each.finished else f"{title} ({each.steps[-1]:,} steps)"


def hover(each: Climbed) -> str:
    """Returns what a point says beside its loss."""
    return f"{each.precision}, {each.processor}"


def alt(experiment: Experiment) -> str:
    sentences = [
        f"{LECTURE[name].rung.title}: {each.train[-1]:.2f} training, {each.validation[-1]:.2f} validation,"
        f" published {_published(name)}"
        for name, each in experiment.rungs.items()
    ]
    return f"Losses in nats per character. {'; '.join(sentences)}. Not run: {len(experiment.missing)} rungs."


def made(experiment: Experiment) -> str:
    about = experiment.made
    machines = ", ".join(
        f"{count} rung{'s' if count > 1 else ''} in {precision} on {safe(processor)}"
        for (precision, processor), count in experiment.machines.items()
    )
    return (
        f"`{about['command']}`, {safe(str(about['date']))}: {machines}."
        f" Losses in {safe(str(about['measured']))}. It resumes where it stopped; on a GPU the"
        " whole experiment takes minutes."
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
