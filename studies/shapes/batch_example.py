"""One batch of a training as it is fed to the model: inputs x, targets y, one position apart."""

from __future__ import annotations

from dataclasses import dataclass

from engine.config import ModelConfig, TrainConfig
from engine.data.corpus import Corpus
from engine.data.tokenizers import written
from engine.parts.registry import HEALTHY, Parts
from engine.training.batches import Batches


@dataclass(frozen=True)
class ShiftedBatch:
    """The first rows of a step's batch. `x` and `y` hold tokens as text; '' is a position where nothing is
    predicted (masked objective).
    """

    step: int
    starts: tuple[int, ...]  # position in the training text of each row's first token, counted from 0
    bound: int  # starts are drawn from 0 .. bound - 1
    tokens: int  # of the training text
    rows: int  # of the whole batch
    positions: int  # of each row
    x: tuple[tuple[str, ...], ...]
    y: tuple[tuple[str, ...], ...]
    shifted: int  # how many of the (positions - 1) * rows pairs have y[i, t] = x[i, t + 1]

    @property
    def pairs(self) -> int:
        return (self.positions - 1) * self.rows


def shifted_batch(
    corpus: Corpus,
    model: ModelConfig,
    train: TrainConfig,
    step: int,
    *,
    rows: int = 3,
    parts: Parts = HEALTHY,
) -> ShiftedBatch:
    """Returns the batch of update `step` (from 1): its first `rows` rows as text, and how many targets are
    the next input. Raises CorpusError for a text shorter than a window.
    """
    batches = Batches(corpus, model, train, parts.targets)
    starts, _ = batches.starts(step - 1)
    batch = batches.at(step - 1)
    same = batch.targets[:, :-1] == batch.inputs[:, 1:]

    def words(ids: list[int]) -> tuple[str, ...]:
        known = range(corpus.vocab_size)
        return tuple(
            written(corpus.tokenizer, [i]) if i in known else ("" if i < 0 else "[mask]") for i in ids
        )

    return ShiftedBatch(
        step,
        tuple(int(start) for start in starts[:rows]),
        batches.bound,
        len(corpus.train),
        batch.inputs.shape[0],
        batch.inputs.shape[1],
        tuple(words(row) for row in batch.inputs[:rows].tolist()),
        tuple(words(row) for row in batch.targets[:rows].tolist()),
        int(same.sum()),
    )
