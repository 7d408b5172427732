"""The Attention page: every view, its options, every kind of model, each number worked out here another way."""

import base64
import json
import math
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine.data.tokenizers.char import CharTokenizer
from engine.errors import CheckpointError
from engine.model import build
from engine.recording import Recording, record
from pages.inside.attention import head_pairs, heads
from studies.attention.ablation import Switches, compare
from studies.attention.head_patterns import extremes, two_numbers
from studies.attention.heads import head_numbers
from studies.attention.scaling import scaling
from studies.attention.single_head import head_stages
from studies.lab.faults import PARTS
from studies.tasks.ladder import self_term
from studies.tasks.rungs import LADDER
from tests.engine.helpers import loud, tiny
from tests.pages.conftest import Drawn
from tests.pages.helpers import FOLDS, chosen, lacking, opened, said, unescaped
from tests.pages.inside.models import of_letters, only_this, shipped
from tests.pages.stage import StageManager
from ui import widgets
from ui.site import ROOT
from ui.text.markdown import safe
from ui.text.numbers import minus, scientific

PAGE = "inside/attention"


def test_the_switches_say_what_changed(monkeypatch):
    only_this(monkeypatch, shipped(), "trained")
    page = opened(PAGE, attention_view="switches", measure="true")
    assert page.session_state["attention_off"] == ["0.0", "0.1", "0.2", "0.3"], "something is off at first"
    assert "Without the heads of block 0, the loss on this text goes from" in said(page)
    assert "As an example, the heads of block 0 are ablated" in said(page)
    page.button(key="attention_off_none").click().run()
    assert "nothing has changed yet" in said(page) and "Nothing is ablated" in said(page)
    assert "As an example" not in said(page)
    assert [m.value for m in page.metric][1:] == ["0.000 nats", "0.000 nats"]
    page.button(key="attention_off_all").click().run()
    assert not page.exception and "Every head is off" in said(page) and "b_O" in said(page)
    assert page.session_state["attention_off"] == [f"{i}.{h}" for i in range(4) for h in range(4)]
    assert float(page.metric[1].value.split()[0]) > 0.1
    page.button(key="attention_off_1").click().run()
    assert page.session_state["attention_off"] == ["1.0", "1.1", "1.2", "1.3"]
    for view in ("shared-keys", "switches"):
        chosen(page, "attention_view", view)
    assert page.session_state["attention_off"] == ["1.0", "1.1", "1.2", "1.3"], "kept by another view"


MODEL = loud(tiny(n_kv_heads=2, position="rope", qk_norm=True), factor=4.0).requires_grad_(False)
TEXT = "abcabcab"
IDS = tuple(CharTokenizer("abcdefghij ").encode(TEXT))
RECORDING: Recording = record(MODEL, IDS)
LAYER, HEAD, QUERY = 1, 3, 5
PATTERNS = RECORDING.stacked("pattern").astype(np.float64)  # (layer, head, query, key)


@pytest.fixture(autouse=True)
def model(monkeypatch: pytest.MonkeyPatch, manager: StageManager) -> None:
    only_this(monkeypatch, of_letters(MODEL), "numbers")


def attention(view: str, text: str = TEXT, **query: Any) -> AppTest:
    where = {"attention_layer": str(LAYER), "attention_head": str(HEAD)}
    return opened(PAGE, attention_view=view, text=text, **FOLDS, **where, **query)


def seen(values: np.ndarray) -> np.ndarray:
    """(query, key) without later keys, which are blank."""
    return np.where(np.tri(len(values), dtype=bool), values, np.nan)


def heat(drawn: dict[str, Drawn], key: str) -> np.ndarray:
    """The z of a heatmap; what is left blank is NaN."""
    return np.array(
        [[math.nan if v is None else v for v in row] for row in drawn[key].traces[0]["z"]], dtype=float
    )


def test_heads_shows_the_chosen_pattern_and_says_how_far_it_looks(drawn):
    page = attention("heads")
    np.testing.assert_allclose(heat(drawn, "attention_pattern"), seen(PATTERNS[LAYER, HEAD]), rtol=1e-6)
    assert "`blocks.1.pattern[3]`: 8 × 8 weights." in said(page)
    for axis in ("xaxis", "yaxis"):
        ends = drawn["attention_pattern"].layout[axis]["range"]
        assert sorted(ends) == [-0.5, 7.5], "to the edges of the outer cells"
    p = PATTERNS[..., np.arange(1, 8), np.arange(7)].mean(-1)  # on the token before
    own = {(i, h): value for i, row in enumerate(p) for h, value in enumerate(row)}
    assert "Head 1.3 " in said(page) and ("to the previous token" in said(page)) == (own[1, 3] >= 0.4)
    assert len(re.findall("nothing above the diagonal", said(page))) == 1
    page.get_by_key("attention_head").set_value(2).run()
    assert "`blocks.1.pattern[2]`: 8 × 8 weights." in said(page) and "Head 1.2 " in said(page)
    np.testing.assert_allclose(heat(drawn, "attention_pattern"), seen(PATTERNS[LAYER, 2]), rtol=1e-6)


def test_the_grid_gets_every_pattern_and_the_order_of_a_habit(monkeypatch):
    sent: dict[str, Any] = {}
    monkeypatch.setattr(heads, "mounted", lambda name: lambda **rest: sent.update(rest["data"]))
    page = attention("heads")
    assert (sent["layers"], sent["heads"], sent["size"], sent["triangle"]) == (2, 4, 8, True)
    pixels = np.frombuffer(base64.b64decode(sent["pixels"]), np.uint8).reshape(2, 4, 36) / 255
    np.testing.assert_allclose(pixels, PATTERNS[..., *np.tril_indices(8)], atol=0.5 / 255 + 1e-6)
    assert sorted(sent["order"]) == list(range(8)) and sent["chosen"] == [LAYER, HEAD], "by what they do"
    full = np.frombuffer(base64.b64decode(sent["full"]), "<u2").reshape(8, 8) / 65535
    np.testing.assert_allclose(full, PATTERNS[LAYER, HEAD], atol=1e-5)
    assert sent["tokens"] == list(TEXT) and sent["step"] == 1
    page.get_by_key("attention_sort").set_value("layer").run()
    assert sent["order"] is None and len(sent["names"]) == 8
    page.get_by_key("attention_sort").set_value("previous").run()
    before = np.mean([PATTERNS[..., i, i - 1] for i in range(1, 8)], axis=0).ravel()
    assert sent["order"] == sorted(range(8), key=lambda i: -before[i])
    assert sent["scores"] == [f"{value:.0%}" for value in before]
    assert sent["chosen"] == list(divmod(int(before.argmax()), 4)), "the strongest is enlarged"
    page.get_by_key("attention_head").set_value(0).run()
    assert sent["chosen"][1] == 0, "until another is chosen"
    page.get_by_key("attention_strong").set_value(True).run()
    strong = [i for i in sent["order"] if before[i] >= 0.4]
    assert sent["order"] == strong or (not strong and "No head gives this pattern" in said(page))


def test_step_by_step_draws_each_stage_of_the_chosen_head(drawn):
    block = f"blocks.{LAYER}."
    page = attention("steps", attention_stage="q, k, v", attention_query=str(QUERY), attention_key="2")
    parts = [
        RECORDING[block + name][place]
        for name, place in (("q", 3), ("q_rot", 3), ("k", 1), ("k_rot", 1), ("v", 1))
    ]
    np.testing.assert_allclose(heat(drawn, "attention_stage_plot"), np.concatenate(parts, 1), rtol=1e-6)
    found = head_stages(MODEL, RECORDING, LAYER, HEAD)
    shown_in = {
        "q·k": found.raw,
        "÷ √d": found.scaled,
        "mask": found.masked,
        "softmax": PATTERNS[LAYER, HEAD],
        "· v": found.z,
        "W_O": found.written,
    }
    for stage, values in shown_in.items():
        chosen(page, "attention_stage", stage)
        shown = seen(values) if stage in ("mask", "softmax") else values
        np.testing.assert_allclose(heat(drawn, "attention_stage_plot"), shown, atol=2e-5, err_msg=stage)
    table = page.dataframe[0].value
    np.testing.assert_allclose(table["q·k"], found.raw[QUERY], atol=1e-9)
    np.testing.assert_allclose(table["masked"], found.masked[QUERY], atol=1e-9)
    np.testing.assert_allclose(table["weight"], PATTERNS[LAYER, HEAD, QUERY], atol=1e-6)
    gap = np.abs(found.pattern - RECORDING[block + "pattern"][HEAD]).max()
    assert 0 < gap < 1e-5 and f"by at most {scientific(gap, 0)}." in said(page)
    words = said(page)
    assert f"gives {PATTERNS[LAYER, HEAD, QUERY, 2]:.4f} of its weight to c (position 2)" in words
    assert f"({found.q[QUERY, 0]:.2f})({found.k[2, 0]:.2f})" in words
    assert f"= {found.raw[QUERY, 2]:.4f}$" in words
    assert "over its 6 visible keys" in words
    product, score = (f"{x[QUERY, 2]:.2f}".replace("-", "−") for x in (found.raw, found.masked))
    assert f"their dot product q·k is **{product}**" in words
    assert f"the score **{score}**, and a softmax over the {QUERY + 1} visible tokens" in words
    assert f"gives “{TEXT[2]}” **{PATTERNS[LAYER, HEAD, QUERY, 2]:.0%}** of its weight" in words
    vectors = (found.written, RECORDING[block + "attn_out"], RECORDING[block + "resid_pre"])
    lengths = [np.linalg.norm(x[QUERY]) for x in vectors]
    own, together, before = (f"{x:.3f}" for x in lengths)
    assert f"writes a vector of norm {own}; all heads of block 1 together" in words
    assert f"write one of norm {together}. Stream norm before: {before}." in words


def test_a_model_that_does_not_divide_is_not_said_to(drawn, monkeypatch):
    faulty = build(tiny(), parts=PARTS["unscaled_scores"]).eval()
    only_this(monkeypatch, of_letters(faulty), "faulty")
    page = attention("steps", attention_stage="÷ √d", attention_query=str(QUERY), attention_key="2")
    assert not page.exception and "does not scale them" in said(page)
    assert "\\sqrt" not in said(page) and "the unscaled product" in said(page)
    assert "scores" in page.dataframe[0].value and "÷ √d" not in page.dataframe[0].value
    shown = head_stages(faulty, record(faulty, IDS), LAYER, HEAD)
    np.testing.assert_allclose(heat(drawn, "attention_stage_plot"), shown.raw, atol=1e-5)


def test_the_switches_show_both_predictions_and_how_far_they_are_apart(drawn):
    place = 4
    page = attention("switches", attention_off=["1.3", "0.0"], attention_at=str(place))
    found = compare(MODEL, RECORDING, Switches(heads_off=((0, 0), (1, 3))))
    p, q = (np.exp(r.log_probabilities) for r in (RECORDING, found.after))
    kl, losses = found.kl, (found.loss_before, found.loss_after)
    np.testing.assert_allclose(drawn["attention_kl"].traces[0]["y"], kl, rtol=1e-4, atol=1e-7)
    metrics = [m.value for m in page.metric]
    assert metrics == [f"{losses[1]:.3f}", f"{kl[place]:.3f} nats", f"{kl.mean():.3f} nats"]
    assert page.metric[0].delta == f"{losses[1] - losses[0]:+.3f}" and f"{losses[0]:.3f} before" in said(page)
    table = drawn["attention_tops"].table
    ids = ["abcdefghij ".index(token.replace("␣", " ")) for token in table["token"]]
    assert ids[:6] == np.argsort(-p[place], kind="stable")[:6].tolist()
    before, then = (trace for trace in drawn["attention_tops"].traces)
    assert (before["name"], then["name"]) == ("before", "after")
    np.testing.assert_allclose(before["x"], p[place][ids], rtol=1e-5)
    np.testing.assert_allclose(then["x"], q[place][ids], rtol=1e-5)
    chosen(page, "attention_each", True)
    heads = [(i, h) for i in range(2) for h in range(4)]
    off = [compare(MODEL, RECORDING, Switches(heads_off=(head,))) for head in heads]
    alone = np.array([one.kl.mean() for one in off]).reshape(2, 4)
    np.testing.assert_allclose(heat(drawn, "attention_each_plot"), alone, rtol=1e-3, atol=1e-6)
    layer, head = divmod(int(alone.argmax()), 4)
    assert f"head {layer}.{head} matters most on this text" in said(page)
    assert f"moves by {alone.max():.3f} nats" in said(page) and f"moves it by {alone.min():.4f}" in said(page)


def test_numbers_are_those_of_the_patterns(drawn):
    found = head_numbers(PATTERNS, np.tri(8, dtype=bool))
    expected = {
        "Entropy": found.entropy,
        "Relative entropy": found.relative_entropy,
        "Distance": found.distance,
        "Previous token": found.previous,
        "First token": found.first,
    }
    fields = {heads.TEXT[f"measure {field}"]: field for field in heads.MEASURES}
    page = attention("heads", attention_number="entropy")
    for name, values in expected.items():
        chosen(page, "attention_number", fields[name])
        np.testing.assert_allclose(heat(drawn, "attention_numbers"), values, rtol=1e-5, err_msg=name)
        if written := {"Entropy": "{:.2f} nats", "First token": "{:.0%}"}.get(name):
            layer, head = divmod(int(values.argmax()), 4)
            most, mean = (written.format(x) for x in (values.max(), values.mean()))
            assert f"Head {layer}.{head} scores highest on {name.lower()}, at **{most}**" in unescaped(page)
            assert f"the mean over all heads is **{mean}**." in unescaped(page)
    table = page.dataframe[0].value
    at = (table["layer"] == 1) & (table["head"] == 2)
    assert table[at]["distance"].item() == pytest.approx(expected["Distance"][1, 2])
    assert table[at]["first"].item() == pytest.approx(expected["First token"][1, 2])
    ends = extremes(found)
    even, sharp, far = ends.even, ends.decided, ends.farthest
    assert not lacking(
        said(page),
        f"**Head {even.layer}.{even.head}** attends most uniformly ({even.value:.0%}",
        f"**Head {sharp.layer}.{sharp.head}** is the most focused ({sharp.value:.0%}; {ends.nats:.2f} nats)",
        f"**Head {far.layer}.{far.head}** attends farthest back: {far.value:.1f} tokens",
    )


def test_two_numbers_of_each_head_are_a_point(drawn):
    found = head_numbers(PATTERNS, np.tri(8, dtype=bool))
    page = attention("heads", attention_number="pairs", attention_x="distance", attention_y="first")
    points = drawn["attention_pairs"].traces[0]
    np.testing.assert_allclose(points["x"], found.distance.ravel(), rtol=1e-5)
    np.testing.assert_allclose(points["y"], found.first.ravel(), rtol=1e-5)
    assert points["customdata"] == ["0.0", "0.1", "0.2", "0.3", "1.0", "1.1", "1.2", "1.3"]
    assert points["marker"]["color"] == [0.0] * 4 + [1.0] * 4
    table = drawn["attention_pairs"].table
    assert table["distance"] == pytest.approx(found.distance.ravel().tolist()) and "entropy" in table
    r = np.corrcoef(found.distance.ravel(), found.first.ravel())[0, 1]
    assert f"{minus(f'{r:+.2f}')}**" in unescaped(page)
    x, y = (divmod(int(values.argmax()), 4) for values in (found.distance, found.first))
    both = f"Head {x[0]}.{x[1]} scores highest on both."
    each = f"Head {x[0]}.{x[1]} scores highest on the first, head {y[0]}.{y[1]} on the second."
    assert (both if x == y else each) in unescaped(page)
    chosen(page, "attention_x", "first")  # then it is no longer offered for the other axis
    points = drawn["attention_pairs"].traces[0]
    np.testing.assert_allclose(points["x"], found.first.ravel(), rtol=1e-5)
    assert page.selectbox(key="attention_y").value == "induction"
    assert points["y"] == pytest.approx(drawn["attention_pairs"].table["induction"], rel=1e-5)


def test_a_click_on_a_point_opens_the_pattern_of_its_head(monkeypatch):
    page = attention("heads", attention_number="pairs")
    picked = widgets.picked
    clicks = iter(["1.2"])
    monkeypatch.setattr(
        widgets,
        "picked",
        lambda key, name: next(clicks, None) if key == head_pairs.PLOT else picked(key, name),
    )
    page.run()
    assert page.selectbox(key="attention_number").value == "patterns"
    assert (page.session_state["attention_layer"], page.session_state["attention_head"]) == (1, 2)


def test_how_two_numbers_of_the_heads_hang_together():
    x = np.array([[0.1, 0.4], [0.2, 0.9]])
    y = np.array([[0.5, 0.3], [np.nan, 0.1]])
    both = two_numbers(x, y)
    assert both and (both.heads, both.direction) == (3, "down")
    assert both.correlation == pytest.approx(np.corrcoef([0.1, 0.4, 0.9], [0.5, 0.3, 0.1])[0, 1])
    assert (both.most_x.layer, both.most_x.head, both.most_y.layer, both.most_y.head) == (1, 1, 0, 0)
    assert two_numbers(x, 2 * x + 1).direction == "up"
    assert two_numbers(np.array([[1.0, 2, 3, 4]]), np.array([[1.0, -1, -1, 1]])).direction == "hardly"
    assert two_numbers(x, np.full((2, 2), 0.3)).direction == "undefined"
    assert two_numbers(x, np.full((2, 2), np.nan)) is None


def test_the_scale_is_shown_beside_its_theory(drawn):
    page = attention("scores", attention_dk="64", attention_scale="1/d_k", attention_zeros="9")
    table = page.table[0].value
    left, right = (drawn[f"attention_scaling_{k}"].traces[0] for k in ("example", "divided"))
    np.testing.assert_allclose(np.sum([left["y"], right["y"]], axis=1), 1, rtol=1e-5)
    assert f"one key takes **{max(left['y']):.1%}** of the weight" in said(page)
    assert f"that key gets **{max(right['y']):.1%}**" in said(page)
    for name, exponent in (("no scaling", 0.0), ("scaled by 1/d_k", 1.0)):
        found = scaling((64,), exponent)
        numbers = found.spread, found.entropy, found.jacobian, found.slope
        assert list(table[name]) == [f"{x[0]:.4g}" for x in numbers]
    against = list(table["for comparison"])
    assert against[0] == "√d_k = 8.000, scaled 0.125" and against[1] == "at most ln 64 = 4.159"
    assert against[3] == "at most 2(1 − 1/64)/64² = 0.000481"
    theory = [t for t in drawn["attention_scaling"].traces if t["name"] == "theory"]
    np.testing.assert_allclose(theory[0]["y"], np.sqrt(theory[0]["x"]))
    np.testing.assert_allclose(theory[1]["y"], 1 / np.sqrt(theory[1]["x"]))
    assert page.metric[2].value == f"{math.e**14 / (math.e**14 + 9):.5f}"
    small = math.exp(14 / math.sqrt(128))
    assert f"is {14 / math.sqrt(128):.2f} and takes {small / (small + 9):.4f} of the weight" in said(page)
    assert page.metric[0].value[:3] == "5.6" and "\\sqrt{32} = 5.66" in said(page)  # a million pairs


def test_no_scaling_beside_itself_is_one_column():
    page = attention("scores", attention_dk="64", attention_scale="none")
    assert not page.exception and not page.error and not said(page).count("Something went wrong")
    assert list(page.table[0].value.columns) == ["no scaling", "for comparison"]


def test_shared_keys_counts_the_cache(drawn):
    page = attention("shared-keys", attention_sizes="own", attention_heads="12", attention_kv="5")
    assert drawn["attention_shared"].table["kv_head"] == [h // 3 for h in range(12)]
    layers, width = MODEL.config.n_layers, MODEL.config.d_head
    table = page.table[0].value
    assert list(table.columns) == ["12 key-value heads", "4 key-value heads (chosen)", "1 key-value head"]
    for column, kv in zip(table.columns, (12, 4, 1), strict=True):
        weights = 2 * kv * width * MODEL.config.d_model
        cells = [f"{weights:,}", f"{layers * weights:,}", f"{2 * layers * kv * width * 2:.3g} B"]
        assert list(table[column])[:3] == cells
    assert "5 does not divide 12" in said(page)
    assert "12 query heads share **4** key-value heads (grouped-query attention)" in unescaped(page)
    assert "saves **66.7%** of the cache: 12 query heads" in said(page)


def probabilities(logits: Any) -> np.ndarray:
    return torch.softmax(torch.as_tensor(np.array(logits)).double(), -1).numpy()


def loss(p: np.ndarray) -> float:
    return float(np.mean([-math.log(p[i, IDS[i + 1]]) for i in range(len(IDS) - 1)]))


def test_heads_says_how_many_do_what_and_what_the_chosen_one_does(monkeypatch):
    sent: dict[str, Any] = {}
    monkeypatch.setattr(heads, "mounted", lambda name: lambda **rest: sent.update(rest["data"]))
    trained = shipped()
    only_this(monkeypatch, trained, "trained")
    line = "First Citizen:\nBefore we proceed any further, hear me speak.\n"
    text = unescaped(attention("heads", text=line))
    counted = Counter(habit for habit in sent["habits"] if habit)
    sentence = text[text.index("Of 16 heads, ") :].split(" | ")[0]
    assert len(counted) == 6 and sum(counted.values()) == 16
    three = counted.most_common(3)
    for habit, count in three:
        assert f"**{count}** {heads.TEXT(f'doing {habit}', heads=count)}" in sentence
    assert f"{16 - sum(count for _, count in three)} do something else" in sentence


def test_switches_names_what_is_off_and_what_it_costs():
    place = 4
    text = unescaped(
        attention("switches", attention_off=["1.3"], attention_mask="false", attention_at=str(place))
    )
    found = compare(MODEL, RECORDING, Switches(mask=False, heads_off=((1, 3),)))
    before, after = (probabilities(one["logits"]) for one in (RECORDING, found.after))
    shown = [letter.replace(" ", "␣") for letter in "abcdefghij "]
    one, other = (shown[int(p[place].argmax())] for p in (before, after))
    assert "Without the mask and head 1.3, the loss on this text goes from" in text
    choices = math.exp(loss(after))
    told = f"**{loss(after):.2f} nats per character (perplexity {choices:,.{1 if choices < 20 else 0}f})**"
    assert f"goes from **{loss(before):.2f}** to {told}, and after “{TEXT[place]}” " in text
    p, q = before[place].max(), after[place].max()
    if one == other:
        assert f"still expects “{one}”, with **{q:.0%}** instead of **{p:.0%}**" in text
    else:
        assert f"goes from “{one}” (**{p:.0%}**) to “{other}” (**{q:.0%}**)" in text


def test_without_the_stored_trainings_the_mask_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def shipped() -> None:
        raise CheckpointError("unmasked.json lacks 1 of 2 runs")

    monkeypatch.setattr("pages.inside.attention.mask.shipped", shipped)
    assert [each.value for each in attention("mask").info] == [safe("unmasked.json lacks 1 of 2 runs")]


def test_the_mask_is_shown_on_and_off_and_what_a_training_makes_of_it(drawn: dict[str, Drawn]):
    text = unescaped(attention("mask", attention_mask_step="50"))
    blind = build(replace(MODEL.config, causal=False)).eval()
    blind.load_state_dict(MODEL.state_dict())
    free = record(blind, IDS)
    without = free[f"blocks.{LAYER}.pattern"][HEAD].astype(float)
    on, off = (drawn[f"attention_mask_{kind}"] for kind in ("on", "off"))
    np.testing.assert_allclose(heat(drawn, "attention_mask_on"), seen(PATTERNS[LAYER, HEAD]), rtol=1e-6)
    np.testing.assert_allclose(off.traces[0]["z"], without, rtol=1e-4, atol=1e-6)
    assert on.layout["plot_bgcolor"] != on.traces[0]["colorscale"][0][1], "masked is not the colour of zero"
    future = np.mean([without[i, i + 1 :].sum() for i in range(7)])
    assert f"without it this head puts **{future:.0%}** of its weight" in text
    both = json.loads(Path("checkpoints/unmasked.json").read_text())
    at = both["masked"]["steps"].index(50)
    trained = [both[kind]["losses"][at] for kind in ("unmasked", "masked")]
    assert f"loss **{trained[0]:.2f}** against **{trained[1]:.2f}** nats after 50 steps" in text
    for kind, name in (("masked", "with the mask"), ("unmasked", "without the mask")):
        wrote = " ".join(both[kind]["texts"][at].split())[:12]
        assert f"Trained {name}, it writes: ROMEO: {wrote}"[:45] in text.replace("\\", "")
    losses = [loss(probabilities(r["logits"])) for r in (RECORDING, free)]
    assert f"goes from a loss of **{losses[0]:.2f}** to **{losses[1]:.2f}** nats" in text
    curves = drawn["attention_mask_losses"].traces
    for trace, p in zip(curves, (RECORDING, free), strict=True):
        wanted = [-math.log(probabilities(p["logits"])[i, IDS[i + 1]]) for i in range(7)]
        np.testing.assert_allclose(trace["y"], wanted, rtol=1e-4)


@pytest.mark.parametrize("shown", ["weights", "scores"])
def test_the_self_term_is_the_engines(shown: str, drawn: dict[str, Drawn]) -> None:
    letters = "First Citizen:"
    ids = [sorted(set(letters)).index(letter) for letter in letters]
    raw, apart = (self_term(kind, 64, ids, 2) for kind in ("similarity", "two-matrices"))
    query = {"attention_width": "64", "attention_self_seed": "2", "attention_self_shown": shown}
    text = unescaped(attention("scores", attention_scores="self", **query))
    assert f"favours the token itself: **{raw.self_weight:.0%}** of its weight" in text
    assert f"itself is **{raw.self_score:.1f}** and with others about {raw.other_score:.1f}." in text
    assert f"Separate W_Q and W_K remove that bias: **{apart.self_weight:.0%}**." in text
    assert apart.self_weight < raw.self_weight / 2
    stored = json.loads((ROOT / "checkpoints" / "races" / "ladder.json").read_text())
    over: dict[str, list[float]] = {}
    for run in (*stored["runs"], *stored["repeats"]):
        over.setdefault(run["name"], []).append(run["looks"][-1]["validation_loss"])
    last, similar, keys, residual = (
        median(over[name]) for name in ("Bigram", "Raw similarity", "Queries and keys", "Attention ×1")
    )
    assert f"averaging: **{similar:.2f}** nats, where a bigram model reaches {last:.2f}" in text
    assert f"gain something: **{keys:.2f}**" in text and similar - keys > 0.1
    assert f"brings the current character back: {residual:.2f}." in text
    table = build(LADDER["similarity"].at(max(ids) + 1, len(ids), 64), 2, init="normal").embedding.detach()
    wanted = (table[ids].double() @ table[ids].double().T / math.sqrt(64)).numpy()
    if shown == "weights":
        raised = np.tril(np.exp(wanted - wanted.max(1, keepdims=True)))
        wanted = raised / raised.sum(1, keepdims=True)
    squares = drawn["attention_self"].traces
    assert len(squares) == 3
    np.testing.assert_allclose(squares[0]["z"], wanted, atol=1e-4)
    assert {square["zmin"] for square in squares} == {-squares[0]["zmax"] if shown == "scores" else 0}


def test_sharing_says_what_a_token_takes_in_the_cache():
    page = attention("shared-keys", attention_bytes="16 bits")
    # LLaMA-2 70B: 80 layers, 8 of 64 heads have keys, of 128 numbers: 2 x 80 x 8 x 128 numbers a token
    assert "the KV cache takes **320 KB per token**." in unescaped(page)
    chosen(page, "attention_sizes", "LLaMA-2 7B")  # 2 x 32 x 32 x 128 numbers, one byte each
    chosen(page, "attention_bytes", "8 bits")
    assert "takes **256 KB per token**." in unescaped(page)


def test_eight_published_caches_are_arithmetic(drawn):
    """Numbers of a layer by hand: 2 heads' worth of key and value, or MLA's latent vector and rotated key."""
    page = attention("shared-keys", attention_sharing="published")
    numbers = {
        "GPT-3 175B": 96 * 2 * 96 * 128,
        "LLaMA-2 7B": 32 * 2 * 32 * 128,
        "LLaMA-3.1 405B": 126 * 2 * 8 * 128,
        "LLaMA-2 70B": 80 * 2 * 8 * 128,
        "Gemma 2B": 18 * 2 * 256,
        "Falcon 7B": 32 * 2 * 64,
        "DeepSeek-V3": 61 * (512 + 64),
        "DeepSeek-V2": 60 * (512 + 64),
    }
    table = drawn["published_caches"].table
    assert dict(zip(table["model"], table["bytes_per_token"], strict=True)) == {
        name: 2 * count for name, count in numbers.items()
    }
    assert [trace["x"][0] for trace in drawn["published_caches"].traces] == table["bytes_per_token"]
    (low, _), first = drawn["published_caches"].layout["xaxis"]["range"], min(table["bytes_per_token"])
    assert 10**low == pytest.approx(first / 8), "room for a number left of its dot"
    assert table["way"] == ["MHA", "MHA", "GQA", "GQA", "MQA", "MQA", "MLA", "MLA"]
    assert table["bytes_with_mha"][6] == 2 * 61 * 128 * (128 + 64 + 128)
    assert "DeepSeek-V3 adds 70,272 bytes per token" in unescaped(page)
    assert "1/71 of what" in unescaped(page)
    assert "61 layers × (512 + 64) numbers" in said(page)
    other = attention("shared-keys", attention_sharing="published", cached_model="LLaMA-3.1 405B")
    assert "LLaMA-3.1 405B adds 516,096 bytes per token" in unescaped(other) and "1/16 of what" in unescaped(
        other
    )
