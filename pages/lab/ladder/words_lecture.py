"""Sentences of the view about the lecture's experiment."""

from __future__ import annotations

from typing import Any

from engine.experiments.ladder import (
    NEAR,
    Climbed,
    Experiment,
    Overfit,
)
from engine.presets.ladder import LECTURE
from ui.page_frame import Words
from ui.text.markdown import safe

ASK = "Do the lecture's losses replicate?"
SHOWN = "Shown"
SHOWS = {"ends": "end values", "curves": "curves"}
WROTE = "Written after its training"
WORDS = Words(
    see=(
        "A lecture trains each of these for 10,000 steps: 64 windows of 128 characters of Tiny Shakespeare a"
        " step, 256 numbers per character, one head, no norm, no output matrix, no positions, Adam at 3e-4."
        " Diamonds are the losses that it shows; points are ours: full on what was learned from, open on"
        " text never seen."
    ),
    why=(
        "The lecture's numbers are losses on the text that it trains on, and 10,000 such steps read that"
        " text more than eighty times. A model with millions of parameters has memorised it by then: its"
        " loss there keeps falling while it guesses held-out text no better, or worse. Lower is only better"
        " on held-out text."
    ),
    attempt=(
        "Open *Measure it*: a model of ours, where the two losses part. Look at *curves*: a bigram model"
        " cannot memorise anything, so its two lines stay together."
    ),
)


def answer(experiment: Experiment, overfit: Overfit) -> str:
    """Says how far ours is the same, and what the best of the published numbers is."""
    last = LECTURE["block-8"]
    title = last.rung.title.lower()
    sentences = [_agreement(experiment)]
    deepest = experiment.rungs.get("block-8")
    if deepest is not None and deepest.finished:
        sentences.append(
            f"Its best, **{last.loss:.2f}** for *{title}*, is loss on text read {experiment.passes:.0f}"
            f" times: here {deepest.train[-1]:.2f}, and on held-out text **{deepest.validation[-1]:.2f}**."
        )
    else:
        sentences.append(
            f"Its best, **{last.loss:.2f}** for *{title}*, is loss on text read **{experiment.passes:.0f}"
            f" times** (that rung was not run here). Our `{overfit.name}`, after {overfit.passes[-1]:.0f}"
            f" readings, is at {overfit.train[-1]:.2f} there and at **{overfit.validation[-1]:.2f}** on"
            " held-out text."
        )
    return " ".join(sentences)


def _agreement(experiment: Experiment) -> str:
    compared = experiment.compared
    if not compared:
        return "No rung with a published number has been run to its end here."
    if len(compared) == 1:
        (name,) = compared
        each = experiment.rungs[name]
        verdict = f"within {NEAR:g} nats" if each.agrees else f"{each.off:+.2f} nats off"
        return (
            f"*{LECTURE[name].rung.title}* ends at **{each.train[-1]:.2f}**, the lecture says"
            f" {each.published:.2f}: {verdict}."
        )
    return (
        f"**{len(experiment.agreeing)} of {len(compared)}** published losses come out within {NEAR:g} nats."
    )


def table(experiment: Experiment) -> dict[str, list[Any]]:
    """Returns columns: a row for each rung of the lecture, run or not."""
    rows: list[tuple[Any, ...]] = []
    for name, published in LECTURE.items():
        each = experiment.rungs.get(name)
        rows.append(
            (
                published.rung.title,
                published.parameters or (each.parameters if each else None),
                _published(name),
                each.train[-1] if each else None,
                each.validation[-1] if each else None,
                _reached(each),
            )
        )
    names = ("rung", "parameters", "published, training", "ours, training", "ours, held-out", "steps")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def _published(name: str) -> str:
    found = LECTURE[name]
    if found.loss is None:
        return "no number"
    return f"about {found.loss:.1f}" if found.about else f"{found.loss:.2f}"


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


def alt(experiment: Experiment) -> str:
    sentences = [
        f"{LECTURE[name].rung.title}: {each.train[-1]:.2f} on what it learned from,"
        f" {each.validation[-1]:.2f} held-out, published {_published(name)}"
        for name, each in experiment.rungs.items()
    ]
    return f"Losses in nats per character. {'; '.join(sentences)}. Not run: {len(experiment.missing)} rungs."


def made(experiment: Experiment) -> str:
    about = experiment.made
    return (
        f"`{about['command']}`, {safe(str(about['date']))}, on {safe(' and '.join(experiment.processors))}:"
        f" {safe(str(about['measured']))}. It continues where it stopped; on a GPU all of it takes minutes."
    )


def readings(overfit: Overfit) -> str:
    return (
        f"`{overfit.name}`, which comes with the app: after {overfit.passes[-1]:.1f} readings of its text"
        f" the loss is {overfit.train[-1]:.2f} on what it has read and {overfit.validation[-1]:.2f} on what"
        f" it has not, {overfit.gap:.2f} apart. Both still fall here; where the second turns, the model"
        " begins to overfit."
    )


def wrote(each: Climbed) -> str:
    return f"300 characters at temperature 0.8; the newest samples, at up to {each.steps[-1]:,} steps."
