"""Loss by position: against prefixes fed one by one, against worked numbers, and what the stopgaps change."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as some

from engine.config import ModelConfig
from engine.errors import CorpusError, ShapeError
from engine.model import build
from engine.parts.positions import t5_bucket
from engine.probe import Recorder
from studies.positions import extrapolation
from studies.positions.extrapolation import Curve, above_tail, costs, far_buckets, in_unit, least, reach_of
from studies.positions.stretched_rope import Stretching, losses_with_each, stretched, stretched_frequencies
from tests.engine.cases import for_each
from tests.engine.helpers import stepped

CONFIG = ModelConfig(vocab_size=11, context=8, d_model=16, n_layers=2, n_heads=2)
TOKENS = torch.randint(11, (200,), generator=torch.Generator().manual_seed(3))


def fresh(position, **fields):
    model = build(replace(CONFIG, position=position, **fields), seed=5).requires_grad_(False).eval()
    with torch.no_grad():  # large enough that positions and tokens show
        for parameter in model.parameters():
            parameter.mul_(8)
    return model


def measured(model, starts, length):
    return np.concatenate(list(extrapolation.position_losses(model, TOKENS, starts, length, batch=3)))


@given(*(some.integers(*ends) for ends in ((1, 400), (1, 9), (0, 60), (1, 4), (1, 6))))
def test_windows_lie_inside_the_text_and_on_the_grid(tokens, context, count, times, stretch):
    given = tokens, context, count, times, stretch
    if tokens < times * context + 1:
        with pytest.raises(CorpusError):
            extrapolation.window_starts(*given)
        return
    starts = extrapolation.window_starts(*given)
    assert starts[0] == 0 and (np.diff(starts) > 0).all() and not (starts % context).any()
    assert starts[-1] + times * context + 1 <= tokens
    every = np.arange(0, tokens - times * context, context)
    assert len(starts) <= (count if 0 < count < len(every) else len(every))
    if count == 0:
        assert (starts == every).all()


@for_each("position", ["none", "sinusoidal", "rope", "alibi", "t5", "learned"])
def test_losses_are_those_of_prefixes_fed_one_by_one(position):
    model, starts = fresh(position), np.array([0, 8, 50, 100])
    found = measured(model, starts, 24)
    assert found.shape == (4, 24) and found.dtype == np.float32
    far = position != "learned"  # a table answers as far as it goes
    assert np.isfinite(found[:, :8]).all() and np.isfinite(found[:, 8:]).all() == far
    for row, start in enumerate(starts.tolist()):
        for p in (0, 1, 7, 8, 23) if far else (0, 1, 7):  # within the context of 8 and beyond it
            logits = model(TOKENS[None, start : start + p + 1])[0, -1]
            loss = float(F.cross_entropy(logits, TOKENS[start + p + 1]))
            assert found[row, p] == pytest.approx(loss, abs=1e-4)
    with pytest.raises(ShapeError, match="length"):
        next(extrapolation.position_losses(model, TOKENS, starts, 0))


def test_means_and_errors_by_hand(monkeypatch):
    monkeypatch.setattr(extrapolation, "TAIL", 1)
    losses = np.array([[1, 3, 5, 5], [3, 5, 5, 7]], dtype=np.float32)
    c = extrapolation.curve(losses, np.array([0, 10]), 2, width=2)
    assert c.mean.tolist() == [3, 5.5] and c.windows == 2 and c.first.tolist() == [0, 2]
    assert c.error.tolist() == pytest.approx([1.0, 0.5])  # windows' means 2, 4 and 5, 6: sd / sqrt(2)
    assert c.tail == pytest.approx((4.0, 1.0))  # position 1 of both: 3 and 5
    assert np.isnan(c.excess[2]).all()  # no window begins where the other's second context does


def test_the_excess_compares_the_same_characters():
    context, starts = 16, np.arange(40) * 16
    difficulty = np.random.default_rng(0).gamma(2.0, 1.0, context * 44)
    losses = np.stack([difficulty[s : s + 3 * context] for s in starts]).astype(np.float32)
    losses += np.repeat([0, 0.5, 1.25], context).astype(np.float32)
    c = extrapolation.curve(losses, starts, context)
    assert c.excess[2] == pytest.approx((0.5, 0.0), abs=1e-5)
    assert c.excess[3] == pytest.approx((1.25, 0.0), abs=1e-5)
    assert c.tail[0] == pytest.approx(losses[:, context - extrapolation.TAIL : context].mean(), abs=1e-5)
    c = extrapolation.curve(np.random.default_rng(0).normal(size=(20, 16)), np.arange(20) * 8, 8)
    assert np.isfinite(c.mean).all() and np.isnan(c.error).all() and np.isnan(c.tail[1])


@for_each("all_of_it", [True, False], ids=["every window", "stretches"])
def test_the_errors_are_those_of_a_text_whose_scenes_differ(all_of_it):
    """Windows of a scene are hard or easy together."""
    rng, context, said, found = np.random.default_rng(1), 16, [], []
    starts = extrapolation.window_starts(1024 * context + 1, context, 0 if all_of_it else 320, times=1)
    for _ in range(200):
        scenes = np.repeat(rng.normal(size=70), 16)[rng.integers(16) :]  # 16 windows each, half of a block
        losses = 2 + 0.5 * scenes[starts // context][:, None] + 0.3 * rng.normal(size=(len(starts), context))
        c = extrapolation.curve(losses.astype(np.float32), starts, context)
        said.append(c.error[0])
        found.append(c.mean[0])
    assert np.mean(said) / np.std(found) == pytest.approx(1.0, abs=0.2)
    independent = np.hypot(0.5, 0.3 / np.sqrt(8)) / np.sqrt(len(starts))
    assert np.mean(said) > 2.5 * independent


def test_a_curve_goes_through_json_and_back():
    starts = np.array([0, 8, 16, 100, 108])  # two blocks
    c = extrapolation.curve(measured(fresh("learned"), starts, 32), starts, 8)
    assert np.isfinite(c.mean[:1]).all() and np.isnan(c.mean[1:]).all()  # beyond the table
    again = extrapolation.Curve.from_dict(json.loads(json.dumps(c.to_dict(), allow_nan=False)))
    for name in ("mean", "error", "tail"):
        assert np.allclose(getattr(again, name), getattr(c, name), atol=1e-4, equal_nan=True)
    assert again.windows == c.windows and set(again.excess) == {2, 3, 4} and np.isnan(again.excess[4]).all()


@for_each("kind", ["repeat", "hold", "far"])
def test_a_stopgap_changes_nothing_within_the_context(kind):
    model = fresh(extrapolation.STOPGAP_FOR[kind])
    before = {name: p.clone() for name, p in model.named_parameters()}
    longer = extrapolation.stopgap(model, kind)
    assert torch.equal(longer(TOKENS[None, :8]), model(TOKENS[None, :8]))
    assert longer(TOKENS[None, :32]).shape == (1, 32, 11)
    assert all(torch.equal(p, before[name]) for name, p in model.named_parameters())


def test_the_learned_table_is_repeated_or_held():
    model = fresh("learned")
    for kind, place in (("repeat", np.arange(32) % 8), ("hold", np.minimum(np.arange(32), 7))):
        longer = extrapolation.stopgap(model, kind).positions.weight
        assert torch.equal(longer[:32], model.positions.weight[place])
    model = fresh("t5")
    last = extrapolation.farthest_bucket(model.config)
    weight = extrapolation.stopgap(model, "far").positions.weight
    beyond = t5_bucket(torch.tensor([-8, -40, -1000]), False, 32, 128)
    assert (beyond > last).all() and all(torch.equal(weight[b], model.positions.weight[last]) for b in beyond)


def test_the_larger_base_slows_the_slowest_pair_by_the_factor():
    for fraction, pairs in ((1.0, 4), (0.5, 2)):  # of heads of 8
        model = fresh("rope", rope_fraction=fraction)
        slow = extrapolation.stopgap(model, "ntk", times=4).positions.frequencies
        ratio = stretched_frequencies(model.config, Stretching()) / slow
        assert len(ratio) == pairs and ratio[0] == 1 and ratio[-1] == pytest.approx(4)
    one = fresh("rope", rope_fraction=0.25)  # one pair: its frequency is 1 whatever the base
    assert extrapolation.stopgap(one, "ntk").positions.frequencies.tolist() == [1]


@for_each("times, most_turns", [(2, 32.0), (4, 32.0), (4, 5.0), (16, 2.0)])
@for_each("d_head, context, theta", [(16, 64, 10_000.0), (64, 8192, 100_000.0), (128, 4096, 10_000.0)])
def test_frequencies_are_the_papers(times, most_turns, d_head, context, theta):
    """Written from Chen et al. 2023 (equation 4), bloc97 2023 and Peng et al. 2023 (definitions 1 and 2)."""
    config = replace(CONFIG, d_model=2 * d_head, n_heads=2, d_head=None, context=context, rope_theta=theta)
    config = replace(config, position="rope").resolved()
    for i in range(d_head // 2):
        trained = theta ** (-2 * i / d_head)
        turns = context / (2 * math.pi / trained)  # L over the wavelength
        ramp = 0 if turns < 1 else 1 if turns > most_turns else (turns - 1) / (most_turns - 1)
        base = theta * times ** (d_head / (d_head - 2))
        wanted = {
            None: trained,
            "interpolate": trained / times,
            "ntk": base ** (-2 * i / d_head),
            "yarn": (1 - ramp) * trained / times + ramp * trained,
        }
        for kind, value in wanted.items():
            found = stretched_frequencies(config, Stretching(kind, times, most_turns))
            assert float(found[i]) == pytest.approx(value, rel=1e-12), (kind, i)


@for_each("kind", [None, "interpolate", "ntk", "yarn"])
@torch.inference_mode()
def test_a_stretched_model_turns_and_scores_as_the_papers_say(kind):
    """Queries and keys as complex numbers; YaRN's scores are divided by its temperature t besides."""
    model, by = fresh("rope"), Stretching(kind, 4, 5.0)
    changed, seen = stretched(model, by), Recorder()
    changed(TOKENS[None, :30], seen)
    c = model.config
    turn = torch.exp(1j * torch.arange(30).double()[:, None] * stretched_frequencies(c, by))
    at = {}
    for name in "qk":
        x = seen[f"blocks.0.{name}"][0].double()  # (head, position, d_head)
        pairs = torch.complex(x[..., : c.d_head // 2], x[..., c.d_head // 2 :]) * turn
        at[name] = torch.cat((pairs.real, pairs.imag), -1)
    temperature = (0.1 * math.log(4) + 1) ** -2 if kind == "yarn" else 1
    scores = at["q"] @ at["k"].mT / (temperature * math.sqrt(c.d_head))
    assert seen["blocks.0.scores"][0].double() == pytest.approx(scores, abs=1e-4)
    assert all(a is b for a, b in zip(changed.parameters(), model.parameters(), strict=True))


def test_a_stretch_by_one_is_the_trained_model_and_a_stretch_fits_a_cache():
    model = fresh("rope")
    for kind in ("interpolate", "ntk", "yarn"):
        with torch.inference_mode():
            same = stretched(model, Stretching(kind, 1))(TOKENS[None, :20])
            assert same == pytest.approx(model(TOKENS[None, :20]), abs=1e-5), kind
        scheme, like = stretched(model, Stretching(kind, 4)).positions, torch.zeros(1)
        x = torch.randn(1, 4, 6, 8)
        whole, later = scheme.prepare(6, like).turn(x), scheme.prepare(2, like, 4).turn(x[:, :, 4:])
        assert torch.equal(whole[:, :, 4:], later)
        assert torch.equal(scheme.prepare(6, like).at(5).turn(x[:, :, 5:]), whole[:, :, 5:])


def test_only_rope_is_stretched():
    with pytest.raises(ShapeError, match="only RoPE can be stretched; this model's positions are alibi"):
        stretched(fresh("alibi"), Stretching("yarn", 2))


def test_windows_are_read_with_each_stretch():
    model, ways = fresh("rope"), (Stretching(), Stretching("interpolate", 4))
    seen, losses = stepped(losses_with_each(model, TOKENS[:33].tolist(), 16, ways))
    assert [(each.done, each.total) for each in seen] == [(n, 4) for n in (1, 2, 3, 4)]
    assert list(seen[-1].so_far) == [Stretching()]
    for by in ways:
        with torch.inference_mode():
            logits = stretched(model, by)(torch.stack((TOKENS[:16], TOKENS[16:32])))
        wanted = F.cross_entropy(logits.mT, torch.stack((TOKENS[1:17], TOKENS[17:33])), reduction="none")
        assert losses[by] == pytest.approx(wanted.mean(0).numpy(), abs=1e-5)


def test_the_cost_of_a_stretch_counts_what_it_costs_within_the_context():
    def of(tail: float, excess: dict[int, float]) -> Curve:
        return Curve(8, np.zeros(1), np.zeros(1), 1, (tail, 0.0), {n: (x, 0.0) for n, x in excess.items()})

    plain, flat = of(1.5, {2: 2.0, 3: 2.5}), of(3.0, {2: 0.0, 3: 0.25})
    assert extrapolation.above_trained(plain, plain) == {1: 0, 2: 2.0, 3: 2.5}
    assert extrapolation.above_trained(flat, plain) == {1: 1.5, 2: 1.5, 3: 1.75}
    assert extrapolation.contexts_within([{1: 0.0, 2: 0.1, 3: 0.2}, {1: 0.0, 2: 0.05, 3: 0.0}]) == 2
    assert extrapolation.contexts_within([{1: 0.2, 2: 0.0, 3: 0.0}]) == 0
    assert extrapolation.contexts_within([{1: 0.0, 2: 0.0, 3: 0.0}]) == 3


@for_each("context", [8, 64])
def test_training_never_meets_the_buckets_beyond_the_farthest(context):
    """The gradient says which buckets a training at this context can change."""
    model = build(replace(CONFIG, position="t5", context=context), seed=1)
    model(TOKENS[None, :context]).square().sum().backward()
    met = model.positions.weight.grad.abs().sum(1) > 0
    last = extrapolation.farthest_bucket(model.config)
    assert met[: last + 1].all() and not met[last + 1 :].any()


CURVE = extrapolation.Curve(
    8, np.array([3.0, 2.0, np.nan]), np.array([0.3, 0.2, np.nan]), 9, (2.0, 0.1),
    {2: (0.5, 0.05), 4: (1.0, 0.2)},
)  # fmt: skip


def test_bits_are_nats_over_ln_2():
    bits, ln_2 = in_unit(CURVE, "bits"), math.log(2)
    assert bits.mean == pytest.approx(CURVE.mean / ln_2, nan_ok=True)
    assert bits.error == pytest.approx(CURVE.error / ln_2, nan_ok=True)
    assert bits.tail == pytest.approx((2.0 / ln_2, 0.1 / ln_2))
    assert bits.excess[4] == pytest.approx((1.0 / ln_2, 0.2 / ln_2))
    assert (bits.width, bits.windows) == (8, 9) and in_unit(CURVE, "nats").tail == CURVE.tail
    assert above_tail(CURVE) == pytest.approx([1.0, 0.0, np.nan], nan_ok=True)
    found, in_bits = costs(CURVE, 1.5, 1.75), costs(CURVE, 1.5, 1.75, "bits")
    assert (found.validation, found.against_none, found.tail) == (1.5, -0.25, (2.0, 0.1))
    assert found.more == {2: (0.5, 0.05), 4: (1.0, 0.2)}
    assert (in_bits.validation, in_bits.against_none) == pytest.approx((2.16404, -0.36067), abs=1e-5)
    assert in_bits.more[2] == pytest.approx((0.5 / ln_2, 0.05 / ln_2))
    silent = costs(replace(CURVE, excess=dict.fromkeys((2, 4), (math.nan, math.nan))), 1.5, None)
    assert silent.against_none is None and silent.more == {2: None, 4: None}


def test_what_holds_and_what_breaks():
    def far(*seeds: float) -> list[extrapolation.Curve]:
        return [replace(CURVE, excess={2: (9.0, 0.0), extrapolation.TIMES: (value, 0.0)}) for value in seeds]

    found = reach_of(
        {"a": far(0.7, 0.9, 0.2), "b": far(0.05), "c": far(math.nan), "d": far(-0.1), "e": far(0.01, 0.051)}
    )
    assert list(found.held.items()) == [("d", -0.1), ("b", 0.05)]
    assert list(found.lost.items()) == [("e", pytest.approx(0.0305)), ("a", 0.7)]
    assert least({"x": 2.0, "y": 1.0, "z": 3.0}) == "y"


def test_t5_s_far_buckets():
    model = build(ModelConfig(vocab_size=11, context=64, d_model=16, n_layers=1, n_heads=4, position="t5"))
    with torch.no_grad():
        model.positions.weight.zero_()
        model.positions.weight[26] = torch.tensor([-1.0, -2.0, -3.0, -4.0])
        model.positions.weight[30, 2] = -0.5
    found = far_buckets(model)
    assert (found.last, found.end, found.met, found.unmet) == (26, 31, -2.5, 0.5)
    assert found.factor == pytest.approx(math.exp(2.5))
    assert far_buckets(build(replace(model.config, context=200))) is None
    assert far_buckets(build(replace(model.config, position="rope"))) is None
