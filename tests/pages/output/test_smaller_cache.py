"""The part "Smaller" of the KV cache: bytes against nats, the claim at a price, and the guess."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pages.output.generation import smaller as view
from studies.costs.presets import PRESETS
from studies.experiments import smaller_caches
from studies.generation.smaller_cache import SINKS, Shrinking, second_half_loss, ways
from tests.engine.cases import for_each
from tests.pages import helpers
from tests.pages.helpers import said
from tests.pages.inside.models import shipped
from ui import model_choice, session
from ui.models import FIRST_MODEL, REAL_MODEL

pytestmark = pytest.mark.usefixtures("manager", "measured_anew")


def opened(**query: str) -> Any:
    about = {"generation_view": "cache", "kv_part": "smaller", "measure": "true", "cache_model": "shown"}
    return helpers.opened("output/generation", **about | query)


@for_each("bits, first", [("16", SINKS), ("4", 0)])
def test_each_point_is_a_measured_loss_over_its_bytes(bits: str, first: int, drawn: Any) -> None:
    page, model = opened(cache_bits=bits, cache_first=str(first)), shipped().model
    assert not page.exception and not page.error, said(page)
    table, length = drawn["cache_smaller"].table, model.config.context
    text = session.corpus("shakespeare").validation[: length * view.SMALL_COUNT].view(-1, length)
    cuts = [way for way in ways(length, int(bits)) if not way.held or way.heavy or way.first == first]
    assert table["loss"] == pytest.approx([second_half_loss(model, text, way) for way in cuts], abs=1e-6)
    assert table["bytes"] == [way.size(model.config, length) for way in cuts]
    points = [point for trace in drawn["cache_smaller"].traces for point in trace["x"]]
    assert sorted(points) == sorted(table["bytes"][1:]), "all but the full cache"
    assert "Holding " in said(page) and "no attention sink" in said(page)
    assert f"{8 * (length // 2):,} tokens" in said(page)


def test_the_claim_is_the_smallest_cache_at_the_price() -> None:
    full, four, sixty = Shrinking(), Shrinking(4), Shrinking(4, held=60, heavy=True)
    costs, sizes = {full: 0.0, four: 0.04, sixty: 0.2}, {full: 100.0, four: 28.0, sixty: 7.0}
    cheap = view.answer(costs, sizes, 0.05, True)
    assert "Holding all positions in 4 bits costs 0.04 nats per token, with 28%" in cheap
    assert "attention sinks" in cheap
    dear = view.answer(costs, sizes, 0.25, False)
    assert "Holding 60 positions, half the latest and half by attention in 4 bits costs 0.20" in dear
    assert "no attention sink" in dear
    assert "No smaller cache" in view.answer({full: 0.0, four: 0.4}, sizes, 0.25, True)


def test_without_the_real_model_the_shipped_one_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_choice, "first_of", lambda names: FIRST_MODEL)
    page = opened(cache_model="real")
    assert "SmolLM2 is not on this machine" in said(page) and "Holding " in said(page)


def test_with_it_a_button_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_choice, "first_of", lambda names: REAL_MODEL)
    loaded = shipped()
    monkeypatch.setattr(view.models, "model_of", lambda *about: loaded)
    asked: list[Any] = []
    monkeypatch.setattr(view, "passages", lambda *about: asked.append(about[3:]) or ((1,) * 128,))
    page = opened(cache_model="real", cache_passage="3")
    assert asked == [(2, 1)], "one passage, the third"
    assert "about a minute" in " ".join(button.label for button in page.button) and "Holding" not in said(
        page
    )


def test_the_guess_is_about_the_line_that_is_not_shown() -> None:
    guess = view.without_first(5.61, 0.43, 128)
    assert guess is not None and guess.sets == {"cache_first": 0}
    assert guess.choices[guess.right].text.startswith("More than twice") and "+0.43" in guess.question
    assert "+5.61" in guess.outcome and view.without_first(0.0, 0.1, 128) is None


def test_the_real_model_opens_with_the_mean_of_the_stored_passages(
    monkeypatch: pytest.MonkeyPatch, drawn: Any
) -> None:
    loaded, runs = shipped(), smaller_caches.shipped()
    config = PRESETS["smollm2-135m"].model.resolved()
    known = SimpleNamespace(config=config, parts=loaded.model.parts)
    real = (REAL_MODEL, known, loaded.tokenizer, "shakespeare", True)
    monkeypatch.setattr(view, "_model", lambda subject: real)
    page = opened()
    table = drawn["cache_smaller"].table
    cuts = [way for way in ways(512, 16) if not way.held or way.heavy or way.first]
    assert table["loss"] == pytest.approx([sum(run[way] for run in runs) / len(runs) for way in cuts])
    assert table["bytes"][0] == 30 * 2 * 3 * 64 * 2 * 512
    thin = [trace for trace in drawn["cache_smaller"].traces if trace.get("showlegend") is False]
    assert len(thin) == 3 * len(runs) == 9 and "attention sinks" in said(page) and "768 tokens" in said(page)
    for run in runs:
        full = run[Shrinking()]
        assert run[Shrinking(8)] - full < 0.01 and run[Shrinking(2)] - full > 1
        latest, kept = (run[Shrinking(held=128, first=each)] - full for each in (0, SINKS))
        assert latest > 2 * kept > 0.1, "sinks, on each passage"
