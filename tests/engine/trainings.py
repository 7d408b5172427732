"""What the tests of training share: a verse, a small model, and a training of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.config import ModelConfig, TrainConfig
from engine.data.corpus import Corpus
from engine.training.records import Control, Record, Step, TrainState
from engine.training.train import train
from studies.attention.head_scores import head_scores
from tests.engine.helpers import verse

CORPUS = verse()
MODEL = ModelConfig(vocab_size=CORPUS.vocab_size, context=16, d_model=32, n_layers=2, n_heads=2)
TRAIN = TrainConfig(
    steps=20,
    batch_size=4,
    learning_rate=3e-3,
    warmup_steps=4,
    precision="float32",
    eval_every=10,
    eval_tokens=256,
    sample_every=10,
    sample_length=8,
    snapshot_every=10,
)


def run(
    model: ModelConfig = MODEL,
    corpus: Corpus = CORPUS,
    resume: TrainState | None = None,
    control: Control | None = None,
    **fields: Any,
) -> list[Record]:
    records = train(
        model,
        replace(TRAIN, **fields),
        corpus,
        device="cpu",
        resume=resume,
        control=control,
        score_heads=head_scores,
    )
    return list(records)


def losses(records: list[Record]) -> list[float]:
    return [record.loss for record in records if isinstance(record, Step)]


def only(records: list[Record], kind: type) -> list[Any]:
    return [record for record in records if isinstance(record, kind)]
