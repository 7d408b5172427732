"""Alignment: patterns made by hand, a model that looks where it is made to look, and the level of chance."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.config import ModelConfig
from engine.errors import ShapeError
from engine.measure.alignment import alignment_score, cross_patterns, hits, model_alignment
from engine.paired_data import pair_text
from engine.probe import Recorder
from engine.seq2seq import build_pair
from engine.tasks.paired import PAIR_TASKS, pairs
from tests.engine.cases import for_each


def looking_at(places: list[int], keys: int) -> np.ndarray:
    """A pattern (query, key) whose row i has most of its weight at places[i]."""
    pattern = np.full((len(places), keys), 0.1 / keys, dtype=np.float32)
    pattern[np.arange(len(places)), places] += 0.9
    return pattern


def test_hits_by_hand() -> None:
    pattern = looking_at([0, 2, 1, 4, 3], 5)  # the last query writes END
    assert hits(pattern, ((0,), (1, 2), (), (3,))).tolist() == [True, True, False]
    heads = np.stack([pattern, looking_at([1, 1, 1, 3, 3], 5)])
    assert hits(heads, ((0,), (1, 2), (), (3,))).tolist() == [[True, True, False], [False, True, True]]
    with pytest.raises(ShapeError, match="2 queries and 5 keys"):
        hits(looking_at([0, 1], 5), ((0,), (1,), (2,)))
    with pytest.raises(ShapeError, match="3 queries and 2 keys"):
        hits(looking_at([0, 1, 0], 2), ((0,), (2,)))


def test_scores_over_pairs_of_other_lengths() -> None:
    right, wrong = looking_at([0, 1, 2], 4), looking_at([3, 3, 3], 4)
    short, off = looking_at([1, 0], 2), looking_at([0, 0], 2)
    patterns = [np.stack([right, wrong])[None], np.stack([short, off])[None]]  # (layer, head, query, key)
    found = alignment_score(patterns, [((0,), (), (2, 3)), ((1,), (0,))])
    assert found is not None
    assert found.heads.tolist() == [[1.0, 0.5]]  # 4 of 4; of the second head 3 is a true place, and 0
    assert found.mean == 0.75 and found.symbols == 4
    assert (found.best.layer, found.best.head, found.best.value) == (0, 0, 1.0)
    assert found.chance == pytest.approx((1 / 4 + 2 / 4 + 1 / 2 + 1 / 2) / 4)
    assert 0 <= found.together <= 1
    sure, torn = np.array([[0.1, 0.9, 0.0]]), np.array([[0.5, 0.2, 0.3]])
    found = alignment_score([np.stack([torn, sure])[:, None]], [((1,),)])
    assert found is not None
    assert found.heads.tolist() == [[0.0], [1.0]] and found.together == 1.0
    assert alignment_score([looking_at([0, 0], 3)[None, None]], [((), ())]) is None


def test_random_patterns_score_as_chance_says() -> None:
    some, _ = pairs(PAIR_TASKS["dates"], 400, 1)
    draws = np.random.default_rng(0)
    patterns = [
        draws.random((3, 2, len(one.target) + 1, len(one.source) + 1), dtype=np.float32) for one in some
    ]
    found = alignment_score(patterns, [one.sources for one in some])
    assert found is not None
    assert found.mean == pytest.approx(found.chance, abs=0.01)
    assert found.symbols == 400 * 8  # all but the strokes


@for_each("name", ["dates", "language"])
def test_patterns_of_a_model_are_those_of_each_pair_alone(name: str) -> None:
    """A batch is filled up; what is filled in is in no pattern."""
    text = pair_text(name, 200, 20)
    sizes = ModelConfig(d_model=16, n_layers=2, n_heads=2, position="rope")
    model = build_pair(text.fitted(sizes), seed=3).eval()
    some = pairs(PAIR_TASKS[name], 5, 1)[0]
    together = cross_patterns(model, text.tokenizer, some)
    for one, pattern in zip(some, together, strict=True):
        queries, keys = len(one.sources) + 1, len(text.tokenizer.encode(one.source)) + 1
        assert pattern.shape == (2, 2, queries, keys)
        assert pattern.sum(-1) == pytest.approx(1, abs=1e-5)
        recorder = Recorder()
        ids = [[*text.tokenizer.encode(one.source), 2]], [[1, *text.tokenizer.encode(one.target)]]
        model(*(torch.tensor(each) for each in ids), recorder)
        alone = recorder["decoder.blocks.1.cross_pattern"][0].detach().numpy()
        assert pattern[1] == pytest.approx(alone, abs=1e-5)
    found = model_alignment(model, text.tokenizer, some)
    assert found is not None and found.heads.shape == (2, 2)
    by_hand = alignment_score(together, [one.sources for one in some])
    assert by_hand is not None and found.heads.tolist() == by_hand.heads.tolist()
