"""The same pairs as an encoder-decoder's and as one text: parameters counted by hand, lessons, and what is right."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from engine.config import ModelConfig, TrainConfig
from engine.data.pairs import Pair, PairedText
from engine.data.tokenizers.pairs import END, PAD, PairTokenizer
from engine.experiments import decoder_twin as casting
from engine.experiments.decoder_twin import (
    Both,
    Spans,
    _Cast,
    cast,
    continued_right,
    learn,
    lines,
    shipped,
    spans,
)
from engine.model import build
from engine.seq2seq import build_pair
from engine.training.pair_recipes import PairRecipe, pair_recipe

LEARNED = (Pair("a", "b"), Pair("b", "a"), Pair("ab", "ba"))
HELD_OUT = (Pair("aa", "bb"), Pair("bb", "a"))
TEXT = PairedText("toy", "A toy", PairTokenizer.train(["ab"]), LEARNED, HELD_OUT)


def test_as_many_parameters_by_another_count():
    for name in ("reverse", "language"):
        pair = pair_recipe(name).model
        one, two = build(cast(pair), device="meta"), build_pair(pair, device="meta")
        counts = [sum(p.numel() for p in model.parameters()) for model in (one, two)]
        assert counts[0] == counts[1] and cast(pair).causal
        assert cast(pair).context == pair.encoder.context + pair.decoder.context


def test_a_line_is_the_source_its_end_and_the_target():
    made = lines(TEXT.rows["train"])
    a, b = TEXT.tokenizer.encode("ab")
    assert made.inputs.tolist() == [[a, END, b, PAD, PAD], [b, END, a, PAD, PAD], [a, b, END, b, a]]
    assert made.targets.tolist() == [[-1, b, END, -1, -1], [-1, a, END, -1, -1], [-1, -1, b, a, END]]


def test_right_is_the_whole_target_and_its_end():
    """A stand-in that says what it is told for each text so far."""
    a, b = TEXT.tokenizer.encode("ab")
    says = {(a, a, END): b, (a, a, END, b): b, (a, a, END, b, b): END, (b, b, END): a, (b, b, END, a): a}

    def model(texts):
        logits = torch.zeros(*texts.shape, TEXT.vocab_size)
        for i, row in enumerate(texts.tolist()):
            for place in range(len(row)):
                logits[i, place, says.get(tuple(row[: place + 1]), PAD)] = 1.0
        return logits

    assert continued_right(model, TEXT.rows["validation"]) == [True, False]  # the second does not end
    says[b, b, END, a] = END
    assert continued_right(model, TEXT.rows["validation"]) == [True, True]


def toy_recipe() -> PairRecipe:
    model = TEXT.fitted(ModelConfig(d_model=16, n_layers=1, n_heads=2, position="rope"))
    settings = TrainConfig(steps=1, batch_size=4, eval_tokens=64, learning_rate=1e-3, precision="float32")
    return PairRecipe(model, settings, TEXT)


def test_an_evaluation_is_the_mean_loss_of_what_is_written_and_the_share_that_is_right():
    recipe = toy_recipe()
    training = _Cast(cast(recipe.model), recipe.train, TEXT)
    look = training.evaluation(complete=True)
    for split, loss in (("train", look.train_loss), ("validation", look.validation_loss)):
        made = lines(TEXT.rows[split])
        log_p = training.model(made.inputs).log_softmax(-1)
        told = [-log_p[i, j, t].item() for (i, j), t in np.ndenumerate(made.targets.numpy()) if t >= 0]
        assert loss == pytest.approx(np.mean(told), rel=1e-5)
    assert look.complete and look.task is not None
    assert look.task.validation == np.mean(continued_right(training.model, TEXT.rows["validation"]))


def test_a_lesson_ends_with_the_share_of_held_out_targets_that_are_right(monkeypatch):
    monkeypatch.setattr(casting, "continued_right", lambda model, rows: [True] * (len(rows) - 1) + [False])
    assert learn(toy_recipe()) == 1 / 2  # and 2 / 3 of those it learns from


def test_what_is_shipped_is_read_with_the_other_form(tmp_path):
    assert shipped(tmp_path) == {}
    (tmp_path / "paired" / "sort").mkdir(parents=True)
    (tmp_path / "paired" / "sort" / "metrics.json").write_text(json.dumps({"exact": 0.75}))
    one = {"right": 0.5, "parameters": 7, "paired_parameters": 8}
    (tmp_path / "cast.json").write_text(json.dumps({"tasks": {"sort": one}}))
    assert shipped(tmp_path) == {"sort": Both(0.75, 0.5, (8, 7))}


def test_the_shipped_ones_are_of_equal_size():
    found = shipped()
    assert tuple(found) == casting.TASKS
    assert all(one.parameters[0] == one.parameters[1] for one in found.values())


def test_from_the_worst_task_to_the_best():
    found = {"a": Both(0.9, 0.7, (1, 1)), "b": Both(0.8, 0.95, (1, 1)), "c": Both(0.85, 0.8, (1, 1))}
    assert spans(found) == Spans(3, (0.8, 0.9), (0.7, 0.95))
    assert spans({}) is None
