"""How the tasks with a source and a target are trained, and the classifier: the settings of
engine/presets/{paired,encoders}.py with the vocabulary and the lengths of the task.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.config import ModelConfig, Seq2SeqConfig, TrainConfig
from engine.data.pair_corpora import pair_text, speakers
from engine.data.pairs import LabelledText, PairedText
from engine.presets import ENCODERS, PAIRED, Preset


@dataclass(frozen=True)
class PairRecipe:
    """What `engine.training.train_pairs.train_pairs` takes."""

    model: Seq2SeqConfig
    train: TrainConfig
    text: PairedText


@dataclass(frozen=True)
class LabelRecipe:
    """What `engine.training.train_pairs.train_labels` takes; `majority` is the share that is right without a
    model: always the label that is learned from most; `lines` how many each held-out text has.
    """

    model: ModelConfig
    train: TrainConfig
    text: LabelledText
    majority: float
    lines: tuple[int, ...]


def pair_recipe(name: str) -> PairRecipe:
    """Of a task by its name. Raises CorpusError for a name that is none."""
    text = pair_text(name)
    preset = PAIRED[name]
    return PairRecipe(text.fitted(preset.model), _train(preset), text)


def label_recipe() -> LabelRecipe:
    """Of the classifier that says who speaks. Raises CorpusError where Shakespeare cannot be had."""
    found = speakers()
    return LabelRecipe(
        found.text.fitted(ENCODERS["speakers"].model),
        _train(ENCODERS["speakers"]),
        found.text,
        found.majority,
        found.lines,
    )


def _train(preset: Preset) -> TrainConfig:
    assert preset.train is not None
    return preset.train
