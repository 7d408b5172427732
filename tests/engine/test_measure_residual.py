"""A recording is what the model computed; the stream's sums, norms, shares, lens and attribution, computed anew."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from engine.errors import ConfigError, ShapeError
from engine.measure import lens as lens_module
from engine.measure.attribution import _mean, attribute
from engine.measure.lens import first_settled, in_one_step, joined, lens_steps, logit_lens, read_lens
from engine.measure.norm_example import habits, normed
from engine.measure.recording import next_token_losses, record
from engine.measure.residual import cosines, is_sum, norms, outputs, shares, states, writes
from engine.probe import Recorder
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
    assert is_sum(recording.config)
    total = sum(write.array for write in writes(recording))
    np.testing.assert_allclose(total, outputs(recording)[-1], rtol=1e-4, atol=1e-4)
    found = shares(recording)
    np.testing.assert_allclose(found.sum(0), 1.0, atol=1e-5)
    x, w = outputs(recording)[-1][2].astype(float), writes(recording)[-1].array[2].astype(float)
    assert found[-1, 2] == pytest.approx(sum(x * w) / sum(x * x), rel=1e-6)


@for_each("fields", VARIANTS.values(), ids=VARIANTS)
@for_each("versus", [None, 4, "mean"])
def test_the_parts_sum_to_the_logit(fields, versus):
    model, recording = looked_at(fields)
    for position, target in ((0, 3), (5, 10)):
        found = attribute(model, recording, position, target, versus)
        logits = recording.logits[position].astype(float)
        expected = logits[target] - {None: 0.0, 4: logits[4], "mean": logits.mean()}[versus]
        assert found.logit == pytest.approx(expected, abs=1e-6)
        assert abs(found.total - expected) < 1e-3 * max(1.0, abs(expected))
        assert found.heads.shape == (model.config.n_layers, 4)


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
    assert in_one_step(model.config, 2) and not in_one_step(model.config, 3)
    told, found = stepped(lens_steps(model, recording))
    assert [(one.done, one.total) for one in told] == [(2, 6), (4, 6), (6, 6)]
    for name in ("guess", "settled", "likeliest", "probability", "kl", "here", "output"):
        np.testing.assert_allclose(getattr(found, name), getattr(whole, name), atol=1e-6)


def test_divergence_guess_and_settling_by_hand():
    p = np.array([[[0.5, 0.25, 0.25]], [[0.25, 0.5, 0.25]], [[0.1, 0.7, 0.2]]])
    lens = joined([read_lens(torch.from_numpy(np.log(p)))])
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
    found = normed((1.0, 2.0, 3.0, 6.0))  # deviations -2, -1, 0, 3: squares sum to 14; squares of x to 50
    assert (found.mean, found.variance, found.rms) == pytest.approx((3.0, 14 / 4, math.sqrt(50 / 4)))
    assert found.layernorm == pytest.approx([d / math.sqrt(3.5) for d in (-2, -1, 0, 3)], rel=1e-5)
    assert found.rmsnorm == pytest.approx([x / math.sqrt(12.5) for x in (1, 2, 3, 6)], rel=1e-5)
    found = {(one.wiring, one.norm): one.models for one in habits()}
    assert found["post", "layernorm"] == ("BERT base", "Transformer base of 2017")
    assert "GPT-2 small" in found["pre", "layernorm"]
    assert {"LLaMA-2 7B", "T5 base"} <= set(found["pre", "rmsnorm"])
