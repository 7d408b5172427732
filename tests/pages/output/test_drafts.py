"""The view "Drafts": whose each token is, the claim by what was measured, links and settings."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from engine.config import SampleConfig
from engine.data.progress import finish
from pages.output.generation import drafts as view
from studies.generation.drafts import Comparison, Pass, Plan, Times, by_length, comparing
from studies.guesses import sampling as guesses
from tests.engine.cases import for_each
from tests.pages import helpers
from tests.pages.helpers import lacking, metrics, said, sent
from tests.pages.inside.models import shipped
from ui import models
from ui.fit_text import show_token

pytestmark = pytest.mark.usefixtures("manager", "measured_anew")
KING = "KING RICHARD II:\n"
GREEDY = SampleConfig(temperature=0.0)
RECORDS = (Pass((1, 2, 3), 1, 9, (1.0, 0.25)), Pass((4, 5), 2, 6, (1.0, 1.0)), Pass((), 0, 7))


def opened(**query: str) -> Any:
    return helpers.opened("output/generation", **{"generation_view": "drafts", "measure": "true"} | query)


def small() -> Any:
    return models.model_after(view.SMALL, max(models.lapse_of(view.SMALL).steps)).model


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "ROUNDS", 1)


@for_each(
    "query, plan, length",
    [
        ({}, Plan("small", 6, least=view.LEAST_LETTERS), 96),
        ({"drafts_source": "lookup", "drafts_ahead": "3"}, Plan("lookup", 3, least=view.LEAST_LETTERS), 96),
        (
            {"drafts_source": "layers", "drafts_depth": "3", "drafts_length": "24"},
            Plan("layers", 6, depth=3),
            24,
        ),
    ],
    ids=str,
)
def test_each_token_has_its_writer_and_the_passes_are_counted(
    query: dict[str, str], plan: Plan, length: int
) -> None:
    page, known = opened(**query), shipped()
    ids = known.tokenizer.encode(KING)
    compared = finish(comparing(known.model, small(), ids, length, GREEDY, plan, 1))
    tokens = sent(page, "drafts")["tokens"]
    letters = "".join(show_token(known.tokenizer.decode([token])) for token in compared.plain)
    assert "".join(each["text"] for each in tokens if each["who"] != "refused") == letters
    who = [each["who"] for each in tokens]
    refused = compared.drafted - compared.accepted
    assert (who.count("accepted"), who.count("refused")) == (compared.accepted, refused)
    assert who.count("large") == len(compared.passes)
    shown = metrics(page)
    assert (shown["Passes with drafts"], shown["Passes without"]) == (f"{len(compared.passes)}", f"{length}")
    assert not lacking(
        said(page),
        f"{compared.per_pass:.1f} tokens per pass",
        "The text is the same, token by token.",
        f"checked {compared.checked} and accepted {compared.accepted}, an acceptance rate of {compared.rate:.0%}",
        f"foresees {compared.foreseen:.0f} passes",
    )


def test_draft_lengths_stand_beside_the_formula(drawn: Any) -> None:
    page, known = opened(drafts_part="length", drafts_length="24"), shipped()
    ids = known.tokenizer.encode(KING)
    points = finish(by_length(known.model, small(), ids, 24, GREEDY, Plan("small")))
    formula, measured = drawn["drafts_lengths"].traces
    assert measured["y"] == [point.per_pass for point in points]
    assert formula["y"] == [point.formula for point in points]
    assert not lacking(
        said(page), f"{points[0].per_pass:.2f} tokens per pass", f"{points[-1].per_pass:.2f} with 8"
    )


def test_the_claim_follows_the_clock() -> None:
    compared = Comparison(RECORDS, (1, 9, 4, 5, 6, 7), (1.0,), (2.0,))
    warm, plan = SampleConfig(temperature=0.8), Plan()
    assert not lacking(
        view.verdict(compared, GREEDY, plan), "2.0 times as fast", "2.0 tokens", "same, token by"
    )
    assert "same distribution" in view.verdict(compared, warm, plan)
    slower, even = replace(compared, seconds_plain=(0.9,)), replace(compared, seconds_plain=(1.04,))
    assert "still lose time (0.90 times" in view.verdict(slower, GREEDY, plan)
    assert "hardly change the time (1.04" in view.verdict(even, GREEDY, plan)
    torn = replace(compared, seconds=(1.0, 1.0, 9.0), seconds_plain=(2.0, 2.0, 2.0))
    assert "the rounds disagree on the time (medians: 2.00" in view.verdict(torn, GREEDY, plan)
    assert "equally likely" in view.verdict(replace(compared, plain=(1,)), GREEDY, plan)
    nothing = Comparison((Pass((), 0, 7),), (7,), (1.0,), (1.0,), Times((1.0, 2.0), 0.0))
    assert "No ending" in view.verdict(nothing, GREEDY, plan)
    assert "no draft would have paid" in view.verdict(nothing, GREEDY, replace(plan, pays=True))


def test_refused_tokens_are_struck_out_before_the_large_models() -> None:
    compared = Comparison(RECORDS, (1, 9, 4, 5, 6, 7), (1.0,), (2.0,))
    data = view.payload(SimpleNamespace(vocabulary="abcdefghijk", labels=["x"]), compared)  # type: ignore[arg-type]
    assert [(each["text"], each["who"]) for each in data["tokens"]] == [
        *(("b", "accepted"), ("c", "refused"), ("d", "refused"), ("j", "large")),
        *(("e", "accepted"), ("f", "accepted"), ("g", "large"), ("h", "large")),
    ]
    assert data["table"][2] == [1, "c", 2, "refused", 0.25] and data["table"][3][-1] == ""
    assert "0.25" in data["tokens"][1]["hint"] and "0.25" not in data["tokens"][2]["hint"]


def test_only_a_smaller_model_of_the_same_alphabet_drafts() -> None:
    offered = opened(model="timelapse").segmented_control(key="drafts_source").options
    assert "Small model" not in offered and "Lookup" in offered
    assert "Small model" in opened().segmented_control(key="drafts_source").options


def test_the_guess_is_what_drafts_of_eight_tokens_bring() -> None:
    known = shipped()
    ids = known.tokenizer.encode(KING)
    compared = finish(comparing(known.model, small(), ids, 96, GREEDY, Plan("small", 3), 1))
    point = finish(by_length(known.model, small(), ids, 96, GREEDY, Plan("small"), (8,)))[0]
    truth = guesses.longer_drafts(compared.per_pass, compared.rate, 3, point)
    assert truth is not None and truth.numbers["found"] == point.per_pass
    a = compared.rate
    assert truth.numbers["formula"] == pytest.approx((1 - a**9) / (1 - a))
    assert truth.numbers["proportional"] == compared.per_pass * 9 / 4
    distance = {name: abs(truth.numbers[name] - point.per_pass) for name in truth.offered}
    assert truth.right == min(distance, key=distance.__getitem__)
