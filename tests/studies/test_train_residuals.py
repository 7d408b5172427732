"""With and without residual connections: what is shipped, and a piece of it trained again."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from engine.data import corpora
from engine.data.progress import Progress
from engine.errors import CheckpointError
from studies.experiments import no_residual
from studies.experiments.no_residual import (
    DEPTHS,
    NORMS,
    STEPS,
    STRIDE,
    Pair,
    TrainedStack,
    compare,
    likeness,
    shipped,
)
from tests.engine.cases import for_each


def trained(loss: float) -> TrainedStack:
    return TrainedStack(np.array([4.0, loss]), np.array([0.5, 2.0]), np.array([0.1, 0.9]))


def test_what_is_shipped_is_every_depth_with_and_without_norms():
    found = shipped()
    assert set(found) == {(depth, norm) for depth in DEPTHS for norm in NORMS}
    for (depth, _), pair in found.items():
        assert pair.uniform == pytest.approx(math.log(65), abs=1e-4)  # Tiny Shakespeare's letters
        for one in (pair.added, pair.replaced):
            assert pair.points.tolist() == [*range(STRIDE, STEPS + 1, STRIDE)] and len(one.losses) == len(
                pair.points
            )
            assert len(one.gradients) == len(one.alike) == depth
        assert pair.added.loss < pair.replaced.loss
    assert found[8, "layernorm"].learned == "counts" and found[8, "none"].learned == "nothing"


@pytest.mark.exhaustive
@pytest.mark.skipif(corpora.shakespeare_path() is None, reason="Tiny Shakespeare is not on this machine")
def test_the_first_steps_come_out_again():
    corpus, kept = corpora.load("shakespeare"), shipped()[2, "layernorm"]
    steps = list(_begun(compare(2, "layernorm", corpus, STEPS), 2 * STRIDE))
    assert steps == [Progress(i + 1, 2 * STEPS) for i in range(2 * STRIDE)]
    for wiring, one in (("pre", kept.added), ("none", kept.replaced)):
        losses = _begun(no_residual._losses(2, "layernorm", wiring, corpus, STEPS), 2 * STRIDE)
        np.testing.assert_allclose(np.reshape(list(losses), (2, STRIDE)).mean(1), one.losses[:2], atol=5e-3)
        gradients, alike = no_residual._before(2, "layernorm", wiring, corpus)
        np.testing.assert_allclose(gradients, one.gradients, rtol=1e-2)
        np.testing.assert_allclose(alike, one.alike, atol=1e-3)


def _begun(steps, count):
    yield from (one for one, _ in zip(steps, range(count), strict=False))


def test_how_far_the_one_without_came():
    def learned(loss: float) -> str:
        return Pair(2, "none", 4.2, 3.3, trained(2.5), trained(loss)).learned

    assert [learned(x) for x in (4.19, 3.3, 2.7, 2.4)] == ["nothing", "counts", "less", "more"]
    assert trained(1.0).reached == 0.25 and trained(1.0).last_alike == 0.9
    assert math.isnan(TrainedStack(np.ones(1), np.zeros(2), np.ones(2)).reached)


def test_likeness_is_the_mean_cosine_of_all_pairs():
    x = np.random.default_rng(0).normal(size=(5, 7))
    cosines = [x[i] @ x[j] / np.linalg.norm(x[i]) / np.linalg.norm(x[j]) for i in range(5) for j in range(i)]
    assert likeness(x) == pytest.approx(np.mean(cosines))


@for_each("text", ["", "{}", json.dumps({"pairs": [{"depth": 1}]})])
def test_a_broken_file_is_said_so(tmp_path, text):
    (tmp_path / "some.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"python -m studies.experiments no-residual"):
        shipped(tmp_path / "some.json")
