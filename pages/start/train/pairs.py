"""A run that learns from pairs or from labels: the share that it gets right alone beside the loss, and what
it makes of a source, marked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from engine.data.pairs import LabelledText, PairedText
from engine.data.tasks.paired import PAIR_TASKS
from engine.presets import ENCODERS, PAIRED, Preset
from engine.service.state import RunSpec, RunView
from engine.training import kinds
from engine.training.records import Evaluation, Sample
from engine.training.train import warning
from pages.start.train import words_pairs as words
from pages.start.train.tasks import draw_shares
from ui.text.markdown import token_word

SHOWN = 14  # pairs that are shown before the first run
TITLES = {
    **{kinds.PAIRS_OF + name: task.title for name, task in PAIR_TASKS.items()},
    kinds.SPEAKERS: words.SPEAKERS,
}
NO_WHAT_IFS = {"pairs": ("mask", "residual"), "labels": ("mask",)}  # what would change nothing, or cannot be


@dataclass(frozen=True)
class Paired:
    """The subject of such a run: its name in a RunSpec, and in words."""

    name: str
    title: str
    rule: str
    labels: bool

    @property
    def preset(self) -> Preset:
        """The settings that learn it, with its own lengths. Raises CorpusError where it cannot be had."""
        base = ENCODERS["speakers"] if self.labels else PAIRED[self.name.removeprefix(kinds.PAIRS_OF)]
        return replace(base, model=kinds.recipe(self.name)[0])

    @property
    def noun(self) -> str:
        """The noun for one answer of the model."""
        return "speaker" if self.labels else "symbol"


def paired_of(corpus: str) -> Paired | None:
    """Returns what a run learns by the name of the data in its RunSpec; None for a text."""
    if corpus not in TITLES:
        return None
    labels = corpus == kinds.SPEAKERS
    rule = words.SPEAKERS_RULE if labels else PAIR_TASKS[corpus.removeprefix(kinds.PAIRS_OF)].rule
    return Paired(corpus, TITLES[corpus], rule, labels)


def question(paired: Paired) -> str:
    return words.question(paired.title, paired.labels)


def noun_of(spec: RunSpec) -> str:
    """Returns the unit of a loss: a token of its text, a symbol, a speaker."""
    paired = paired_of(spec.corpus)
    return paired.noun if paired else token_word(spec.train.tokenizer)


def strange(spec: RunSpec) -> str:
    """Returns a sentence about a training that is allowed, and shows something else than it seems to; else
    ''.
    """
    return warning(spec.model, spec.train) if spec.kind is kinds.TEXTS else ""


def baselines(spec: RunSpec) -> Mapping[str, float]:
    """Returns the loss of knowing nothing, as a line of the chart."""
    return {"uniform": kinds.chance(spec.model, spec.corpus)}


def solved(view: RunView, paired: Paired, height: int) -> None:
    """Draws the share that is right by step, of what is held out and of what it learned from."""
    what = "speakers named correctly" if paired.labels else "targets written without an error"
    draw_shares(view, "right", height, lambda look: words.alt(paired.title, look), what=what)


def written(paired: Paired, sample: Sample) -> str:
    """Returns a sample with its source, marked."""
    return words.written(sample.prompt, sample.text, kinds.is_right(paired.name, sample.prompt, sample.text))


def answer(view: RunView, paired: Paired) -> str | None:
    """Returns the sentence that goes with it; None before the first look."""
    looks: Sequence[Evaluation] = view.history.evaluations
    spec = view.spec
    return words.after(looks[-1], kinds.chance(spec.model, spec.corpus), paired.labels) if looks else None


def before(spec: RunSpec, paired: Paired) -> str:
    """Returns the sentence before the first run."""
    outcomes = spec.kind.outcomes(spec.model, spec.corpus)
    chance = kinds.chance(spec.model, spec.corpus)
    return words.before(chance, paired.noun, outcomes, spec.train.steps)


def examples(data: PairedText | LabelledText) -> str:
    """Returns the first pairs that it learns from, a line each."""
    if isinstance(data, PairedText):
        return "\n".join(f"{pair.source} → {pair.target}" for pair in data.train[:SHOWN])
    return "\n".join(f"{line.text} → {line.label}" for line in data.train[:SHOWN])


def described(data: PairedText | LabelledText) -> str:
    """Returns how much there is."""
    labels = isinstance(data, LabelledText)
    return words.described(len(data.train), len(data.validation), data.vocab_size, labels)
