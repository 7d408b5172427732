"""Kinds of runs as the page tells of them: on a text, a task, pairs or labels. How each is trained, and its
cost, says `RunSpec.kind` (runs.kinds).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd

from engine.presets import Preset
from engine.training.numerics import perplexity
from engine.training.records import Evaluation, Sample
from engine.training.train import warning
from runs import kinds
from runs.compare import MeanLoss
from runs.state import RunSpec, RunView
from studies.experiments.race_table import Unit
from studies.pairs.encoders import ENCODERS
from studies.pairs.paired import PAIR_TASKS
from studies.pairs.presets import PAIRED
from studies.tasks.all import TASKS
from studies.tasks.task import Task, marked
from ui import content, run_text, site
from ui.figures.losses import FLOOR
from ui.figures.solved import Solved, solved_curves
from ui.players.plot import plot
from ui.text.markdown import token_word
from ui.text.numbers import nats

TEXT = content.beside(__file__)
CROSSED = "crossattention"  # the page that looks into two stacks


@dataclass(frozen=True)
class OfText:
    """A run on a text, which may repeat itself."""

    spec: RunSpec
    senseless: ClassVar[tuple[str, ...]] = ()  # what-ifs that would change nothing, or cannot be
    answers: ClassVar[bool] = False  # what it writes is right or wrong
    characters: ClassVar[bool] = True  # its tokens are made of characters, among which bits are shared

    @property
    def noun(self) -> str:
        """Returns the unit of the loss: a token of the text, a symbol, a speaker."""
        return token_word(self.spec.train.tokenizer)

    @property
    def token(self) -> str:
        """Returns the noun for what the model reads."""
        return self.noun

    @property
    def choices(self) -> int:
        """Returns the answers among which an untrained model guesses: a masked model's vocabulary without its
        mask.
        """
        return self.spec.kind.outcomes(self.spec.model, self.spec.corpus) - self.masked

    @property
    def masked(self) -> bool:
        return self.spec.train.objective == "masked"

    @property
    def repeats(self) -> bool:
        return self.spec.train.repeat > 0

    @property
    def reads(self) -> str:
        """Returns the heading above what it learns from."""
        return TEXT["reads repeats" if self.repeats else "reads text"]

    @property
    def warning(self) -> str:
        """Returns a sentence about a training that is allowed, and shows something else than it seems;
        '' for others.
        """
        return warning(self.spec.model, self.spec.train)

    @property
    def question(self) -> str:
        """Returns the question of the page; '' where it is the page's own."""
        return ""

    @property
    def misfit(self) -> str:
        """Returns what follows where a window is not as long as a problem; '' where it fits."""
        return ""

    def link(self, page: site.Entry, run: str) -> dict[str, str]:
        """Returns what names a run's model in the address of a page; nothing where it cannot look inside."""
        return {"model": run} if page.section == "Inside" and page.url != CROSSED else {}

    def baselines(self, unit: Unit = "nats") -> Mapping[str, float]:
        """Returns the losses that predictors without a network reach on the data of a run."""
        return run_text.baselines(self.spec, unit)

    def before(self, uniform: float) -> str:
        """Returns the sentence before the first run, of which the loss is that of a `uniform` guess."""
        return TEXT(
            "before repeats" if self.repeats else "before text",
            choices=self.choices,
            noun=self.noun,
            loss=uniform,
            steps=self.spec.train.steps,
            share=self.spec.train.repeat,
        )

    def answer(self, view: RunView) -> str:
        """Describes a run as last validated."""
        looks = view.history.evaluations
        return self.after(looks[-1]) if looks else TEXT("starting", noun=self.noun)

    def after(self, look: Evaluation) -> str:
        if not math.isfinite(look.validation_loss):
            return TEXT("diverged", step=look.step)
        return TEXT(
            "after text" if look.step else "at the start",
            step=look.step,
            loss=content.Filled(nats(look.validation_loss, self.noun)),
            bits=number(bits(look), ".2f"),
            choices=self.choices,
            noun=self.noun,
        )

    def draw_shares(self, view: RunView, height: int) -> None:
        """Draws the share that is right by step, of what is held out and of what it was trained on."""

    def written(self, sample: Sample) -> tuple[str, str]:
        """Returns a sample as (prompt, text); a masked model's text contains its prompt. Answers are marked
        right or wrong.
        """
        return "" if self.masked else sample.prompt, sample.text

    def by_hand(self, loss: float) -> str:
        """Leads from the probability of a text to the loss, and on to perplexity."""
        mean = MeanLoss(loss, self.spec.model.context)
        return TEXT(
            "by hand text",
            noun=self.noun,
            nats=mean.nats,
            probability=mean.mean_probability,
            perplexity=perplexity(mean.nats),
            tokens=mean.tokens,
            power=mean.power_of_ten,
        )


class OfAnswers(OfText):
    """A run whose answers are right or wrong."""

    answers = True
    chart: ClassVar[str]  # name of the shares' chart
    share: ClassVar[str]  # the section that says of what the shares are

    @property
    def title(self) -> str:
        raise NotImplementedError

    @property
    def least(self) -> float:
        """Returns the loss that the answer names beside that of the run."""
        raise NotImplementedError

    @property
    def does(self) -> str:
        """Returns the end of the section that says what it does."""
        return self.share

    def after(self, look: Evaluation) -> str:
        if look.task is None or not math.isfinite(look.validation_loss):
            return TEXT("lost", step=look.step)
        return TEXT(
            f"answered {self.does}",
            step=look.step,
            held_out=look.task.validation,
            learned=look.task.train,
            loss=look.validation_loss,
            least=self.least,
        )

    def draw_shares(self, view: RunView, height: int) -> None:
        # A training ends with a quick look and one at the whole split, which counts.
        newest = {look.step: look for look in view.history.evaluations}.values()
        looks = [look for look in newest if look.task is not None]
        steps = np.array([look.step for look in looks])
        parts: dict[str, tuple[str, list[float]]] = {
            TEXT["held out"]: ("validation", [look.task.validation for look in looks if look.task]),
            TEXT["trained on"]: ("training", [look.task.train for look in looks if look.task]),
        }
        lines = [Solved(part, steps, np.array(shares), shade) for part, (shade, shares) in parts.items()]
        plot(
            solved_curves(lines, float(view.total_steps), what=TEXT[f"share {self.share}"]),
            key="solved_chart",
            alt=self._alt(looks[-1] if looks else None),
            height=height,
            data=pd.DataFrame({"step": steps, **{part: shares for part, (_, shares) in parts.items()}}),
            name=self.chart,
        )

    def _alt(self, look: Evaluation | None) -> str:
        if look is None or look.task is None:
            return TEXT(f"alt {self.chart} unmeasured", title=self.title)
        shares = {"held_out": look.task.validation, "learned": look.task.train}
        return TEXT(f"alt {self.chart}", title=self.title, step=look.step, **shares)


class OfTask(OfAnswers):
    """A run on a synthetic task, which is a text."""

    chart, share = "solved", "problems"

    @property
    def task(self) -> Task:
        return TASKS[self.spec.corpus]

    @property
    def title(self) -> str:
        return self.task.title

    @property
    def least(self) -> float:
        return self.task.floor(self.spec.model.context)

    @property
    def does(self) -> str:
        return "stream" if self.task.stream else self.share

    @property
    def misfit(self) -> str:
        context, length = self.spec.model.context, self.task.length
        if self.task.stream or context == length:
            return ""
        return TEXT(
            "no problem fits" if context < length else "window too long",
            title=content.Filled(self.title),
            length=length,
            context=context,
        )

    @property
    def question(self) -> str:
        return TEXT("task question", rule=content.Filled(self.task.rule))

    def baselines(self, unit: Unit = "nats") -> Mapping[str, float]:
        """Leaves out those of counting, which says little of random questions: they lie on one another."""
        lines = super().baselines(unit)
        return lines if self.task.stream else {n: lines[n] for n in ("uniform", FLOOR) if n in lines}

    def before(self, uniform: float) -> str:
        task = self.task
        return TEXT(
            "before stream" if task.stream else "before answers" if task.answers_only else "before questions",
            loss=uniform,
            floor=self.least,
            steps=self.spec.train.steps,
        )

    def written(self, sample: Sample) -> tuple[str, str]:
        lines = marked(self.task, (sample.prompt + sample.text).lstrip("\n"))
        return "", "\n" + "\n".join(f"{TEXT['right' if good else 'wrong']}  {line}" for line, good in lines)


class OfPairs(OfAnswers):
    """A run on pairs: sources with their targets."""

    senseless: ClassVar[tuple[str, ...]] = ("mask", "residual")
    characters = False
    chart, share = "right", "targets"

    @property
    def noun(self) -> str:
        return self.token

    @property
    def token(self) -> str:
        return "symbol"

    @property
    def title(self) -> str:
        return pair_titles()[self.spec.corpus]

    @property
    def least(self) -> float:
        return kinds.chance(self.spec.model, self.spec.corpus)

    @property
    def reads(self) -> str:
        return TEXT["reads pairs"]

    @property
    def warning(self) -> str:
        return ""

    @property
    def question(self) -> str:
        return TEXT("pairs question", title=content.Filled(self.title))

    def link(self, page: site.Entry, run: str) -> dict[str, str]:
        return {"cross_task": run} if page.url == CROSSED else super().link(page, run)

    def baselines(self, unit: Unit = "nats") -> Mapping[str, float]:
        """Returns the loss of knowing nothing."""
        return {"uniform": self.least}

    def before(self, uniform: float) -> str:
        steps = self.spec.train.steps
        return TEXT("before pairs", choices=self.choices, noun=self.noun, loss=uniform, steps=steps)

    def written(self, sample: Sample) -> tuple[str, str]:
        right = kinds.is_right(self.spec.corpus, sample.prompt, sample.text)
        sign = TEXT["not known" if right is None else "right" if right else "wrong"]
        return "", f"\n{sign}  {sample.text}\n← {sample.prompt}"

    def by_hand(self, loss: float) -> str:
        return TEXT["by hand pairs"]


class OfLabels(OfPairs):
    """A run on texts with their speakers."""

    senseless = ("mask",)
    share = "speakers"

    @property
    def noun(self) -> str:
        return "speaker"

    @property
    def question(self) -> str:
        return TEXT["speakers"]

    def link(self, page: site.Entry, run: str) -> dict[str, str]:
        return {"families_view": "speaks", "speaks_model": run} if page.url == "families" else {}

    def by_hand(self, loss: float) -> str:
        return TEXT["by hand labels"]


KINDS: Mapping[str, type[OfText]] = {"text": OfText, "pairs": OfPairs, "labels": OfLabels}


def kind_of(spec: RunSpec) -> OfText:
    """Returns the kind of a run, by its data."""
    return (OfTask if spec.corpus in TASKS else KINDS[spec.kind.name])(spec)


def pair_titles() -> dict[str, str]:
    """Returns the titles of pairs, and of labels, by their names in a RunSpec."""
    tasks = {kinds.PAIRS_OF + name: task.title for name, task in PAIR_TASKS.items()}
    return tasks | {kinds.SPEAKERS: TEXT["speakers"]}


def pair_rule(corpus: str) -> str:
    """Returns what is to be learned from pairs or labels."""
    if corpus == kinds.SPEAKERS:
        return TEXT["speakers rule"]
    return PAIR_TASKS[corpus.removeprefix(kinds.PAIRS_OF)].rule


def pair_preset(corpus: str) -> Preset:
    """Returns the settings that learn pairs or labels, with their lengths. Raises CorpusError where there are
    none.
    """
    labels = corpus == kinds.SPEAKERS
    base = ENCODERS["speakers"] if labels else PAIRED[corpus.removeprefix(kinds.PAIRS_OF)]
    return replace(base, model=kinds.recipe(corpus)[0])


def bits(look: Evaluation) -> float:
    """Returns validation loss in bits per character; NaN where it was not measured."""
    return math.nan if look.validation_bits is None else look.validation_bits


def number(value: float, form: str) -> str:
    """Returns a number in a format; a dash where there is none.

    >>> number(1.23456, ".2f"), number(float("nan"), ".2f")
    ('1.23', '–')
    """
    return content.Filled(format(value, form) if math.isfinite(value) else "–")
