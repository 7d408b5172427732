"""Random tokens read twice, and heads switched off, held against the plain way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engine.data.progress import Progress, finish
from engine.data.tokenizers import token_bytes
from engine.errors import ConfigError, ShapeError
from engine.model import Transformer, build
from engine.parts.cache import KVCache
from engine.probe import Patcher, Recorder
from engine.recording import record
from engine.training.records import Evaluation, HeadScores
from studies.attention import copying_heads
from studies.attention.head_scores import (
    COUNT,
    DRAWS,
    HeadFormation,
    formed,
    grown,
    head_scores,
    read_at,
    strongest,
)
from studies.attention.heads import HeadValue, ranked_heads
from studies.circuits import induction, knockout
from studies.circuits.induction import Repeat, drawn, ordinary, read_twice
from studies.circuits.knockout import knock_out, losses_without, matched, under
from studies.circuits.sinks import OpeningResult, measure
from tests.engine.cases import for_each
from tests.engine.helpers import ARCHITECTURES, induction_model, loud, tiny
from tests.engine.trainings import CORPUS, MODEL, only, run

ONCE = (3, 9, 1, 6)
HEADED = {name: fields for name, fields in ARCHITECTURES.items() if name != "no mixer"}


def test_a_draw_is_of_different_ordinary_tokens() -> None:
    many = [f" {a}{b}d" for a in "abcdefgh" for b in "abcdefgh"]  # 64 of them
    tokens = [text.encode() for text in ("x", "\n", " The", " at", " a1b", "word", *many, " ünd")]
    assert ordinary(tokens).tolist() == list(range(6, 6 + 64)), "a blank and three small letters or more"
    assert ordinary(tokens[:-2]).tolist() == [0, 5], "63 words are too few: letters"
    assert ordinary([b"1", b"2", b"a"]).tolist() == [0, 1, 2], "one letter is no alphabet"
    pool = np.array([2, 3, 5, 7, 11, 13, 17])
    for seed in range(8):
        ids = drawn(pool, 7, seed)
        assert sorted(ids) == pool.tolist() and drawn(pool, 7, seed) == ids
    assert len({drawn(pool, 4, seed) for seed in range(8)}) == 8
    for count in (1, 8):
        with pytest.raises(ShapeError, match="between 2 and 7"):
            drawn(pool, count, 0)


@for_each("fields", HEADED.values(), ids=HEADED)
def test_what_reading_twice_says(fields: dict[str, Any]) -> None:
    """Losses by torch's cross-entropy, scores off the diagonals of the patterns."""
    model = loud(tiny(**fields))
    losses, patterns = plain(model, ONCE + ONCE)
    found = read_twice(model, ONCE)
    assert found.once == ONCE and np.isnan(found.first[0])
    np.testing.assert_allclose(found.first[1:], losses[:3], atol=1e-5)
    np.testing.assert_allclose(found.second, losses[3:], atol=1e-5)
    assert found.first_loss == pytest.approx(losses[:3].mean(), abs=1e-5)
    assert found.second_loss == pytest.approx(losses[4:].mean(), abs=1e-5)
    ahead = np.diagonal(patterns, -3, 2, 3)[..., 1:]  # of the queries 4 to 7: the key after the token before
    np.testing.assert_allclose(found.scores, ahead.mean(-1), atol=1e-6)
    np.testing.assert_allclose(found.previous, np.diagonal(patterns, -1, 2, 3).mean(-1), atol=1e-6)


def test_heads_in_their_order_and_means_of_the_same_places() -> None:
    found = repeat([[0.2, 0.5], [0.4, 0.1]], [[0.3, 0.6], [1.0, 0.9]])
    ordered = (0, 1, 0.5), (1, 0, 0.4), (0, 0, 0.2), (1, 1, 0.1)
    assert found.best == tuple(HeadValue(*each) for each in ordered)
    assert found.strong == found.best[:2]
    assert found.before == HeadValue(0, 1, 0.6), "in the last layer it would serve nobody"
    assert repeat([[0.1, 0.2]], [[0.3, 0.7]]).before == HeadValue(0, 1, 0.7)
    assert ranked_heads(np.zeros((1, 2))) == (HeadValue(0, 0, 0.0), HeadValue(0, 1, 0.0))
    assert (found.first_loss, found.second_loss) == (3.0, 2.0) and found.copies, "a third is saved"
    for second, copies in ((3.0, True), (3.01, False), (5.0, False)):
        losses = {"first": np.array([np.nan, 4.0, 4.0]), "second": np.array([0.0, second, second])}
        assert replace(found, **losses).copies is copies


def repeat(scores: Any, previous: Any = None) -> Repeat:
    scores = np.array(scores)
    previous = np.zeros_like(scores) if previous is None else np.array(previous)
    return Repeat(ONCE, np.array([np.nan, 2.0, 4.0, 3.0]), np.array([9.0, 1.0, 2.0, 3.0]), scores, previous)


def plainly(model: Transformer, off: Any) -> np.ndarray:
    """The whole model on the whole text, once: the losses of the tokens from 5 on."""

    def edit(heads: list[int]) -> Any:
        keep = torch.ones(4, 1, 1)
        keep[heads] = 0.0
        return lambda z: z * keep

    layers = {layer for layer, _ in off}
    edits = {f"blocks.{i}.z": edit([head for at, head in off if at == i]) for i in layers}
    return plain(model, ONCE + ONCE, Patcher(edits))[0][4:]


@pytest.mark.parametrize("fields", HEADED.values(), ids=HEADED)
def test_sets_of_heads_off_as_the_plain_way_has_it(fields: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In an order that is not that of the layers, with sets that reach over several, and none at all."""
    monkeypatch.setattr(knockout, "ROWS", 2)
    monkeypatch.setattr(knockout, "LOGITS", 4 * 11 * 3 * 2)  # two rows at a time
    model = loud(tiny(**fields))
    sets = [((1, 2),), ((0, 3), (1, 0)), (), ((1, 1), (0, 1), (0, 0)), ((0, 2),), ((1, 3), (1, 2))]
    found = finish(losses_without(model, ONCE + ONCE, sets, 5))
    np.testing.assert_allclose(found, np.stack([plainly(model, off) for off in sets]), atol=2e-5)
    assert np.abs(found - found[2]).max(1)[[0, 1, 3, 4, 5]].min() > 1e-3, "each of them makes a difference"


def test_it_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knockout, "LOGITS", 4 * 11 * 3 * 3)
    sets = [((1, 2),), ((0, 3), (1, 0)), (), ((1, 1),)]
    steps = losses_without(loud(tiny()), ONCE + ONCE, sets, 5)
    assert list(steps) == [Progress(1, 8), Progress(4, 8), Progress(7, 8), Progress(8, 8)]
    for off in ((2, 0), (0, 4), (-1, 0)):
        with pytest.raises(ShapeError, match=r"between 0\.0 and 1\.3"):
            finish(losses_without(loud(tiny()), ONCE, [(off,)], 1))
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
        means = [plainly(model, order[:count]).mean() for count in (1, 2, 3)]
        assert curve == pytest.approx([found.second_loss, *means], abs=2e-5)
    np.testing.assert_allclose(told.others_mean, (told.others[0] + told.others[1]) / 2)


def test_at_most_half_of_the_heads() -> None:
    model = loud(tiny(n_heads=2, n_layers=1))
    told = finish(knock_out(model, read_twice(model, ONCE)))
    assert len(told.heads) == 1 and told.without.shape == (2,) and told.others.shape == (4, 2)
    with pytest.raises(ShapeError, match="only one head"):
        alone = loud(tiny(n_heads=1, n_layers=1))
        finish(knock_out(alone, read_twice(alone, ONCE)))


def test_what_the_heads_of_induction_stand_on() -> None:
    model = loud(tiny(n_layers=3))
    previous, scores = np.full((3, 4), 0.1), np.zeros((3, 4))
    previous[0, 1], previous[0, 2], previous[1, 0], previous[2, 3] = 0.4, 0.7, 0.9, 1.0
    scores[1, 3] = 0.5
    known = replace(read_twice(model, ONCE), scores=scores, previous=previous)
    assert under(known) == (HeadValue(0, 2, 0.7), HeadValue(0, 1, 0.4)), "layer 1 is not below itself"
    told = finish(knock_out(model, known, most=1, draws=1))
    expected = {(0, h): plainly(model, [(0, h)]).mean() for h in (1, 2)}
    assert {(h.layer, h.head): pytest.approx(h.value, abs=2e-5) for h in told.below} == expected
    assert told.below[0].value >= told.below[1].value
    scores[0, 0] = 0.6
    assert under(replace(known, scores=scores)) == ()


def test_a_match_is_of_the_same_layer_while_there_is_one() -> None:
    scores = np.array([[0.9, 0.05, 0.5, 0.02], [0.01, 0.2, 0.3, 0.03]])
    heads = ((0, 0), (0, 2), (1, 2))
    more = (*heads, (0, 1))  # of layer 0 only 0.3 is left for three: then the nearest layer's weak heads
    third = set()
    for seed in range(20):
        found = matched(repeat(scores), heads, np.random.default_rng(seed))
        third.add(found[2])
        assert set(found[:2]) == {(0, 1), (0, 3)}
        found = matched(repeat(scores), more, np.random.default_rng(seed))
        assert found[0] == (0, 3) and {found[1], found[2]} == {(1, 0), (1, 3)} and found[3] == (1, 1)
    assert third == {(1, 0), (1, 3)}


READ = (3, 1, 4, 1, 5, 9, 2)


def duplicate_model() -> Transformer:
    """The hand-built model of induction, whose second layer looks for its own token instead."""
    model = induction_model()
    width = model.config.d_head
    keys = model.blocks[1].mixer.w_qkv.weight[4 * width : 5 * width].zero_()
    keys[:, :width] = torch.eye(width)
    return model


def test_both_scores_come_from_one_reading():
    found = finish(induction.repeated(duplicate_model()))
    assert found is not None
    # Each token of the second half finds two alike: the one before, and itself.
    assert found.duplicate[1, 0] == pytest.approx(0.5, abs=1e-3)
    assert found.induction[1, 0] < 1e-3 and found.duplicate[0].max() < 0.1
    steps = list(induction.repeated(build(tiny()), sequences=3))
    assert [(s.done, s.total) for s in steps] == [(1, 3), (2, 3), (3, 3)]
    for config in (tiny(mixer="none"), tiny(context=3)):
        assert induction.repeatable(build(config)) == 0 and finish(induction.repeated(build(config))) is None
    assert induction.repeatable(build(tiny()), vocab=1) == 0 and induction.repeatable(build(tiny())) == 4


def slowly(model: Transformer, ids: tuple[int, ...], top: int, least: float) -> np.ndarray:
    """One head, one key, one sorted list of logits at a time."""
    recording, config = record(model, ids), model.config
    found = np.zeros((config.n_layers, config.n_heads))
    for layer, head, key in np.ndindex(*found.shape, len(ids) - 1):
        w_o, z = model.blocks[layer].mixer.w_o, torch.zeros(config.n_heads, config.d_head)
        group = config.n_heads // config.n_kv_heads
        z[head] = torch.tensor(recording[f"blocks.{layer}.v"][head // group, key])
        x = model.norm_final(z.flatten() if w_o is None else w_o.weight @ z.flatten())
        weight = float(recording[f"blocks.{layer}.pattern"][head, -1, key])
        if weight >= least and ids[key] in (model.output_matrix @ x).topk(top).indices:
            found[layer, head] += weight
    return found


@pytest.mark.parametrize("name", ["grouped, window", "post", "shared qk", "gated, qk-norm", "mean"])
@pytest.mark.parametrize("chunk", [3, 1024])
@torch.inference_mode()
def test_name_movers_are_those_of_a_slow_loop(name, chunk, monkeypatch):
    monkeypatch.setattr(copying_heads, "FIRST_CHUNK", chunk)
    monkeypatch.setattr(copying_heads, "among", lambda vocab: 4)
    model = loud(tiny(**ARCHITECTURES[name]), factor=3.0)
    found = copying_heads.name_mover_scores(model, record(model, READ))
    wanted = slowly(model, READ, 4, copying_heads.LEAST)
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    assert wanted.max() > 0 and wanted.min() < 0.9


DEEP = replace(MODEL, context=48, position="rope", n_heads=2)


def test_scores_are_means_over_draws_of_what_the_patterns_hold() -> None:
    model, tokenizer = loud(DEEP), CORPUS.tokenizer
    found = head_scores(model, tokenizer)
    assert found is not None and (COUNT, DRAWS) == (24, 4)
    pool = ordinary(token_bytes(tokenizer))
    count = min(24, len(pool))
    each = []
    for seed in range(4):
        losses, patterns = plain(model, drawn(pool, count, seed) * 2)
        ahead = np.diagonal(patterns, 1 - count, 2, 3)[..., 1:].mean(-1)
        before = np.diagonal(patterns, -1, 2, 3).mean(-1)
        each.append((ahead, before, losses[: count - 1].mean(), losses[count:].mean()))
    induction, previous, first, second = (np.mean(values, axis=0) for values in zip(*each, strict=True))
    assert found.induction == pytest.approx(induction, abs=1e-6)
    assert found.previous == pytest.approx(previous, abs=1e-6)
    assert (found.first_loss, found.second_loss) == pytest.approx((first, second), abs=1e-5)


def test_a_training_on_repeats_says_at_every_look_what_its_heads_do() -> None:
    looks = only(run(repeat=0.5), Evaluation)
    assert [look.step for look in looks] == [0, 10, 20, 20] and all(look.heads for look in looks)
    shape = np.shape(looks[0].heads.induction), np.shape(looks[0].heads.previous)
    assert shape == ((MODEL.n_layers, MODEL.n_heads),) * 2 and looks[0].heads != looks[2].heads
    assert [look.heads for look in only(run(), Evaluation)] == [None] * 4  # at its end there are two
    for fields in ({"causal": False}, {"mixer": "none"}, {"context": 3}):
        model = loud(replace(MODEL, **fields))
        assert head_scores(model, CORPUS.tokenizer) is None and read_at(model, CORPUS.tokenizer, 0) is None
    assert read_at(loud(MODEL), CORPUS.tokenizer, 0) is not None


def test_a_head_forms_where_it_first_has_half_of_its_weight_there() -> None:
    def look(induction: tuple[tuple[float, ...], ...], previous: float) -> HeadScores:
        return HeadScores(induction, ((previous, 0.1), (0.0, 0.0)), 4.0, 2.0)

    looks = [
        (0, look(((0.0, 0.0), (0.1, 0.2)), 0.49)), (5, None), (10, look(((0.0, 0.0), (0.1, 0.5)), 0.7)),
        (20, look(((0.0, 0.0), (0.6, 0.4)), 0.3)), (30, look(((0.0, 0.0), (0.9, 0.8)), 0.9)),
    ]  # fmt: skip
    wanted = [(10, "previous", 0, 0), (10, "induction", 1, 1), (20, "induction", 1, 0)]
    assert formed(looks) == tuple(HeadFormation(*one) for one in wanted)
    assert strongest(((0.3, 0.2), (0.1, 0.8))) == HeadValue(1, 1, 0.8)


def test_what_has_grown_is_the_newest_looks_strongest_head_from_where_it_last_did_little() -> None:
    def look(step: int, induction: tuple[float, float], previous: float) -> Evaluation:
        heads = HeadScores((induction,), ((0.0, previous),), 4.0 + step, 2.0 + step)
        return Evaluation(step, 1.0, 1.0, step / 4, True, heads=heads)

    unscored = Evaluation(40, 1.0, 1.0, 20.0, True)
    looks = [
        look(1, (0.01, 0.3), 0.2), look(2, (0.05, 0.2), 0.6), look(5, (0.4, 0.1), 0.7),
        look(10, (0.6, 0.2), 0.8), look(20, (0.9, 0.3), 0.9), unscored,
    ]  # fmt: skip
    found, always = grown(looks), grown([look(3, (0.2, 0.0), 0.1), look(7, (0.4, 0.0), 0.1)])
    assert found is not None and found.is_formed and (found.step, found.head) == (20, HeadValue(0, 0, 0.9))
    assert (found.since, found.before, found.seconds) == (2, 0.05, 4.5)  # the last look below LITTLE
    assert (found.first_loss, found.second_loss) == (24.0, 22.0)
    assert (found.formed, found.previous.head, found.previous.value, found.previous_formed) == (10, 1, 0.9, 2)
    assert always is not None and not always.is_formed
    assert (always.since, always.before, always.seconds) == (3, 0.2, 1.0)
    assert always.formed is None and always.previous_formed is None
    assert grown([unscored]) is None and grown([]) is None


READ_ON = (3, 9, 1, 6, 2, 7, 5, 4, 8)  # halves from position 4 on
OTHER = 10


def plain(model: Transformer, ids: tuple[int, ...], other: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """(loss of each token after the first, (layer, head, query, key) weights), by one pass."""
    seen, tokens = Recorder({"pattern"}), torch.tensor([ids])
    with torch.no_grad():
        logits = model(tokens, other or seen)[0]
    losses = F.cross_entropy(logits[:-1], tokens[0, 1:], reduction="none").numpy()
    return losses, np.array([pattern[0].numpy() for pattern in seen.tensors.values()])


@for_each("name", ["learned", "rope", "alibi", "t5", "no position", "post", "gated, qk-norm", "mean"])
def test_texts_that_begin_otherwise(name: str) -> None:
    model = loud(tiny(**ARCHITECTURES[name], context=12))
    found = finish(measure(model, READ_ON, OTHER))
    assert (found.half, found.control, found.other) == (4, 2, OTHER)
    texts = {"kept": READ_ON, "other": (OTHER, *READ_ON), "dropped": READ_ON[1:]}
    for opening, text in texts.items():
        told = found.of(opening)  # type: ignore[arg-type]
        losses, patterns = plain(model, text)
        assert told.ids == text and told.seen == 0
        # the tokens after position 4 of the text: 2 is predicted by 6, and so on; the same four in each
        assert told.loss == pytest.approx(losses[-4:].mean(), abs=1e-5)
        np.testing.assert_allclose(told.share, patterns[:, :, 1:, 0].mean(-1), atol=1e-6)
        assert told.even == pytest.approx(np.mean([1 / (i + 1) for i in range(1, len(text))]))
        sizes = np.linalg.norm(record(model, text).stacked("v"), axis=-1)
        np.testing.assert_allclose(told.lengths, [sizes[..., 0], sizes[..., 1:].mean(-1)], rtol=1e-5)


@for_each("opening, lost", [("forgotten", 0), ("control", 2)])
def test_a_cache_that_loses_its_first_or_another_token(opening: Any, lost: int) -> None:
    model = loud(tiny(position="none", context=16))
    cache, seen = KVCache(model.config, 16, model.embedding), Recorder({"pattern"})
    with torch.no_grad():
        model(torch.tensor([READ_ON[:4]]), cache=cache)
        cache.held[..., lost:3, :] = cache.held[..., lost + 1 : 4, :].clone()
        cache.length = 3
        logits = model(torch.tensor([READ_ON[4:]]), seen, cache)[0]
    found = finish(measure(model, READ_ON, OTHER))
    told = found.of(opening)
    loss = F.cross_entropy(logits[:-1], torch.tensor(READ_ON[5:]))
    assert told.loss == pytest.approx(float(loss), abs=1e-5) and told.seen == (1 if lost == 0 else 0)
    if lost == 0:  # what was the second token is the first in the cache
        share = np.stack([pattern[0, :, :, 0].mean(-1).numpy() for pattern in seen.tensors.values()])
        np.testing.assert_allclose(told.share, share, atol=1e-6)
        assert told.even == pytest.approx(np.mean([1 / n for n in (4, 5, 6, 7, 8)]))
        assert abs(told.loss - found.of("kept").loss) > 0.01


LENGTHS = np.array([[[1.0], [3.0]], [[2.0], [0.0]]])  # of two layers with one key-value head


def test_what_is_read_off_the_shares() -> None:
    told = OpeningResult("kept", READ_ON, 0, np.array([[0.2, 0.6], [0.4, 0.0]]), 0.1, 2.0, LENGTHS)
    assert told.mean == pytest.approx(0.3) and told.by_layer.tolist() == pytest.approx([0.4, 0.2])
    assert told.ratios == (0.5, 0.5), "values of length 0 are compared with nothing"
    assert told.most == HeadValue(0, 1, 0.6) and told.resting == 2 and told.is_sink
    assert not replace(told, even=0.2).is_sink, "1.5 times the even share"
    assert not replace(told, share=np.array([[0.39, 0.39]])).is_sink, "no head rests there"
