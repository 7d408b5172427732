"""Home: presets, maps and the running map, without a browser: what they say of a model, of any text, and where they lead."""

import json
import math
from dataclasses import replace
from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
import streamlit as st
import torch

from engine import checkpoints
from engine.config import ModelConfig
from engine.recording import record
from pages.start.home import published_models, running_model
from pages.start.home.links import target
from pages.start.home.map_drawing import model_map
from pages.start.home.map_pair import pair_map
from pages.start.home.reading import HELD, Held, look
from studies.costs.ledger import component_parameters, ledger_of
from studies.costs.presets import PRESETS
from studies.costs.published_models import ENCODER_DECODERS
from studies.families.written_target import write_target
from studies.pairs.checkpoints import load_pair
from studies.pairs.config import seq2seq_config
from studies.pairs.seq2seq import build_pair
from studies.residual.lens import logit_lens
from studies.shapes.operations import trace
from tests.conftest import ROOT
from tests.pages import helpers
from tests.pages.start.home import CLASSIC, array, home, sent
from ui import models, site, widgets
from ui.fit_text import ENGLISH, MAX_TEXT
from ui.text.markdown import safe
from ui.training_step import NEWEST

pytestmark = pytest.mark.usefixtures("manager")


PUBLISHED = PRESETS | ENCODER_DECODERS


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_preset_is_counted_in_its_words(name):
    preset, counted = PUBLISHED[name], ledger_of(PUBLISHED[name])
    if name in ENCODER_DECODERS:
        total = sum(p.numel() for p in build_pair(seq2seq_config(preset), device="meta").parameters())
        blocks = f"{counted.encoder.n_layers} + {counted.config.n_layers}"
    else:
        total, blocks = sum(component_parameters(preset.model).values()), counted.config.n_layers
    assert published_models.alt(preset, counted).endswith(f" {total:,} parameters.")
    told = published_models.about(preset, counted)
    share = counted.in_blocks / counted.total
    assert f"**{total:,} parameters**, {share:.0%} of them in the {blocks} blocks." in told
    assert told.startswith(f"**{preset.title}.**")
    pooler = f" {768 * 768 + 768:,} of them are not on this map."  # it acts once a text
    assert (pooler in told) == (name == "bert-base")
    assert ("*Source: " in told) == (not preset.trainable and bool(preset.source))


@pytest.mark.parametrize("name", ["gpt2", "t5-base"])
def test_a_published_model_s_map_and_words_are_on_the_page(name):
    app, preset, counted = (
        opened(home_view="published", preset=name),
        PUBLISHED[name],
        ledger_of(PUBLISHED[name]),
    )
    assert component(app, "glassformer_map")["alt"] == published_models.alt(preset, counted)
    assert published_models.about(preset, counted) in [text.value for text in app.markdown]
    assert preset.title.removesuffix(" (published)") in app.selectbox(key="preset").options


@pytest.mark.parametrize(("chosen", "trained"), [("modern", "modern"), ("llama2-70b", "fast")])
def test_train_one_now_starts_a_training_and_shows_it(chosen, trained, manager):
    app, wanted = opened(home_view="published", preset=chosen), PRESETS[trained]
    assert manager.asked == []
    app.button(key="train_now").click().run()
    assert not app.exception and app.session_state["preset"] == trained
    assert [what for what in manager.asked if what[0] == "start"] == [("start", "run-0")]
    spec = manager.views["run-0"].spec
    assert (spec.train, replace(spec.model, vocab_size=65)) == (wanted.train, wanted.model)
    app.run()
    assert len(manager.views) == 1  # once
    assert any("rain" in title.value for title in app.title)


VARIANTS = [
    ModelConfig(wiring=wiring, position=position, norm=norm, mixer=mixer, ffn=ffn, tie_embeddings=tied)
    for wiring, (position, tied), norm, (mixer, ffn) in product(
        ("pre", "post", "parallel", "none"),
        (("learned", True), ("rope", False)),
        ("layernorm", "none"),
        (("attention", "gelu"), ("none", "gelu"), ("attention", "none"), ("none", "none")),
    )
]
draw = cache(model_map)


def boxes(layout, *kinds):
    return [box for box in layout["boxes"] if not kinds or box["kind"] in kinds]


def ends(box):
    return box["x"], box["y"], box["x"] + box["w"], box["y"] + box["h"]


def inside(a, b):
    (left, top, right, foot), (west, north, east, south) = ends(a), ends(b)
    return west <= left and right <= east and north <= top and foot <= south


def apart(a, b):
    (left, top, right, foot), (west, north, east, south) = ends(a), ends(b)
    return right <= west or east <= left or foot <= north or south <= top


INSIDE = {"norm1", "norm2", "attention", "feedforward", "sum_attention", "sum_feedforward", "sum_both"}


@pytest.mark.parametrize("shape", ["wide", "tall"])
def test_nothing_overlaps_and_nothing_leaves_the_sheet(shape):
    decoders = [*VARIANTS, *(preset.model for preset in PRESETS.values())]
    for map_ in [*map(draw, decoders), *map(drawn, ENCODER_DECODERS)]:
        layout = map_[shape]
        for a, b in combinations(boxes(layout, "box", "plus"), 2):
            assert apart(a, b), (a["id"], b["id"])
        sheet = {"x": 0, "y": 0, "w": layout["width"], "h": layout["height"]}
        for box in boxes(layout):
            assert inside(box, sheet) and box["id"] in map_["parts"]
            if box["id"] in INSIDE:
                assert inside(box, boxes(layout, "frame")[0]), box
    for config in decoders:
        layout = draw(config)[shape]
        for x, y in (point for arrow in layout["arrows"] for point in arrow["points"]):
            assert 0 <= x <= layout["width"] and 0 <= y <= layout["height"]
        assert shape == "wide" or layout["width"] <= 372  # a phone's


@pytest.mark.parametrize("name", PRESETS)
def test_numbers_on_the_map_add_up_to_the_model(name):
    config = PRESETS[name].model
    parts, total = model_map(config)["parts"], 0
    for part, count in component_parameters(config).items():
        rows = dict(parts[part]["rows"]) if part in parts else {"parameters": "0"}
        total += int(
            rows.get("in all blocks", rows["parameters"].removesuffix(" in each block")).replace(",", "")
        )
        assert part in parts or count == 0 or part == "pooler"  # which Home names apart: it acts once a text
    assert total == sum(component_parameters(config).values()) - component_parameters(config).get("pooler", 0)


def test_positions_stand_where_they_act():
    for position in ("learned", "sinusoidal"):
        drawn = model_map(ModelConfig(position=position))
        assert {"position", "sum_position"} <= {box["id"] for box in drawn["wide"]["boxes"]}
        assert not boxes(drawn["wide"], "chip")
    for position in ("rope", "alibi", "t5"):
        layout = model_map(ModelConfig(position=position))["tall"]
        home = next(box for box in layout["boxes"] if box["id"] == "attention")
        assert inside(boxes(layout, "chip")[0], home)
        assert "sum_position" not in {box["id"] for box in layout["boxes"]}
    assert "position" not in model_map(ModelConfig(position="none"))["parts"]
    acts = {
        "learned": "pos_embed",
        "sinusoidal": "pos_embed",
        "rope": "q_rot",
        "alibi": "scores",
        "t5": "scores",
    }
    for position, name in acts.items():
        assert model_map(ModelConfig(position=position))["parts"]["position"]["rows"][0][0] == name


def test_wirings_differ_where_they_should():
    drawn = {w: model_map(ModelConfig(wiring=w))["wide"] for w in ("pre", "post", "parallel", "none")}
    sums = {w: {box["id"] for box in boxes(layout, "plus")} for w, layout in drawn.items()}
    two = {"sum_attention", "sum_feedforward"}
    wanted = {"pre": two, "post": two, "parallel": {"sum_both"}, "none": set()}
    assert {w: found - {"sum_position"} for w, found in sums.items()} == wanted
    post = {box["id"]: box for box in drawn["post"]["boxes"]}
    assert "norm_final" not in post
    norm, plus = post["norm1"], post["sum_attention"]
    assert norm["x"] > plus["x"] and abs(norm["y"] + norm["h"] / 2 - plus["y"] - plus["h"] / 2) < 1


def test_tie_and_mask_are_shown():
    tied, untied = model_map(ModelConfig(tie_embeddings=True)), model_map(ModelConfig(tie_embeddings=False))
    assert [a["kind"] for a in tied["wide"]["arrows"]].count("tie") == 1
    assert "tie" not in [a["kind"] for a in untied["tall"]["arrows"]]
    assert "causal mask" in model_map(ModelConfig())["parts"]["attention"]["lines"]
    assert not any(
        "causal" in line for line in model_map(PRESETS["bert-base"].model)["parts"]["attention"]["lines"]
    )


TEXT = "the 3rd of March 1999"


def opened(**query):
    return helpers.opened("app.py", **query)


ROOM = min(128, models.model_of(CLASSIC, NEWEST, ()).config.context)


def component(app, name):
    found = [e for e in app.get("bidi_component") if e.proto.component_name.endswith(name)]
    return json.loads(found[0].proto.json) if found else None


@cache
def drawn(name):
    return pair_map(ledger_of(ENCODER_DECODERS[name]), site.explanations())


@pytest.mark.parametrize("name", list(ENCODER_DECODERS))
def test_parts_hold_what_the_built_model_holds(name):
    """Counted on the tensors of one block, on the meta device."""
    preset = ENCODER_DECODERS[name]
    model, parts = build_pair(seq2seq_config(preset), device="meta"), drawn(name)["parts"]
    total = sum(p.numel() for p in model.parameters())
    for tower in ("encoder", "decoder"):
        blocks = getattr(model, tower).blocks
        each = sum(p.numel() for p in blocks[1].parameters())
        assert parts[f"{tower}.block"]["lines"] == (f"{each:,} parameters each",)
        rows = dict(parts[f"{tower}.block"]["rows"])
        every = sum(p.numel() for block in blocks for p in block.parameters())
        assert rows["of the model"] == f"{every / total:.1%}"
    cross = dict(parts["decoder.cross_attention"]["rows"])
    own = sum(p.numel() for p in model.decoder.blocks[0].cross.parameters())
    assert cross["parameters"] == f"{own:,} in each block"
    assert cross["in all blocks"] == f"{own * len(model.decoder.blocks):,}"
    assert cross["of the model"] == f"{own * len(model.decoder.blocks) / total:.1%}"
    norm = dict(parts["decoder.norm_cross"]["rows"])
    own = sum(p.numel() for p in model.decoder.blocks[0].norm_cross.parameters())
    assert norm["parameters"].split()[0] == f"{own:,}"


def test_a_running_one_shows_what_runs_through_it():
    app, source = opened(model="pair-dates", text=TEXT, home_step="4"), len(TEXT) + 1
    found = load_pair(ROOT / "checkpoints/paired/dates")
    mean = write_target(found.model, found.tokenizer, TEXT).cross_patterns.mean((0, 1))[3]
    parts = {n: part["lines"] for n, part in component(app, "glassformer_map")["map"]["parts"].items()}
    keys = [*TEXT.replace(" ", "␣"), "<end>"]
    wanted = {
        "encoder.attention": [f"{source} × {source} weights · all-to-all"],
        "decoder.tokens": ["199", "4 with the start token"],
        "decoder.attention": ["last token sees 4 · causal"],
        "decoder.cross_attention": [
            f"attends to “{keys[mean.argmax()]}”", f"{mean.max():.0%} of weight, all heads"
        ],
    }  # fmt: skip
    assert {name: parts[name] for name in wanted} == wanted
    assert parts["encoder.tokens"][1] == f"{source} tokens, all at once"
    assert parts["memory"][0] == f"{source} vectors × {found.model.config.encoder.d_model}"
    assert parts["decoder.softmax"][0].startswith("“9” ")
    assert not helpers.lacking(
        helpers.said(app, "markdown"),
        f"It reads “{TEXT}” and writes “**1999\\-03\\-03**”. Step 4 of 11 writes **“9”**",
        f": {mean.max():.0%} of the weight",
    )
    assert running_model.TEXT["question both"] in [header.value for header in app.header]


def test_a_family_is_one_click_and_a_model_says_its_own():
    app = opened(model="shakespeare-classic")
    assert app.button_group(key="home_view").options == ["Running model", "Published models"]
    control = app.button_group(key="home_family")
    assert control.options == ["Decoder", "Encoder", "Both"] and control.value == "decoder"
    control.set_value("encoder").run()
    assert app.selectbox(key="subject_model").value == "encoder-blanks"
    assert component(app, "glassformer_livemap")["model"]["causal"] is False
    assert app.query_params["model"] == "encoder-blanks"
    app.button_group(key="home_family").set_value("both").run()
    assert app.selectbox(key="subject_model").value == "pair-language"
    assert component(app, "glassformer_map") is not None and component(app, "glassformer_livemap") is None
    app.selectbox(key="subject_model").select("shakespeare-modern").run()
    assert app.button_group(key="home_family").value == "decoder"
    app.button_group(key="home_family").set_value("both").run()
    app.button_group(key="home_view").set_value("published").run()
    app.button_group(key="home_view").set_value("living").run()
    assert app.selectbox(key="subject_model").value == "pair-language"
    assert not app.exception and not app.error
    assert opened(model="pair-dates").button_group(key="home_family").value == "both"
    app.button_group(key="home_family").set_value(None).run()  # as no browser does, but a forged message
    assert not app.exception and not app.error and app.selectbox(key="subject_model").value == "pair-language"


def test_an_encoder_is_asked_at_its_last_gap():
    """Of the last lanes of the text: what it says there, and nothing about what comes next."""
    text = "HAMLET:\nTo b_ or not to be, th_t is the qu_stion"
    app = opened(model="encoder-blanks", text=text)
    live = component(app, "glassformer_livemap")
    lanes = len(live["picture"]["ids"])
    assert live["picture"]["asked"] == lanes - (len(text) - text.rindex("_"))
    assert live["panel"]["says"] == "token here" and "at this position" in live["say"]["bar"][0]
    told = "For the last gap in “", "**“e” with probability "
    assert not helpers.lacking(helpers.said(app, "markdown"), *told)
    for model, says in (("encoder-blanks", "token here"), ("shakespeare-classic", "next token")):
        live = component(opened(model=model, text="To be"), "glassformer_livemap")
        assert (live["panel"]["says"], live["picture"]["asked"]) == (says, 4)


@pytest.mark.parametrize(
    ("model", "text"),
    [(CLASSIC, "To be, or not to be"), (CLASSIC, "q"), ("shakespeare-modern", "ROMEO:\nO, she d")],
)
def test_the_answer_is_the_models_own(model: str, text: str) -> None:
    app, found = home(text, model), checkpoints.load(ROOT / "checkpoints" / model)
    recording = record(found.model, found.tokenizer.encode(text))
    shares = torch.tensor(recording["logits"][-1]).double().softmax(-1)
    best, shown = int(shares.argmax()), sent(app)["picture"]["words"]
    said = helpers.said(app, "markdown")
    assert f"**“{safe(shown[str(best)])}” with probability {shares[best]:.0%}**" in said
    guesses = logit_lens(found.model, recording).guess[:, -1].tolist()
    settled = max((depth + 1 for depth, guess in enumerate(guesses) if guess != best), default=0)
    if settled:
        before = safe(shown[str(guesses[settled - 1])])
        assert f" Before block {settled - 1}, its top guess was “{before}”." in said
    else:
        assert "The embedding alone already predicts it." in said


def test_without_the_real_model_a_small_one_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models.sources, "available", list)
    app = helpers.opened("app.py")
    data = sent(app)
    assert app.query_params["model"] in (CLASSIC, [CLASSIC])
    letters = "".join(data["picture"]["names"][str(i)] for i in data["picture"]["ids"])
    assert letters == running_model.FIRST_LETTERS.replace("\n", "⏎").replace(" ", "␣")
    assert data["picture"]["whole"]


HOSTILE = ["", "😀🎉", "x" * 10_000, "שלום עולם", "<script>alert(1)</script>", "\n" * 50]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_any_text_is_drawn_or_said(text: str) -> None:
    data = sent(home(text))
    picture = data["picture"]
    assert 1 <= len(picture["ids"]) <= 16
    assert array(picture["stream"], np.int8, 5, len(picture["ids"])).shape[-1] == 16
    read = picture["earlier"] + len(picture["ids"])
    unknown = any(c not in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ \n!$&',-.3:;?" for c in text)
    assert bool(data["notes"]) == (unknown or not text or len(text) > read)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Asks what a browser would, of a page that showed `text`."""
    state: dict[str, Any] = {}
    monkeypatch.setattr(st, "session_state", state)
    monkeypatch.setattr(st, "query_params", {})

    def ask(shown: str, of: str = CLASSIC, /, **what: Any) -> dict[str, Any]:
        state[running_model.SHOWN] = (of, shown)
        monkeypatch.setattr(widgets, "picked", lambda key, name: {"id": "x-1", **what})
        running_model._asked()
        return state

    return ask


@pytest.mark.parametrize(("u", "place"), [(0.0, 0), (0.5, None), (0.999999, -1)])
def test_a_written_token_is_drawn_with_the_readers_settings(asked, monkeypatch, u, place):
    monkeypatch.setattr(running_model.random, "random", lambda: u)
    state = asked("ROMEO:\nO, she d", do="write", temperature=0.5, top_k=4)
    found = checkpoints.load(ROOT / "checkpoints" / CLASSIC)
    ids = found.tokenizer.encode("ROMEO:\nO, she d")
    logits = record(found.model, ids)["logits"][-1].astype(np.float64)
    kept = sorted(np.argsort(-logits)[:4].tolist())  # by id, as the draw goes through them
    powers = np.array([math.exp((logits[i] - logits.max()) / 0.5) for i in kept])
    shares = powers / powers.sum()
    at = place if place is not None else int(np.searchsorted(np.cumsum(shares), u, side="right"))
    token = kept[at]
    assert state[running_model.WROTE]["token"] == token
    assert state[running_model.WROTE]["chance"] == pytest.approx(float(shares[at]), abs=1e-4)
    assert state["text"] == "ROMEO:\nO, she d" + found.tokenizer.decode([token])
    assert state[running_model.HELD] == Held(CLASSIC, state["text"], (*ids, token))


NONSENSE = (
    {"do": "step", "model": "nobody", "step": 3},
    {"do": "step", "model": CLASSIC, "step": "x"},
    {"do": "explode"},
    {"do": "back"},
    {},
)


@pytest.mark.parametrize("what", NONSENSE)
def test_what_makes_no_sense_is_left_undone(asked: Any, what: dict[str, Any]) -> None:
    assert not {"text", "subject_model"} & asked("To be", **what).keys()


def test_typing_is_taken_over_and_cut(asked: Any) -> None:
    assert asked("a", do="type", text="b\nc")["text"] == "b\nc"
    state = asked("a", do="type", text="x" * 10_000)
    assert len(state["text"]) == MAX_TEXT and state["text_length"] == 10_000


def test_training_time_is_the_lapses_and_leads_back(asked: Any) -> None:
    state = asked(ENGLISH["A fact"], do="step", model="timelapse", step=16)
    assert state["subject_model"] == "timelapse" and state["text"] == running_model.REPEATING
    state = asked(running_model.REPEATING, "timelapse", do="back")
    assert state["subject_model"] == CLASSIC and state["text"] == ENGLISH["A fact"]
    mine = asked("my own words", do="step", model="timelapse", step=16)
    assert mine["text"] != running_model.REPEATING


def test_the_course_is_the_shipped_one() -> None:
    lapse = models.lapse_of("timelapse")
    for model, on in ((CLASSIC, False), ("timelapse", True)):
        course = sent(home(running_model.REPEATING, model))["course"]
        assert course["steps"] == list(lapse.steps) and course["losses"] == list(lapse.losses)
        assert course["on"] == on
        assert course["star"] in [[one.layer, one.head] for one in lapse.formed if one.kind == "induction"]
    early, late = (
        sent(home(running_model.REPEATING, "timelapse", step=str(s))) for s in (0, lapse.steps[-2])
    )
    assert early["picture"]["name"] != late["picture"]["name"]
    assert early["picture"]["stream"] != late["picture"]["stream"]


LEADS = [
    ({"part": "attention", "layer": 2, "head": 3, "token": 1}, "inside/attention",
     {"attention_view": "heads", "attention_layer": 2, "attention_head": 3, "attention_query": "1"}),
    ({"part": "attention", "layer": 1, "head": 2, "token": 4, "row": True}, "inside/attention",
     {"attention_view": "steps", "attention_stage": "softmax", "attention_query": "4"}),
    ({"part": "feedforward", "layer": 1, "neuron": 17, "token": 3}, "inside/feedforward",
     {"feedforward_layer": 1, "feedforward_neuron": 17, "feedforward_token": "3"}),
    ({"part": "sum_feedforward", "token": 4, "depth": 3}, "inside/residual",
     {"residual_view": "lens", "residual_token": "4", "residual_cell": "3-4"}),
    ({"part": "softmax", "token": 4, "temperature": 0.3, "top_k": 5}, "output/sampling",
     {"sampling_position": "4", "sampling_temperature": "0.3", "sampling_top_k": "5", "sampling_top_p": "1"}),
    ({"part": "norm2", "name": "blocks.1.norm2"}, "inside/shapes",
     {"shapes_view": "pass", "shapes_step": "of blocks.1.norm2"}),
    ({"part": "attention", "layer": 99, "head": "x"}, "inside/attention", {"attention_layer": 0}),
    ({"part": "no such part"}, "inside/shapes", {"shapes_view": "pass"}),
]  # fmt: skip


@pytest.mark.parametrize(("ask", "page", "wanted"), LEADS)
def test_a_part_leads_to_its_page_with_this_text_and_this_place(asked, ask, page, wanted):
    subject = look(CLASSIC, "To be").subject
    path, leads = target(ask, subject, 40)
    query, held = dict(leads.query), dict(leads.held)
    if "shapes_step" in wanted:
        names = [step.name for step in trace(subject.config, 5)]
        wanted = wanted | {"shapes_step": str(names.index(str(wanted["shapes_step"]).removeprefix("of ")))}
    assert path == f"pages/{page}/page.py"
    assert query["model"] == CLASSIC and query["step"] == "40"
    assert wanted.items() <= (query | held).items() and all(query[key] == str(held[key]) for key in held)
    assert "step" not in target(ask, subject, NEWEST)[1].query
    # A component keeps what was chosen in it: what the address says is told to one that remembers nothing.
    told = {key for key in query if key.endswith(("_token", "_query", "_position"))}
    assert told <= {*leads.forgotten, *held}


def test_what_was_cut_is_said_with_the_letters_that_there_were() -> None:
    """2,000 of 10,000 letters are taken; of their tokens as many as there is room for."""
    state = {"text": ("To be. " * 1500)[:2000], "text_length": 10_500}
    said = " ".join(sent(helpers.opened("app.py", state, model=CLASSIC))["notes"])
    assert not helpers.lacking(
        said,
        "The text has 10,500 characters; the first 2,000 are used.",
        f"They are 2,000 tokens; the first {ROOM} are used",
    )
    assert "The text has 2,000 tokens" not in said


def test_what_was_forgotten_is_said_and_counted(asked: Any) -> None:
    text = "a" * ROOM
    for _ in range(ROOM + 2):
        state = asked(text, do="write", temperature=1.0, top_k=1)
        text = state["text"]
    # the first write finds no room and keeps half of it; half of it is written until it is full again
    gone = (ROOM + 1 - ROOM // 2) * (1 + (ROOM + 1) // (ROOM - ROOM // 2 + 1))
    assert state[HELD].forgotten == gone
    assert len(text) + gone == 2 * ROOM + 2
    (note,) = look(CLASSIC, text).notes
    assert f"{gone:,} tokens of this text so far" in note and f"{ROOM} tokens" in note
    assert look(CLASSIC, "another").notes == ()
