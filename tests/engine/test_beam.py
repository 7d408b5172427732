"""Beam search against exhaustive search, greedy decoding and Hugging Face's."""

from __future__ import annotations

import itertools

import pytest
import torch

from engine.config import SampleConfig
from engine.errors import ConfigError, ShapeError
from engine.sample.beam import beam_search, greedy, sampled
from tests.engine.cases import for_each
from tests.engine.helpers import loud, tiny


def model_of(vocab: int = 4, **fields):
    return loud(tiny(vocab_size=vocab, **fields), seed=3)


def log_probability(model, prompt, ids) -> float:
    """Independent: one forward pass over the whole text."""
    with torch.no_grad():
        parts = model(torch.tensor([[*prompt, *ids]])).double().log_softmax(-1)[0]
    return sum(float(parts[len(prompt) - 1 + i, token]) for i, token in enumerate(ids))


@for_each("position", ["learned", "rope", "alibi", "none"])
def test_a_wide_beam_is_exhaustive_search(position):
    model, prompt, depth = model_of(position=position), [1, 2], 4
    # 4^3 branches at the last but one step: none is ever pruned before it
    found = beam_search(model, prompt, depth, 64)
    every = {ids: log_probability(model, prompt, ids) for ids in itertools.product(range(4), repeat=depth)}
    best = max(every, key=every.__getitem__)
    assert found.path(found.winner) == best
    assert found.nodes[found.winner].total == pytest.approx(every[best], abs=1e-4)


@for_each("penalty", [-1.0, 0.0, 1.0, 2.0])
def test_with_a_stop_token_all_lengths_are_compared(penalty):
    model, prompt, depth, end = model_of(3), [1], 4, 0
    found = beam_search(model, prompt, depth, 64, length_penalty=penalty, stop={end})
    every = {}
    for length in range(1, depth + 1):
        for ids in itertools.product(range(3), repeat=length):
            if end not in ids[:-1] and (ids[-1] == end or length == depth):
                every[ids] = log_probability(model, prompt, ids) / length**penalty
    best = max(every, key=every.__getitem__)
    assert found.path(found.winner) == best
    assert found.nodes[found.winner].score == pytest.approx(every[best], abs=1e-4)
    assert {found.path(node.index) for node in found.ended()} == set(every)


def test_width_one_is_greedy():
    model = loud(tiny(), seed=1)
    found = beam_search(model, [1, 2], 6, 1)
    ids, total = greedy(model, [1, 2], 6)
    assert found.path(found.winner) == ids
    assert found.nodes[found.winner].total == pytest.approx(total, abs=1e-4)
    model = loud(tiny())
    ids, total = sampled(model, [1], 5, SampleConfig(temperature=1.5, seed=4))
    assert total == pytest.approx(log_probability(model, [1], ids), abs=1e-4)


def test_the_tree_is_whole():
    model = loud(tiny(), seed=2)
    found = beam_search(model, [1], 5, 3, shown=5)
    for node in found.nodes:
        before = 0.0
        if node.parent is not None:
            above = found.nodes[node.parent]
            before = above.total
            assert above.kept and above.depth == node.depth - 1
        assert node.total == pytest.approx(before + node.log_probability)
        assert node.score == pytest.approx(node.total / node.depth)
        assert node.total == pytest.approx(log_probability(model, [1], found.path(node.index)), abs=1e-4)
    for depth in range(1, 6):
        level = [node for node in found.nodes if node.depth == depth]
        kept = [node.total for node in level if node.kept]
        assert len(kept) == 3 and min(kept) >= max(node.total for node in level if not node.kept)
    assert found.nodes[found.winner] == found.ended()[0] and len(found.ended()) == 3


def test_a_long_prompt_loses_its_beginning():
    model = loud(tiny())
    context = model.config.context
    prompt = [i % 11 for i in range(30)]
    assert beam_search(model, prompt, 4, 2) == beam_search(model, prompt[-(context - 3) :], 4, 2)


def test_what_cannot_be_searched_is_refused():
    model = loud(tiny())
    for width, depth, what in ((0, 2, "width"), (65, 2, "width"), (2, 0, "depth"), (2, 9, "depth")):
        with pytest.raises(ConfigError, match=what):
            beam_search(model, [1], depth, width)
    for other, prompt in ((loud(tiny(causal=False)), [1]), (model, [])):
        with pytest.raises(ShapeError):
            beam_search(other, prompt, 2, 2)
