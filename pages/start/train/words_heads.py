"""Sentences (Markdown) about heads that form while a run trains, from values that they are given."""

from __future__ import annotations

from engine.config import ModelConfig, TrainConfig
from engine.measure.attention.head_scores import HeadGrowth, Kind
from engine.measure.attention.heads import HeadValue
from ui.text.markdown import safe
from ui.text.numbers import counted
from ui.timeline import DOES

QUESTION = "Watch it happen: when does a head learn to copy?"


READS = "**What it reads**: some windows repeat their beginning (│)"


def before(share: float, guess: float, steps: int) -> str:
    """Returns the sentence before the first run."""
    return (
        f"**{share:.0%}** of the windows repeat their own beginning. Before training, a repeated character"
        f" costs as much as a new one: {guess:.2f} nats. Press **Train** and see when that changes within"
        f" {counted(steps, 'step')}."
    )


def went(model: ModelConfig, train: TrainConfig) -> str:
    """Returns the heading above the training that comes with the app."""
    return (
        f"**A stored run**: {counted(model.n_layers, 'layer')}, width {model.d_model}, {train.repeat:.0%}"
        " of the windows"
        f" repeating their beginning, seed {train.seed}, {counted(train.steps, 'step')}"
    )


def before_another(grown: HeadGrowth, share: float, steps: int) -> str:
    """Returns the sentence before the first run, beside one that is stored."""
    return (
        f"{order(grown)}. Random characters then cost {grown.first_loss:.2f} nats, and"
        f" **{grown.second_loss:.2f}** when they are repeated. **{share:.0%}** of your windows repeat their"
        f" beginning: press **Train** and see whether a head learns to copy within {counted(steps, 'step')}."
    )


def _name(head: HeadValue) -> str:
    return f"{head.layer}.{head.head}"


def none_yet(grown: HeadGrowth) -> str:
    """Says that no head copies."""
    reads = ""
    if grown.previous_formed is not None:
        with_what = f"(**{grown.previous.value:.2f}**)"
        reads = f" Head {_name(grown.previous)} already attends to the previous character {with_what}."
    return (
        f"At step **{grown.step:,}** no head copies yet. The best, head {_name(grown.head)}, puts"
        f" **{grown.head.value:.2f}** of its weight on the position after the current character's first"
        f" occurrence.{reads} Random characters cost {grown.first_loss:.2f} nats, and"
        f" **{grown.second_loss:.2f}** when they are repeated."
    )


def copies(grown: HeadGrowth) -> str:
    """Says that a head copies: what formed below it, since when it copies, and what that does to the loss."""
    return (
        f"{order(grown)}, with **{grown.head.value:.2f}** of its weight; at step {grown.since:,},"
        f" {grown.seconds:.0f} s of training earlier, it was {grown.before:.2f}. Random characters cost"
        f" {grown.first_loss:.2f} nats, and **{grown.second_loss:.2f}** when they are repeated."
    )


def order(grown: HeadGrowth) -> str:
    """Says which of the two formed first: the beginning of a sentence."""
    reads, copies = f"head **{_name(grown.previous)}**", f"head **{_name(grown.head)}**"
    if grown.previous_formed is None or grown.formed is None:
        return f"At step **{grown.step:,}** {copies} copies"
    if grown.previous_formed < grown.formed:
        return (
            f"First {reads} learned to attend to the previous character (step {grown.previous_formed:,}),"
            f" then {copies} learned to copy (step **{grown.formed:,}**)"
        )
    return (
        f"By step {grown.previous_formed:,} {reads} attends to the previous character; {copies} has been"
        f" copying since step **{grown.formed:,}**"
    )


def both(names: tuple[str, str], pair: tuple[HeadGrowth, HeadGrowth]) -> str:
    """Says what the best heads of two runs do."""
    heads = (
        f"{safe(name)}, head {_name(growth.head)} with **{growth.head.value:.2f}** of its weight"
        for name, growth in zip(names, pair, strict=True)
    )
    return f"Best at copying: {'; '.join(heads)}."


def scores_alt(grown: HeadGrowth) -> str:
    """Describes the chart for who cannot see the chart."""
    return (
        "Scores of every head by step, and the losses of random characters on first and second reading. At"
        f" step {grown.step:,} head {_name(grown.head)} copies with {grown.head.value:.2f} of its weight."
    )


def patterns_title(step: int) -> str:
    """Returns the heading above the small patterns."""
    return f"Step **{step:,}**: random characters, then the same again"


def pattern_title(kind: Kind, head: HeadValue) -> str:
    """Returns the title of a pattern."""
    return f"{_name(head)} {DOES[kind]}: {head.value:.2f}"


def patterns_alt(grown: HeadGrowth, step: int) -> str:
    """Describes the chart for who cannot see them."""
    return (
        f"What two heads attend to, at step {step:,}, on random characters read twice. Head"
        f" {_name(grown.previous)} gives {grown.previous.value:.2f} of its weight to the previous character:"
        f" a diagonal just below the middle. Head {_name(grown.head)} gives {grown.head.value:.2f} to the"
        " position after the first occurrence: a diagonal in the second reading."
    )
