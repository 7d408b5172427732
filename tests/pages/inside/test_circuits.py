"""Circuits as they are shown: induction, sinks, a fact in the stream, patching, steering, weights in few bits."""

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine.config import ModelConfig, SampleConfig
from engine.data.progress import finish
from engine.data.tokenizers import token_bytes, written
from engine.recording import record
from pages.inside.circuits import fact_recall as fact_view
from pages.inside.circuits import induction as induction_view
from pages.inside.circuits import patching as patching_view
from pages.inside.circuits import sinks as sinks_view
from pages.inside.circuits import steering as steering_view
from pages.inside.circuits.prompts import LETTERS, PAIRS
from pages.inside.circuits.steering import COEFFICIENTS, MOST_PROMPT
from studies.attention.heads import HeadValue
from studies.circuits import fact_recall, induction, knockout, sinks, steering
from studies.circuits.patching import Patching, causal_cone, patch
from studies.circuits.prompt_pairs import Contrast, prompts_of
from studies.circuits.quantisation import Rounding, chosen, histogram, losses, made, rounded, rounding_error
from tests.pages.helpers import chosen as chosen_in
from tests.pages.helpers import lacking, opened, said, unescaped
from tests.pages.inside.models import MODERN, SMALL, run_of, shipped
from tests.pages.real_model import carried
from tests.pages.stage import StageManager
from ui import models
from ui.models import REAL_MODEL
from ui.text.numbers import minus

pytestmark = pytest.mark.usefixtures("manager", "measured_anew")
PAGE = "inside/circuits"
CITIZEN = "First Citizen:\nBefore we proceed any further, hear me speak.\n"


def circuit(view: str, model: str = SMALL, **query: str) -> AppTest:
    return opened(PAGE, circuits_view=view, model=model, measure="true", hand="true", **query)


def told_in(view: str, model: str = SMALL, **query: str) -> str:
    return unescaped(circuit(view, model, **query))


def test_both_readings_and_every_head_are_the_engines(drawn: dict[str, Any]) -> None:
    words, found = told_in("induction", induction_count="16", induction_seed="3"), shipped()
    pool = induction.ordinary(token_bytes(found.tokenizer))
    repeat = induction.read_twice(found.model, induction.drawn(pool, 16, 3))
    shown, scores = drawn["induction_readings"], drawn["induction_scores"]
    first, second = shown.traces
    assert first["y"][0] is None and first["y"][1:] == pytest.approx(repeat.first[1:].tolist(), abs=1e-4)
    assert second["y"] == pytest.approx(repeat.second.tolist(), abs=1e-4)
    letters = [found.tokenizer.decode([i]) for i in repeat.once]
    assert shown.layout["xaxis"]["ticktext"] == letters and shown.table["token"] == letters
    assert not lacking(words, f"{repeat.first_loss:.1f} nats each", f"**{repeat.second_loss:.1f}**")
    off = finish(knockout.knock_out(found.model, repeat))
    *draws, mean, best = drawn["induction_knockout"].traces
    assert best["y"] == pytest.approx(off.without.tolist(), abs=1e-4)
    assert mean["y"] == pytest.approx(off.others_mean.tolist(), abs=1e-4) and len(draws) == 4
    assert [trace["y"] for trace in draws] == [pytest.approx(draw, abs=1e-4) for draw in off.others.tolist()]
    names = ["none", *(f"{layer}.{head}" for layer, head in off.heads)]
    assert drawn["induction_knockout"].layout["xaxis"]["ticktext"] == names
    assert np.array(scores.traces[0]["z"]) == pytest.approx(repeat.scores, abs=1e-6)
    assert scores.table["previous_token"] == pytest.approx(repeat.previous.ravel().tolist(), abs=1e-6)


def test_where_nothing_copies_it_says_why(manager: StageManager) -> None:
    rare = "(shakespeare) repeats little within 128 tokens"
    assert not lacking(told_in("induction", MODERN), "**No induction head**", "hardly copies", rare)
    assert "It is untrained" in told_in("induction", "untrained-fast")
    assert "A one-block model cannot have one" in told_in("induction", run_of(manager, n_layers=1))
    small = told_in("induction", run_of(manager, context=3))
    assert "too small to read two different tokens twice" in small
    assert "context is too short" in told_in("sinks", run_of(manager, context=12))
    instead = "too few to measure on"
    assert [instead in told_in("sinks", text=CITIZEN[:length]) for length in (15, 16)] == [True, False]


def test_induction_opens_with_a_model_that_has_such_a_head_and_offers_ones_own(monkeypatch):
    monkeypatch.setattr(models.sources, "available", list)  # without the real model
    page = circuit("sinks", SMALL)
    page.get_by_key("circuits_view").set_value("induction").run()
    assert page.selectbox(key="subject_model").value == "timelapse" and "3 heads attend" in unescaped(page)
    page.button(key=f"look_into_{SMALL}").click().run()
    assert page.selectbox(key="subject_model").value == SMALL and "No induction head" in unescaped(page)


def told(**changes: Any) -> induction.Repeat:
    losses = np.array([np.nan, 8.0, 8.0]), np.array([9.0, 2.0, 2.0])
    values = {"scores": np.array([[0.0, 0.1], [0.9, 0.5]]), "previous": np.array([[0.7, 0.1], [0.0, 0.0]])}
    return induction.Repeat((1, 2, 3), *losses, **(values | changes))


def test_sentences_about_heads_that_copy() -> None:
    subject: Any = SimpleNamespace(config=ModelConfig().resolved(), key=("a run", 0), repeat=0.0, corpus=None)
    off = knockout.Knockout(
        ((1, 0), (1, 1)), np.array([2, 5, 7.25]), np.array([[2, 2, 3.0], [2, 2, 4]]), (HeadValue(0, 0, 6.5),)
    )
    assert not lacking(
        " ".join(induction_view.answer(told(), subject)),
        "random tokens cost 8.0 nats each on the first reading (worse than a uniform guess, 4.2: it expects",
        "text) and **2.0** on the second. 2 heads attend to what",
        "most of all **head 1.0** (90% of its weight).",
    )
    assert not lacking(
        induction_view.without_them(off),
        "Without the best 2 the second reading costs **7.2** nats; without 2 random heads of the same blocks, 3.5;",
        "without just head 0.0, a previous-token head below them, 6.5.",
    )
    assert induction_view.without_them(replace(off, below=())).endswith("same blocks, 3.5.")
    for loss in (4.0, 4.3):  # as an untrained model: what is written as 4.2 and 4.2 is not worse
        calm = replace(told(), first=np.array([np.nan, loss, loss]))
        assert "uniform guess" not in " ".join(induction_view.answer(calm, subject))
    one = induction_view.answer(told(scores=np.array([[0.0, 0.1], [0.9, 0.3]])), subject)[1]
    assert one.startswith("One head attends to what followed the same token last time: **head 1.0** (90%")


@pytest.mark.parametrize("opening", sinks.OPENINGS)
def test_weights_and_losses_are_the_engines(opening: sinks.Opening, drawn: dict[str, Any]) -> None:
    page = circuit("sinks", text=CITIZEN, sinks_opening=opening)
    found = shipped()
    ids, newline = tuple(found.tokenizer.encode(CITIZEN)), found.tokenizer.encode("\n")[0]
    measured = finish(sinks.measure(found.model, ids, newline))
    one, kept = measured.of(opening), measured.of("kept")
    dots, *lines = drawn["sinks_layers"].traces
    assert np.array(dots["y"]) == pytest.approx(one.share.ravel(), abs=1e-6)
    assert dots["customdata"][:5] == ["0.0", "0.1", "0.2", "0.3", "1.0"]
    by_name = {line["name"]: line["y"] for line in lines}
    assert by_name["mean"] == pytest.approx(one.by_layer.tolist(), abs=1e-6)
    assert by_name["uniform attention"] == pytest.approx([one.even, one.even])
    if opening != "kept":
        assert by_name["mean, text unchanged"] == pytest.approx(kept.by_layer.tolist(), abs=1e-6)
    bars = drawn["sinks_losses"].traces[0]
    assert bars["x"] == pytest.approx([other.loss for other in measured.openings], abs=1e-6)
    assert [colour != bars["marker"]["color"][-1] for colour in bars["marker"]["color"]].count(True) in (1, 4)
    losses = {other.opening: f"{other.loss:.2f}" for other in measured.openings}
    half, costs = len(ids) // 2, f"costs {losses[opening]} nats per token instead of {losses['kept']}"
    most = np.unravel_index(one.share.argmax(), one.share.shape)
    told = {
        "kept": [
            f"no attention sink: the first token, “F”, gets **{one.mean:.1%}** of all weight",
            f"(uniform: {one.even:.1%}), and at most {one.share.max():.0%} from one head",
            f"({most[0]}.{most[1]}). If it is evicted halfway",
            f"costs **{losses['forgotten']}** nats per token instead of {losses['kept']}"
            f" ({losses['dropped']} if",
        ],
        "other": [
            f"first token, “⏎”, gets **{one.mean:.0%}** of all weight (the old one got {kept.mean:.0%})",
            f"The second half {costs}.",
        ],
        "dropped": [f"The second half {costs}."],
        "forgotten": [
            f"first visible token, “i”, gets **{one.mean:.0%}** (uniform: {one.even:.0%})",
            f"the second half {costs}. A text that never had",
            f"it costs {losses['dropped']}.",
        ],
        "control": [
            f"(position {half // 2}), an ordinary token of the first half, is hidden instead, the second"
            f" half {costs}. Hiding the first token costs **{losses['forgotten']}**."
        ],
    }
    first, others = drawn["sinks_values"].traces
    assert (first["name"], others["name"]) == ("first position", "mean of the others")
    assert [*first["y"], *others["y"]] == pytest.approx(one.lengths.ravel().tolist(), rel=1e-5)
    words = unescaped(page)
    low, high = one.ratios
    assert f"has **{low:.2f} to {high:.2f} times** the mean norm of the others" in words
    assert [sentence for sentence in told[opening] if sentence not in words] == []


def test_the_heads_of_many_blocks_stand_around_their_block_s_number() -> None:
    lengths = np.ones((2, sinks_view.NAMED + 1, 3), np.float32)
    first, others = sinks_view.value_bars(lengths).traces
    assert list(first["x"]) == list(others["x"])
    assert np.reshape(first["x"], (13, 3))[[0, 12]] == pytest.approx(np.array([[-1, 0, 1], [47, 48, 49]]) / 4)


def traced(prompt: str, answer: str | None, name: str = SMALL) -> fact_recall.Fact:
    found = shipped(name)
    recording = record(found.model, found.tokenizer.encode(prompt))
    token = None if answer is None else found.tokenizer.encode(answer)[0]
    return fact_recall.trace(found.model, recording, token)


def test_the_climb_is_the_engines(drawn: dict[str, Any]) -> None:
    words, found = told_in("fact", MODERN, fact_question="art"), traced("thou ar", "t", MODERN)
    assert found.written is not None and found.leap is not None
    chance, rank, attention, feedforward = drawn["fact_climb"].traces
    assert rank["y"] == found.rank.tolist() and rank["x"] == [0, 1, 2, 3, 4]
    assert chance["y"] == pytest.approx(found.probability.tolist(), abs=1e-6)
    assert attention["y"] == pytest.approx(found.written.attention.tolist(), abs=1e-6)
    assert feedforward["y"] == pytest.approx(found.written.feedforward.tolist(), abs=1e-6)
    layout = drawn["fact_climb"].layout
    assert layout["yaxis"]["domain"][0] > layout["yaxis3"]["domain"][1], "the bars stand below the ranks"
    assert attention["x"] == [1, 2, 3, 4], "what block 0 wrote stands where the stream after it is read"
    part, block, most = found.written.most
    assert not lacking(
        words,
        f"The largest jump is in block {found.leap - 1}: from rank {found.rank[found.leap - 1]:,} to"
        f" {found.rank[found.leap]:,}.",
        f"The largest single contribution comes from {fact_view.TEXT(f'part {part}')} in block {block}"
        f" (**{signed(most, 1)}** nats).",
        "After “thou ar”: “t” takes the lead only after **block 3**, the last,",
        f"**{found.probability[-1]:.2f}**",
        f"**{signed(found.written.by_attention, 1)}** nats",
        f"**{signed(found.written.by_feedforward, 1)}**",
    )


def test_ones_own_prompt_and_answer(drawn: dict[str, Any]) -> None:
    own = {"fact_question": "own", "fact_prompt": "KING RICHARD I"}
    circuit("fact", **own)
    assert drawn["fact_climb"].traces[1]["y"] == traced("KING RICHARD I", None).rank.tolist()
    told = told_in("fact", **own, fact_answer_text="xyz")
    assert drawn["fact_climb"].traces[1]["y"] == traced("KING RICHARD I", "x").rank.tolist()
    assert not lacking(
        told.lower(), "“x” never takes the lead: it ends at rank", "the answer is 3 tokens: the first"
    )
    page = circuit("fact", **own, fact_answer_text="€")
    assert page.warning[0].value.startswith("This model's vocabulary lacks")
    assert "is used instead" in told_in("fact", fact_question="own", fact_prompt="")


def test_a_stream_that_is_no_sum_has_no_writers(manager: StageManager, drawn: dict[str, Any]) -> None:
    page = circuit("fact", run_of(manager, wiring="post"), fact_question="own", fact_prompt="ab c")
    assert "No component can be credited" in unescaped(page)
    assert len(drawn["fact_climb"].traces) == 2


def expected(name: str, pair: str, site: Any) -> Patching:
    found = shipped(name)
    chosen = PAIRS[pair]
    prompts = prompts_of(found.tokenizer, chosen.clean, chosen.corrupted, chosen.answers)
    return finish(patch(found.model, prompts, site))


def signed(value: float, digits: int = 2) -> str:
    return minus(f"{value:+.{digits}f}")


@pytest.mark.parametrize("site", ["resid_pre", "attn_out", "ffn_out", "z"])
def test_the_map_is_the_engines(site: str, drawn: dict[str, Any]) -> None:
    page = circuit("patching", patching_pair="hast", patching_site=site)
    found, shown = expected(SMALL, "hast", site), drawn["patching_map"]
    assert np.array(shown.traces[0]["z"]) == pytest.approx(found.restored, abs=1e-6)
    assert (shown.traces[0]["zmin"], shown.traces[0]["zmax"]) == (-1, 1)
    assert f"first prompt **{signed(found.contrast.clean)}**; the model would write “s”" in said(page)
    assert f"second prompt **{signed(found.contrast.corrupted)}**; the model would write “v”" in said(page)
    if site == "resid_pre":  # before block 0 the stream is the embedding
        assert shown.layout["yaxis"]["ticktext"] == ["E", "0", "1", "2"]
    ticks = shown.layout["xaxis"]["ticktext"]
    letters = ["t", "h", "<b>o</b><br>e", "<b>u</b><br>y", "␣", "h", "a"]
    assert ticks == (["0", "1", "2", "3"] if site == "z" else letters)


@pytest.mark.parametrize(("site", "reach"), [("resid_pre", "later tokens"), ("z", "none beside it")])
def test_the_cone_of_a_chosen_cell_is_the_engines(site: Any, reach: str, drawn: dict[str, Any]) -> None:
    page = circuit("patching", patching_pair="hast", patching_site=site)
    assert len(drawn["patching_map"].traces) == 1
    chosen_in(page, "patching_cone", True)
    restored = expected(SMALL, "hast", site).restored
    for cell, at in (((0, int(restored[0].argmax())), {}), ((1, 1), {"row": 1, "column": 1})):
        for name, index in at.items():
            chosen_in(page, f"patching_{name}", index)
        cone = causal_cone(shipped(SMALL).model, site, cell, 7).reached
        heat, veil = drawn["patching_map"].traces
        np.testing.assert_array_equal(np.isnan(np.array(veil["z"], float)), cone)
        assert heat["customdata"][cell[0]][cell[1]] == f"{cell[0]}-{cell[1]}"
        box = drawn["patching_map"].layout["shapes"][0]
        assert (box["y0"] + 0.5, box["x0"] + 0.5) == cell
        assert drawn["patching_map"].table["reached"] == cone.astype(float).ravel().tolist()
        assert f"**{cone.sum() - 1}** of {cone.size - 1} other" in said(page) and reach in said(page)
    assert (page.query_params["patching_row"], page.query_params["patching_column"]) == ("1", "1")


def test_prompts_that_a_model_does_not_tell_apart() -> None:
    span, hardly = expected(SMALL, "far", "resid_pre").contrast.span, "hardly distinguishes the two prompts"
    assert 0 < span < 1
    told = f"{hardly}**: the logit difference changes by only {span:.2f} nats"
    assert told in said(circuit("patching", patching_pair="far"))
    assert hardly in said(circuit("patching", model="untrained-fast"))


@pytest.mark.parametrize(
    ("first", "second", "a", "b", "reason"),
    [
        ("the cat", "the bird", "s", "t", "The first prompt has 7 tokens and the second 8"),
        ("the cat", "the rat", "s", "é", "does not know é, used in the second answer"),
        ("the cat", "the rat", "sat", "sit", "Both answers begin with the token “s”"),
        ("a" * 200, "b" * 200, "s", "t", "at most 48"),
    ],
)
def test_prompts_that_cannot_be_compared_get_a_sentence(first, second, a, b, reason, drawn):
    typed = {"first_prompt": first, "second_prompt": second, "first_text": a, "second_text": b}
    own = {f"patching_{name}": text for name, text in typed.items()}
    page = circuit("patching", patching_pair="own", **own)
    assert reason in unescaped(page, "warning")
    assert f"First prompt, {len(first)} tokens: " in said(page)
    assert "patching_map" not in drawn


@pytest.mark.parametrize(
    ("fields", "pair", "why"),
    [
        ({"causal": False}, "hast", "This model fills in masked tokens"),
        (
            {"mixer": "none"},
            "thou",
            "answers both prompts alike",
        ),  # the last token alone decides: it is the same
        ({"context": 8}, "far", "this model's context is 8"),
    ],
)
def test_what_cannot_be_patched_is_said(fields, pair, why, manager, drawn) -> None:
    run = run_of(manager, "text", vocab_size=100, **fields)
    assert why in told_in("patching", run, patching_pair=pair)
    assert "mixer" in fields or "patching_map" not in drawn


LABELS, NAMES = ["The", "␣France / ␣Italy", "␣is"], ("␣Paris", "␣Rome")


def told_of(rows: list[list[float]], site: Any = "resid_pre") -> str:
    found = Patching(site, np.array(rows, np.float32), Contrast(7.0, -6.0, (0, 1)))
    return patching_view.answer(found, LABELS, NAMES)


def test_where_it_sits_and_when_it_moves() -> None:
    moved = told_of([[0, 1, 0], [0, 0.75, 0.2], [0, 0.25, 0.875], [0, 0, 1]])
    assert not lacking(
        moved,
        "**␣France / ␣Italy** up to **block 0** (at least 0.75 of it), and by **␣is**",
        "by **␣is** from **block 1** onwards (at least 0.88 of it).",
    )
    assert "then" not in moved


def test_the_patches_that_count_most() -> None:
    told = told_of([[0, 0.25, 0], [0, 0.05, 0.5]], "attn_out")
    best = "On its own, the attention output of **block 1 at “␣is”** restores **0.50** of the answer."
    assert f"{best} Next: block 0 at “␣France / ␣Italy” (0.25)." in told and "0.05" not in told
    assert "**head 1.2** restores **0.50**" in told_of([[0, 0.25, 0], [0, 0, 0.5]], "z")
    first, second = (told_of(rows, "ffn_out") for rows in ([[0, 1, 0], [0, 0, 0]], [[0, 0, 0], [0, 1, 0]]))
    assert "restores the word" in first and "restores the word" not in second
    assert "No single patch restores more than 0.05" in told_of([[0, 0.05, 0]], "ffn_out")


@carried
@pytest.mark.exhaustive
def test_the_real_model_copies(drawn: dict[str, Any]) -> None:
    """Measured before with other tools: the head is 18.6, with 0.86 of its weight; below it 16.0."""
    words = unescaped(circuit("induction", REAL_MODEL, induction_count="16"))
    best = re.search(r"most of all \*\*head 18\.6\*\* \((\d+)% of its weight\)", words)
    assert best and 75 <= int(best[1]) <= 97
    *_, mean, off = drawn["induction_knockout"].traces
    assert off["y"][0] == mean["y"][0] and off["y"][-1] > 2 * mean["y"][-1], "these heads, not any"
    assert np.array(drawn["induction_scores"].table["previous_token"]).reshape(30, 9)[16, 0] > 0.8


@carried
@pytest.mark.exhaustive
def test_paris_sits_on_france_and_one_head_carries_it(drawn: dict[str, Any]) -> None:
    """As tried by hand with whole passes: 7.3 and -6.0, on " France" up to block 21, on " is" from 24 on."""
    page = opened("inside/circuits")
    assert page.query_params["model"] == REAL_MODEL
    restored = np.array(drawn["patching_map"].traces[0]["z"])
    assert restored.shape == (30, 5) and restored[:22, 3] == pytest.approx(1, abs=0.03)
    assert restored[24:, 4] == pytest.approx(1, abs=0.03)
    assert not lacking(
        said(page),
        "first prompt **+7.31**; the model would write “␣Paris”",
        "second prompt **−6.02**; the model would write “␣Rome”",
        "**␣France / ␣Italy** up to **block 22**",
    )
    chosen_in(page, "patching_site", "z")
    assert np.array(drawn["patching_map"].traces[0]["z"]).shape == (30, 9)
    assert "**head 23.4** restores **0.93**" in said(page)
    chosen_in(page, "patching_pair", "gender")
    assert "hardly distinguishes the two prompts" in said(page)


@pytest.mark.parametrize("preset", LETTERS)
def test_texts_curve_and_sentence_are_the_engines(preset, drawn, monkeypatch):
    neutral, known, chosen = "to be or not to be " * 20, shipped(), LETTERS[preset]
    model, words = known.model, known.tokenizer
    monkeypatch.setattr(steering_view, "_neutral", lambda name, subject: tuple(words.encode(neutral)))
    page = circuit("steering", steering_preset=preset, steering_seed="3")
    added = steering.direction(model, words, chosen.plus, chosen.minus, 2, "every")
    prompt = steering.read(words, chosen.text)
    sampling, room = SampleConfig(temperature=0.8, top_p=0.9, seed=3), steering.room(model, prompt, 100)
    wanted = steering.mood_words(words, chosen.plus, chosen.minus)
    made = finish(steering.continued(model, added, chosen.coefficient, prompt, room, sampling, wanted))
    rows = steering.rows_of(words.encode(neutral), steering.beginning(words), 40, 6)
    costs, shown = finish(steering.cost(model, added, COEFFICIENTS["every"], rows)), drawn["steering_cost"]
    assert shown.table["coefficient"] == list(COEFFICIENTS["every"])
    assert shown.table["perplexity"] == pytest.approx(costs.perplexity.tolist(), rel=1e-5)
    assert shown.traces[1]["y"] == pytest.approx([costs.at(chosen.coefficient)], rel=1e-5)
    moods = {"came": "Steering **works**", "went": "It **steers away**", "stayed": "Steering **does little**"}
    before, after = costs.at(0.0), costs.at(chosen.coefficient)
    assert not lacking(
        said(page),
        *(steering_view.show_lines(written(words, ids)) for ids in (made.plain, made.steered)),
        f"**{added.strength(chosen.coefficient):.2f} times** the norm of the stream",
        moods[made.came],
        f"**{made.times:.2g} times** as probable at each step",
        f"changes by a factor of **{after / before:.3g}**: {before:,.1f} → {after:,.1f}",
    )
    assert drawn["steering_lifted"].table["with"] == pytest.approx([lift.after for lift in made.lifted])


def test_own_prompts(drawn: dict[str, Any]) -> None:
    long = "Who is it" + "x" * 300
    page = circuit("steering", steering_preset="own", steering_plus="O!", steering_text=long)
    assert "steering_cost" not in drawn  # 200 letters and a context of 128
    assert not lacking(said(page), f"only the first {MOST_PROMPT} are used", "shorten the text")
    chosen_in(page, "steering_text", "Who")
    assert "The perplexity of an unrelated text" in said(page)
    for text, why in (("", "is empty"), ("日本", "does not know 日 本")):
        assert why in said(chosen_in(page, "steering_plus", text))


TEXT = "Now is the winter of our discontent"


@pytest.mark.parametrize("scope", ["matrix", "kind", "all"])
def test_figures_and_sentence_are_the_engines(scope: Any, drawn: dict[str, Any]) -> None:
    page = circuit("quantisation", text=TEXT, bits="3", bits_share="0", bits_scope=scope)
    known, name = shipped(), "blocks.0.ffn.w_in.weight"
    matrix = dict(known.model.named_parameters())[name]
    after = rounded(matrix, Rounding(3, 0))
    expected, lost = histogram(matrix, after), rounding_error(matrix, after)
    assert drawn["bits_weights"].table["after"] == pytest.approx(expected.after.tolist())
    assert drawn["bits_weights"].table["before"] == pytest.approx(expected.before.tolist())
    found = finish(losses(known.model, known.tokenizer.encode(TEXT), chosen(known.model, name, scope)))
    table, mark = drawn["bits_loss"].table, drawn["bits_loss"].traces[-1]
    assert table["bits"] == [32, 8, 4, 3, 2]
    assert table["whole_nats"] == pytest.approx([found.full, *found.whole], abs=1e-5)
    assert table["by_block_nats"] == pytest.approx([found.full, *found.by_block], abs=1e-5)
    pairs = list(zip(table["bits"], table["whole_nats"], strict=True))
    enough = next((i for i, (_, loss) in enumerate(pairs) if loss > 1.01 * found.full), len(pairs)) - 1
    assert not lacking(
        said(page),
        f"relative error of **{lost.relative:.1%}**",
        f"goes from {found.full:.3f} to **{found.whole[2]:.3f}** nats",
        f"**{pairs[enough][0]:g} bits** ",
    )
    assert mark["x"] == ["3"] and mark["y"] == pytest.approx([found.whole[2]], abs=1e-5)


def test_a_block_of_a_model_of_ours(drawn: dict[str, Any]) -> None:
    page = circuit("quantisation", bits_look="block", bits_row="5", bits_index="2", bits_number="7")
    found = made(dict(shipped().model.named_parameters())["blocks.0.ffn.w_in.weight"], 5, 2)
    table = drawn["bits_of_block"].table
    assert table["q"] == found.q.tolist()
    assert table["d q + m"] == pytest.approx(found.numbers.tolist())
    assert table["weight"] == pytest.approx(found.original.tolist())
    assert not lacking(said(page), f"· {found.q[7]} + ", "Computed here", "**5.0 bits** for each")
