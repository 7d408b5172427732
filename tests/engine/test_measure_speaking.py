"""Who would say a text, and what its words do to that: each number once more, by a plain loop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from engine.checkpoints_paired import LabelCheckpoint
from engine.classifier import build_classifier
from engine.config import ModelConfig
from engine.errors import CorpusError, ShapeError
from engine.measure.speaking import spoken
from engine.tokenizers.paired import BEGIN, END, PairTokenizer
from tests.engine.cases import for_each

TOKENIZER = PairTokenizer(("!", "<other>", "ay", "me"), "speech", "<other>")
CONFIG = ModelConfig(7, 8, 16, 1, 2, causal=False, output_head="none", pooler=True)
LABELS = ("x", "y", "z")


def made(pooling: str) -> LabelCheckpoint:
    config = replace(CONFIG, pooling=pooling)
    model = build_classifier(config, 3, seed=3, init="normal").eval().requires_grad_(False)
    return LabelCheckpoint(model, TOKENIZER, LABELS, {})


def by_hand(found: LabelCheckpoint, words: list[str]) -> list[float]:
    ids = {word: 3 + place for place, word in enumerate(TOKENIZER.symbols)}
    row = [BEGIN, *(ids.get(word, ids["<other>"]) for word in words), END]
    exact = [float(one) for one in found.model(torch.tensor([row]))[0]]
    total = sum(np.exp(exact))
    return [np.exp(one) / total for one in exact]


@for_each("pooling", ["first", "mean"])
def test_each_word_is_left_out_in_its_turn(pooling: str) -> None:
    found = made(pooling)
    words = ["ay", "me", "hark", "!"]
    heard = spoken(found, "Ay me hark!")
    assert (heard.words, heard.unknown, heard.labels) == (tuple(words), ("hark",), LABELS)
    wanted = by_hand(found, words)
    np.testing.assert_allclose(heard.shares, wanted, rtol=1e-4)
    for place in range(4):
        fewer = by_hand(found, [*words[:place], *words[place + 1 :]])
        np.testing.assert_allclose(heard.without[place], fewer, rtol=1e-4)
        np.testing.assert_allclose(heard.moves[place], np.subtract(wanted, fewer), atol=1e-5)
    np.testing.assert_allclose(heard.moves.sum(1), 0, atol=1e-6)
    assert heard.order == sorted(range(3), key=lambda i: -wanted[i])
    first = heard.order[0]
    most = max(range(4), key=lambda i: abs(wanted[first] - heard.without[i, first]))
    assert heard.heaviest == most


def test_one_word_alone_can_be_left_out() -> None:
    found = made("mean")
    heard = spoken(found, "ay")
    np.testing.assert_allclose(heard.without[0], by_hand(found, []), rtol=1e-4)
    with pytest.raises(CorpusError, match="nothing to read"):
        spoken(made("mean"), "  ")
    with pytest.raises(ShapeError, match="reads 6 words and signs at once, not 7"):
        spoken(made("mean"), "ay " * 7)
