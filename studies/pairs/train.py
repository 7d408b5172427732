"""Training on pairs: an encoder-decoder on sources with their targets, a classifier on texts with their
labels. The loop and its records are those of engine.training.train.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.config import ModelConfig, SampleConfig, TrainConfig
from engine.errors import ConfigError
from engine.model import BlockStack
from engine.parts.registry import HEALTHY, Parts, Targets, shifted
from engine.training.loop import B, Loop, M
from engine.training.numerics import choose
from engine.training.records import Control, Evaluation, Record, Sample, TaskScores, TrainState
from studies.pairs.config import Seq2SeqConfig
from studies.pairs.dataset import (
    LabelledRows,
    LabelledText,
    PairedText,
    Rows,
    Split,
    label_ids,
    padded,
    source_ids,
)
from studies.pairs.generate import pair_steps, write_targets
from studies.pairs.seq2seq import Classifier, Seq2Seq, build_classifier, build_pair
from studies.pairs.tokenizer import BEGIN, END, PAD, PairTokenizer

T = TypeVar("T", PairedText, LabelledText)
ASKED = 100  # sources of each split that are answered at a quick look, spread evenly over it
AT_ONCE = 256  # rows of one forward pass of an evaluation


@dataclass(frozen=True, eq=False)
class PairBatch:
    """Sources (batch, source); inputs (batch, query), which the decoder reads; targets (batch, query), which
    it is to write at each position, -1 where there is none.

    Teacher forcing: whatever the model would have said, it reads the right target so far (Williams & Zipser
    1989). So the inputs are the targets, one place later.
    """

    sources: Tensor = field(repr=False)
    inputs: Tensor = field(repr=False)
    targets: Tensor = field(repr=False)

    @property
    def predicted(self) -> int:
        """The number of tokens to be predicted, ends included."""
        return int((self.targets >= 0).sum())


def teacher_forced(rows: Rows, targets: Targets = shifted) -> PairBatch:
    """Returns rows as the model learns from them; `targets` splits BEGIN, a text, END into inputs and
    targets.
    """
    read, predicted = targets(rows.targets)
    return PairBatch(rows.sources, read, predicted.masked_fill(predicted == PAD, -1))


def drawn(count: int, config: TrainConfig, step: int) -> Tensor:
    """Draws the rows of a step's batch (batch_size,), each below `count`, by seed and step alone."""
    generator = torch.Generator().manual_seed((config.seed * 1_000_003 + step) % 2**63)
    return torch.randint(count, (config.batch_size,), generator=generator)


def spread(count: int, wanted: int) -> Tensor:
    """Returns up to `wanted` of `count` row indices, spread evenly; all of them for 0.

    >>> spread(10, 3).tolist(), spread(2, 0).tolist()
    ([0, 4, 9], [0, 1])
    """
    return torch.linspace(0, count - 1, min(count, wanted or count)).long()


def pair_loss(model: Seq2Seq, batch: PairBatch) -> Tensor:
    """Returns the mean cross-entropy in nats per target token, in float32 whatever the model computes in."""
    device = model.embedding.device
    logits = model(batch.sources.to(device), batch.inputs.to(device))  # (batch, query, vocab)
    targets = batch.targets.to(device)
    return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten(), ignore_index=-1)


def label_loss(model: Classifier, rows: LabelledRows) -> Tensor:
    """Returns the mean cross-entropy in nats per text."""
    device = model.w_label.weight.device
    return F.cross_entropy(model(rows.texts.to(device)).float(), rows.labels.to(device))


def exact(model: Seq2Seq, rows: Rows) -> list[bool]:
    """Returns for each row True if the model, writing freely, writes the whole target and its end."""
    wanted = [row[1 : row.index(END) + 1] for row in rows.targets.tolist()]
    right: list[bool] = []
    for some in torch.arange(len(rows)).split(AT_ONCE):
        written = write_targets(model, rows.sources[some])
        right += [target == wanted[row] for target, row in zip(written, some.tolist(), strict=True)]
    return right


def train_pairs(
    model_config: Seq2SeqConfig,
    train_config: TrainConfig,
    text: PairedText,
    *,
    control: Control | None = None,
    resume: TrainState | None = None,
    device: str | torch.device = "auto",
    parts: Parts = HEALTHY,
) -> Iterator[Record]:
    """Trains an encoder-decoder and yields what happens, as engine.training.train does. Losses are nats per
    token of the targets, their ends included; `Evaluation.task` is the share of sources whose whole target
    the model writes right, alone. A sample's `prompt` is a source.

    Raises ConfigError at once when the three do not go together.
    """
    check_settings(train_config)
    longest = text.longest
    model_config.validate()
    for name, config, need in zip(
        ("source", "target"), (model_config.encoder, model_config.decoder), longest, strict=True
    ):
        if config.context < need:
            raise ConfigError("context", config.context, f"must be at least {need} for the longest {name}")
    check_vocabulary(model_config.encoder, text)
    if (model_config.pad, model_config.begin, model_config.end) != (PAD, BEGIN, END):
        raise ConfigError("begin", model_config.begin, f"pad, begin and end must be {PAD}, {BEGIN} and {END}")
    model = build_pair(model_config, train_config.seed, parts=parts, init=train_config.init)
    return _Pairs(model, text, train_config, control, device).records(resume)


def train_labels(
    model_config: ModelConfig,
    train_config: TrainConfig,
    text: LabelledText,
    *,
    control: Control | None = None,
    resume: TrainState | None = None,
    device: str | torch.device = "auto",
    parts: Parts = HEALTHY,
) -> Iterator[Record]:
    """Trains a classifier and yields what happens. Losses are nats per text; `Evaluation.task` is the share
    of texts whose label is the likeliest. A sample's `prompt` is a text, and its `text` the label.

    Raises ConfigError at once when the three do not go together.
    """
    check_settings(train_config)
    need = text.fitted(model_config).context
    if model_config.context < need:
        raise ConfigError("context", model_config.context, f"must be at least {need} for the longest text")
    check_vocabulary(model_config, text)
    config, labels = train_config, len(text.labels)
    model = build_classifier(model_config, labels, config.seed, parts=parts, init=config.init)
    return _Labels(model, text, config, control, device).records(resume)


def check_settings(config: TrainConfig) -> None:
    """Raises ConfigError for settings with which nothing is learned from pairs or labels."""
    config.validate()
    if config.objective != "next_token":
        raise ConfigError(
            "objective", config.objective, "must be next_token: pairs say what is to be learned"
        )
    if config.repeat:
        raise ConfigError("repeat", config.repeat, "must be 0: pairs are learned as they are")


def check_vocabulary(config: ModelConfig, text: PairedText | LabelledText) -> None:
    """Raises ConfigError for another vocabulary than that of the data."""
    if config.vocab_size != text.vocab_size:
        raise ConfigError(
            "vocab_size",
            config.vocab_size,
            f"must be {text.vocab_size}, the symbols and signs of {text.title}",
        )


class _Examples(Loop[M, B], Generic[M, B, T]):
    """The shared part of both trainings. `measured` and `answer` are what differs at a look."""

    def __init__(
        self,
        model: M,
        text: T,
        config: TrainConfig,
        control: Control | None,
        device: str | torch.device,
    ) -> None:
        has_dropout = any(part.config.dropout > 0 for part in model.modules() if isinstance(part, BlockStack))
        numerics = choose(config.precision, device)
        super().__init__(model, model.parts, config, control or Control(), numerics, has_dropout)  # type: ignore[arg-type]
        self.text: T = text

    def measured(self, split: Split, wanted: int, complete: bool) -> tuple[float, float]:
        """Returns the mean loss of `wanted` rows of a split (0: all of them), and the share of answers that
        are right: of all rows if `complete`.
        """
        raise NotImplementedError

    def answer(self, model: M, prompt: str) -> tuple[str, str]:
        """Returns what was read of a prompt (the first held-out example if nothing is), and the answer."""
        raise NotImplementedError

    def tokens(self, batch: B) -> int:
        return round(self.step * self.config.batch_size * self.text.mean_tokens)

    def evaluation(self, complete: bool) -> Evaluation:
        limit = rows_for(self.config.eval_tokens, self.text.mean_tokens)
        self.last_quick_step = self.last_quick_step if complete else self.step
        with self.numerics.scope():
            loss, right = self.measured("train", limit, False)
            held_out, held_out_right = self.measured("validation", 0 if complete else limit, complete)
        scores, whole = TaskScores(right, held_out_right), complete or not limit
        return Evaluation(
            step=self.step,
            train_loss=loss,
            validation_loss=held_out,
            seconds=self.seconds,
            complete=whole,
            task=scores,
        )

    def sample(self) -> Sample:
        prompt = self.config.sample_prompt if self.control.prompt is None else self.control.prompt
        with evaluating(self.in_float32(), self.parts) as model:
            return Sample(self.step, *self.answer(model, prompt))


class _Pairs(_Examples[Seq2Seq, PairBatch, PairedText]):
    def batch(self) -> PairBatch:
        rows = self.text.rows["train"]
        return teacher_forced(rows.of(drawn(len(rows), self.config, self.step)), self.parts.targets)

    def loss(self, batch: PairBatch) -> Tensor:
        return pair_loss(self.model, batch)

    def quick_loss(self) -> float:
        return self._mean("train", 1)

    def _mean(self, split: Split, wanted: int) -> float:
        """Nats per token, over `wanted` rows of a split."""
        rows = self.text.rows[split]
        total, count = 0.0, 0
        with evaluating(self.model, self.parts):
            for some in spread(len(rows), wanted).split(AT_ONCE):
                batch = teacher_forced(rows.of(some), self.parts.targets)
                total += float(pair_loss(self.model, batch)) * batch.predicted
                count += batch.predicted
        return total / max(count, 1)

    def measured(self, split: Split, wanted: int, complete: bool) -> tuple[float, float]:
        loss, rows = self._mean(split, wanted), self.text.rows[split]
        with evaluating(self.in_float32(), self.parts) as model:
            right = exact(model, rows.of(spread(len(rows), 0 if complete else ASKED)))
        return loss, sum(right) / len(right)

    def answer(self, model: Seq2Seq, prompt: str) -> tuple[str, str]:
        tokenizer = self.text.tokenizer
        source = known(prompt, tokenizer) or self.text.validation[0].source
        sampling = SampleConfig(self.config.sample_temperature, seed=self.config.seed + self.step)
        ids = source_ids(source, tokenizer)[-self.model.config.encoder.context :]
        return source, tokenizer.decode([r.token for r in pair_steps(model, ids, None, sampling)])


class _Labels(_Examples[Classifier, LabelledRows, LabelledText]):
    def batch(self) -> LabelledRows:
        rows = self.text.rows["train"]
        return rows.of(drawn(len(rows), self.config, self.step))

    def loss(self, batch: LabelledRows) -> Tensor:
        return label_loss(self.model, batch)

    def quick_loss(self) -> float:
        return self.measured("train", 1, False)[0]

    def measured(self, split: Split, wanted: int, complete: bool) -> tuple[float, float]:
        rows = self.text.rows[split]
        total, right, chosen = 0.0, 0, spread(len(rows), wanted)
        with evaluating(self.model, self.parts):
            for some in chosen.split(AT_ONCE):
                batch = rows.of(some)
                logits = self.model(batch.texts.to(self.numerics.device)).float().cpu()
                total += float(F.cross_entropy(logits, batch.labels, reduction="sum"))
                right += int((logits.argmax(-1) == batch.labels).sum())
        return total / len(chosen), right / len(chosen)

    def answer(self, model: Classifier, prompt: str) -> tuple[str, str]:
        text = known(prompt, self.text.tokenizer) or self.text.validation[0].text
        ids = label_ids(text, self.text.tokenizer)[: self.model.config.context]
        return text, self.text.labels[int(model(padded([ids]).to(self.numerics.device)).argmax())]


@contextmanager
def evaluating(model: M, parts: Parts) -> Iterator[M]:
    """Puts a model into evaluation mode, without gradients, and back."""
    training = model.training
    parts.mode(model, False)
    try:
        with torch.inference_mode():
            yield model
    finally:
        parts.mode(model, training)


def known(text: str, tokenizer: PairTokenizer) -> str:
    """Returns a text without the symbols that a vocabulary lacks; unchanged where one symbol stands for
    such.
    """
    return text.strip() if tokenizer.other is not None else tokenizer.without(text, tokenizer.unknown(text))


def rows_for(tokens: int, each: float) -> int:
    """Returns the number of rows that hold about so many tokens; 0 for 0, which means all of them.

    >>> rows_for(100, 9.0), rows_for(1, 9.0), rows_for(0, 9.0)
    (11, 1, 0)
    """
    return max(1, int(tokens / each)) if tokens else 0
