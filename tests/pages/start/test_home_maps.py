"""Home's maps of a decoder and of an encoder-decoder: they say what the model is, and nothing lies on anything."""

import json
from functools import cache
from itertools import combinations, product
from pathlib import Path

import pytest

from engine.checkpoints_paired import load_pair
from engine.config import ModelConfig
from engine.ledger import component_parameters, ledger_of
from engine.measure.crossing import crossing
from engine.presets import ENCODER_DECODERS, PRESETS
from engine.seq2seq import build_pair
from pages.start.home import words
from pages.start.home.map_drawing import model_map
from pages.start.home.map_pair import pair_map
from tests.pages import helpers
from ui import site

VARIANTS = [
    ModelConfig(
        wiring=wiring,
        position=position,
        norm=norm,
        mixer=mixer,
        ffn=ffn,
        tie_embeddings=position == "learned",
    )
    for wiring, position, norm, (mixer, ffn) in product(
        ("pre", "post", "parallel", "none"),
        ("learned", "rope"),
        ("layernorm", "none"),
        (("attention", "gelu"), ("none", "gelu"), ("attention", "none"), ("none", "none")),
    )
]
draw = cache(model_map)


def boxes(layout, *kinds):
    return [box for box in layout["boxes"] if not kinds or box["kind"] in kinds]


def inside(a, b):
    return (
        b["x"] <= a["x"]
        and a["x"] + a["w"] <= b["x"] + b["w"]
        and b["y"] <= a["y"]
        and a["y"] + a["h"] <= b["y"] + b["h"]
    )


def apart(a, b):
    return (
        a["x"] + a["w"] <= b["x"]
        or b["x"] + b["w"] <= a["x"]
        or a["y"] + a["h"] <= b["y"]
        or b["y"] + b["h"] <= a["y"]
    )


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


def test_wirings_differ_where_they_should():
    pre, post, parallel, none = (
        model_map(ModelConfig(wiring=w))["wide"] for w in ("pre", "post", "parallel", "none")
    )
    sums = [
        {box["id"] for box in boxes(layout, "plus")} - {"sum_position"}
        for layout in (pre, post, parallel, none)
    ]
    assert sums == [
        {"sum_attention", "sum_feedforward"},
        {"sum_attention", "sum_feedforward"},
        {"sum_both"},
        set(),
    ]
    assert "norm_final" not in {box["id"] for box in post["boxes"]}
    norm, plus = (
        next(box for box in post["boxes"] if box["id"] == name) for name in ("norm1", "sum_attention")
    )
    assert (
        norm["x"] > plus["x"] and abs(norm["y"] + norm["h"] / 2 - plus["y"] - plus["h"] / 2) < 1
    )  # on the road, after the sum


def test_tie_and_mask_are_shown():
    tied, untied = model_map(ModelConfig(tie_embeddings=True)), model_map(ModelConfig(tie_embeddings=False))
    assert [a["kind"] for a in tied["wide"]["arrows"]].count("tie") == 1
    assert "tie" not in [a["kind"] for a in untied["tall"]["arrows"]]
    assert "causal mask" in model_map(ModelConfig())["parts"]["attention"]["lines"]
    assert not any(
        "causal" in line for line in model_map(PRESETS["bert-base"].model)["parts"]["attention"]["lines"]
    )


ROOT = Path(__file__).parents[3]
TEXT = "the 3rd of March 1999"


pytestmark = pytest.mark.usefixtures("manager")


def opened(**query):
    return helpers.opened("app.py", **query)


def component(app, name):
    found = [e for e in app.get("bidi_component") if e.proto.component_name.endswith(name)]
    return json.loads(found[0].proto.json) if found else None


@cache
def drawn(name):
    return pair_map(ledger_of(ENCODER_DECODERS[name]), site.explanations())


def of(layout, kind):
    return [box for box in layout["boxes"] if box["kind"] == kind]


@pytest.mark.parametrize("name", list(ENCODER_DECODERS))
def test_parts_hold_what_the_built_model_holds(name):
    """Counted on the tensors of one block, on the meta device."""
    preset = ENCODER_DECODERS[name]
    model, parts = build_pair(preset.pair, device="meta"), drawn(name)["parts"]
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
    assert (
        norm["parameters"].split()[0]
        == f"{sum(p.numel() for p in model.decoder.blocks[0].norm_cross.parameters()):,}"
    )


@pytest.mark.parametrize("name", list(ENCODER_DECODERS))
def test_a_published_one_is_drawn_and_counted(name):
    app, preset = opened(preset=name), ENCODER_DECODERS[name]
    total = sum(p.numel() for p in build_pair(preset.pair, device="meta").parameters())
    assert f"{total:,} parameters" in component(app, "glassformer_map")["alt"]
    said = " ".join(text.value for text in app.markdown)
    c = preset.pair
    assert f"**{total:,} parameters**" in said and "outside this map" not in said
    assert f"in the {c.encoder.n_layers} + {c.decoder.n_layers} blocks." in said
    assert name in app.pills(key="preset").options


def test_a_running_one_shows_what_runs_through_it():
    app = opened(model="pair-dates", text=TEXT, home_step="4")
    found = load_pair(ROOT / "checkpoints/paired/dates")
    other = crossing(found.model, found.tokenizer, TEXT)
    mean = other.patterns.mean((0, 1))[3]
    parts = component(app, "glassformer_map")["map"]["parts"]
    source = len(TEXT) + 1
    assert parts["encoder.tokens"]["lines"][1] == f"{source} tokens, all at once"
    assert parts["encoder.attention"]["lines"] == [f"{source} × {source} weights · all see all"]
    assert parts["memory"]["lines"][0] == f"{source} vectors × {found.model.config.encoder.d_model}"
    assert parts["decoder.tokens"]["lines"] == ["199", "4 with the sign to begin"]
    assert parts["decoder.attention"]["lines"] == ["the last sees 4 · back only"]
    keys = [*TEXT.replace(" ", "␣"), "<end>"]
    looked = f"looks at “{keys[mean.argmax()]}”"
    assert parts["decoder.cross_attention"]["lines"] == [looked, f"{mean.max():.0%} of all heads' weight"]
    assert parts["decoder.softmax"]["lines"][0].startswith("“9” ")
    said = " ".join(text.value for text in app.markdown)
    assert f"It reads “{TEXT}” and writes “**1999\\-03\\-03**”. Step 4 of 11 writes **“9”**" in said
    assert f": {mean.max():.0%} of all" in said
    assert words.QUESTIONS["both"] in [header.value for header in app.header]


def test_a_family_is_one_click():
    app = opened(model="shakespeare-classic")
    control = app.button_group(key="home_family_decoder")
    assert control.options == list(words.FAMILIES.values())
    control.set_value("encoder").run()
    assert app.selectbox(key="subject_model").value == "encoder-blanks"
    assert component(app, "glassformer_livemap")["model"]["causal"] is False
    app.button_group(key="home_family_encoder").set_value("both").run()
    assert app.selectbox(key="subject_model").value == "pair-language"
    assert component(app, "glassformer_map") is not None and component(app, "glassformer_livemap") is None
    assert not app.exception and not app.error


def test_an_encoder_is_asked_at_its_last_gap():
    """Of the last lanes of the text: what it says there, and nothing about what comes next."""
    text = "HAMLET:\nTo b_ or not to be, th_t is the qu_stion"
    app = opened(model="encoder-blanks", text=text)
    sent = component(app, "glassformer_livemap")
    lanes = len(sent["picture"]["ids"])
    assert sent["picture"]["asked"] == lanes - (len(text) - text.rindex("_"))
    assert sent["panel"]["says"] == "token here" and "could stand there" in sent["say"]["bar"][0]
    said = " ".join(words.value for words in app.markdown)
    assert "In the last gap of “" in said and "**“e” with " in said
    assert (
        component(opened(model="encoder-blanks", text="To be"), "glassformer_livemap")["picture"]["asked"]
        == 4
    )
    decoder = component(opened(model="shakespeare-classic", text="To be"), "glassformer_livemap")
    assert decoder["panel"]["says"] == "next token" and decoder["picture"]["asked"] == 4
