"""The traced forward pass against the model's own, and attention by hand against arithmetic."""

from __future__ import annotations

import inspect
import math
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engine.errors import ShapeError
from engine.model import build
from engine.parts.attention import Attention
from engine.parts.registry import HEALTHY, swapped
from engine.probe import AXES, Recorder
from engine.recording import record
from engine.slices import largest, take_index
from studies.costs.ledger import parameter_formula
from studies.shapes import attention_by_hand, op_trace, shape_mistakes
from studies.shapes.attention_by_hand import masking, multi_head, weight_by_hand
from studies.shapes.formulas import formulas
from studies.shapes.operations import Shape, probabilities, tensor_of, totals, trace
from studies.shapes.shape_mistakes import division
from tests.engine.cases import for_each
from tests.engine.helpers import loud, some_tokens, tiny


def named(steps, name):
    return next(step for step in steps if step.name == name)


def test_a_pooler_s_steps_have_their_axes():
    """What is made of the first token's last vector: one vector for each text, before the tanh and after."""
    d, steps = tiny().d_model, trace(tiny(causal=False, output_head="none", pooler=True), 5)[-3:]
    assert [step.bare for step in steps] == ["pool_first", "pool_in", "pooled"]
    assert [step.inputs[0].name for step in steps] == ["norm_final", "pool_first", "pool_in"]
    for step in steps:
        assert (step.output.axes, step.output.sizes) == (("batch", "d_model"), (1, d))
        assert step.part == "output" and step.stage == "output" and step.formula and step.words
    assert (steps[1].parameters, steps[1].products, steps[2].elementwise) == (d * d + d, 2 * d * d, d)


def test_a_tied_unembedding_counts_nothing_new_and_says_what_it_shares():
    tied, untied = (named(trace(tiny(tie_embeddings=tie), 4), "logits") for tie in (True, False))
    assert (tied.parameters, tied.weights, tied.shared) == (0, (), ("embedding",))
    own = Shape("unembedding", (), (11, 16))
    assert (untied.parameters, untied.weights, untied.shared) == (11 * 16, (own,), ())
    steps = trace(tiny(n_layers=3), 4)
    reads = [named(steps, f"blocks.{i}.norm1").inputs[0].name for i in range(3)]
    assert reads == ["blocks.0.resid_pre", "blocks.0.resid_post", "blocks.1.resid_post"]
    assert named(steps, "norm_final").inputs[0].name == "blocks.2.resid_post"
    assert [w.name for w in named(steps, "blocks.2.qkv_flat").weights] == ["blocks.2.mixer.w_qkv.weight"]


def lines_of(steps, name):
    """The lines that ran in a step, as they stand in their source."""
    found = []
    for ran in named(steps, name).ran:
        lines, first = inspect.getsourcelines(ran.code)
        found += [lines[line - first].strip() for line in ran.lines]
    return found


def test_the_lines_that_ran_are_the_lines_that_did_it():
    steps = trace(tiny(), 4)
    for name, says in (("blocks.0.pattern", "softmax"), ("blocks.0.scores", "baddbmm"), ("embed", "F.emb")):
        assert any(says in line for line in lines_of(steps, name))
    normed = lines_of(steps, "blocks.0.norm1")
    assert normed == ["return F.layer_norm(x, x.shape[-1:], self.gain, self.bias, self.eps)"]
    assert all(step.ran for step in steps if step.name != "tokens")


def test_a_part_made_inside_a_function_shows_its_lines_too(monkeypatch):
    """It has no name to be found by: its qualified name holds `<locals>`."""

    class Doubled(Attention):
        def scores(self, q, k):
            return 2 * super().scores(q, k)

    monkeypatch.setattr(op_trace, "_OURS", str(Path(__file__).parents[1]))
    steps = trace(tiny(), 4, swapped(HEALTHY, "doubled", mixers={"attention": Doubled}))
    assert lines_of(steps, "blocks.0.scores") == ["return 2 * super().scores(q, k)"]
    (ran,) = named(steps, "blocks.0.scores").ran
    assert ran.code.co_qualname.endswith("<locals>.Doubled.scores") and ran.module == __name__


@for_each("changes", [
    {}, {"ffn": "swiglu", "position": "rope", "n_kv_heads": 2}, {"mixer": "shared_qk", "wiring": "post"},
    {"mixer": "similarity", "norm": "rmsnorm", "causal": False}, {"ffn": "none", "position": "sinusoidal"},
    {"mixer": "mean", "position": "alibi", "wiring": "parallel", "tie_embeddings": False},
    {"position": "t5", "wiring": "none", "attention_bias": True, "ffn_bias": True, "output_projection": False},
    {"mixer": "mla", "position": "rope"}, {"mixer": "mla", "d_query": 8}, {"mixer": "sinks"}, {"mixer": "gated"},
])  # fmt: skip
def test_any_architecture_is_traced_as_it_runs(changes):
    """Every step has the shape of a real pass, every real activation is a step or another one unchanged."""
    config, recorder = tiny(**changes), Recorder()
    steps = trace(config, 5)
    with torch.inference_mode():
        build(config).eval()(torch.zeros(1, 5, dtype=torch.int64), recorder)
    real, before = recorder.shapes(), set()
    for step in steps:
        if step.bare in AXES:
            assert step.output.sizes == real[step.name] and step.output.axes == AXES[step.bare], step.name
        assert step.formula and step.words and len(step.output.axes) == len(step.output.sizes), step.name
        assert {shape.name for shape in step.inputs} <= before, "nothing is used before it was made"
        assert step.name not in before
        before.add(step.name)
    for name in set(real) - before:
        same = [recorder[one] for one in before & set(real) if real[one] == real[name]]
        assert any(torch.equal(recorder[name], one) for one in same), name
    assert totals(steps)["parameters"] == parameter_formula(config)


@for_each("changes", [
    {}, {"ffn": "swiglu", "position": "rope", "n_kv_heads": 2}, {"mixer": "shared_qk"}, {"mixer": "similarity"},
    {"ffn": "none"}, {"mixer": "mla"}, {"mixer": "gated"},
])  # fmt: skip
@torch.inference_mode()
def test_what_no_probe_sees_is_put_together_rightly(changes):
    model = loud(tiny(**changes))
    ids = some_tokens(model.config, 1)[0].tolist()
    recording, steps, block = record(model, ids), trace(model.config, len(ids)), model.blocks[1]

    def own(name):
        return torch.tensor(recording[f"blocks.1.{name}"])

    flat = {"qkv_flat": "w_qkv", "qk_flat": "w_qk", "v_flat": "w_v", "q_flat": "w_q"}
    unrecorded = (
        "position",
        "latent",
        "latent_flat",
        "latent_split",
        "kv_flat",
        "kv_heads",
        "gate_flat",
        "gate_heads",
    )
    for step in steps:
        found = tensor_of(step, recording)
        assert (found is None) == (step.bare in unrecorded)
        if found is not None:
            assert len(found[1]) == found[0].ndim
            sizes = step.output.sizes[-found[0].ndim :]
            assert step.bare.endswith("_heads") or found[0].shape == sizes, step.name
        wanted = None
        if step.block == 1 and step.bare in flat:
            wanted = getattr(block.mixer, flat[step.bare])(own("norm1"))
        elif step.block == 1 and step.bare == "ffn_in":
            wanted = block.ffn.w_in(own("norm2"))
        elif step.block == 1 and step.bare == "attn_out" and step.inputs[0].name == "blocks.1.z_merged":
            merged = tensor_of(named(steps, "blocks.1.z_merged"), recording)[0]
            wanted = block.mixer.output(torch.tensor(merged))
        if wanted is not None:
            np.testing.assert_allclose(found[0], wanted, atol=1e-5)
    last = tensor_of(steps[-1], recording)[0]
    np.testing.assert_allclose(last, probabilities(torch.tensor(recording.logits)), atol=1e-6)


@for_each("heads", [1, 2, 4])
def test_by_hand_is_what_torch_computes(heads):
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(rows, 8)) for rows in (2, 3, 3))
    e = attention_by_hand.multi_head(q.tolist(), k.tolist(), v.tolist(), heads, [1])
    tensors = [torch.tensor(x).unflatten(-1, (heads, -1)).transpose(0, 1) for x in (q, k, v)]
    mask = torch.tensor([True, False, True]).expand(2, 3)
    wanted = F.scaled_dot_product_attention(*tensors, attn_mask=mask).transpose(0, 1).flatten(1)
    np.testing.assert_allclose(e.out, wanted, atol=1e-12)


@for_each("call, words", [
    (lambda: attention_by_hand.multi_head([[1, 2]], [[1, 2, 3]], [[1, 2]], 1), "same number"),
    (lambda: attention_by_hand.multi_head([[1, 2]], [[1, 2]], [[1, 2], [3, 4]], 1), "1 keys but 2 values"),
    (lambda: attention_by_hand.multi_head([[1, 2, 3]], [[1, 2, 3]], [[1, 2, 3]], 2), "evenly"),
    (lambda: attention_by_hand.multi_head([[1, 2]], [[1, 2]], [[1, 2]], 1, [0]), "every key is hidden"),
    (lambda: attention_by_hand.masking([], []), "at least one"),
    (lambda: attention_by_hand.masking([1.0], [1]), "hidden key"),
])  # fmt: skip
def test_what_cannot_be_computed_by_hand_is_said(call, words):
    with pytest.raises(ShapeError, match=words):
        call()


def test_mistakes_fail_or_do_harm():
    who = [name for name, _ in shape_mistakes.split_heads(128, 3).errors]
    assert who == ["ConfigError", "RuntimeError"] and shape_mistakes.split_heads(128, 4).made == (1, 6, 4, 32)
    assert "cannot be multiplied" in shape_mistakes.transposed_unembedding(16, 11).errors[0][1]
    assert "must match the size" in shape_mistakes.wrong_mask(6, 5).errors[0][1]
    square = shape_mistakes.transposed_unembedding(16, 16)
    assert square.made == (1, 6, 16) and not square.errors and square.harm > 0.01
    assert (
        shape_mistakes.wrong_mask(6, 1).harm == pytest.approx(5 / 6)
        and shape_mistakes.wrong_mask(6, 6).harm == 0
    )


def test_what_a_masked_and_a_longer_text_cost():
    short, long = (trace(tiny(context=32), tokens) for tokens in (5, 10))
    for one, two in zip(short, long, strict=True):
        assert one.output.numbers == math.prod(one.output.sizes)
        assert two.output.numbers == one.output.doubled * one.output.numbers, one.name
    assert named(short, "blocks.0.scores").output.doubled == 4
    grouped = named(trace(tiny(n_kv_heads=2), 4), "blocks.0.qkv_heads")
    assert grouped.output.axes == ("batch", "query", "head", "d_head")


@for_each("option, name, latex, words", [
    ({"embedding_scale": True}, "embed", r"\sqrt{d}\,E", ", times √d"),

    ({"position": "rope", "rope_fraction": 0.5}, "q_rot", "-2i/4}", ", the first 4 of 8 dimensions"),
    ({"position": "t5"}, "scores", r"d_{head}}} + b_h(i - j)", " / √d_head + bias for the distance"),
])  # fmt: skip
def test_a_formula_has_an_option_only_where_it_is_on(option, name, latex, words):
    base = {"d_model": 32, "position": "rope" if "rope_fraction" in option else "none"}
    said = [formulas(tiny(**base | fields).resolved())[name] for fields in (option, {})]
    told = [(latex in formula[0], words in formula[1]) for formula in said]
    assert told == [(True, True), (False, False)]


Q, K, V = [[1, 2, 3, 4]], [[5, 6, 7, 8], [9, 0, 1, 2]], [[1, 0, 0, 1], [0, 1, 1, 0]]


def test_one_weight_by_hand_also_of_a_hidden_key():
    example, root = multi_head(Q, K, V, 2), math.sqrt(2)
    found, other = weight_by_hand(example, 1, 0), weight_by_hand(example, 0, 1)
    assert found.pairs == ((3, 7), (4, 8)) and found.raw == 53 and not found.hidden
    assert found.scaled == pytest.approx(53 / root) and found.seen == pytest.approx((53 / root, 11 / root))
    assert found.weight == pytest.approx(1 / (1 + math.exp(-42 / root)))
    assert other.pairs == ((1, 9), (2, 0)) and other.raw == 9
    assert other.weight == pytest.approx(1 / (1 + math.exp(8 / root)))
    (one, much), (two, all_) = example.first
    assert (one, two) == (1, 1)
    assert (much, all_) == pytest.approx((1 / (1 + math.exp(-8 / root)), 1))
    example = multi_head(Q, K, V, 2, (0,))
    gone, left = weight_by_hand(example, 0, 0), weight_by_hand(example, 0, 1)
    assert gone.hidden and gone.weight == 0 and not left.hidden and left.weight == 1
    assert gone.seen == left.seen == pytest.approx((9 / root,))
    assert [key for key, _ in example.first] == [2, 2]
    example = multi_head([[1, 2, 0.3, 0.4]], K, V, 2)
    largest_each = [max(weight_by_hand(example, h, k).weight for k in (0, 1)) for h in (0, 1)]
    assert largest_each[0] != largest_each[1] and example.most == min(largest_each)


def test_a_mask_after_the_softmax_leaves_less_than_one():
    example = masking([1.0, 2.5, 0.5, 3.0], [3, 0])
    e = [math.exp(x) for x in (1.0, 2.5, 0.5, 3.0)]
    assert example.visible == (1, 2) and example.exponents == (2.5, 0.5)
    assert example.total == pytest.approx(e[1] + e[2])
    assert example.late_sum == pytest.approx((e[1] + e[2]) / sum(e)) == 1 - example.lost
    large = masking([1000.0, 999.0, 0.0], [2])
    assert large.shift == 1000 and large.exponents == (0, -1) and large.total == pytest.approx(1 + 1 / math.e)


@for_each("d_model, heads, each, rest, near", [
    (128, 3, 42, 2, (1, 2, 4)), (128, 8, 16, 0, (2, 4, 8)), (7, 5, 1, 2, (1, 7)), (2, 64, 0, 2, (1, 2)),
    (1000, 60, 16, 40, (25, 40, 50)),
])  # fmt: skip
def test_numbers_shared_out_among_heads(d_model, heads, each, rest, near):
    found = division(d_model, heads)
    assert (found.each, found.rest, found.near) == (each, rest, near)
    assert all(d_model % n == 0 for n in near)


def test_one_place_of_an_axis_and_the_size_of_what_is_finite():
    values = np.arange(24.0).reshape(2, 3, 4)
    found, axes = take_index(values, ("query", "head", "d_head"), 1, 2)
    assert axes == ("query", "d_head") and np.array_equal(found, values[:, 2])
    assert largest(np.array([1.0, -3.0, -np.inf, np.nan])) == 3 and largest(np.full(2, -np.inf)) == 0
