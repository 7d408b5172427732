"""The view "Constrained": bars are the masses of the text that is shown, the claim counts, the guess is a pass."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from engine.data.progress import finish
from pages.output.sampling import constrained as view
from studies.generation.constrained import FORMS, Drawn, Step, Written, drawing
from studies.guesses import sampling as guesses
from tests.engine.cases import for_each
from tests.pages import helpers
from tests.pages.helpers import said
from tests.pages.inside.models import shipped

pytestmark = pytest.mark.usefixtures("manager", "measured_anew")
MODEL = "shakespeare-classic"


def opened(**query: str) -> Any:
    about = {"sampling_view": "constrained", "model": MODEL, "measure": "true", "hand": "true"}
    return helpers.opened("output/sampling", **about | query)


@for_each("prompt, text", [("question", 1), ("example", 5)])
def test_the_bars_are_the_masses_of_the_text_that_is_shown(prompt: str, text: int, drawn: Any) -> None:
    page, known = opened(grammar_prompt=prompt, grammar_text=str(text), grammar_step="2"), shipped()
    assert not page.exception and not page.error, said(page)
    ids = known.tokenizer.encode(view.prompt_of("speaker", prompt))
    expected = finish(drawing(known.model, known.tokenizer, ids, "speaker", view.COUNT))
    shown = expected.bound[text - 1]
    left, taken, before, after = drawn["grammar_mass"].traces
    assert left["y"] == pytest.approx([step.mass for step in shown.steps])
    assert (
        np.add(left["y"], taken["y"]) == pytest.approx(np.ones(len(shown.steps)))
        and taken["base"] == left["y"]
    )
    best = dict(shown.steps[1].after)
    assert sorted(before["x"])[-1] == pytest.approx(max(p for _, p in shown.steps[1].before))
    assert max(after["x"]) == pytest.approx(max(best.values()) / shown.steps[1].mass)
    free = fmean(each.valid for each in expected.free)
    cost = -fmean(each.log_p for each in expected.bound)
    assert f"every text is valid, without it {free:.0%}" in said(page)
    assert f"log probability of −{cost:.1f} nats" in said(page)
    assert f"{expected.expected:.1%}" in said(page)


def test_a_valid_date_is_called_false_unless_it_is_the_day(monkeypatch: pytest.MonkeyPatch) -> None:
    assert FORMS["date"].check(FORMS["date"].truth) and not FORMS["speaker"].truth
    page = opened()
    text = page.slider(key="grammar_text").value
    known = shipped()
    ids = known.tokenizer.encode(FORMS["speaker"].question)
    written = finish(drawing(known.model, known.tokenizer, ids, "speaker", view.COUNT)).bound[text - 1].text
    for truth, says in ((written, "valid, and true"), ("KING:", "valid, but it was KING:")):
        monkeypatch.setitem(FORMS, "speaker", replace(FORMS["speaker"], truth=truth))
        assert says in helpers.unescaped(opened(), "caption")


def test_the_claim_counts_what_did_not_end() -> None:
    step = Step(0, 0.5, -1.0)
    bound = (Written("a", True, (step, step)), Written("b", False, (step,)))
    free = (Written("", False, (step,)), Written("", False, (step,)))
    claim = view.answer(Drawn(bound, free))
    assert "valid by construction" in view.answer(Drawn(bound[:1], free[:1]))
    assert "did not end" in view.answer(Drawn(bound[1:], free[:1]))
    assert "50% of the texts are valid, without it 0%" in claim
    every = view.answer(Drawn(bound[:1] * 2, free))
    assert "every text is valid, without it 0%" in every and "−2.0 nats" in every
    assert Drawn(bound, free).expected == pytest.approx((0.25 + 0.5) / 2)


def test_the_guess_is_what_the_grammar_takes_after_an_example() -> None:
    known = shipped()
    subject = SimpleNamespace(model=known.model, tokenizer=known.tokenizer, config=known.model.config)
    guess = view.first_step(subject, "speaker")  # type: ignore[arg-type]
    ids = known.tokenizer.encode(FORMS["speaker"].example + FORMS["speaker"].question)
    with torch.inference_mode():
        p = known.model(torch.tensor([ids]))[0, -1].softmax(-1)
    capital = sum(float(p[known.tokenizer.encode(c)[0]]) for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    assert guess is not None and f"{1 - capital:.0%}" in guess.outcome
    right = "Less" if 1 - capital < 0.25 else "A quarter" if 1 - capital < 0.75 else "More"
    assert guess.choices[guess.right].text.startswith(right) and guess.sets == {"grammar_prompt": "example"}
    kinds = [each and each.right for each in map(guesses.first_taken, (0.9, 0.5, 0.1, 0.74, 0.26))]
    assert kinds == ["little", "half", "most", None, None]


def test_a_model_that_cannot_write_the_forms_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "_writable", lambda name, subject: ())
    assert "can write none of the forms" in said(opened())


def test_a_large_model_draws_one_text_and_offers_more(monkeypatch: pytest.MonkeyPatch, drawn: Any) -> None:
    monkeypatch.setattr(view.Subject, "is_pretrained", True)
    page, known = opened(), shipped()
    assert "valid by construction" in said(page) and "Draw 32 texts" in page.button[-1].label
    ids = known.tokenizer.encode(FORMS["speaker"].question)
    many = finish(drawing(known.model, known.tokenizer, ids, "speaker", view.COUNT_LARGE))
    masses = [step.mass for step in many.bound[0].steps]
    assert drawn["grammar_mass"].traces[0]["y"] == pytest.approx(masses), "the first of many is the same text"
