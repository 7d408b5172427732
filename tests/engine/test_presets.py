"""Presets are legal, differ in what their names promise, and give reasons for fields that exist."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from engine.config import ModelConfig, TrainConfig
from engine.data.corpora import from_text
from engine.model import build
from engine.training.records import Done
from engine.training.train import train
from studies.attention.head_scores import head_scores
from studies.costs.presets import PRESETS
from studies.costs.published_models import ENCODER_DECODERS
from studies.pairs.encoders import ENCODERS
from tests.engine.cases import for_each
from tests.engine.helpers import VERSE

TRAINABLE = [name for name, preset in PRESETS.items() if preset.trainable]
FIELDS = {field.name for kind in (ModelConfig, TrainConfig) for field in dataclasses.fields(kind)}


@for_each("name", PRESETS | ENCODER_DECODERS)
def test_every_preset_is_legal_and_explained(name: str) -> None:
    preset = (PRESETS | ENCODER_DECODERS)[name]
    preset.model.validate()
    build(preset.model, device="meta")
    if preset.train is not None:
        preset.train.validate()
    else:
        assert preset.source and re.search(r"(19|20)\d\d", preset.source), "a year tells papers apart"
        assert preset.published and preset.title.endswith("(published)")
    assert preset.title and preset.summary
    assert set(preset.why) <= FIELDS


LARGE = {"mini", "nanogpt"}


@for_each(
    "name", [*TRAINABLE, "blanks", "blanks_bpe"], fast=[n for n in TRAINABLE if n not in LARGE] + ["blanks"]
)
def test_trainable_presets_train(name: str) -> None:
    preset = (PRESETS | ENCODERS)[name]
    assert preset.train is not None
    corpus = from_text(VERSE, "verse", preset.train.tokenizer)
    vocab = corpus.vocab_size + (preset.train.objective == "masked")  # the blank
    model = dataclasses.replace(preset.model, vocab_size=vocab)
    config = dataclasses.replace(preset.train, steps=2, batch_size=2, eval_tokens=256, sample_length=4)
    last = list(train(model, config, corpus, device="cpu", score_heads=head_scores))[-1]
    assert isinstance(last, Done) and last.reason == "finished"


NAMING = (
    "presets",
    "encoders",
    "published_models",
    "published_caches",
    "smaller_caches",
    "lecture_models",
    "rungs",
    "race_recipes",
)


def test_nothing_looks_at_a_preset_s_name() -> None:
    names = "|".join(
        re.escape(name) for name, preset in (PRESETS | ENCODER_DECODERS).items() if not preset.trainable
    )
    root = Path(__file__).resolve().parents[2]
    # whose families have such names; exercises ask about models by name
    theirs = ("tokens", "pretrained", "export", "reference", "sets", "worked")
    for path in [path for name in ("engine", "studies", "runs") for path in (root / name).rglob("*.py")]:
        if path.parent.name != "presets" and path.stem not in NAMING:
            named = re.search(rf"""["']({names})["']""", path.read_text("utf-8"))
            assert not named or path.parent.name in theirs, path
