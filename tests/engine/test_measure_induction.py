"""Random tokens read twice, and heads switched off, held against the plain way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.errors import ConfigError, ShapeError
from engine.measure import knockout
from engine.measure.habits import Named
from engine.measure.induction import Repeat, drawn, ordered, ordinary, read_twice
from engine.measure.knockout import knock_out, losses_without, matched, under
from engine.model import Transformer
from engine.probe import Patcher, Recorder
from engine.progress import Progress, finish
from tests.engine.cases import for_each
from tests.engine.helpers import loud, tiny

ONCE = (3, 9, 1, 6)
VARIANTS: dict[str, dict[str, Any]] = {
    "learned": {}, "rope": {"position": "rope", "norm": "rmsnorm", "ffn": "swiglu"},
    "alibi": {"position": "alibi"}, "t5": {"position": "t5", "qk_norm": True},
    "post": {"wiring": "post", "norm_bias": True}, "parallel": {"wiring": "parallel", "position": "rope"},
    "no residual": {"wiring": "none"},
    "grouped, window": {"n_kv_heads": 2, "window": 3, "position": "rope", "attention_bias": True},
    "shared qk": {"mixer": "shared_qk", "tie_embeddings": False}, "mean": {"mixer": "mean", "n_layers": 3},
    "no ffn": {"ffn": "none"}, "no projection": {"output_projection": False},
}  # fmt: skip


def words(*texts: str) -> list[bytes]:
    return [text.encode() for text in texts]


def test_a_draw_is_of_different_ordinary_tokens() -> None:
    many = [f" {a}{b}d" for a in "abcdefgh" for b in "abcdefgh"]  # 64 of them
    tokens = words("x", "\n", " The", " at", " a1b", "word", *many, " ünd")
    assert ordinary(tokens).tolist() == list(range(6, 6 + 64)), "a blank and three small letters or more"
    assert ordinary(tokens[:-2]).tolist() == [0, 5], "63 words are too few: letters"
    assert ordinary(words("1", "2", "a")).tolist() == [0, 1, 2], "one letter is no alphabet"
    pool = np.array([2, 3, 5, 7, 11, 13, 17])
    for seed in range(8):
        ids = drawn(pool, 7, seed)
        assert sorted(ids) == pool.tolist() and drawn(pool, 7, seed) == ids
    assert len({drawn(pool, 4, seed) for seed in range(8)}) == 8
    for count in (1, 8):
        with pytest.raises(ShapeError, match="between 2 and 7"):
            drawn(pool, count, 0)


@for_each("fields", VARIANTS.values(), ids=VARIANTS)
def test_what_reading_twice_says(fields: dict[str, Any]) -> None:
    """Losses by torch's cross-entropy, scores one weight at a time."""
    model = loud(tiny(**fields))
    seen = Recorder({"pattern"})
    ids = torch.tensor([ONCE + ONCE])
    with torch.no_grad():
        logits = model(ids, seen)[0]
    losses = F.cross_entropy(logits[:-1], ids[0, 1:], reduction="none").numpy()
    found = read_twice(model, ONCE)
    assert found.once == ONCE and np.isnan(found.first[0])
    np.testing.assert_allclose(found.first[1:], losses[:3], atol=1e-5)
    np.testing.assert_allclose(found.second, losses[3:], atol=1e-5)
    assert found.first_loss == pytest.approx(losses[:3].mean(), abs=1e-5)
    assert found.second_loss == pytest.approx(losses[4:].mean(), abs=1e-5)
    for layer in range(model.config.n_layers):
        pattern = seen[f"blocks.{layer}.pattern"][0].numpy()  # (head, query, key)
        for head in range(4):
            score = np.mean([pattern[head, 4 + i, i + 1] for i in range(4)])
            assert found.scores[layer, head] == pytest.approx(score, abs=1e-6)
            before = np.mean([pattern[head, i, i - 1] for i in range(1, 8)])
            assert found.previous[layer, head] == pytest.approx(before, abs=1e-6)


def test_heads_in_their_order_and_means_of_the_same_places() -> None:
    found = repeat([[0.2, 0.5], [0.4, 0.1]], [[0.3, 0.6], [1.0, 0.9]])
    assert found.best == (Named(0, 1, 0.5), Named(1, 0, 0.4), Named(0, 0, 0.2), Named(1, 1, 0.1))
    assert found.strong == (Named(0, 1, 0.5), Named(1, 0, 0.4))
    assert found.before == Named(0, 1, 0.6), "in the last layer it would serve nobody"
    assert repeat([[0.1, 0.2]], [[0.3, 0.7]]).before == Named(0, 1, 0.7)
    assert ordered(np.zeros((1, 2))) == (Named(0, 0, 0.0), Named(0, 1, 0.0))
    assert repeat([[0.1]]).first_loss == 3.0 and repeat([[0.1]]).second_loss == 2.0
    assert repeat([[0.1]]).copies, "a third is saved"
    for second, copies in ((3.0, True), (3.01, False), (5.0, False)):
        losses = np.array([np.nan, 4.0, 4.0]), np.array([0.0, second, second])
        assert Repeat(ONCE, *losses, np.zeros((1, 1)), np.zeros((1, 1))).copies is copies


def repeat(scores: Any, previous: Any = None) -> Repeat:
    scores = np.array(scores)
    previous = np.zeros_like(scores) if previous is None else np.array(previous)
    return Repeat(ONCE, np.array([np.nan, 2.0, 4.0, 3.0]), np.array([9.0, 1.0, 2.0, 3.0]), scores, previous)


def plainly(model: Transformer, ids: tuple[int, ...], off: Any, start: int) -> np.ndarray:
    """The whole model on the whole text, once."""

    def edit(heads: list[int]) -> Any:
        def silent(z: Tensor) -> Tensor:
            keep = torch.ones(z.shape[1])
            keep[heads] = 0.0
            return z * keep[:, None, None]

        return silent

    layers = {layer for layer, _ in off}
    edits = {f"blocks.{i}.z": edit([head for at, head in off if at == i]) for i in layers}
    tokens = torch.tensor([ids])
    with torch.no_grad():
        logits = model(tokens, Patcher(edits))[0]
    return F.cross_entropy(logits[start - 1 : -1], tokens[0, start:], reduction="none").numpy()


@pytest.mark.parametrize("fields", VARIANTS.values(), ids=VARIANTS)
def test_sets_of_heads_off_as_the_plain_way_has_it(
    fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an order that is not that of the layers, with sets that reach over several, and none at all."""
    monkeypatch.setattr(knockout, "ROWS", 2)
    monkeypatch.setattr(knockout, "LOGITS", 4 * 11 * 3 * 2)  # two rows at a time
    model = loud(tiny(**fields))
    ids = ONCE + ONCE
    sets = [((1, 2),), ((0, 3), (1, 0)), (), ((1, 1), (0, 1), (0, 0)), ((0, 2),), ((1, 3), (1, 2))]
    found = finish(losses_without(model, ids, sets, 5))
    expected = np.stack([plainly(model, ids, off, 5) for off in sets])
    np.testing.assert_allclose(found, expected, atol=2e-5)
    assert np.abs(found - found[2]).max(1)[[0, 1, 3, 4, 5]].min() > 1e-3, "each of them makes a difference"


def test_it_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy in block 0, three in block 1, then four through the unembedding, three at a time."""
    monkeypatch.setattr(knockout, "LOGITS", 4 * 11 * 3 * 3)
    sets = [((1, 2),), ((0, 3), (1, 0)), (), ((1, 1),)]
    steps = losses_without(loud(tiny()), ONCE + ONCE, sets, 5)
    assert list(steps) == [Progress(1, 8), Progress(4, 8), Progress(7, 8), Progress(8, 8)]


def test_heads_that_cannot_be_switched_off() -> None:
    model = loud(tiny())
    for off in ((2, 0), (0, 4), (-1, 0)):
        with pytest.raises(ShapeError, match=r"between 0\.0 and 1\.3"):
            finish(losses_without(model, ONCE, [(off,)], 1))
    with pytest.raises(ConfigError, match="has no heads"):
        finish(losses_without(loud(tiny(mixer="none")), ONCE, [((0, 0),)], 1))


def test_best_first_against_others_of_the_same_layers() -> None:
    model = loud(tiny(n_layers=3))
    found = read_twice(model, ONCE)
    told = finish(knock_out(model, found, most=3, draws=2, seed=4))
    assert told.heads == tuple((head.layer, head.head) for head in found.best[:3])
    rng = np.random.default_rng(4)
    orders = [told.heads, matched(found, told.heads, rng), matched(found, told.heads, rng)]
    for order, curve in zip(orders, (told.without, *told.others), strict=True):
        assert curve[0] == pytest.approx(found.second_loss)
        for count in (1, 2, 3):
            plain = plainly(model, ONCE + ONCE, order[:count], 5)
            assert curve[count] == pytest.approx(plain.mean(), abs=2e-5)
    np.testing.assert_allclose(told.others_mean, (told.others[0] + told.others[1]) / 2)


def test_at_most_half_of_the_heads() -> None:
    model = loud(tiny(n_heads=2, n_layers=1))
    found = read_twice(model, ONCE)
    told = finish(knock_out(model, found))
    assert len(told.heads) == 1 and told.without.shape == (2,) and told.others.shape == (4, 2)
    with pytest.raises(ShapeError, match="one head alone"):
        alone = loud(tiny(n_heads=1, n_layers=1))
        finish(knock_out(alone, read_twice(alone, ONCE)))
    model = loud(tiny(n_layers=3))
    found = read_twice(model, ONCE)
    previous = np.full((3, 4), 0.1)
    previous[0, 1], previous[0, 2], previous[1, 0], previous[2, 3] = 0.4, 0.7, 0.9, 1.0
    scores = np.zeros((3, 4))
    scores[1, 3] = 0.5
    known = Repeat(ONCE, found.first, found.second, scores, previous)
    assert under(known) == (Named(0, 2, 0.7), Named(0, 1, 0.4)), "layer 1 is not below itself"
    told = finish(knock_out(model, known, most=1, draws=1))
    expected = {(0, h): plainly(model, ONCE + ONCE, [(0, h)], 5).mean() for h in (1, 2)}
    assert {(h.layer, h.head): pytest.approx(h.value, abs=2e-5) for h in told.below} == expected
    assert told.below[0].value >= told.below[1].value
    scores[0, 0] = 0.6
    assert under(Repeat(ONCE, found.first, found.second, scores, previous)) == ()


def test_a_match_is_of_the_same_layer_while_there_is_one() -> None:
    scores = np.array([[0.9, 0.05, 0.5, 0.02], [0.01, 0.2, 0.3, 0.03]])
    heads = ((0, 0), (0, 2), (1, 2))
    for seed in range(20):
        found = matched(repeat(scores), heads, np.random.default_rng(seed))
        assert set(found[:2]) == {(0, 1), (0, 3)} and found[2] in {(1, 0), (1, 3)}
    both = {matched(repeat(scores), heads, np.random.default_rng(seed))[2] for seed in range(20)}
    assert both == {(1, 0), (1, 3)}
    more = (*heads, (0, 1))  # of layer 0 only 0.3 is left for three: then the nearest layer's weak heads
    for seed in range(20):
        found = matched(repeat(scores), more, np.random.default_rng(seed))
        assert found[0] == (0, 3) and {found[1], found[2]} == {(1, 0), (1, 3)} and found[3] == (1, 1)
