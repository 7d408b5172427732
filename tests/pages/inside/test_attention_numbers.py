"""What the Attention page shows, held against arithmetic done here on the same model's recording."""

from __future__ import annotations

import base64
import math
import re
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine.faults import PARTS
from engine.measure.ablation import Switches, compare
from engine.measure.heads import head_numbers, stages
from engine.measure.recording import Recording, record
from engine.model import build
from engine.tokenizers.char import CharTokenizer
from pages.inside.attention import shared
from tests.engine.helpers import loud, tiny
from tests.pages.conftest import Drawn
from tests.pages.helpers import FOLDS, opened, said
from tests.pages.inside.models import of_letters, only_this
from tests.pages.stage import StageManager

PAGE = "inside/attention"
MODEL = loud(tiny(n_kv_heads=2, position="rope", qk_norm=True), factor=4.0).requires_grad_(False)
TEXT = "abcabcab"
IDS = tuple(CharTokenizer("abcdefghij ").encode(TEXT))
RECORDING: Recording = record(MODEL, IDS)
LAYER, HEAD, QUERY = 1, 3, 5
PATTERNS = RECORDING.stacked("pattern").astype(np.float64)  # (layer, head, query, key)


@pytest.fixture(autouse=True)
def model(monkeypatch: pytest.MonkeyPatch, manager: StageManager) -> None:
    only_this(monkeypatch, of_letters(MODEL), "numbers")


def attention(view: str, **query: str) -> AppTest:
    where = {"attention_layer": str(LAYER), "attention_head": str(HEAD)}
    return opened(PAGE, attention_view=view, text=TEXT, **FOLDS, **where, **query)


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
    p = PATTERNS[..., np.arange(1, 8), np.arange(7)].mean(-1)  # on the token before
    own = {(i, h): value for i, row in enumerate(p) for h, value in enumerate(row)}
    assert "Head 3 of layer 1 " in said(page) and ("to the token before" in said(page)) == (own[1, 3] >= 0.4)
    assert len(re.findall("nothing above the diagonal", said(page))) == 1
    page.get_by_key("attention_head").set_value(2).run()
    assert "`blocks.1.pattern[2]`: 8 × 8 weights." in said(page) and "Head 2 of layer 1 " in said(page)
    np.testing.assert_allclose(heat(drawn, "attention_pattern"), seen(PATTERNS[LAYER, 2]), rtol=1e-6)


def test_the_grid_gets_every_pattern_and_the_order_of_a_habit(monkeypatch):
    sent: dict[str, Any] = {}
    monkeypatch.setattr(shared, "mounted", lambda name: lambda **rest: sent.update(rest["data"]))
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
    assert sent["order"] == strong or (not strong and "No head gives it" in said(page))


def test_step_by_step_draws_each_stage_of_the_chosen_head(drawn):
    block = f"blocks.{LAYER}."
    page = attention("steps", attention_stage="q, k, v", attention_query=str(QUERY), attention_key="2")
    parts = [
        RECORDING[block + name][place]
        for name, place in (("q", 3), ("q_rot", 3), ("k", 1), ("k_rot", 1), ("v", 1))
    ]
    np.testing.assert_allclose(heat(drawn, "attention_stage_plot"), np.concatenate(parts, 1), rtol=1e-6)
    found = stages(MODEL, RECORDING, LAYER, HEAD)
    shown_in = {
        "q·k": found.raw,
        "÷ √d": found.scaled,
        "mask": found.masked,
        "softmax": PATTERNS[LAYER, HEAD],
        "· v": found.z,
        "W_O": found.written,
    }
    for stage, values in shown_in.items():
        page.get_by_key("attention_stage").set_value(stage).run()
        assert not page.exception
        shown = seen(values) if stage in ("mask", "softmax") else values
        np.testing.assert_allclose(heat(drawn, "attention_stage_plot"), shown, atol=2e-5, err_msg=stage)
    table = page.dataframe[0].value
    np.testing.assert_allclose(table["q·k"], found.raw[QUERY], atol=1e-9)
    np.testing.assert_allclose(table["masked"], found.masked[QUERY], atol=1e-9)
    np.testing.assert_allclose(table["weight"], PATTERNS[LAYER, HEAD, QUERY], atol=1e-6)
    gap = np.abs(found.pattern - RECORDING[block + "pattern"][HEAD]).max()
    assert 0 < gap < 1e-5 and f"by at most {gap:.0e}." in said(page)
    words = said(page)
    assert f"comes to give {PATTERNS[LAYER, HEAD, QUERY, 2]:.4f} of its weight to c (position 2)" in words
    assert f"({found.q[QUERY, 0]:.2f})({found.k[2, 0]:.2f})" in words
    assert f"= {found.raw[QUERY, 2]:.4f}$" in words
    assert "over the 6 keys that it sees" in words
    vectors = (found.written, RECORDING[block + "attn_out"], RECORDING[block + "resid_pre"])
    lengths = [np.linalg.norm(x[QUERY]) for x in vectors]
    own, together, before = (f"{x:.3f}" for x in lengths)
    assert f"writes a vector of length {own}; all heads of layer 1 together" in words
    assert f"write one of length {together}. The stream before has length {before}." in words


def test_a_model_that_does_not_divide_is_not_said_to(drawn, monkeypatch):
    faulty = build(tiny(), parts=PARTS["unscaled_scores"]).eval()
    only_this(monkeypatch, of_letters(faulty), "faulty")
    page = attention("steps", attention_stage="÷ √d", attention_query=str(QUERY), attention_key="2")
    assert not page.exception and "does not divide" in said(page)
    assert "\\sqrt" not in said(page) and "the product as it is" in said(page)
    assert "scores" in page.dataframe[0].value and "÷ √d" not in page.dataframe[0].value
    shown = stages(faulty, record(faulty, IDS), LAYER, HEAD)
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
    page.get_by_key("attention_each").set_value(True).run()
    assert not page.exception
    heads = [(i, h) for i in range(2) for h in range(4)]
    off = [compare(MODEL, RECORDING, Switches(heads_off=(head,))) for head in heads]
    alone = np.array([one.kl.mean() for one in off]).reshape(2, 4)
    np.testing.assert_allclose(heat(drawn, "attention_each_plot"), alone, rtol=1e-3, atol=1e-6)
    layer, head = divmod(int(alone.argmax()), 4)
    assert f"Alone, layer {layer}, head {head} is missed most" in said(page)
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
    page = attention("Numbers")
    for name, values in expected.items():
        page.get_by_key("attention_number").set_value(name).run()
        assert not page.exception
        np.testing.assert_allclose(heat(drawn, "attention_numbers"), values, rtol=1e-5, err_msg=name)
    table = page.dataframe[0].value
    at = (table["layer"] == 1) & (table["head"] == 2)
    assert table[at]["distance"].item() == pytest.approx(expected["Distance"][1, 2])
    assert table[at]["first"].item() == pytest.approx(expected["First token"][1, 2])
    words = said(page)
    for text, values in (("spreads most evenly", expected["Relative entropy"]),):
        layer, head = divmod(int(values.argmax()), 4)
        assert f"**Layer {layer}, head {head}** {text} ({values.max():.0%}" in words
    layer, head = divmod(int(expected["Relative entropy"].argmin()), 4)
    nats = expected["Entropy"][layer, head]
    decided = f"**Layer {layer}, head {head}** is the most decided ({expected['Relative entropy'].min():.0%};"
    assert f"{decided} {nats:.2f} nats)" in words
    far = expected["Distance"]
    layer, head = divmod(int(far.argmax()), 4)
    assert f"**Layer {layer}, head {head}** looks farthest back: {far.max():.1f} tokens" in words


def test_the_sink_is_measured_on_this_model(drawn):
    words = said(attention("numbers"))
    share = PATTERNS[..., 1:, 0].mean(-1)
    even = np.mean([1 / (i + 1) for i in range(1, 8)])
    assert f"gives {share.mean():.0%} of its weight to a at position 0; spread evenly" in words
    assert f"it would be {even:.0%}." in words
    lengths = np.linalg.norm(RECORDING.stacked("v"), axis=-1)  # (layer, kv_head, position)
    ratio = lengths[..., 0] / lengths[..., 1:].mean(-1)
    assert f"value vector is {ratio.min():.2f} to {ratio.max():.2f} times" in words
    first, others = drawn["attention_sink"].traces
    assert (first["name"], others["name"]) == ("first position", "mean of the others")
    np.testing.assert_allclose(first["y"], lengths[..., 0].ravel(), rtol=1e-5)
    np.testing.assert_allclose(others["y"], lengths[..., 1:].mean(-1).ravel(), rtol=1e-5)


def test_the_scale_is_shown_beside_its_theory(drawn):
    page = attention("√d_k", attention_dk="64", attention_scale="1/d_k", attention_zeros="9")
    rng = np.random.default_rng((0, 64))
    q, k = (rng.standard_normal((n, 64), dtype=np.float32).astype(float) for n in (256, 64))
    scores = {"no scaling": q @ k.T, "scaled by 1/d_k": q @ k.T / 64}
    table = page.table[0].value
    left, right = (drawn[f"attention_scaling_{k}"].traces[0] for k in ("example", "divided"))
    np.testing.assert_allclose(np.sum([left["y"], right["y"]], axis=1), 1, rtol=1e-5)
    assert f"takes **{max(left['y']):.1%}** of the weight" in said(page)
    assert f"it takes **{max(right['y']):.1%}**" in said(page)
    for name, s in scores.items():
        p = np.exp(s - s.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        entropy = -(p * np.log(np.where(p > 0, p, 1))).sum(-1).mean()
        jacobian = [np.linalg.norm(np.diag(row) - np.outer(row, row)) for row in p]
        slope = [np.abs(np.diag(row) - np.outer(row, row)).mean() for row in p]
        wanted = [f"{x:.4g}" for x in (s.std(), entropy, np.mean(jacobian), np.mean(slope))]
        assert list(table[name]) == wanted
    against = list(table["to hold it against"])
    assert against[0] == "√d_k = 8.000, scaled 0.125" and against[1] == "at most ln 64 = 4.159"
    assert against[3] == "at most 2(1 − 1/64)/64² = 0.000481"
    theory = [t for t in drawn["attention_scaling"].traces if t["name"] == "theory"]
    np.testing.assert_allclose(theory[0]["y"], np.sqrt(theory[0]["x"]))
    np.testing.assert_allclose(theory[1]["y"], 1 / np.sqrt(theory[1]["x"]))
    assert page.metric[2].value == f"{math.e**14 / (math.e**14 + 9):.5f}"
    small = math.exp(14 / math.sqrt(128))
    assert f"is {14 / math.sqrt(128):.2f} and takes {small / (small + 9):.4f} of the weight" in said(page)
    assert page.metric[0].value[:3] == "5.6" and "\\sqrt{32} = 5.66" in said(page)  # a million pairs


def test_shared_keys_counts_the_cache(drawn):
    page = attention("shared-keys", attention_sizes="own", attention_heads="12", attention_kv="5")
    assert drawn["attention_shared"].table["kv_head"] == [h // 3 for h in range(12)]
    layers, width = MODEL.config.n_layers, MODEL.config.d_head
    table = page.table[0].value
    assert list(table.columns) == ["12 key-value heads", "4 key-value heads (chosen)", "1 key-value head"]
    for column, kv in zip(table.columns, (12, 4, 1), strict=True):
        weights = 2 * kv * width * MODEL.config.d_model
        cells = [f"{weights:,}", f"{layers * weights:,}", f"{2 * layers * kv * width * 2:,.4g} bytes"]
        assert list(table[column])[:3] == cells
    assert "5 does not divide 12" in said(page)
    assert "12 query heads read the keys and values of **4** heads (grouped-query attention)" in said(page)
    assert "**66.7% less** than with 12." in said(page)
