"""The view Backpropagation of the Shapes page: its sentences and figures hold the engine's numbers."""

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine.data.progress import finish
from engine.model import Transformer
from engine.recording import next_token_losses, record
from pages.inside.shapes import backward_pass, gradient, single_weight
from pages.inside.shapes import single_step as step_part
from pages.inside.shapes.gradient import three
from pages.inside.shapes.single_weight import written
from studies.shapes.backward import AMOUNTS, Backward, backward, finite_difference, nudges
from studies.shapes.optimiser_step import RULES, single_step, spectra
from tests.pages.helpers import DRAWN, FOLDS, KINDS, chosen, opened, said, unescaped
from tests.pages.inside import models
from tests.pages.test_guess import MOST
from ui import widgets
from ui.guess import Guess

pytestmark = pytest.mark.usefixtures("manager")
TEXT = "First Citizen:\nBefore we"


@cache
def model() -> Transformer:
    return models.shipped().model


@cache
def ids() -> tuple[int, ...]:
    return tuple(models.shipped().tokenizer.encode(TEXT))


def view(**query: str) -> AppTest:
    return opened("inside/shapes", shapes_view="backward", **FOLDS, **({"text": TEXT} | query))


def answer(page: AppTest) -> str:
    return unescaped(page, "markdown")


def worst() -> int:
    losses = next_token_losses(record(model(), ids()))
    half = len(losses) // 2
    return half + int(losses[half:].argmax())


def measured(position: int) -> Backward:
    return backward(model(), ids(), position)


def test_the_backward_pass_is_drawn_and_said_as_the_engine_has_it() -> None:
    page = view()
    true = measured(worst())
    told = answer(page)
    assert (
        f"norm **{three(float(true.totals[-1]))}** after the last sublayer and **{three(float(true.totals[0]))}** at the"
        in told
    )
    heat, bars = DRAWN["shapes_lanes"].traces[:2]
    np.testing.assert_allclose(heat["customdata"][:-1], true.norms, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(bars["x"], [*true.totals, true.error_norm], rtol=1e-5)
    shown = true.largest_errors(6)
    np.testing.assert_allclose(DRAWN["shapes_error"].traces[0]["x"], true.error[shown], atol=1e-6)
    assert "How does an error reach every weight?" in said(page, "header") and not page.error


def test_on_a_phone_fewer_tokens_are_named_and_the_bars_have_more_room() -> None:
    view()
    wide = DRAWN["shapes_lanes"].layout
    phone = wide["meta"]["narrow"]
    assert len(TEXT) == len(wide["xaxis"]["ticktext"]) > 12 >= len(phone["xaxis"]["ticktext"]) > 6
    assert phone["xaxis"]["ticktext"][1] == wide["xaxis"]["ticktext"][phone["xaxis"]["tickvals"][1]]
    assert phone["xaxis"]["domain"][1] < phone["xaxis2"]["domain"][0] < wide["xaxis2"]["domain"][0]
    assert phone["xaxis2"]["range"] == wide["xaxis2"]["range"]


def test_bars_that_a_straight_scale_would_hide_stand_on_a_logarithmic_one() -> None:
    scales = [backward_pass._length(np.array([50.0, least, 0.0])) for least in (0.5, 5.0)]
    assert scales[0]["type"] == "log" and "type" not in scales[1]
    low, high = scales[0]["range"]
    assert low < math.log10(0.5) and high > math.log10(50)


def test_a_position_of_the_address_is_followed_in_every_look() -> None:
    true = measured(3)
    assert f"norm **{three(float(true.totals[-1]))}**" in answer(view(shapes_position="3"))
    key = true.steepest()
    result = finish(nudges(model(), true, key, true.gradients[key].entry))
    at = result.index(0.04)
    told = answer(view(shapes_position="3", shapes_back="weight"))
    assert f"**{three(float(result.predicted[at]), signed=True)}** nats" in told
    assert f"**{three(float(result.measured[at]), signed=True)}**." in told


def test_a_nudge_compares_the_gradient_with_forward_passes() -> None:
    true = measured(worst())
    key = "1.W_O"
    each = true.gradients[key]
    entry = (int(each.rows[2]), int(each.columns[5]))
    page = view(
        shapes_back="weight", shapes_matrix=key, shapes_entry=str(entry[0] * each.shape[1] + entry[1])
    )
    (box,) = DRAWN["shapes_gradient"].layout["shapes"]
    assert (box["x0"] + box["x1"], box["y0"] + box["y1"]) == (10, 4), "around column 5, row 2 of those shown"
    result = finish(nudges(model(), true, key, entry))
    tangent, curve = DRAWN["shapes_nudged"].traces[:2]
    np.testing.assert_allclose(curve["y"], result.losses, atol=1e-5)
    np.testing.assert_allclose(tangent["y"], result.loss + result.gradient * np.array(AMOUNTS), atol=1e-5)
    ticks = DRAWN["shapes_nudged"].layout["xaxis"]["ticktext"]
    assert ticks == [written(amount) for amount in (-0.2, -0.1, 0.0, 0.1, 0.2)], "no change and both ends"
    chosen(page, "shapes_nudge", AMOUNTS[-1])
    at = len(AMOUNTS) - 1
    assert f"{written(AMOUNTS[-1])} should change the loss by" in answer(page)
    assert f"by **{three(float(result.measured[at]), signed=True)}**." in answer(page)
    chosen(page, "shapes_nudge", 0.0)
    assert f"**{three(result.gradient, signed=True)}** nats per unit" in answer(page)
    found = finite_difference(model(), true, key, entry)
    assert f"{found:.5g}" in said(page, *KINDS)


def test_a_click_on_the_gradient_chooses_a_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    each = measured(worst()).gradients["2.W_V"]
    index = int(each.rows[1]) * each.shape[1] + int(each.columns[1])
    picked = widgets.picked
    monkeypatch.setattr(
        widgets, "picked", lambda key, name: str(index) if key == "shapes_gradient" else picked(key, name)
    )
    page = view(shapes_back="weight", shapes_matrix="2.W_V")
    assert page.query_params["shapes_entry"] in (str(index), [str(index)])
    assert f"row {each.rows[1]}, column {each.columns[1]}" in said(page, *KINDS)


@pytest.mark.parametrize("entry", ["-1", "99999999999", "x", "1"])
def test_a_weight_that_is_not_shown_is_the_one_with_the_largest_gradient(entry: str) -> None:
    each = measured(worst()).gradients["0.W_in"]
    page = view(shapes_back="weight", shapes_matrix="0.W_in", shapes_entry=entry)
    assert f"row {each.entry[0]}, column {each.entry[1]}" in said(page, *KINDS)
    assert "shapes_entry" not in page.query_params


def test_a_step_lowers_the_loss_by_as_much_as_the_engine_measures() -> None:
    page = view(shapes_back="step", shapes_updated="1.W_O")
    taken = finish(single_step(model(), ids()))
    best = taken.lowest(1.0)
    told = answer(page)
    assert f"most of all with {step_part.NAMES[best]}" in told
    assert f"from **{three(taken.before)}** to **{three(taken.at(best, 1.0))}** nats" in told
    for trace, rule in zip(DRAWN["shapes_step_loss"].traces, RULES, strict=False):
        np.testing.assert_allclose(trace["y"], taken.after[rule], rtol=1e-4)
    found = finish(spectra(model(), ids(), "1.W_O"))
    for trace, rule in zip(DRAWN["shapes_singular"].traces, RULES, strict=False):
        np.testing.assert_allclose(trace["y"][:10], found.relative(rule)[:10], rtol=1e-3)
    assert page.table and found.evened and step_part.TEXT["flatter"] in told
    chosen(page, "shapes_rate", 8.0)
    assert min(taken.at(rule, 8.0) for rule in RULES) > taken.before and "every step overshoots" in answer(
        page
    )


@pytest.mark.parametrize("fields", models.KINDS, ids=str)
@pytest.mark.parametrize("look", ["pass", "weight", "step"])
def test_every_kind_of_model_is_drawn_or_says_why_not(
    fields: dict[str, Any], look: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = models.of_letters(models.tiny_of(fields), "abcd<")
    models.only_this(monkeypatch, found, f"{fields} {look}")
    page = view(text="ab<dcab", shapes_back=look)
    assert not page.error
    if fields.get("causal") is False:
        assert "does not predict the next token" in said(page, "info")
    else:
        assert any(word in answer(page) for word in ("Backpropagation carries", "gradient", "step"))


def test_one_token_is_refused_with_a_sentence() -> None:
    assert gradient.TEXT["too short"] in said(view(text="F"), "info")


def test_a_model_that_is_too_large_for_a_step_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pages.inside.shapes.single_step.MAX_PARAMETERS", 1000)
    page = view(shapes_back="step")
    assert "three copies" in said(page, "info") and "singular value" in answer(page)


def is_short(one: Guess | None) -> bool:
    """True if a guess fits its line, and answers each of three thoughts otherwise."""
    assert one is not None and len(one.question) <= MOST["asked"] and len(one.outcome) <= MOST["found"]
    assert all(len(c.text) <= MOST["text"] and len(c.reply) <= MOST["said"] for c in one.choices)
    return len({c.reply for c in one.choices}) == len(one.choices) == 3


def test_the_guess_is_plain_and_short_and_sets_the_nudge() -> None:
    true = measured(worst())
    key = true.steepest()
    result = finish(nudges(model(), true, key, true.gradients[key].entry))
    for losses in (result.losses, 2 * result.losses, result.losses - 2 * result.measured):
        moved = replace(result, losses=losses)
        one = single_weight.nudge(moved, len(AMOUNTS) - 1, "shapes_nudge")
        assert is_short(one) and one.sets == {"shapes_nudge": AMOUNTS[-1]}


@pytest.mark.parametrize("rule", RULES)
def test_the_guess_about_a_step_is_plain_and_short_and_sets_the_rate(rule: Any) -> None:
    taken = finish(single_step(model(), ids()))
    after = {each: np.where(each == rule, 3.0, 0.9) * taken.before * np.ones(9) for each in RULES}
    one = step_part.overshoots(replace(taken, after=after), "shapes_rate")
    assert is_short(one) and one.choices[one.right].text == step_part.NAMES[rule]
    assert one.sets == {"shapes_rate": taken.scales[0]}


@pytest.mark.parametrize(("name", "factor"), [("certain", 1e6), ("diverged", float("nan"))])
def test_a_certain_prediction_and_a_diverged_model_are_drawn_or_said(
    name: str, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = models.tiny_of({"n_layers": 1, "tie_embeddings": False})
    drawn.output_matrix.mul_(factor)
    models.only_this(monkeypatch, models.of_letters(drawn, "abcd<"), name)
    likeliest = "abcd<"[record(drawn, (0, 1)).likeliest(1)] if name == "certain" else "c"
    for look in ("pass", "weight", "step"):
        page = view(text="ab" + likeliest, shapes_back=look)
        assert not page.error
        assert (gradient.TEXT["diverged"] in said(page, "info")) is (name == "diverged")


def test_numbers_have_three_digits_and_a_true_minus() -> None:
    assert [three(x) for x in (51.43, 0.0273, 4.4)] == ["51.4", "0.0273", "4.40"]
    assert three(-1.2e-5) == "−1.2 × 10⁻⁵" and three(-0.3071, signed=True) == "−0.307"
