"""The whole square: weights on later tokens, blanks one by one, the loss at the end of a text, by other means."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from engine.checkpoints import load
from engine.config import TrainConfig
from engine.corpora import Corpus
from engine.errors import ConfigError
from engine.measure.square import alone, end_loss, opened, read
from engine.training import unmasked
from engine.training.batches import Batch, Batches
from tests.engine.helpers import loud, tiny

MODEL = loud(tiny(n_layers=2), factor=4.0).requires_grad_(False)
FULL = loud(tiny(n_layers=2, causal=False), factor=4.0).requires_grad_(False)
IDS = [3, 1, 4, 1, 5, 9, 2]


def test_the_same_weights_without_the_mask():
    found = opened(MODEL)
    assert not found.config.causal
    assert torch.equal(found(torch.tensor([IDS])), FULL(torch.tensor([IDS])))  # of the same seed
    with pytest.raises(ConfigError, match="none to take away"):
        opened(FULL)


def test_chances_are_those_of_the_next_token():
    found = read(FULL, IDS)
    logits = FULL(torch.tensor([IDS]))[0].double()
    wanted = [
        math.exp(float(row[after] - row.logsumexp(0))) for row, after in zip(logits, IDS[1:], strict=False)
    ]
    np.testing.assert_allclose(found.chances, wanted, rtol=1e-5)
    by_layer = []
    for layer in range(2):
        total = 0.0
        for head in found.patterns[layer]:
            for query in range(6):
                total += sum(float(head[query, key]) for key in range(query + 1, 7))
        by_layer.append(total / 6 / len(found.patterns[layer]))
        assert found.ahead(layer) == pytest.approx(by_layer[-1], rel=1e-5)
    assert found.ahead(None) == pytest.approx(sum(by_layer) / 2, rel=1e-5) and by_layer[0] != by_layer[1]
    assert read(MODEL, IDS).ahead(None) == 0.0


def test_each_token_is_hidden_in_turn():
    blank = FULL.config.vocab_size - 1
    found = read(FULL, IDS, blank).chances
    for place, token in enumerate(IDS):
        text = list(IDS)
        text[place] = blank
        said = FULL(torch.tensor([text]))[0, place].double().softmax(-1)
        assert found[place] == pytest.approx(float(said[token]), rel=1e-4)
    found = alone(FULL, IDS, 9, blank)
    assert len(found) == 9 and blank not in found and found == alone(FULL, IDS, 9, blank)
    assert found != alone(FULL, IDS, 9, blank, seed=1)
    generator, text = torch.Generator().manual_seed(0), list(IDS)
    for _ in range(9):
        seen = [*text[-(FULL.config.context - 1) :], blank]
        logits = FULL(torch.tensor([seen]))[0, -1, :-1].double() / 0.8
        chances = torch.cat([logits.softmax(-1), torch.zeros(1).double()])
        text.append(int(torch.multinomial(chances, 1, generator=generator)))
    assert text[len(IDS) :] == found
    assert len(alone(MODEL, IDS, 3)) == 3
    inputs, targets = torch.tensor([IDS, IDS[::-1]]), torch.tensor([[-1] * 6 + [4], [-1] * 6 + [7]])
    said = FULL(inputs)[:, -1].double().log_softmax(-1)
    wanted = -(said[0, 4] + said[1, 7]) / 2
    halves = [Batch(inputs[i : i + 1], targets[i : i + 1]) for i in range(2)]
    for windows in ([Batch(inputs, targets)], halves):
        assert end_loss(FULL, windows) == pytest.approx(float(wanted), rel=1e-5)


def test_two_trainings_end_as_two_models(tmp_path, shakespeare: Corpus, monkeypatch):
    monkeypatch.setattr(unmasked, "SEEN", 256)
    found, (with_mask, without) = unmasked.both(shakespeare, 1)
    assert with_mask.config.causal and not without.config.causal and found.masked.steps == (0,)
    short = lambda *_: {"validation_loss": 1.0, "end_loss": 2.0}  # noqa: E731
    monkeypatch.setattr(unmasked, "losses", short)
    metrics = unmasked.stored(with_mask, shakespeare, 1, tmp_path / "masked")
    assert metrics["opened"] == short() and metrics["step"] == 1
    assert "opened" not in unmasked.stored(without, shakespeare, 1, tmp_path / "unmasked")
    assert unmasked.square("masked", tmp_path).metrics == metrics


def test_the_shipped_two_are_what_their_metrics_say(shakespeare: Corpus):
    """A part of the unseen text, measured anew; on all of it they differ by what they learned."""
    curve = unmasked.shipped()
    for name, learning in ((unmasked.MASKED, curve.masked), (unmasked.UNMASKED, curve.unmasked)):
        checkpoint = load(unmasked.SQUARE / name)
        assert TrainConfig.from_dict(checkpoint.metrics["train"]).steps == unmasked.STEPS
        assert checkpoint.metrics["validation_loss"] == pytest.approx(learning.losses[-1], abs=0.03)
        batches = Batches(shakespeare, checkpoint.config, TrainConfig.from_dict(checkpoint.metrics["train"]))
        some = list(batches.windows(shakespeare.validation, 30_000))
        assert end_loss(checkpoint.model, some) == pytest.approx(checkpoint.metrics["end_loss"], abs=0.25)
    masked = json.loads((unmasked.SQUARE / "masked" / "metrics.json").read_text())
    cheat = json.loads((unmasked.SQUARE / "unmasked" / "metrics.json").read_text())
    assert cheat["validation_loss"] < 0.1 and cheat["end_loss"] > masked["end_loss"] + 0.5
    assert masked["opened"]["validation_loss"] > masked["validation_loss"] + 0.1
