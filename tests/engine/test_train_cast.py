"""The same pairs as an encoder-decoder's and as one text: parameters counted by hand, lessons, and what is right."""

from __future__ import annotations

import json

import pytest
import torch

from engine.config import ModelConfig, TrainConfig
from engine.model import build
from engine.paired import Pair, PairedText
from engine.seq2seq import build_pair
from engine.tokenizers.paired import END, PAD, PairTokenizer
from engine.training.cast import TASKS, Both, Spans, cast, continued_right, learn, lines, shipped, spans
from engine.training.paired import PairRecipe, pair_recipe

TEXT = PairedText(
    "toy",
    "A toy",
    PairTokenizer.train(["ab"]),
    train=(Pair("a", "b"), Pair("b", "a"), Pair("ab", "ba")),
    validation=(Pair("aa", "bb"), Pair("bb", "a")),
)


def test_as_many_parameters_by_another_count():
    """Those of the built models, for the recipe of each kind of width."""
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


@pytest.mark.exhaustive
def test_it_learns_what_it_is_shown():
    text = PairedText("toy", "A toy", TEXT.tokenizer, TEXT.train, (Pair("ba", "ab"),))
    recipe = PairRecipe(
        text.fitted(ModelConfig(d_model=16, n_layers=1, n_heads=2, vocab_size=5, position="rope")),
        TrainConfig(steps=1, batch_size=4, eval_tokens=64, learning_rate=1e-3, precision="float32"),
        text,
    )
    assert learn(recipe) in (0.0, 1.0)


def test_what_is_shipped_is_read_with_the_other_form(tmp_path):
    assert shipped(tmp_path) == {}
    (tmp_path / "paired" / "sort").mkdir(parents=True)
    (tmp_path / "paired" / "sort" / "metrics.json").write_text(json.dumps({"exact": 0.75}))
    one = {"right": 0.5, "parameters": 7, "paired_parameters": 8}
    (tmp_path / "cast.json").write_text(json.dumps({"tasks": {"sort": one}}))
    assert shipped(tmp_path) == {"sort": Both(0.75, 0.5, (8, 7))}


def test_the_shipped_ones_are_of_equal_size():
    found = shipped()
    if not found:
        pytest.skip("nothing was trained yet")
    assert tuple(found) == TASKS
    assert all(one.parameters[0] == one.parameters[1] for one in found.values())


def test_from_the_worst_task_to_the_best():
    found = {"a": Both(0.9, 0.7, (1, 1)), "b": Both(0.8, 0.95, (1, 1)), "c": Both(0.85, 0.8, (1, 1))}
    assert spans(found) == Spans(3, (0.8, 0.9), (0.7, 0.95))
    assert spans({}) is None
