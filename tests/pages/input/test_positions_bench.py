"""Positions, side by side: the view with every option, without the text, without the models."""

from __future__ import annotations

import math
import re
from functools import cache

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine import corpora
from engine.config import ModelConfig
from engine.ledger import component_parameters
from engine.measure.extrapolation import position_losses, window_starts
from engine.measure.schemes import SCHEMES, similarity
from engine.model import build
from engine.presets import PRESETS
from pages.input.positions import bench_choice, bench_losses
from tests.pages.helpers import unescaped
from tests.pages.input.positions import plain, positions, shipped
from tests.pages.stage import StageManager
from ui import state


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> StageManager:
    stage = StageManager()
    monkeypatch.setattr(state, "manager", lambda: stage)
    monkeypatch.setattr(bench_choice, "WINDOWS", {"128": 12, "256": 8, "all": 8})
    monkeypatch.setattr(bench_losses, "SLICE_SECONDS", 60.0)
    return stage


def opened(**query: str) -> AppTest:
    return positions("bench", **query)


def measured(page: AppTest) -> AppTest:
    """Run until all is measured: a variant each time, where the browser would come back by itself."""
    for _ in range(12):
        if page.get("progress") == [] and "Measured now" in unescaped(page):
            return page
        page.run()
        assert not page.exception, page.exception
    raise AssertionError("it never ends")


@cache
def losses_of(scheme: str, windows: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """(losses (window, position) in nats, where the windows begin) of a shipped model, read anew."""
    tokens = corpora.load("shakespeare").validation
    starts = window_starts(len(tokens), 64, windows)
    return np.concatenate(
        list(position_losses(shipped(f"positions/{scheme}").model, tokens, starts, 256))
    ), starts


def more_at(losses: np.ndarray, starts: np.ndarray, times: int) -> float:
    """What the last 8 characters of `times` contexts cost more than as the last 8 of one."""
    at = {int(start): i for i, start in enumerate(starts)}
    pairs = [(i, at[s + (times - 1) * 64]) for s, i in at.items() if s + (times - 1) * 64 in at]
    return float(
        np.mean([losses[i, 64 * times - 8 : 64 * times].mean() - losses[j, 56:64].mean() for i, j in pairs])
    )


def first_number(cell: str) -> float:
    return plain(cell.split(" ")[0].replace("+", ""))


def test_all_six_are_measured_and_summed_up(manager, shakespeare, drawn):
    page = opened()
    facts, small, large = (
        page.table[len(page.table) - 1].value,
        shipped("positions/none").config,
        PRESETS["gpt2"].model,
    )
    for name, scheme in SCHEMES.items():
        for column, config in (("parameters here", small), ("at GPT-2 small's sizes", large)):
            with_it = {**config.to_dict(), "position": name}
            assert (
                plain(facts.loc[scheme.title, column])
                == component_parameters(ModelConfig(**with_it))["position"]
            )
    assert facts.loc["Learned", ["parameters here", "at GPT-2 small's sizes"]].tolist() == [
        "4,096",
        "786,432",
    ]
    assert facts.loc["RoPE", ["enters at", "tells"]].tolist() == ["queries and keys", "how far back"]
    measured(page)
    said, numbers = unescaped(page), page.table[1].value
    assert "8 windows of 256 characters" in said and "no row for position 64" in said
    assert list(numbers.index) == [scheme.title for scheme in SCHEMES.values()]
    valid = {name: shipped(f"positions/{name}").metrics["validation_loss"] for name in SCHEMES}
    far = {}
    for name, scheme in SCHEMES.items():
        row, (losses, starts) = numbers.loc[scheme.title], losses_of(name)
        assert plain(row["validation loss (nats)"]) == pytest.approx(valid[name], abs=6e-4)
        assert first_number(row["against none"]) == pytest.approx(valid[name] - valid["none"], abs=6e-4)
        assert first_number(row["end of 64"]) == pytest.approx(losses[:, 56:64].mean(), abs=6e-4)
        for times in (2, 4):
            if name == "learned":
                assert row[f"more at {64 * times}"] == "no answer"
            else:
                far[name] = more_at(losses, starts, times)
                assert first_number(row[f"more at {64 * times}"]) == pytest.approx(far[name], abs=6e-4)
    held = re.search(
        r"cost at most 0\.05 nats more: ([^*]+)\.\*\*(?: They cost more with (.+?)\. A learned)?", said
    )
    for text, inside in ((held[1], True), (held[2], False)):
        shown = dict(re.findall(r"(\w+) \(([+-]\d\.\d\d)\)", text))
        expected = sorted((v, SCHEMES[n].title) for n, v in far.items() if (v <= 0.05) == inside)
        assert list(shown) == [title for _, title in expected]
        assert [float(x) for x in shown.values()] == pytest.approx([v for v, _ in expected], abs=6e-3)
    best = min(valid, key=valid.get)
    assert (
        f"{SCHEMES[best].title} is best, at {valid[best]:.3f} nats; with no positions it is {valid['none']:.3f}"
        in said
    )
    lines = {t["name"]: t for t in drawn["bench_losses"].traces if "name" in t}
    losses, _ = losses_of("rope")
    assert lines["RoPE"]["y"] == pytest.approx(losses.reshape(8, 32, 8).mean((0, 2)), abs=1e-4)
    assert lines["RoPE"]["x"][:2] == [3.5, 11.5] and lines["Learned"]["x"][-1] == 59.5
    table = drawn["bench_losses"].table
    rows = [i for i, name in enumerate(table["scheme"]) if name == "RoPE"]
    assert table["first_position"][rows[3]] == 24 and table["last_position"][rows[3]] == 31
    assert table["above_own_tail_nats"][rows[3]] == pytest.approx(
        losses[:, 24:32].mean() - losses[:, 56:64].mean(), abs=1e-4
    )


def test_what_they_know_of_distance(manager, drawn, shakespeare):
    page = opened(bench_trained="true", bench_schemes="RoPE")
    said, table = unescaped(page), drawn["bench_similarity"].table
    fresh, trained = {}, {}
    for name, scheme in SCHEMES.items():
        checkpoint = shipped(f"positions/{name}")
        fresh[name] = similarity(build(checkpoint.config, checkpoint.metrics["train"]["seed"]), 256)
        trained[name] = similarity(checkpoint.model, 256)
        for found, when in ((fresh[name], "untrained"), (trained[name], "trained")):
            for line, values in zip(found.lines, found.values, strict=True):
                shown = table[f"{scheme.title}, {line}, {when}"][: len(values)]
                assert shown == pytest.approx(values, abs=1e-6)
    lines = drawn["bench_similarity"].traces
    assert [t["y"] for t in lines if t["line"]["dash"] == "solid" and t["xaxis"] == "x4"] == [
        pytest.approx(row, abs=1e-6) for row in fresh["rope"].values
    ]
    assert [t["y"] for t in lines if t["line"]["dash"] == "dot" and t["xaxis"] == "x6"] == [
        pytest.approx(row, abs=1e-6) for row in trained["t5"].values
    ]
    for name, title in (("sinusoidal", "Sinusoidal"), ("rope", "RoPE")):
        values = fresh[name].values[0]
        assert f"{title} {values[1]:.2f} at distance 1, {values[16]:.2f} at 16" in said
    far, noise = fresh["alibi"].values[:, 16], fresh["learned"].values[0, 1:]
    assert f"ALiBi from {far.min():.2f} to {far.max():.2f} at 16" in said
    assert f"{noise.min():.2f} to {noise.max():.2f} at every distance" in said


@pytest.mark.parametrize(
    "query",
    [
        {"bench_show": "Above own last 64", "bench_unit": "bits"},
        {"bench_windows": "128", "bench_bin": "1"},
    ],
)
def test_every_option_is_drawn(manager, shakespeare, drawn, query):
    page = measured(opened(**query))
    assert not page.error
    windows, width = (12 if query.get("bench_windows") == "128" else 8), int(query.get("bench_bin", 8))
    assert f"{windows} windows" in unescaped(page)
    losses, _ = losses_of("alibi", windows)
    y = losses.astype(np.float64).reshape(windows, -1, width).mean((0, 2))
    line = next(t for t in drawn["bench_losses"].traces if t.get("name") == "ALiBi")
    if "bench_unit" in query:
        y = (y - losses[:, 56:64].mean()) / math.log(2)
        valid = shipped("positions/none").metrics["validation_loss"]
        shown = page.table[1].value.loc["None", "validation loss (bits)"]
        assert plain(shown) == pytest.approx(valid / math.log(2), abs=6e-4)
        assert "Dotted: the same model" not in unescaped(page)
        assert "bits per character" in drawn["bench_losses"].layout["yaxis"]["title"]["text"]
    assert line["y"] == pytest.approx(y, abs=1e-3)


def test_without_the_text_the_record_is_shown_and_said_to_be_one(manager, monkeypatch):
    monkeypatch.setattr(corpora, "shakespeare_path", lambda: None)
    page = opened(bench_windows="all", bench_stopgaps="T5: unmet buckets filled")
    said = unescaped(page)
    assert "not on this machine" in said
    assert "were measured when the models were trained, on 20" in said
    assert "Measured now" not in said
    assert "ALiBi (+0.00)" in said and len(page.table[1].value) == 6
