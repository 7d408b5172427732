"""Recipes of the encoder-decoders and the classifier: the settings of engine/presets/{pairs,encoders}.py with
the vocabulary and the lengths of the task.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.config import ModelConfig, Seq2SeqConfig, TrainConfig
from engine.data.pair_corpora import pair_text, speakers
from engine.data.pairs import LabelledText, PairedText
from engine.presets import ENCODERS, PAIRED, Preset


@dataclass(frozen=True)
class PairRecipe:
    """The arguments of `engine.training.train_pairs.train_pairs`."""

    model: Seq2SeqConfig
    train: TrainConfig
    text: PairedText


@dataclass(frozen=True)
class LabelRecipe:
    """The arguments of `engine.training.train_pairs.train_labels`; `majority` is the accuracy of always
    guessing the most frequent label; `lines` the number of lines of each held-out text.
    """

    model: ModelConfig
    train: TrainConfig
    text: LabelledText
    majority: float
    lines: tuple[int, ...]


def pair_recipe(name: str) -> PairRecipe:
    """Returns the recipe of a task by its name. Raises CorpusError for an unknown name."""
    text = pair_text(name)
    preset = PAIRED[name]
    return PairRecipe(text.fitted(preset.model), _train(preset), text)


def label_recipe() -> LabelRecipe:
    """Returns the recipe of the classifier that says who speaks. Raises CorpusError where Shakespeare cannot
    be had.
    """
    data = speakers()
    return LabelRecipe(
        data.text.fitted(ENCODERS["speakers"].model),
        _train(ENCODERS["speakers"]),
        data.text,
        data.majority,
        data.lines,
    )


def _train(preset: Preset) -> TrainConfig:
    assert preset.train is not None
    return preset.train
