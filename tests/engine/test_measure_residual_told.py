"""What is read off the residual stream."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch

from engine.measure.attribution import Attribution, attribute
from engine.measure.highway import Plan
from engine.measure.lens import Lens, joined, logit_lens, read_lens
from engine.measure.pushes import MOST_HEADS, pushes
from engine.measure.recording import Recording, record
from engine.measure.roads import blocks_of, last_block, ratios, reason, road
from engine.measure.settling import cell, climb, latest, reach, settling, sureness, telling
from engine.measure.stream import landings, mean, stream, summary, sums
from engine.model import Transformer
from engine.parts.attention import NoMixer
from engine.parts.feedforward import NoFeedForward
from engine.parts.positions import Learned
from engine.parts.registry import HEALTHY, swapped
from tests.engine.cases import for_each
from tests.engine.helpers import loud, tiny

IDS = (3, 1, 4, 1, 5, 9, 2)


def by_depth(model: Transformer, recording: Recording) -> np.ndarray:
    """What the stream says at every depth, (depth, query, vocab), in float64: the norm and the unembedding."""
    ends = [f"blocks.{i}.resid_post" for i in range(model.config.n_layers)]
    x = torch.tensor(np.stack([recording[name] for name in ("blocks.0.resid_pre", *ends)])).double()
    exact = copy.deepcopy(model).double()
    with torch.no_grad():
        return (exact.norm_final(x) @ exact.output_matrix.T).softmax(-1).numpy()


def lens_of(logits: np.ndarray | list) -> Lens:
    return joined([read_lens(torch.tensor(np.array(logits), dtype=torch.float32))])


def one_hot(guesses: list[list[int]], vocab: int = 4) -> np.ndarray:
    """Logits (depth, query, vocab) with these guesses."""
    return 3.0 * np.eye(vocab)[np.array(guesses)]


def test_the_token_to_begin_with_settles_latest_and_comes_true():
    # token 0 settles last but is wrong, 1 is a blank (id 3), 2 and 3 settle at depth 1, 4 has nothing behind it
    logits = one_hot([[0, 3, 0, 0, 2], [0, 3, 2, 2, 2], [1, 3, 2, 2, 2]])
    logits[-1, 3] *= 2  # of two that settle together, the surer one
    lens = lens_of(logits)
    assert latest(lens, [2, 3, 2, 2, None], {3}) == 3
    assert latest(lens, [1, 3, 2, 2, None], {3}) == 0
    assert latest(lens, [3, 1, 1, 1, 1], {3}) == 0  # where nothing comes true, the latest that is no blank
    assert latest(lens, [None] * 5, {1, 2, 3}) == 0
    assert telling(np.array([1, 1, 1]), [1, 1, 1], np.array([0.5, 0.9, 0.9]), set()) == 2
    assert sureness(np.log([[0.2, 0.5, 0.3]])) == pytest.approx([0.5])


def test_a_climb_has_the_guesses_of_every_depth():
    found = climb(lens_of(np.log([[[0.6, 0.3, 0.1]], [[0.5, 0.4, 0.1]], [[0.2, 0.7, 0.1]]])), 0, ranks=2)
    assert found.depths.tolist() == [0, 1, 2] and found.tokens.tolist() == [[0, 1], [0, 1], [1, 0]]
    np.testing.assert_allclose(found.shares, [[0.6, 0.3], [0.5, 0.4], [0.7, 0.2]], rtol=1e-5)
    assert found.settled == 2
    assert (found.earlier, found.final) == pytest.approx((0.4, 0.7))
    five = lens_of(np.log([[[0.4, 0.3, 0.15, 0.1, 0.05]]]))
    assert climb(five, 0).tokens.tolist() == [[0, 1, 2, 3]]


def test_writes_land_in_the_first_state_that_holds_them():
    for fields in ({}, {"wiring": "post"}):
        found = stream(record(loud(tiny(**fields)), IDS))
        labels = [found.states[i].label for i in landings(found)]
        assert labels == ["embed", "+ position", "+ attn 0", "+ ffn 0", "+ attn 1", "+ ffn 1"]
    assert landings(stream(record(loud(tiny(n_layers=1, wiring="parallel")), IDS)))[-2:] == [2, 2]


def test_where_tokens_settle():
    guesses = np.zeros((4, 8), dtype=int)
    for token, depth in enumerate((0, 1, 2, 2, 3, 3, 3, 3)):  # where it settles
        guesses[:depth, token] = 1
    found = settling(lens_of(one_hot(guesses)))
    assert found.counts.tolist() == [1, 1, 2, 4] and found.by.tolist() == [1, 2, 4, 8]
    assert (found.half, found.tokens) == (2, 8), "four of eight are settled at depth 2, two of eight at 1"
    odd = settling(lens_of(one_hot(guesses[:, :7])))
    assert odd.half == 2 and odd.by[2] == 4
    logits = one_hot([[0], [1], [2]])
    logits[0] *= 3
    lens = lens_of(logits)
    assert reach(lens).top == lens.kl[1, 0] < lens.kl[0, 0] and reach(lens).is_short
    assert not reach(lens_of(one_hot([[2], [1], [2]]))).is_short
    still = settling(lens_of(one_hot([[0, 1]] * 3)))
    assert still.step is None and still.half == 0


def test_the_largest_step_is_the_depth_that_it_leads_to():
    model = loud(tiny(n_layers=3), factor=4.0)
    recording = record(model, IDS)
    found = settling(logit_lens(model, recording))
    p = by_depth(model, recording)
    kl = (p[-1] * np.log(p[-1] / p)).sum(-1).mean(-1)
    np.testing.assert_allclose(found.kl, kl, atol=1e-4)
    assert found.step == 1 + int(np.argmin(np.diff(kl)))


def test_a_cell_holds_what_is_here_and_what_is_at_the_output():
    model = loud(tiny(), factor=4.0)
    recording = record(model, IDS)
    lens = logit_lens(model, recording)
    found = cell(lens, 0, 4, 5)
    here, output = (by_depth(model, recording)[d, 4] for d in (0, 2))
    assert found.tokens.tolist() == np.argsort(-here)[:5].tolist()
    np.testing.assert_allclose(found.here, here[found.tokens], rtol=1e-5)
    np.testing.assert_allclose(found.output, output[found.tokens], rtol=1e-5)
    np.testing.assert_allclose(output, np.exp(recording.log_probabilities[4]), atol=1e-6)
    assert found.kl == pytest.approx(float((output * np.log(output / here)).sum()), abs=1e-5)
    assert found.final == recording.logits[4].argmax() and found.settled == lens.settled[4]


@for_each("fields", [
    {"attention_bias": True, "norm_bias": True},
    {"mixer": "none"},
    {"ffn": "none", "position": "rope"},
    {"n_layers": 6, "n_heads": 8, "d_head": 2},
], ids=str)  # fmt: skip
def test_the_bars_sum_to_the_logit(fields):
    model = loud(tiny(**fields), factor=3.0)
    recording = record(model, IDS)
    found = attribute(model, recording, 5, 7)
    told = pushes(model.config, found)
    values = [push.value for push in told.writers]
    assert sum(values) == pytest.approx(float(recording.logits[5, 7]), abs=1e-3)
    assert told.difference == pytest.approx(sum(values) - found.logit, abs=1e-9)
    assert told.most.value == max(values) and told.least.value == min(values)
    labels = [push.label for push in told.writers]
    single = found.heads.size <= MOST_HEADS
    assert ("head 1.3" in labels) == (single and "mixer" not in fields) and ("heads 1" in labels) != single
    assert ("ffn 1" in labels) == ("ffn" not in fields) and ("norm bias" in labels) == ("norm_bias" in fields)


def test_each_bar_has_its_own_number():
    config = tiny(norm_bias=True).resolved()
    heads = np.arange(8.0).reshape(2, 4) + 10
    found = Attribution(0.0, 1.0, 2.0, heads, np.array([0.0, 9.0]), np.array([3.0, 4.0]), 5.0, 1.0)
    told = [(p.label, p.part, p.value) for p in pushes(config, found).writers]
    assert told == [
        ("embed", "embedding", 1.0), ("position", "position", 2.0),
        *((f"head 0.{h}", "attention", 10.0 + h) for h in range(4)), ("ffn 0", "feedforward", 3.0),
        *((f"head 1.{h}", "attention", 14.0 + h) for h in range(4)), ("attn bias 1", "attention", 9.0),
        ("ffn 1", "feedforward", 4.0), ("norm bias", "norm", 5.0),
    ]  # fmt: skip


def test_what_stands_in_the_model_s_place_is_what_is_told():
    """Names in the configuration that are not what the parts are."""
    swapped_in = swapped(
        HEALTHY, "other classes under old names", positions={"none": Learned}, mixers={"attention": NoMixer},
        feedforwards={"gelu": NoFeedForward},
    )  # fmt: skip
    parts = Attribution(0.0, 1.0, 0.0, np.zeros((2, 4)), np.zeros(2), np.zeros(2), 0.0, 1.0)
    config = tiny(position="none", ffn="gelu").resolved()
    assert [p.label for p in pushes(config, parts, swapped_in).writers] == ["embed", "position"]


@for_each("fields", [{}, {"wiring": "parallel"}, {"wiring": "post"}, {"ffn": "none"}, {"position": "rope"}])
def test_a_tokens_sum_is_worked_out_with_its_own_lengths(fields):
    model = loud(tiny(**fields), factor=3.0)
    recording = record(model, IDS)
    found, at = stream(recording), 5

    def lengths(**names: str) -> dict[str, float]:
        return {word: float(np.linalg.norm(recording[name][at])) for word, name in names.items()}

    rows = sums(found, model.config, at, 1)
    first = lengths(embed="embed", **({"pos": "pos_embed"} if "position" not in fields else {}))
    assert {t.word: t.size for t in rows[0].terms} == pytest.approx(first)
    assert rows[0].length == pytest.approx(*lengths(x="blocks.0.resid_pre").values())
    written = {"attn": "attn_out", "ffn": "ffn_out"} if "ffn" not in fields else {"attn": "attn_out"}
    terms = [t for row in rows[1:] for t in row.terms]
    own = lengths(**{word: f"blocks.0.{name}" for word, name in written.items()})
    assert {t.word: t.size for t in terms} == pytest.approx(own) and all(t.block == 0 for t in terms)
    wiring = fields.get("wiring", "pre")
    after = lengths(mid="blocks.0.resid_mid", post="blocks.0.resid_post") if wiring != "parallel" else {}
    after = [*after.values()][: len(written)] or [*lengths(x="blocks.0.resid_post").values()]
    assert [row.length for row in rows[1:]] == pytest.approx(after)
    normed = [row.normed for row in rows[1:]]
    if wiring == "post":
        assert normed == pytest.approx([*lengths(a="blocks.0.norm1", b="blocks.0.norm2").values()])
    else:
        assert normed == [None] * len(normed)
    assert len(sums(found, model.config, at, 2)) > len(rows)


def test_the_summary_names_the_longest_and_the_largest():
    recording = record(loud(tiny(), factor=3.0), IDS)
    found = stream(recording)
    told = summary(found)
    names = ["embed", "pos_embed"] + [f"blocks.{i}.{n}" for i in (0, 1) for n in ("attn_out", "ffn_out")]
    labels = ["embed", "position", "attn 0", "ffn 0", "attn 1", "ffn 1"]
    lengths = [float(np.linalg.norm(recording[n], axis=-1).mean()) for n in names]
    assert told.longest == labels[int(np.argmax(lengths))] and told.length == pytest.approx(max(lengths))
    final = recording["blocks.1.resid_post"].astype(float)
    share = [float(((recording[n] * final).sum(-1) / (final**2).sum(-1)).mean()) for n in names]
    order = sorted(range(6), key=lambda i: -share[i])[:3]
    assert [label for label, _ in told.largest] == [labels[i] for i in order]
    assert [value for _, value in told.largest] == pytest.approx([share[i] for i in order], rel=1e-5)
    assert told.negative == tuple(labels[i] for i in range(6) if share[i] < 0)
    assert told.total == pytest.approx(1.0)
    assert told.first == pytest.approx(float(np.linalg.norm(recording["embed"], axis=-1).mean()))
    assert told.last == pytest.approx(float(np.linalg.norm(final, axis=-1).mean()))
    np.testing.assert_allclose(mean(found.written), lengths, rtol=1e-5)
    assert [write.label for write in found.added] == labels[1:] and len(found.cosines) == 5


@for_each("blocks, fate, ratio", [
    ([1.0, 1.0], "flat", 1.0), ([2.9, 5.0, 1.0], "flat", 2.9), ([3.1, 1.0], "grows", 3.1),
    ([101.0, 1.0], "explodes", 101.0), ([0.3, 1.0], "fades", 0.3), ([0.34, 1.0], "flat", 0.34),
    ([0.0099, 1.0], "vanishes", 0.0099), ([0.0, 0.5, 1.0], "zero at the first", 0.0),
    ([0.0, 0.0], "zero", math.nan), ([1.0, 0.0], "zero at the last", math.nan),
    ([math.inf, 1.0], "not finite", math.inf),
])  # fmt: skip
def test_what_the_gradient_does(blocks, fate, ratio):
    found = road(np.array(blocks))
    assert found.fate == fate and found.ratio == pytest.approx(ratio, nan_ok=True)
    assert (found.reached, found.blocks) == (sum(b > 0 for b in blocks), len(blocks))


def test_the_gradient_and_theory():
    long, short = np.array([1.0, 20.0]), np.array([1.0, 1e-4])
    up, flat, down = (np.array([x, 1.0]) for x in (10.0, 1.0, 0.01))
    plain, bare, fan = Plan(), Plan(norm="none"), Plan(init="fan_in")
    assert [reason(plain, "pre", flat, long), reason(plain, "pre", up, long)] == [None, "stream grows"]
    assert reason(bare, "pre", up, long) == "no norm" and reason(bare, "post", up, long) == "as pre-norm"
    assert reason(plain, "post", down, long) is None
    assert [reason(p, "post", flat, long) for p in (plain, fan)] == ["small writes", "own paths"]
    assert reason(plain, "none", flat, long) == "restored" and reason(plain, "none", down, long) is None
    assert reason(plain, "none", down, short) == "epsilon" and reason(bare, "none", down, short) is None
    means = {("pre", 2): np.array([9.0, 4.0, 2.0]), ("pre", 3): np.array([9.0, 6.0, 5.0, 1.0])}
    assert ratios(means, "pre", (2, 3, 8)).tolist() == [2.0, 6.0] and not len(ratios(means, "post", (2, 3)))
    assert blocks_of(np.array([9.0, 4.0, 2.0]), 2).tolist() == [4.0, 2.0]
    lasts = {("pre", 2): 4.0, ("pre", 8): 2.0, ("post", 2): 5.0, ("post", 8): 5.0}
    weights = {(wiring, n): np.array([1.0] * (n - 1) + [x]) for (wiring, n), x in lasts.items()}
    found = last_block(weights, 8)
    assert found is not None
    assert (found.least, found.depth, found.theory, found.pre, found.post) == (2, 8, 0.5, 0.5, 1.0)
    assert last_block(weights, 2) is None and last_block({}, 8) is None
    assert last_block(weights | {("post", 8): np.array([math.nan])}, 8) is None
