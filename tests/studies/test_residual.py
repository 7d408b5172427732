"""A recording is what the model computed; the stream's sums, lens and attribution, and what is read off them."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
import torch

from engine.errors import ConfigError, ShapeError
from engine.model import Transformer
from engine.parts.attention import NoMixer
from engine.parts.feedforward import NoFeedForward
from engine.parts.positions import Learned
from engine.parts.registry import HEALTHY, swapped
from engine.probe import Recorder
from engine.recording import Recording, next_token_losses, record
from studies.residual import lens as lens_module
from studies.residual.attribution import MOST_HEADS, Attribution, _mean, attribute, pushes
from studies.residual.gradient_by_depth import Plan, blocks_of, gradient_flow, last_block, ratios, reason
from studies.residual.lens import (
    Lens,
    cell,
    depth_table,
    first_settled,
    fits_at_once,
    join_lens,
    latest,
    lens_steps,
    logit_lens,
    reach,
    read_lens,
    settling,
    sureness,
    telling,
)
from studies.residual.norm_example import habits, norm_example
from studies.residual.stream import (
    cosines,
    landings,
    mean,
    norms,
    outputs,
    shares,
    states,
    stream,
    summary,
    sums,
    writes,
)
from tests.engine.cases import for_each
from tests.engine.helpers import ARCHITECTURES, loud, stepped, tiny


@for_each("fields", [*ARCHITECTURES.values(), {"norm": "none"}, {"mixer": "similarity"}, {"causal": False}])
def test_arrays_are_the_models_own_tensors(fields: dict[str, Any]) -> None:
    model = loud(tiny(**fields))
    recorder = Recorder()
    with torch.inference_mode():
        logits = model(torch.tensor([IDS]), recorder)
    found = record(model, IDS)
    assert found.names() == list(recorder.tensors)
    assert found.ids == tuple(IDS) and found.config == model.config
    for name, tensor in recorder.tensors.items():
        own = tensor.numpy() if name == "pos_embed" else tensor[0].numpy()
        np.testing.assert_array_equal(found[name], own)
        assert found[name].ndim == len(found.axes(name)) and "batch" not in found.axes(name)
        assert found[name].dtype == (np.int64 if name == "tokens" else np.float32)
    np.testing.assert_array_equal(found.logits, logits[0].numpy())
    assert ("blocks.0.ffn_post" in found) == (fields.get("ffn") != "none")


def test_nothing_can_be_written_into_it() -> None:
    found = record(loud(tiny()), IDS)
    for name in found.names():
        with pytest.raises(ValueError, match="read-only"):
            found[name][...] = 0


def test_blocks_are_stacked_bottom_first() -> None:
    model = loud(tiny())
    found = record(model, IDS)
    stacked = found.stacked("pattern")
    assert stacked.shape == (2, 4, 6, 6)
    np.testing.assert_array_equal(stacked[1], found["blocks.1.pattern"])
    np.testing.assert_allclose(stacked.sum(-1), 1.0, atol=1e-5)
    with pytest.raises(KeyError):
        record(loud(tiny(ffn="none")), IDS).stacked("ffn_post")
    some = record(model, IDS, only={"ffn_post", "blocks.1.pattern", "logits"}).names()
    assert some == ["blocks.0.ffn_post", "blocks.1.pattern", "blocks.1.ffn_post", "logits"]


def test_ids_that_cannot_be_read() -> None:
    for ids, says in (([], "one"), ([11], "0 and 10"), ([0, -1], "0 and 10"), (list(range(9)), "8")):
        with pytest.raises(ShapeError, match=says):
            record(loud(tiny()), ids)


def test_probabilities_and_losses_are_those_of_torch() -> None:
    model = loud(tiny())
    found = record(model, IDS)
    with torch.inference_mode():
        logits = model(torch.tensor([IDS]))[0].double()
    expected = torch.log_softmax(logits, -1)
    np.testing.assert_allclose(found.log_probabilities, expected.numpy(), atol=1e-10)
    losses = torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(IDS[1:]), reduction="none")
    np.testing.assert_allclose(next_token_losses(found), losses.numpy(), atol=1e-10)
    assert next_token_losses(record(model, [3])).shape == (0,)


IDS = (1, 5, 2, 9, 0, 3)

NO_SUM = {name: ARCHITECTURES[name] for name in ("post", "no residual")}
NO_SUM["none, bare"] = {"wiring": "none", "norm": "none"}
VARIANTS = {name: fields for name, fields in ARCHITECTURES.items() if name not in NO_SUM} | {
    "no norm": {"norm": "none"}, "no gain": {"norm_gain": False},
    "parallel, biases": {"wiring": "parallel", "attention_bias": True, "norm_bias": True},
    "post without norm": {"wiring": "post", "norm": "none"}, "wide heads": {"d_head": 6},
    "similarity": {"mixer": "similarity"}, "nothing": {"mixer": "none", "ffn": "none"},
    "t5 encoder": {"position": "t5", "causal": False, "attention_bias": True, "qk_norm": True},
}  # fmt: skip


def looked_at(fields, factor=4.0):
    model = loud(tiny(**fields), factor=factor)
    return model, record(model, IDS)


@for_each("fields", VARIANTS.values(), ids=VARIANTS)
def test_the_final_stream_is_the_sum_of_its_writes_and_shares_sum_to_one(fields):
    _, recording = looked_at(fields)
    assert recording.parts.sums(recording.config)
    total = sum(write.array for write in writes(recording))
    np.testing.assert_allclose(total, outputs(recording)[-1], rtol=1e-4, atol=1e-4)
    found = shares(recording)
    np.testing.assert_allclose(found.sum(0), 1.0, atol=1e-5)
    x, w = outputs(recording)[-1][2].astype(float), writes(recording)[-1].array[2].astype(float)
    assert found[-1, 2] == pytest.approx(sum(x * w) / sum(x * x), rel=1e-6)


@for_each("fields", NO_SUM.values(), ids=NO_SUM)
def test_a_stream_that_is_no_sum_is_not_taken_apart(fields):
    model, recording = looked_at(fields)
    assert shares(recording) is None
    with pytest.raises(ConfigError, match="pre"):
        attribute(model, recording, 0, 0)


def test_a_head_counts_for_what_its_removal_takes_from_the_logit_when_the_scale_is_frozen():
    """Without a norm there is nothing to freeze."""
    model, recording = looked_at({"norm": "none", "ffn": "none", "attention_bias": True})
    for head in range(4):
        kept = (torch.arange(4) != head).view(1, 4, 1, 1)
        without = record(model, IDS, edits={"blocks.1.z": lambda z, kept=kept: z * kept}).logits[4, 7]
        part = attribute(model, recording, 4, 7).heads[1, head]
        assert part == pytest.approx(float(recording.logits[4, 7] - without), abs=1e-3)


def test_the_mean_over_a_large_vocabulary_is_the_mean():
    rows = torch.randn(2500, 3, generator=torch.Generator().manual_seed(0)) + 1
    np.testing.assert_allclose(_mean(rows).numpy(), rows.double().numpy().mean(0), rtol=1e-6)


def test_the_lens_reads_the_middle_as_a_shorter_model_would():
    model, recording = looked_at(ARCHITECTURES["biases"])
    silent = {f"blocks.1.{name}": torch.zeros_like for name in ("attn_out", "ffn_out")}
    shorter = record(model, IDS, edits=silent)
    lens = logit_lens(model, recording)
    both = [np.exp(one.log_probabilities) for one in (shorter, recording)]
    wanted, at_output = (np.take_along_axis(p, lens.likeliest[1], -1) for p in both)
    np.testing.assert_allclose(lens.here[1], wanted, rtol=1e-5)
    np.testing.assert_array_equal(lens.guess[1], shorter.logits.argmax(-1))
    np.testing.assert_allclose(lens.output[1], at_output, rtol=1e-5)
    assert np.abs(at_output / wanted - 1).max() > 0.01


@for_each("fields", [*VARIANTS.values(), *NO_SUM.values()], ids=[*VARIANTS, *NO_SUM])
def test_the_lens_norms_and_cosines_of_every_variant(fields):
    model, recording = looked_at(fields)
    lens = logit_lens(model, recording)
    assert lens.guess.shape == lens.kl.shape == (model.config.n_layers + 1, len(IDS))
    p = np.exp(recording.log_probabilities)
    np.testing.assert_allclose(lens.here[-1], -np.sort(-p, axis=-1)[:, : lens.here.shape[-1]], rtol=1e-5)
    np.testing.assert_array_equal(lens.here[-1], lens.output[-1])
    np.testing.assert_allclose(lens.probability[-1], p.max(-1), rtol=1e-5)
    assert (lens.kl[-1] == 0).all() and (lens.kl >= 0).all()
    np.testing.assert_array_equal(lens.guess[-1], recording.logits.argmax(-1))
    found = states(recording)
    lengths = norms([state.array for state in found])
    assert lengths.shape == (len(found), len(IDS))
    assert lengths[-1, 3] == pytest.approx(np.linalg.norm(found[-1].array[3]), rel=1e-5)
    np.testing.assert_array_equal(found[-1].array, outputs(recording)[-1])  # what the final norm reads
    pairs = [(write.array, write.onto) for write in writes(recording) if write.onto is not None]
    if pairs:
        a, b = (side[1].astype(float) for side in pairs[-1])
        assert cosines(pairs)[-1, 1] == pytest.approx(a @ b / (a @ a * (b @ b)) ** 0.5, abs=1e-6)


def test_a_large_vocabulary_is_read_a_few_positions_at_a_time(monkeypatch):
    model, recording = looked_at({})
    whole = logit_lens(model, recording)
    monkeypatch.setattr(lens_module, "AT_ONCE", 2 * 3 * model.config.vocab_size + 1)  # two positions
    assert fits_at_once(model.config, 2) and not fits_at_once(model.config, 3)
    told, found = stepped(lens_steps(model, recording))
    assert [(one.done, one.total) for one in told] == [(2, 6), (4, 6), (6, 6)]
    for name in ("guess", "settled", "likeliest", "probability", "kl", "here", "output"):
        np.testing.assert_allclose(getattr(found, name), getattr(whole, name), atol=1e-6)


def test_divergence_guess_and_settling_by_hand():
    p = np.array([[[0.5, 0.25, 0.25]], [[0.25, 0.5, 0.25]], [[0.1, 0.7, 0.2]]])
    lens = join_lens([read_lens(torch.from_numpy(np.log(p)))])
    by_hand = 0.1 * np.log(0.1 / 0.5) + 0.7 * np.log(0.7 / 0.25) + 0.2 * np.log(0.2 / 0.25)
    assert lens.kl[0, 0] == pytest.approx(by_hand, rel=1e-5)
    assert lens.guess[:, 0].tolist() == [0, 1, 1] and lens.settled.tolist() == [1]
    assert lens.probability[2, 0] == pytest.approx(0.7, rel=1e-6)
    assert lens.top(2, 0, 2).tolist() == [1, 2]
    assert first_settled(np.array([[4, 4], [4, 1], [4, 4], [4, 4]])).tolist() == [0, 2]


@for_each("wiring", ["pre", "post", "parallel"])
def test_each_write_is_added_to_the_stream_it_is_compared_with(wiring):
    _, recording = looked_at({"wiring": wiring, "norm_bias": True})
    by_name = {write.name: write for write in writes(recording)}
    for block in ("blocks.0.", "blocks.1."):
        attention, ffn = by_name[f"{block}attn_out"], by_name[f"{block}ffn_out"]
        after = ffn.onto + ffn.array
        if wiring == "parallel":
            after = after + attention.array
        else:
            middle = attention.onto + attention.array
            np.testing.assert_allclose(middle, recording[f"{block}resid_mid"], atol=1e-5)
        np.testing.assert_allclose(after, recording[f"{block}resid_post"], atol=1e-5)


def test_the_two_norms_by_hand():
    # Deviations -2, -1, 0, 3: their squares sum to 14; squares of x to 50.
    found = norm_example((1.0, 2.0, 3.0, 6.0))
    assert (found.mean, found.variance, found.rms) == pytest.approx((3.0, 14 / 4, math.sqrt(50 / 4)))
    assert found.outputs["layernorm"] == pytest.approx([d / math.sqrt(3.5) for d in (-2, -1, 0, 3)], rel=1e-5)
    assert found.outputs["rmsnorm"] == pytest.approx([x / math.sqrt(12.5) for x in (1, 2, 3, 6)], rel=1e-5)
    found = {(one.wiring, one.norm): one.models for one in habits()}
    assert found["post", "layernorm"] == ("BERT base", "Transformer base")
    assert "GPT-2 small" in found["pre", "layernorm"]
    assert {"LLaMA-2 7B", "T5 base"} <= set(found["pre", "rmsnorm"])


TEXT = (3, 1, 4, 1, 5, 9, 2)


def by_depth(model: Transformer, recording: Recording) -> np.ndarray:
    """What the stream says at every depth, (depth, query, vocab), in float64: the norm and the unembedding."""
    ends = [f"blocks.{i}.resid_post" for i in range(model.config.n_layers)]
    x = torch.tensor(np.stack([recording[name] for name in ("blocks.0.resid_pre", *ends)])).double()
    exact = copy.deepcopy(model).double()
    with torch.no_grad():
        return (exact.norm_final(x) @ exact.output_matrix.T).softmax(-1).numpy()


def lens_of(logits: np.ndarray | list) -> Lens:
    return join_lens([read_lens(torch.tensor(np.array(logits), dtype=torch.float32))])


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
    found = depth_table(
        lens_of(np.log([[[0.6, 0.3, 0.1]], [[0.5, 0.4, 0.1]], [[0.2, 0.7, 0.1]]])), 0, ranks=2
    )
    assert found.depths.tolist() == [0, 1, 2] and found.tokens.tolist() == [[0, 1], [0, 1], [1, 0]]
    np.testing.assert_allclose(found.shares, [[0.6, 0.3], [0.5, 0.4], [0.7, 0.2]], rtol=1e-5)
    assert found.settled == 2
    assert (found.earlier, found.final) == pytest.approx((0.4, 0.7))
    five = lens_of(np.log([[[0.4, 0.3, 0.15, 0.1, 0.05]]]))
    assert depth_table(five, 0).tokens.tolist() == [[0, 1, 2, 3]]


def test_writes_land_in_the_first_state_that_holds_them():
    for fields in ({}, {"wiring": "post"}):
        found = stream(record(loud(tiny(**fields)), TEXT))
        labels = [found.states[i].label for i in landings(found)]
        assert labels == ["embed", "+ position", "+ attn 0", "+ ffn 0", "+ attn 1", "+ ffn 1"]
    assert landings(stream(record(loud(tiny(n_layers=1, wiring="parallel")), TEXT)))[-2:] == [2, 2]


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
    recording = record(model, TEXT)
    found = settling(logit_lens(model, recording))
    p = by_depth(model, recording)
    kl = (p[-1] * np.log(p[-1] / p)).sum(-1).mean(-1)
    np.testing.assert_allclose(found.kl, kl, atol=1e-4)
    assert found.step == 1 + int(np.argmin(np.diff(kl)))


def test_a_cell_holds_what_is_here_and_what_is_at_the_output():
    model = loud(tiny(), factor=4.0)
    recording = record(model, TEXT)
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
    {"attention_bias": True, "norm_bias": True}, {"mixer": "none"}, {"ffn": "none", "position": "rope"},
    {"n_layers": 6, "n_heads": 8, "d_head": 2},
])  # fmt: skip
def test_the_bars_sum_to_the_logit(fields):
    model = loud(tiny(**fields), factor=3.0)
    recording = record(model, TEXT)
    found = attribute(model, recording, 5, 7)
    told = pushes(model.config, found)
    values, labels = [push.value for push in told.writers], [push.label for push in told.writers]
    assert sum(values) == pytest.approx(float(recording.logits[5, 7]), abs=1e-3)
    assert told.difference == pytest.approx(sum(values) - found.logit, abs=1e-9)
    assert told.most.value == max(values) and told.least.value == min(values)
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
    others = {
        "positions": {"none": Learned},
        "mixers": {"attention": NoMixer},
        "feedforwards": {"gelu": NoFeedForward},
    }
    parts = Attribution(0.0, 1.0, 0.0, np.zeros((2, 4)), np.zeros(2), np.zeros(2), 0.0, 1.0)
    told = pushes(tiny(position="none", ffn="gelu").resolved(), parts, swapped(HEALTHY, "others", **others))
    assert [p.label for p in told.writers] == ["embed", "position"]


@for_each("fields", [{}, {"wiring": "parallel"}, {"wiring": "post"}, {"ffn": "none"}, {"position": "rope"}])
def test_a_tokens_sum_is_worked_out_with_its_own_lengths(fields):
    model = loud(tiny(**fields), factor=3.0)
    recording = record(model, TEXT)
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
    recording = record(loud(tiny(), factor=3.0), TEXT)
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
    found = gradient_flow(np.array(blocks))
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
