"""The sentences of the Attention page, each number worked out here another way than the page does."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine.config import ModelConfig
from engine.measure.ablation import Switches, compare
from engine.measure.recording import record
from engine.model import build
from engine.tokenizers.char import CharTokenizer
from pages.inside.attention import shared, words
from tests.engine.helpers import loud, tiny
from tests.pages.conftest import Drawn
from tests.pages.helpers import opened, unescaped
from tests.pages.inside.models import of_letters, only_this, shipped
from tests.pages.stage import StageManager

PAGE = "inside/attention"
LETTERS = "abcdefghij "
CONFIG: ModelConfig = tiny(position="alibi", context=24)
MODEL = loud(CONFIG, factor=6.0).requires_grad_(False)
TEXT = "abc abd ab ejab"
IDS = tuple(CharTokenizer(LETTERS).encode(TEXT))
RECORDING = record(MODEL, IDS)
PATTERNS = RECORDING.stacked("pattern").astype(np.float64)  # (layer, head, query, key)
LAYER, HEAD, QUERY, KEY = 1, 3, 9, 4


@pytest.fixture(autouse=True)
def model(monkeypatch: pytest.MonkeyPatch, manager: StageManager) -> None:
    only_this(monkeypatch, of_letters(MODEL), "answers")


def told_by(view: str, text: str = TEXT, **query: Any) -> str:
    where = {"attention_layer": str(LAYER), "attention_head": str(HEAD)} | query
    return unescaped(opened(PAGE, attention_view=view, text=text, **where))


def probabilities(logits: Any) -> np.ndarray:
    return torch.softmax(torch.as_tensor(np.array(logits)).double(), -1).numpy()


def loss(p: np.ndarray) -> float:
    return float(np.mean([-math.log(p[i, IDS[i + 1]]) for i in range(len(IDS) - 1)]))


def test_heads_says_how_many_do_what_and_what_the_chosen_one_does(monkeypatch):
    sent: dict[str, Any] = {}
    monkeypatch.setattr(shared, "mounted", lambda name: lambda **rest: sent.update(rest["data"]))
    trained = shipped()
    only_this(monkeypatch, trained, "trained")
    line = "First Citizen:\nBefore we proceed any further, hear me speak.\n"
    text = told_by("heads", text=line)
    counted = Counter(habit for habit in sent["habits"] if habit)
    sentence = text[text.index("What the 16 heads specialise in") :].split(" | ")[0]
    assert len(counted) == 6 and sum(counted.values()) == 16
    for habit, count in counted.items():
        assert f"**{count}** {words.DOING[habit][count > 1]}" in sentence
    assert "something else" not in sentence


def test_steps_says_the_product_the_score_and_the_weight():
    text = told_by("steps", attention_query=str(QUERY), attention_key=str(KEY))
    q, k = (RECORDING[f"blocks.{LAYER}.{name}"][HEAD].astype(float) for name in ("q_rot", "k_rot"))
    away = QUERY - np.arange(15)
    scores = q[QUERY] @ k.T / math.sqrt(q.shape[1]) - away / 4 ** (HEAD + 1)  # ALiBi's slopes for 4 heads
    weights = np.exp(scores[: QUERY + 1]) / np.exp(scores[: QUERY + 1]).sum()
    product, score = (f"{x:.2f}".replace("-", "−") for x in (q[QUERY] @ k[KEY], scores[KEY]))
    assert f"How much “{TEXT[QUERY]}” looks at “{TEXT[KEY]}”: their product q·k is **{product}**" in text
    assert f"the score made of it **{score}**, and the softmax over all {QUERY + 1} tokens" in text
    assert f"turns this score into **{weights[KEY]:.0%}** of the weight." in text
    assert re.search(r"\*\*-", text) is None, "a true minus"


def test_switches_names_what_is_off_and_what_it_costs():
    place = 8
    text = told_by("switches", attention_off=["1.3"], attention_mask="false", attention_at=str(place))
    found = compare(MODEL, RECORDING, Switches(mask=False, heads_off=((1, 3),)))
    before, after = (probabilities(one["logits"]) for one in (RECORDING, found.after))
    shown = [letter.replace(" ", "␣") for letter in LETTERS]
    one, other = (shown[int(p[place].argmax())] for p in (before, after))
    assert "Without the mask and head 3 of layer 1, the loss on this text goes from" in text
    choices = math.exp(loss(after))
    told = f"**{loss(after):.2f} nats: torn between {choices:,.{1 if choices < 20 else 0}f} letters**"
    assert f"goes from **{loss(before):.2f}** to {told}, and after “{TEXT[place]}” " in text
    p, q = before[place].max(), after[place].max()
    if one == other:
        assert f"still expects “{one}”, with **{q:.0%}** instead of **{p:.0%}**" in text
    else:
        assert f"goes from “{one}” (**{p:.0%}**) to “{other}” (**{q:.0%}**)" in text


def test_the_mask_is_shown_on_and_off_and_what_a_training_makes_of_it(drawn: dict[str, Drawn]):
    text = told_by("mask", attention_mask_step="50", measure="true")
    blind = build(replace(CONFIG, causal=False)).eval()
    blind.load_state_dict(MODEL.state_dict())
    free = record(blind, IDS)
    without = free[f"blocks.{LAYER}.pattern"][HEAD].astype(float)
    on, off = (drawn[f"attention_mask_{kind}"] for kind in ("on", "off"))
    later = np.triu(np.ones((15, 15), dtype=bool), 1)
    shown = np.array([[math.nan if v is None else v for v in row] for row in on.traces[0]["z"]], float)
    np.testing.assert_allclose(shown, np.where(later, np.nan, PATTERNS[LAYER, HEAD]), rtol=1e-6)
    np.testing.assert_allclose(off.traces[0]["z"], without, rtol=1e-4, atol=1e-6)
    assert on.layout["plot_bgcolor"] != on.traces[0]["colorscale"][0][1], "masked is not the colour of zero"
    future = np.mean([without[i, i + 1 :].sum() for i in range(14)])
    assert f"without it this head would put **{future:.0%}** of its weight there" in text
    both = json.loads(Path("checkpoints/unmasked.json").read_text())
    at = both["masked"]["steps"].index(50)
    trained = [both[kind]["losses"][at] for kind in ("unmasked", "masked")]
    assert f"loss **{trained[0]:.2f}** against **{trained[1]:.2f}** nats after 50 steps" in text
    for kind, name in (("masked", "with the mask"), ("unmasked", "without it")):
        wrote = " ".join(both[kind]["texts"][at].split())[:12]
        assert f"Trained {name}, it writes: ROMEO: {wrote}"[:45] in text.replace("\\", "")
    losses = [loss(probabilities(r["logits"])) for r in (RECORDING, free)]
    assert f"changes the loss from **{losses[0]:.2f}** to **{losses[1]:.2f}** nats" in text
    curves = drawn["attention_mask_losses"].traces
    for trace, p in zip(curves, (RECORDING, free), strict=True):
        wanted = [-math.log(probabilities(p["logits"])[i, IDS[i + 1]]) for i in range(14)]
        np.testing.assert_allclose(trace["y"], wanted, rtol=1e-4)


@pytest.mark.parametrize("width", [16, 256])
def test_self_says_what_a_token_gives_to_itself_three_ways(drawn: dict[str, Drawn], width: int):
    text = told_by("self", attention_width=str(width))
    rng = np.random.default_rng((0, width))
    e = rng.standard_normal((8, width))
    w_q, w_k = (rng.standard_normal((width, width)) / math.sqrt(width) for _ in range(2))
    scores = [e @ e.T, (e @ w_k) @ (e @ w_k).T, (e @ w_q) @ (e @ w_k).T]
    weights = [torch.softmax(torch.tensor(s / math.sqrt(width)), -1).numpy() for s in scores]
    for way, wanted in zip(("raw", "shared", "separate"), weights, strict=True):
        np.testing.assert_allclose(drawn[f"attention_self_{way}"].traces[0]["z"], wanted, atol=1e-5)
    raw = scores[0] / math.sqrt(width)
    others = [raw[i, j] for i in range(8) for j in range(8) if i != j]
    own, one, two = (np.trace(p) / 8 for p in weights)
    assert f"its own score is **{np.trace(raw) / 8:.1f}** (about √{width})" in text
    assert f"the others spread by {np.std(others):.1f}, so it gives itself **{own:.0%}**." in text
    assert f"One shared matrix keeps that (**{one:.0%}**); with W_Q and W_K apart it is **{two:.0%}**" in text


def test_numbers_says_who_has_most_and_what_is_usual():
    place = np.arange(15)
    entropy = -(PATTERNS * np.log(np.where(PATTERNS > 0, PATTERNS, 1))).sum(-1).mean(-1)
    near = (PATTERNS * (np.abs(np.subtract.outer(place, place)) <= 3))[..., 4:, :].sum(-1).mean(-1)
    first = PATTERNS[..., 1:, 0].mean(-1)
    page = opened(PAGE, attention_view="numbers", text=TEXT)
    for name, values, written in (
        ("Entropy", entropy, "{:.2f} nats"),
        ("Nearby", near, "{:.0%}"),
        ("First token", first, "{:.0%}"),
    ):
        page.get_by_key("attention_number").set_value(name).run()
        layer, head = divmod(int(values.argmax()), 4)
        most, mean = (written.format(x) for x in (values.max(), values.mean()))
        assert f"{name}: head {head} of layer {layer} has the most, **{most}**" in unescaped(page)
        assert f"the mean over all heads is **{mean}**." in unescaped(page)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        # LLaMA-2 70B: 80 layers, 8 of 64 heads have keys, of 128 numbers: 2 x 80 x 8 x 128 numbers a token
        ({"attention_bytes": "16 bits"}, "**320 KiB for each token**, **87.5% less** than with 64."),
        # GPT-2 small: 2 x 12 x 12 x 64 numbers
        ({"attention_sizes": "GPT-2 small"}, "**36 KiB for each token**. Nothing is shared here"),
        # LLaMA-2 7B: 2 x 32 x 32 x 128 numbers, one byte each
        ({"attention_sizes": "LLaMA-2 7B", "attention_bytes": "8 bits"}, "**256 KiB for each token**."),
    ],
)
def test_sharing_says_what_is_kept_and_saved(query: dict[str, str], wanted: str):
    assert wanted in told_by("shared-keys", **query)
