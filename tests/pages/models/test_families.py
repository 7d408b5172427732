"""Families: what its views say and draw, held against the engine, files and arithmetic done here."""

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine.checkpoints import load
from engine.config import ModelConfig, SampleConfig, TrainConfig
from engine.recording import record
from pages.models.families import classifier, overview
from runs import kinds
from runs.state import RunSpec
from studies.costs.ledger import ledger_of
from studies.costs.model_choices import Size, choices_of, costs, morphed, three
from studies.costs.published_models import BY_YEAR
from studies.costs.since_2023 import CARDS
from studies.experiments.why_decoders import lessons, writing
from studies.families.three_families import carry_on, fill_in
from studies.families.unmasked_attention import continue_text
from studies.families.unmasked_attention import opened as without_mask
from studies.pairs.checkpoints import LabelCheckpoint
from studies.pairs.corpora import Speakers
from studies.pairs.dataset import Labelled, LabelledText
from studies.pairs.seq2seq import build_classifier
from studies.pairs.tokenizer import PairTokenizer
from tests.pages import helpers
from tests.pages.helpers import chosen, clicked, lacking, said, unescaped
from tests.pages.stage import StageManager, trained
from ui import session
from ui.site import ROOT

pytestmark = pytest.mark.usefixtures("manager")


def opened(view: str, **query: str) -> AppTest:
    return helpers.opened("models/families", families_view=view, **query)


def query_of(name: str) -> dict[str, str]:
    return {f"families_{facet}": value for facet, value in choices_of(BY_YEAR[name]).items()}


def test_counts_of_the_three():
    """12 layers, 768 wide, a vocabulary of 32,000 and 512 places: blocks of 12 d², and 4 d² across."""
    block, ends, table = 12 * 768**2 + 2 * 768, 32_000 * 768 + 768, 512 * 768
    one = 12 * block + ends + table
    both = one + 12 * (block + 4 * 768**2 + 768) + table + 768
    page = opened("three")
    assert f"**the same network** of {one:,} parameters" in said(page)
    assert f"plus cross-attention: **{both:,}**" in said(page)
    (table_,) = page.table
    assert list(table_.value.loc["parameters"]) == [f"{one:,}", f"{one:,}", f"{both:,}"]


def test_who_sees_whom_at_a_step(drawn):
    """4 words given, 4 written: at step 3 the decoder's sixth row has 6 keys, the third's has 3, and 4
    across.
    """
    told = said(opened("three", families_show="masks", families_step="3"))
    assert "adds a row of **6 pairs**" in told
    assert "adds **3** pairs with its own text and **4** with the source" in told
    states = drawn["families_masks_decoder"].table["state"]
    assert states.count("now") == 6 and states.count("done") == 15 and states.count("never") == 21
    assert drawn["families_masks_encoder"].table["state"] == ["done"] * 16
    cross = drawn["families_masks_both"].table
    rows = [state for name, state in zip(cross["matrix"], cross["state"], strict=True) if name == "cross"]
    assert rows == ["done"] * 8 + ["now"] * 4 + ["later"] * 4


def test_reasons_are_those_that_were_counted():
    page = opened("why", why_tokens="32", why_hidden="25", hand="true")
    found, work = lessons(32, 0.25), writing(three(Size(12, 768, 12))["decoder"], 32, 32)
    told, rows = said(page), page.table[0].value
    cells = list(rows.loc["A training signal at every token"])[1:]
    assert cells == [f"{found.encoder:.1f}", "32", "16, from the target only"]
    assert rows.loc["A KV cache", "Decoder"] == f"{work.cached / 1e9:,.0f} GFLOP"
    kept = json.loads((CHECKPOINTS / "cast.json").read_text())["tasks"]
    exact = {name: metrics(f"paired/{name}")["exact"] for name in kept}
    low, high = (f"{100 * end(one['right'] for one in kept.values()):.1f}%" for end in (min, max))
    least, most = (f"{100 * end(exact.values()):.1f}%" for end in (min, max))
    ask = rows.loc["One objective, one interface"]
    assert ask["Decoder"] == (
        f"9 as continuations, each at least 99.1%; {len(kept)} paired tasks, {low} to {high}"
    )
    assert ask["Encoder-decoder"] == f"{len(kept)} paired tasks: {least} to {most}"
    assert rows.loc["Every parameter is used for every token", "Encoder-decoder"] == "62%"
    assert not lacking(
        told,
        f"gets **{found.times:.1f} times** as many training signals: 32 losses from 32 tokens",
        f"against {found.encoder:.1f} for an encoder with 25% masked.",
        f"writes **{work.times:.0f} times** more cheaply",
        f"{low} to {high}; as pairs",
        f"as pairs, {least} to {most}.",
        *(
            f"{name} {100 * one['right']:.1f}% ({100 * exact[name]:.1f}%), {one['parameters']:,} parameters"
            for name, one in kept.items()
        ),
    )


def test_a_button_makes_it_another_model(drawn):
    page = clicked(opened("machine"), "families_make_llama2-7b")
    made = costs(morphed(BY_YEAR["gpt2"], choices_of(BY_YEAR["llama2-7b"])))
    assert not lacking(
        said(page),
        "These are **the 8 choices of LLaMA-2 7B**, at the sizes of GPT-2 small.",
        f" **{made.parameters:,} parameters** (GPT-2 small: 124M)",
    )
    parts = drawn["families_machine"].table["part"]
    assert "SwiGLU, 2,048 wide" in parts and "attention, causal, 12 heads, RoPE" in parts
    chosen(page, "families_size", "llama2-7b")
    assert "**This is LLaMA-2 7B**. **6,738,415,616 parameters**" in said(page)


@pytest.mark.parametrize("name", ["t5-base", "bert-base", "pythia-70m"])
def test_the_drawing_has_every_parameter(drawn, name):
    """Each tensor stands in a box; what both towers share is in the boxes of both."""
    opened("machine", families_size=name, **query_of(name))
    table, preset = drawn["families_machine"].table, BY_YEAR[name]
    total = sum(table["parameters"])
    if preset.encoder:  # one embedding, drawn twice
        total -= preset.model.vocab_size * preset.model.d_model
    pooler = 768 * 768 + 768 if preset.model.pooler else 0  # no box: it is beside the stream
    assert total == ledger_of(preset).total - pooler


def test_the_table_marks_what_is_as_it_was_in_2017():
    table = opened("machine", measure="true").table[0].value
    assert len(table) == len(BY_YEAR) and table["as in 2017"].iloc[0] == "8 of 8"
    assert table.loc["GPT-2 small", "Norm"] == "LayerNorm •"
    assert table.loc["LLaMA-2 7B", "Positions"] == "RoPE"
    marks = table.map(lambda cell: str(cell).endswith("•")).sum(axis=1)
    assert [f"{count} of 8" for count in marks] == table["as in 2017"].tolist()


def test_models_since_2023_stand_below_with_their_new_choices():
    table = opened("machine", measure="true").table[1].value
    assert len(table) == len(CARDS)
    assert table.loc["Qwen3-Next 80B-A3B", "attention"] == "Gated DeltaNet (36), GQA, gated (12)"
    assert table.loc["gpt-oss-20b", "window"] == "12 of 24 layers, 128"
    assert table.loc["DeepSeek-V3"].tolist()[2:] == ["8 of 256 and 1", "671,026,419,200", "36.6B"]
    assert table.loc["Gemma 3 1B", "experts per token"] == "dense"


def test_who_else_chose_so():
    told = said(opened("machine", families_position="alibi", families_norm="rmsnorm"))
    assert not lacking(told, "none here; BLOOM and MPT", "8 of 13, e.g. T5, SmolLM2")
    nearest = "No model in the table matches; the nearest is **GPT-2**, which differs in 1: positions"
    assert nearest in said(opened("machine", families_position="alibi"))


SENTENCE = "this horse will fear the funny old friend"
BLANKS = (2, 7, 12, 17, 22, 27, 32, 37)


def live(**query: str) -> AppTest:
    return helpers.opened("models/families", families_view="three", families_show="live", **query)


def answer(page: AppTest) -> str:
    found = (str(one.value) for one in page.markdown)
    (answer,) = [one for one in found if "wrote" in one or "None of" in one]
    return answer


def sent(page: AppTest) -> dict[str, Any]:
    return helpers.sent(page, "threeways")


def columns(page: AppTest) -> tuple[dict[str, Any], ...]:
    return tuple(sent(page)["columns"])


def blanks_of(text: str) -> list[str]:
    """The symbols of a text as they are drawn."""
    return list(text.replace(" ", "␣").replace("\n", "⏎"))


def letters(name: str):
    found = load(ROOT / "checkpoints" / name)
    return found.model, found.tokenizer


def test_the_player_gets_what_the_three_wrote():
    page = live()
    # 8 blanks; 5 guesses equal the letter (the 2nd, 6th and 7th do not); 24 letters; 7 words and the end
    assert answer(page) == (
        "The encoder filled **8 blanks in 1 pass**, 5 correctly. The decoder wrote **24 characters in 24"
        " passes**. The encoder-decoder read in one pass and wrote “timuro esto tald ilo sem veto velo” in"
        " **8** more, a **correct** translation."
    )
    encoder, decoder, both = columns(page)
    found, (row,) = fill_in(*letters("encoders/blanks"), SENTENCE, BLANKS), encoder["rows"]
    assert row["cells"] == blanks_of(SENTENCE) and [s["at"] for s in encoder["said"]] == list(BLANKS)
    assert {(s["step"], s["row"]) for s in encoder["said"]} == {(1, 0)}
    for one, symbol, place in zip(encoder["said"], found.symbols, BLANKS, strict=True):
        wrong = symbol.symbol != SENTENCE[place]
        verdict = f"it was “{SENTENCE[place]}”" if wrong else "right"
        assert one["told"] == f"“{symbol.symbol}”, {round(100 * symbol.probability)}% sure: {verdict}"
        assert one["wrong"] is wrong and one["symbol"] == symbol.symbol
        assert one["reads"] == [pytest.approx(list(symbol.self_weights), abs=1e-4)]
    assert encoder["lines"][0] == "8 blanks to fill"
    assert set(encoder["lines"][1:]) == {"1 pass: 8 blanks, all at once"}
    found = carry_on(*letters("shakespeare-modern"), SENTENCE, 24, SampleConfig(temperature=0.0))
    for i, (one, symbol) in enumerate(zip(decoder["said"], found.symbols, strict=True)):
        assert (one["at"], one["step"], len(one["reads"][0])) == (len(SENTENCE) + i, i + 1, len(SENTENCE) + i)
        assert one["told"].endswith(f"”, {round(100 * symbol.probability)}% sure") and not one["wrong"]
        assert one["reads"][0] == pytest.approx(list(symbol.self_weights), abs=1e-4)
    assert decoder["rows"][0]["cells"][len(SENTENCE) :] == blanks_of(found.written)
    told = ["0 passes, 0 characters: one each", "1 pass, 1 character: one each"]
    assert decoder["lines"][:2] == told and len(decoder["lines"]) == 25 == sent(page)["last"] + 1
    source, target = both["rows"]
    assert source["cells"] == [*SENTENCE.split(), "<end>"]
    assert target["cells"] == ["<begin>", *["timuro", "esto", "tald", "ilo", "sem", "veto", "velo"], "<end>"]
    for i, one in enumerate(both["said"]):
        assert (one["row"], one["at"], one["step"]) == (1, i + 1, i + 1)
        assert [len(weights) for weights in one["reads"]] == [9, i + 1]  # the source whole, its own text back
        assert [sum(weights) for weights in one["reads"]] == pytest.approx([1, 1], abs=1e-2)
    sem = both["said"][4]
    assert source["cells"][sem["reads"][0].index(max(sem["reads"][0]))] == "friend"  # it read the noun
    assert both["lines"][:2] == ["nothing read yet", "1 pass to read, 1 to write: one each"]
    assert both["lines"][-1] == "1 pass to read, 8 to write: one each"


def test_what_is_hidden_is_chosen_and_clicked():
    page = live(live_hiding="word", live_clicked="3-24-99")
    encoder, *_ = columns(page)
    assert [s["at"] for s in encoder["said"]] == [3, 21, 22, 23, 24], "the word, and two that were clicked"
    assert sent(page)["toggled"] == [3, 24] and "**5 blanks in 1 pass**" in answer(page)
    chosen(page, "live_text", "the cat sees a dog")
    assert sent(page)["toggled"] == [] and page.query_params.get("live_clicked") is None


def test_temperature_and_seed_are_the_decoder_s():
    (encoder, decoder, both), (first, _, third) = (
        columns(live(live_temperature="1.0", live_seed="7")),
        columns(live()),
    )
    drawn = carry_on(*letters("shakespeare-modern"), SENTENCE, 24, SampleConfig(temperature=1.0, seed=7))
    assert decoder["rows"][0]["cells"][len(SENTENCE) :] == blanks_of(drawn.written)
    assert encoder == first and both == third


def test_what_cannot_be_read_is_named_and_the_others_go_on():
    page = live(live_text="the zebra sees a cat")
    assert [c["cannot"] for c in columns(page)][:2] == [None, None]
    assert columns(page)[2]["cannot"] == "Not run: this model's vocabulary of 323 words lacks 'zebra'."
    assert "The encoder filled" in answer(page) and "encoder-decoder" not in answer(page)
    page = live(live_text=" ")
    assert all(c["cannot"] for c in columns(page)) and sent(page)["last"] == 1
    assert answer(page) == "None of the three can read this: each says why above."


LABELS = ("KING RICHARD II", "ROMEO", "LEONTES")
HELD = (("me ay", "ROMEO", 1), ("ay !", "LEONTES", 1), ("me me ay !", "ROMEO", 8))
KNOWN = LabelledText(
    "speakers",
    "Who speaks?",
    PairTokenizer(("!", "<other>", "ay", "me"), "speech", "<other>"),
    LABELS,
    (Labelled("ay", "ROMEO"), Labelled("ay ay", "ROMEO"), Labelled("me", "LEONTES")),
    tuple(Labelled(text, who) for text, who, _ in HELD),
    "mean",
)
MODEL = ModelConfig(KNOWN.vocab_size, 6, 16, 1, 2, norm="none", norm_gain=False)
STEPS = (0, 25, 50)
SPEECH, WORDS = "Ay, me!", ("ay", ",", "me", "!")


def at(step: int) -> LabelCheckpoint:
    """Another model for every step, none of them trained."""
    config = KNOWN.fitted(MODEL)
    model = build_classifier(replace(config, context=8), 3, seed=step, init="normal")
    return LabelCheckpoint(model.eval().requires_grad_(False), KNOWN.tokenizer, LABELS, {"step": step})


@pytest.fixture
def run(manager: StageManager, monkeypatch: pytest.MonkeyPatch) -> str:
    """A finished training."""
    found = Speakers(KNOWN, tuple(lines for _, _, lines in HELD), 2 / 3)
    monkeypatch.setattr(classifier, "speakers", lambda: found)
    monkeypatch.setattr(session, "corpus", lambda name: found)  # the text itself may not be here
    return trained(manager, RunSpec(MODEL, TrainConfig(steps=50), kinds.SPEAKERS, name="mine"), at, STEPS)


def speaking(**query: str) -> AppTest:
    return helpers.opened("models/families", families_view="speaks", **query)


def shares(step: int, words: tuple[str, ...]) -> np.ndarray:
    ids = {"!": 3, "<other>": 4, "ay": 5, "me": 6}
    row = [1, *(ids.get(word, 4) for word in words), 2]
    return at(step).model(torch.tensor([row]))[0].double().softmax(-1).numpy()


@pytest.mark.parametrize("step", STEPS)
def test_the_shares_are_those_of_the_step(run: str, step: int, drawn: dict[str, Any]) -> None:
    page = speaking(speaks_model=run, step=str(step), speaks_text=SPEECH)
    whole, figure = shares(step, WORDS), drawn["speaks"]
    order = sorted(range(3), key=lambda i: -whole[i])
    less = [shares(step, WORDS[:i] + WORDS[i + 1 :]) for i in range(4)]
    bars, heat = figure.traces
    np.testing.assert_allclose(bars["x"], 100 * whole[order], rtol=1e-4)
    assert list(bars["text"]) == [f"{whole[i]:.0%}" for i in order]
    assert figure.layout["yaxis"]["ticktext"] == [classifier.named(LABELS[i]) for i in order]
    cells = np.array([[100 * (whole[i] - one[i]) for one in less] for i in order])
    np.testing.assert_allclose(heat["z"], cells, atol=1e-3)
    assert figure.layout["xaxis2"]["ticktext"] == list(WORDS)
    assert heat["colorbar"]["x"] <= 1, "the scale is inside the figure"
    first, second = order[:2]
    most = max(range(4), key=lambda i: abs(whole[first] - less[i][first]))
    who = ["King Richard II", "Romeo", "Leontes"]
    moved = f"**{who[first]}** goes from **{whole[first]:.0%}** to **{less[most][first]:.0%}**"
    assert not lacking(
        unescaped(page),
        f"“{WORDS[most]}” matters most: without it {moved}.",
        f"Second is {who[second]} with {whole[second]:.0%}",
        f"a uniform guess gives each {1 / 3:.1%}",
        "Mapped to the unknown token: “,”.",
    )


def guessed(step: int, text: str) -> str:
    return LABELS[int(shares(step, tuple(text.split())).argmax())]


@pytest.mark.parametrize("step", STEPS)
def test_whether_it_is_right_about_what_was_held_out(run: str, step: int) -> None:
    for text, who, _ in HELD:
        page = speaking(speaks_model=run, step=str(step), speaks_text=text)
        verdict = "Right" if guessed(step, text) == who else "Wrong"
        assert f"{verdict}: {who.title()} says it" in unescaped(page)
    assert " says it" not in unescaped(speaking(speaks_model=run, speaks_text="me"))


@pytest.mark.parametrize("step", STEPS[1:])
def test_the_scores_beside_those_who_know_less(run: str, step: int) -> None:
    """Naive Bayes by hand: Romeo says "ay" thrice, Leontes "me" once; half a time more of the two words."""
    page = speaking(speaks_model=run, step=str(step), speaks_text="ay", measure="true")
    (table,) = page.table
    right = [guessed(step, text) == who for text, who, _ in HELD]
    often, counted = [True, False, True], [True, False, False]
    for row, found in zip((1, 2, 3), (often, counted, right), strict=True):
        wanted = [sum(found) / 3, sum(found[:2]) / 2, float(found[2])]
        assert list(table.value.iloc[row]) == [f"{one:.1%}" for one in wanted]
    assert list(table.value.iloc[0]) == ["3", "2", "1"]
    assert list(table.value.columns) == ["all", "1 line", "8 lines"]
    assert "of **3** held-out passages" in unescaped(page)
    assert f"the right speaker for **{sum(right) / 3:.1%}**" in unescaped(page)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"speaks_text": "ay " * 7}, "reads 6 words and signs at once, not 7"),
        ({"speaks_model": "run-gone"}, "That run is no longer on this server"),
    ],
)
def test_what_cannot_be_read_gets_a_sentence(run: str, query: dict[str, str], says: str) -> None:
    assert says in unescaped(speaking(**({"speaks_model": run} | query)))


def test_the_shipped_one_reads_the_first_line(run: str, drawn: dict[str, Any]) -> None:
    assert "matters most" in unescaped(speaking())
    config = json.loads((ROOT / "checkpoints/paired/speakers/config.json").read_text())
    assert set(drawn["speaks"].table["speaker"]) == {classifier.named(one) for one in config["labels"]}
    symbols = re.findall("[a-z']+|[^a-z' ]", classifier.TEXT["first"].lower())
    assert len(drawn["speaks"].traces[1]["z"][0]) == len(symbols)


CHECKPOINTS = ROOT / "checkpoints"
NAMES = ("masked", "opened", "unmasked", "blanks")
NEWS = "My lord, what news?"


def shown(**query: str) -> AppTest:
    return helpers.opened("models/families", families_view="why", families_why="unmasked", **query)


def metrics(name: str) -> dict:
    return json.loads((CHECKPOINTS / name / "metrics.json").read_text())


def test_the_answer_has_the_losses_of_the_files():
    masked, cheat, blanks = metrics("square/masked"), metrics("square/unmasked"), metrics("encoders/blanks")
    assert not lacking(
        said(shown()),
        f"With it, the loss is {masked['validation_loss']:.2f} (",
        f"{masked['opened']['validation_loss']:.2f} once it is removed)",
        f"copies the next character: **{cheat['validation_loss']:.2f}** nats",
        f"but **{cheat['end_loss']:.2f}** at the end",
        f"{blanks['guessed_right']:.1%} of the blanks are predicted correctly",
    )


@pytest.mark.parametrize("layer", ["all", "1"])
def test_the_table_and_the_squares(drawn, layer):
    page = shown(square_text=NEWS, square_layer=layer)
    (table,) = page.table
    masked, cheat, blanks = (
        load(CHECKPOINTS / n) for n in ("square/masked", "square/unmasked", "encoders/blanks")
    )
    ids = masked.tokenizer.encode(NEWS)
    models = [masked.model, without_mask(masked.model), cheat.model, blanks.model]
    files = metrics("square/masked")
    losses = [files, files["opened"], metrics("square/unmasked")]
    for column, (name, model) in enumerate(zip(NAMES, models, strict=True)):
        figure = drawn[f"square_{name}"]
        cells = list(table.value.iloc[:, column])
        found = record(model, ids).stacked("pattern").astype(float)
        chosen = found if layer == "all" else [found[int(layer)]]
        mean = sum(one.mean(0) for one in chosen) / len(chosen)
        later = [mean[i, i + 1 :].sum() for i in range(len(ids) - 1)]
        share = f"{sum(later) / len(later):.0%}"
        assert cells[0] == share and f": {share} of the weight on later" in figure.alt
        heat = np.array(figure.traces[0]["z"], dtype=float)
        wanted = np.where(np.triu(np.ones_like(mean), 1) > 0, np.nan, mean) if column == 0 else mean
        np.testing.assert_allclose(heat, wanted, atol=1e-5)
        if column < 3:
            logits = model(torch.tensor([ids]))[0, :-1].double().log_softmax(-1)
            chances = [float(row[after].exp()) for row, after in zip(logits, ids[1:], strict=True)]
            loss = losses[column]
            assert cells[1:3] == [f"{loss['validation_loss']:.2f}", f"{loss['end_loss']:.2f}"]
            strip = np.array(figure.traces[1]["z"][0], dtype=float)
            np.testing.assert_allclose(strip[1:], chances, atol=1e-4)
            assert np.isnan(strip[0])
        else:
            assert cells[1:3] == [f"{metrics('encoders/blanks')['validation_loss']:.2f} per blank", "–"]
        blank = 65 if column == 3 else None
        wrote = masked.tokenizer.decode(continue_text(model, ids, 20, blank))
        plain = cells[3].replace("\\", "").replace("\u2060", "")
        assert plain == f"“{wrote.replace(' ', '␣').replace(chr(10), '⏎')}”" and len(wrote) == 20


def test_the_encoder_s_letters_are_hidden_one_by_one(drawn):
    shown(square_text=NEWS)
    blanks = load(CHECKPOINTS / "encoders/blanks")
    ids = blanks.tokenizer.encode(NEWS)
    chances = []
    for place, letter in enumerate(ids):
        text = [*ids[:place], 65, *ids[place + 1 :]]
        chances.append(float(blanks.model(torch.tensor([text]))[0, place].double().softmax(-1)[letter]))
    strip = drawn["square_blanks"].traces[1]["z"][0]
    np.testing.assert_allclose(strip, chances, atol=1e-4)
    assert drawn["square_blanks"].table["letter"][:3] == ["M", "y", "␣"]


@pytest.mark.parametrize(
    ("text", "words"), [("Zürich", "know 65 characters"), ("a", "two characters or more")]
)
def test_texts_without_a_square_get_a_sentence(text, words):
    page = shown(square_text=text)
    assert words in said(page) and not page.table


def test_a_decoder_reads_what_it_has_written_before() -> None:
    written, given = overview._words("written"), overview._words("given")
    read = [overview.TEXT["begin"], *written[:-1]]
    assert overview._axes("both", "decoder") == (read, read) and overview._axes("both", "cross") == (
        read,
        given,
    )
    assert overview._axes("both", "encoder") == (given, given) and len(read) == len(written)
