"""The map says what the model is, and nothing on it lies on anything else."""

from functools import cache
from itertools import combinations, product

import pytest

from engine.config import ModelConfig
from engine.ledger import component_parameters
from engine.presets import PRESETS
from pages.start.home.map_drawing import model_map

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


@pytest.mark.parametrize("shape", ["wide", "tall"])
def test_nothing_overlaps_and_nothing_leaves_the_sheet(shape):
    for config in [*VARIANTS, *(preset.model for preset in PRESETS.values())]:
        drawn = draw(config)
        layout = drawn[shape]
        frame = boxes(layout, "frame")[0]
        for a, b in combinations(boxes(layout, "box", "plus"), 2):
            assert apart(a, b), (config, a, b)
        for box in boxes(layout):
            assert box["x"] >= 0
            assert box["y"] >= 0
            assert box["x"] + box["w"] <= layout["width"]
            assert box["y"] + box["h"] <= layout["height"]
            assert box["id"] in drawn["parts"]
            if box["id"] in (
                "norm1",
                "norm2",
                "attention",
                "feedforward",
                "sum_attention",
                "sum_feedforward",
                "sum_both",
            ):
                assert inside(box, frame), (config, box)
        for arrow in layout["arrows"]:
            assert all(0 <= x <= layout["width"] and 0 <= y <= layout["height"] for x, y in arrow["points"])
    if shape == "tall":
        assert layout["width"] <= 372  # a phone's


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
