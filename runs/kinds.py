"""The kinds of training, by their data: a text, pairs of texts, or texts with labels.

A kind says how its data are read, which model a run's settings make of them, how that is trained, what it
costs, and what a snapshot must say to be read again. Training, storing and counting ask the kind.

The settings of a run are one ModelConfig whatever it learns from: of an encoder-decoder, that of both stacks;
vocabulary and lengths are those of the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import torch

from engine.config import ModelConfig, TrainConfig
from engine.data import corpora
from engine.data.corpus import Corpus
from engine.errors import ConfigError, CorpusError
from engine.parts.registry import Parts
from engine.presets import Preset
from engine.training.records import Control, Record, TrainState
from engine.training.train import train
from runs import estimate
from studies.attention.head_scores import head_scores
from studies.costs.ledger import ledger
from studies.pairs import corpora as pair_corpora
from studies.pairs.dataset import LabelledText, PairedText
from studies.pairs.encoders import ENCODERS
from studies.pairs.paired import PAIR_TASKS
from studies.pairs.presets import PAIRED
from studies.pairs.train import ASKED, check_settings, check_vocabulary, train_labels, train_pairs

Data = Corpus | PairedText | LabelledText
Stacks = tuple[ModelConfig, ModelConfig | None]  # a model, and the encoder that it reads if it is a decoder
PAIRS_OF, LABELS_OF = "pairs-", "labels-"  # how the names of such data begin, in a RunSpec and in links
SPEAKERS = LABELS_OF + "speakers"


class Kind:
    """Everything that differs between kinds of training. `name` stands in snapshots. `inside`: the pages that
    look inside one stack can show its models.
    """

    name: ClassVar[str]
    inside: ClassVar[bool] = False
    train: ClassVar[Callable[..., Iterator[Record]]]

    def read(self, corpus: str, tokenizer: str) -> Any:
        """Reads the data of that name. Raises CorpusError or ConfigError where they cannot be had."""
        raise NotImplementedError

    def stacks(self, model: ModelConfig, corpus: str) -> Stacks:
        """Returns the configurations that the settings become with these data. Raises as `read`."""
        return self.read(corpus, "").fitted(model), None

    def parameters(self, model: ModelConfig, corpus: str, parts: Parts) -> int:
        """Returns the number of trained parameters. Raises as `read`."""
        return ledger(*self.stacks(model, corpus), parts=parts).total

    def check(self, model: ModelConfig, train: TrainConfig, corpus: str) -> None:
        """Raises ConfigError, before anything is trained, where settings and data do not fit."""
        text = self.read(corpus, "")
        _check(model, train, text)
        text.fitted(model).validate()

    def records(
        self,
        model: ModelConfig,
        settings: TrainConfig,
        data: Any,
        parts: Parts,
        control: Control,
        *,
        resume: TrainState | None = None,
        device: str | torch.device = "auto",
    ) -> Iterator[Record]:
        """Trains and yields records, as engine.training.train does. Raises ConfigError or CorpusError at
        once.
        """
        _check(model, settings, data)
        return type(self).train(
            data.fitted(model), settings, data, control=control, resume=resume, device=device, parts=parts
        )

    def metadata(self, model: ModelConfig, data: Any) -> dict[str, Any]:
        """Returns a snapshot's entries for the model and its tokenizer, JSON-able, as
        `studies.pairs.checkpoints.checkpoint_of` reads them.
        """
        return {"model": data.fitted(model).to_dict(), "tokenizer": data.tokenizer.to_dict()}

    def cost_stacks(self, model: ModelConfig, corpus: str) -> Stacks:
        """Returns the configurations as runs.estimate counts their work: of one length."""
        return self.stacks(model, corpus)

    def seconds(
        self, model: ModelConfig, train: TrainConfig, corpus: str, held_out: int, rate: float, parts: Parts
    ) -> float:
        """Returns the seconds from the first step to the end at a `rate` of operations a second; `held_out`
        is the tokens of a text's validation split.
        """
        raise NotImplementedError

    def tokens(self, model: ModelConfig, train: TrainConfig, corpus: str) -> int:
        """Returns the positions that are read for one update, padding included."""
        return estimate.tokens_a_step(self.stacks(model, corpus)[0], train)

    def outcomes(self, model: ModelConfig, corpus: str) -> int:
        """Returns the number of answers among which an untrained model chooses at random."""
        return model.vocab_size


class Texts(Kind):
    """A running text, or one with blanks to fill."""

    name, inside = "text", True

    def read(self, corpus: str, tokenizer: str) -> Corpus:
        return corpora.load(corpus, tokenizer=tokenizer)

    def stacks(self, model: ModelConfig, corpus: str) -> Stacks:
        return model, None

    def check(self, model: ModelConfig, train: TrainConfig, corpus: str) -> None:
        """Checks nothing: the worker does, when it has the text."""

    def records(
        self,
        model: ModelConfig,
        settings: TrainConfig,
        data: Corpus,
        parts: Parts,
        control: Control,
        *,
        resume: TrainState | None = None,
        device: str | torch.device = "auto",
    ) -> Iterator[Record]:
        how: dict[str, Any] = {"control": control, "resume": resume, "device": device, "parts": parts}
        return train(model, settings, data, **how, score_heads=head_scores)

    def metadata(self, model: ModelConfig, data: Corpus) -> dict[str, Any]:
        return {"model": model.to_dict(), "tokenizer": data.tokenizer.to_dict()}

    def seconds(
        self, model: ModelConfig, train: TrainConfig, corpus: str, held_out: int, rate: float, parts: Parts
    ) -> float:
        return estimate.seconds(model, train, held_out, rate, parts)


class Pairs(Kind):
    """Sources with their targets: an encoder-decoder."""

    name, train = "pairs", staticmethod(train_pairs)

    def read(self, corpus: str, tokenizer: str) -> PairedText:
        return pair_corpora.pair_text(corpus.removeprefix(PAIRS_OF))

    def stacks(self, model: ModelConfig, corpus: str) -> Stacks:
        config = self.read(corpus, "").fitted(model)
        return config.decoder, config.encoder

    def cost_stacks(self, model: ModelConfig, corpus: str) -> Stacks:
        """Returns both stacks with the mean of the two lengths: the ledger counts one token of each."""
        text = self.read(corpus, "")
        config, length = text.fitted(model), round(sum(text.longest) / 2)
        return replace(config.decoder, context=length), replace(config.encoder, context=length)

    def seconds(
        self, model: ModelConfig, train: TrainConfig, corpus: str, held_out: int, rate: float, parts: Parts
    ) -> float:
        """Returns the seconds of a training. Beside its steps it writes the targets of ASKED sources of each
        split at an evaluation, and of all held-out ones at the end: as much work as reading them, and a start
        of every layer for every symbol.
        """
        text, (decoder, encoder) = self.read(corpus, ""), self.cost_stacks(model, corpus)
        looks = 1 + estimate.looks_taken(train.steps, train.eval_every, train.look_early)
        positions = len(text.validation) * decoder.context
        read = min((train.eval_tokens // 2) or positions, positions)
        answered = 2 * ASKED * looks * decoder.context + positions
        work = train.steps * estimate.step_work(decoder, train, parts, encoder)
        work += estimate.forward_work(decoder, train, parts, encoder) * (
            2 * read * looks + positions + answered
        )
        written = text.longest[1] * (2 * looks + 5 + looks)  # symbols, one at a time: looks and samples
        return work / rate + written * 2 * decoder.n_layers * estimate.SAMPLED_TOKEN

    def tokens(self, model: ModelConfig, train: TrainConfig, corpus: str) -> int:
        return train.batch_size * sum(self.read(corpus, "").longest)


class Labels(Kind):
    """Texts with their labels: an encoder whose pooled vector says which."""

    name, train = "labels", staticmethod(train_labels)

    def read(self, corpus: str, tokenizer: str) -> LabelledText:
        if corpus != SPEAKERS:
            raise CorpusError(f"there are no labelled texts called {corpus!r}; there are {SPEAKERS}")
        return pair_corpora.speakers().text

    def parameters(self, model: ModelConfig, corpus: str, parts: Parts) -> int:
        """Returns the parameters of the encoder, and of the matrix and biases of its output."""
        return super().parameters(model, corpus, parts) + self.outcomes(model, corpus) * (model.d_model + 1)

    def metadata(self, model: ModelConfig, data: LabelledText) -> dict[str, Any]:
        result = super().metadata(model, data)
        return result | {"model": {"encoder": result["model"], "labels": list(data.labels)}}

    def seconds(
        self, model: ModelConfig, train: TrainConfig, corpus: str, held_out: int, rate: float, parts: Parts
    ) -> float:
        fitted = self.stacks(model, corpus)[0]
        positions = len(self.read(corpus, "").validation) * fitted.context
        return estimate.seconds(fitted, replace(train, sample_length=1), positions, rate, parts)

    def outcomes(self, model: ModelConfig, corpus: str) -> int:
        return len(self.read(corpus, "").labels)


TEXTS, PAIRS, LABELS = Texts(), Pairs(), Labels()
KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (TEXTS, PAIRS, LABELS)}
OF_DATA: Mapping[type, Kind] = {Corpus: TEXTS, PairedText: PAIRS, LabelledText: LABELS}
NAMES = (*corpora.names(), *(PAIRS_OF + name for name in PAIR_TASKS), SPEAKERS)


def kind_of(corpus: str) -> Kind:
    """Returns the kind of a training by the name of its data in a RunSpec.

    >>> [kind_of(name).name for name in ("shakespeare", "pairs-dates", "labels-speakers")]
    ['text', 'pairs', 'labels']
    """
    return PAIRS if corpus.startswith(PAIRS_OF) else LABELS if corpus.startswith(LABELS_OF) else TEXTS


def recipe(corpus: str) -> tuple[ModelConfig, TrainConfig]:
    """Returns settings that learn these pairs or labels (engine/presets/{pairs,encoders}.py), with their
    vocabulary and the longer of their lengths. Raises CorpusError for another name.
    """
    kind = kind_of(corpus)
    text = kind.read(corpus, "")
    preset: Preset = (
        PAIRED[corpus.removeprefix(PAIRS_OF)] if kind.name == PAIRS.name else ENCODERS["speakers"]
    )
    assert preset.train is not None
    return replace(preset.model, vocab_size=text.vocab_size, context=longest(text)), preset.train


def chance(model: ModelConfig, corpus: str) -> float:
    """Returns the loss of a model that knows nothing of pairs or labels: nats per symbol, or per label."""
    return math.log(kind_of(corpus).outcomes(model, corpus))


def is_right(corpus: str, question: str, answer: str) -> bool | None:
    """True if a sample's answer is right; None where that is unknown: the question is no source of the task,
    or not one of the held-out texts.
    """
    if kind_of(corpus).name == LABELS.name:
        known = {example.text: example.label for example in pair_corpora.speakers().text.validation}
        return known[question] == answer if question in known else None
    right = PAIR_TASKS[corpus.removeprefix(PAIRS_OF)].truth(question)
    return None if right is None else right.target == answer


def longest(data: Data) -> int:
    """Returns the tokens of the longest source, target or text, with its special tokens."""
    if isinstance(data, PairedText):
        return max(data.longest)
    assert isinstance(data, LabelledText)
    return data.fitted(ModelConfig()).context


def _check(model: ModelConfig, train: TrainConfig, data: PairedText | LabelledText) -> None:
    """Raises ConfigError for settings that are not of these data."""
    if train.tokenizer != "char":
        raise ConfigError("tokenizer", train.tokenizer, "must be char: these data have symbols of their own")
    check_settings(train)
    check_vocabulary(model, data)
