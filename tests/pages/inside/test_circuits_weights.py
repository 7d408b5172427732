"""Steering and weights in few bits: what is shown is the engine's, and what cannot be steered says why."""

from __future__ import annotations

from typing import Any

import pytest

from engine.config import SampleConfig
from engine.measure import steering
from engine.measure.one_block import made
from engine.measure.quantising import chosen, losses
from engine.measure.rounding import Rounding, histogram, rounded, taken
from engine.progress import finish
from engine.tokenizers import written
from pages.inside.circuits import steering as view
from pages.inside.circuits.steering_prompts import COEFFICIENTS, LETTERS, MOST_PROMPT
from tests.pages.helpers import said
from tests.pages.inside.circuits import circuit
from tests.pages.inside.models import TOGETHER, run_of, shipped
from tests.pages.stage import StageManager

pytestmark = pytest.mark.usefixtures("manager", "measured_anew")


@pytest.mark.parametrize("preset", LETTERS)
def test_texts_curve_and_sentence_are_the_engines(
    preset: str, drawn: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        view, "_neutral", lambda subject: subject.tokenizer.encode("to be or not to be " * 20)
    )
    page = circuit("steering", steering_preset=preset, steering_seed="3")
    chosen, known = LETTERS[preset], shipped()
    model, words = known.model, known.tokenizer
    added = steering.direction(model, words, chosen.plus, chosen.minus, 2, "every")
    prompt = steering.read(words, chosen.text)
    room = steering.room(model, prompt, 100)
    sampling = SampleConfig(temperature=0.8, top_p=0.9, seed=3)
    wanted = steering.mood_words(words, chosen.plus, chosen.minus)
    made = finish(steering.continued(model, added, chosen.coefficient, prompt, room, sampling, wanted))
    for ids in (made.plain, made.steered):
        assert view.show_lines(written(words, ids)) in said(page)
    rows = steering.rows_of(words.encode("to be or not to be " * 20), steering.beginning(words), 40, 6)
    costs = finish(steering.cost(model, added, COEFFICIENTS["every"], rows))
    shown = drawn["steering_cost"]
    assert shown.table["coefficient"] == list(COEFFICIENTS["every"])
    assert shown.table["perplexity"] == pytest.approx(costs.perplexity.tolist(), rel=1e-5)
    assert shown.traces[1]["y"] == pytest.approx([costs.at(chosen.coefficient)], rel=1e-5)
    assert f"**{added.strength(chosen.coefficient):.2f} times** as long as the stream" in said(page)
    mood = {"came": "comes", "went": "goes", "stayed": "hardly changes"}[made.came]
    assert f"The mood **{mood}**" in said(page)
    assert f"**{made.times:.2g} times** as probable at each step" in said(page)
    before, after = costs.at(0.0), costs.at(chosen.coefficient)
    assert f"**{after / before:.3g} times** as perplexing: {before:,.1f} → {after:,.1f}" in said(page)
    assert drawn["steering_lifted"].table["with"] == pytest.approx([lift.after for lift in made.lifted])


def test_own_prompts(drawn: dict[str, Any]) -> None:
    page = circuit(
        "steering", steering_preset="own", steering_plus="O!", steering_text="Who is it" + "x" * 300
    )
    assert not page.exception and "steering_cost" not in drawn
    assert f"the first {MOST_PROMPT} are taken" in said(page)
    assert "shorten the text" in said(page)  # 200 letters and a context of 128
    page.get_by_key("steering_text").set_value("Who").run()
    assert "as perplexing" in said(page)
    for text, why in (("", "is empty"), ("日本", "does not know 日 本")):
        page.get_by_key("steering_plus").set_value(text).run()
        assert not page.exception and why in said(page)


@pytest.mark.parametrize("fields", TOGETHER[::2], ids=str)
def test_every_kind_of_model(fields: dict[str, Any], manager: StageManager) -> None:
    page = circuit("steering", run_of(manager, vocab_size=100, **fields), steering_preset="question")
    wanted = "as perplexing" if fields.get("causal", True) else "nothing to steer"
    assert not page.error and wanted in said(page)


TEXT = "Now is the winter of our discontent"


@pytest.mark.parametrize("scope", ["matrix", "kind", "all"])
def test_figures_and_sentence_are_the_engines(scope: Any, drawn: dict[str, Any]) -> None:
    page = circuit("quantisation", text=TEXT, bits="3", bits_share="0", bits_scope=scope)
    known = shipped()
    name = "blocks.0.ffn.w_in.weight"
    matrix = dict(known.model.named_parameters())[name]
    after = rounded(matrix, Rounding(3, 0))
    expected, lost = histogram(matrix, after), taken(matrix, after)
    assert drawn["bits_weights"].table["after"] == pytest.approx(expected.after.tolist())
    assert drawn["bits_weights"].table["before"] == pytest.approx(expected.before.tolist())
    ids = known.tokenizer.encode(TEXT)
    found = finish(losses(known.model, ids, chosen(known.model, name, scope)))
    table = drawn["bits_loss"].table
    assert table["bits"] == [32, 8, 4, 3, 2]
    assert table["whole_nats"] == pytest.approx([found.full, *found.whole], abs=1e-5)
    assert table["by_block_nats"] == pytest.approx([found.full, *found.by_block], abs=1e-5)
    assert f"off by **{lost.relative:.1%}** of its size" in said(page)
    assert f"goes from {found.full:.3f} to **{found.whole[2]:.3f}** nats" in said(page)
    enough = 32
    for bits, loss in zip(table["bits"][1:], table["whole_nats"][1:], strict=True):
        if loss > 1.01 * found.full:
            break
        enough = bits
    assert f"**{enough:g} bits** " in said(page)
    mark = drawn["bits_loss"].traces[-1]
    assert mark["x"] == ["3"] and mark["y"] == pytest.approx([found.whole[2]], abs=1e-5)


def test_a_block_of_a_model_of_ours(drawn: dict[str, Any]) -> None:
    page = circuit("quantisation", bits_look="block", bits_row="5", bits_index="2", bits_number="7")
    known = shipped()
    found = made(dict(known.model.named_parameters())["blocks.0.ffn.w_in.weight"], 5, 2)
    table = drawn["bits_of_block"].table
    assert table["q"] == found.q.tolist()
    assert table["d q + m"] == pytest.approx(found.numbers.tolist())
    assert table["weight"] == pytest.approx(found.original.tolist())
    assert f"· {found.q[7]} + " in said(page) and "It is made here" in said(page)
    assert "**5.0 bits** for each" in said(page)
