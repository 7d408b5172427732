"""The attention page alone: every view, every option once, every kind of model, and links that make no
sense.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine.checkpoints import Checkpoint
from engine.measure.heads import head_numbers
from engine.tokenizers.char import CharTokenizer
from pages.inside.attention import shared
from pages.inside.attention.numbers import standing_out
from tests.engine.helpers import loud, tiny
from tests.pages.stage import StageManager, open_page
from ui import models

FOLDS = ("measure", "hand", "words")
PAGE = str(Path(__file__).parents[3] / "pages" / "inside" / "attention" / "page.py")
VIEWS = ("Heads", "Steps", "Switch off", "Mask", "Numbers", "√d_k", "Q, K", "Sharing")
VARIANTS: list[dict[str, Any]] = [
    {"wiring": "post"},
    {"wiring": "parallel"},
    {"wiring": "none"},
    {"norm": "none"},
    {"mixer": "none"},
    {"mixer": "mean"},
    {"mixer": "similarity"},
    {"mixer": "shared_qk"},
    {"ffn": "none"},
    {"output_projection": False},
    {"tie_embeddings": False},
    {"n_kv_heads": 2},
    {"n_kv_heads": 1},
    {"causal": False, "vocab_size": 12},
    {"qk_norm": True, "position": "rope"},
    {"position": "alibi"},
    {"position": "t5"},
    {"position": "none"},
    {"position": "sinusoidal"},
    {"attention_bias": True},
    {"n_layers": 1, "n_heads": 1},
    {"n_layers": 3, "n_heads": 16, "d_head": 2},
    {"mixer": "mean", "position": "alibi"},
]


def only_this(monkeypatch: pytest.MonkeyPatch, found: Checkpoint, name: str) -> None:
    """The bar offers one model, under that name."""
    monkeypatch.setattr(models, "SHIPPED", {})
    monkeypatch.setattr(models, "LAPSES", {})
    monkeypatch.setattr(models, "TASKS", {})
    monkeypatch.setattr(models.families, "offered", list)
    monkeypatch.setattr(models, "TRAINABLE", [name])
    monkeypatch.setattr(models, "_untrained", lambda preset: found)
    monkeypatch.setattr(models.sources, "available", list)
    monkeypatch.setattr(models, "title_of", lambda name, run=None: name)


@pytest.fixture
def variant(
    monkeypatch: pytest.MonkeyPatch, manager: StageManager, request: pytest.FixtureRequest
) -> dict[str, Any]:
    """The model on the page is a tiny one with these fields; its alphabet has eleven characters."""
    fields: dict[str, Any] = request.param
    made = loud(tiny(**fields), factor=4.0).requires_grad_(False)
    found = Checkpoint(made, made.config, CharTokenizer("abcdefghij "), {})
    # A name of its own, so that nothing that was cached of another variant is shown.
    only_this(monkeypatch, found, str(fields))
    return fields


def opened(**query: str) -> AppTest:
    return open_page(AppTest.from_file(PAGE, default_timeout=60), **query)


def sentences(page: AppTest) -> str:
    return " | ".join(
        str(e.value)
        for kind in (page.error, page.warning, page.info, page.caption, page.markdown)
        for e in kind
    )


def seen(page: AppTest, key: str) -> bool:
    """Whether a component with this key was drawn."""
    found: list[Any] = []

    def walk(block: Any) -> None:
        for child in getattr(block, "children", {}).values():
            found.append(child)
            walk(child)

    walk(page.main)
    return any(key in str(getattr(child, "proto", "")) for child in found)


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_opens_by_its_link_and_draws_only_itself(manager, view):
    page = opened(attention_view=view)
    drawn = {
        "Heads": "attention_grid",
        "Steps": "attention_stage_plot",
        "Switch off": "attention_tops",
        "Mask": "attention_mask_curves",
        "Numbers": "attention_numbers",
        "√d_k": "attention_scaling_example",
        "Q, K": "attention_self_raw",
        "Sharing": "attention_shared",
    }
    assert [name for name, key in drawn.items() if seen(page, key)] == [view]
    answers = [m.value for m in page.markdown if "**" in m.value and "$" not in m.value]
    assert any(char.isdigit() for char in answers[-1]), "the answer holds a number"


@pytest.mark.parametrize(
    ("old", "key"),
    [("Step by step", "steps"), ("Switch things off", "switches"), ("Shared keys", "shared-keys")],
)
def test_old_titles_in_links_still_name_their_view(manager, old, key):
    assert opened(attention_view=old).session_state["attention_view"] == key


@pytest.mark.parametrize("variant", VARIANTS, ids=str, indirect=True)
def test_every_view_takes_every_model(variant):
    page = opened(attention_view="heads", text="abc abca bc")
    for view in ("heads", "steps", "switches", "mask", "numbers", "shared-keys"):
        page.get_by_key("attention_view").set_value(view).run()
        assert not page.exception, view
        for fold in FOLDS:
            page.session_state[fold] = True
        page.run()
        assert not page.exception and not page.error, view
        if variant.get("mixer") == "none" and view != "shared-keys":
            assert "has no mixer" in sentences(page) and "What you see" not in sentences(page)
        else:
            assert "What you see" in sentences(page)


@pytest.mark.parametrize("variant", [{}], ids=str, indirect=True)
def test_every_view_takes_one_token(variant):
    page = opened(attention_view="heads", text="a")
    assert not page.error
    for view in ("steps", "switches", "mask", "numbers", "scaling", "self", "shared-keys"):
        page.get_by_key("attention_view").set_value(view).run()
        for fold in FOLDS:
            page.session_state[fold] = True
        page.run()
        assert not page.exception and not page.error, view


@pytest.mark.parametrize("variant", [{"causal": False, "vocab_size": 12}], ids=str, indirect=True)
def test_an_encoder_moves_no_names_and_says_so(variant, monkeypatch):
    sent: dict[str, Any] = {}
    monkeypatch.setattr(shared, "mounted", lambda name: lambda **rest: sent.update(rest["data"]))
    page = opened(attention_view="heads", text="abc abca bc", attention_sort="name_mover")
    assert sent["order"] == list(range(8)) and set(sent["scores"]) == {""} and not sent["triangle"]
    page.get_by_key("attention_view").set_value("numbers").run()
    page.get_by_key("attention_number").set_value("Name mover").run()
    assert not page.exception and "its last token predicts nothing" in sentences(page)


@pytest.mark.parametrize(
    ("view", "key", "options"),
    [
        ("Heads", "attention_as", ("Heatmap", "Arcs")),
        ("Heads", "attention_layer", ("0", "1", "2", "3")),
        (
            "Heads",
            "attention_sort",
            (
                "kind",
                "word_start",
                "broad",
                "previous",
                "first",
                "induction",
                "duplicate",
                "name_mover",
                "layer",
            ),
        ),
        ("Heads", "attention_strong", ("true",)),
        ("Steps", "attention_stage", ("q, k, v", "q·k", "÷ √d", "mask", "softmax", "· v", "W_O")),
        ("Steps", "attention_head", ("0", "3")),
        ("Switch off", "attention_mask", ("false",)),
        ("Switch off", "attention_scaled", ("false",)),
        ("Switch off", "attention_position", ("false",)),
        ("Switch off", "attention_how", ("zero", "its mean")),
        ("Switch off", "attention_order", ("as written", "shuffled", "reversed")),
        ("Switch off", "attention_each", ("true",)),
        (
            "Numbers",
            "attention_number",
            (
                "Entropy",
                "Relative entropy",
                "Distance",
                "Previous token",
                "First token",
                "Induction",
                "Duplicate token",
                "Start of the word",
                "Own word",
                "Blanks and punctuation",
                "Same token",
                "Itself",
                "Name mover",
            ),
        ),
        ("√d_k", "attention_scale", ("none", "1/√d_k", "1/d_k", "own")),
        ("Shared keys", "attention_sizes", ("this model", "LLaMA-2 70B", "LLaMA-2 7B", "GPT-2 small", "own")),
        ("Shared keys", "attention_bytes", ("float32", "16 bits", "8 bits")),
    ],
)
def test_every_option_draws(manager, view, key, options):
    """The last one from a link, the others by a click; and a number that is deselected is no error."""
    page = opened(attention_view=view, measure="true", **{key: options[-1]})
    held = page.session_state[key]
    assert str(held).lower() == options[-1].lower()
    for option in options[:-1]:
        page.get_by_key(key).set_value(int(option) if isinstance(held, int) else option).run()
        assert not page.exception, option


def test_the_switches_say_what_changed(manager):
    page = opened(attention_view="switches", measure="true")
    assert page.session_state["attention_off"] == ["0.0", "0.1", "0.2", "0.3"], "something is off at first"
    assert "Without the heads of layer 0, the loss on this text goes from" in sentences(page)
    assert "As an example the heads of layer 0 are off" in sentences(page)
    page.button(key="attention_off_none").click().run()
    assert "nothing has changed yet" in sentences(page) and "Everything is on" in sentences(page)
    assert "As an example" not in sentences(page)
    assert [m.value for m in page.metric][1:] == ["0.000 nats", "0.000 nats"]
    page.button(key="attention_off_all").click().run()
    assert not page.exception and "Every head is off" in sentences(page) and "b_O" in sentences(page)
    assert page.session_state["attention_off"] == [f"{i}.{h}" for i in range(4) for h in range(4)]
    assert float(page.metric[1].value.split()[0]) > 0.1
    page.button(key="attention_off_1").click().run()
    assert page.session_state["attention_off"] == ["1.0", "1.1", "1.2", "1.3"]
    page.button(key="attention_off_none").click().run()
    assert "nothing has changed yet" in sentences(page)


def test_a_chosen_head_and_switched_heads_survive_another_view(manager):
    page = opened(attention_view="switches", attention_off="1.2")
    assert page.session_state["attention_off"] == ["1.2"]
    for view in ("shared-keys", "switches"):
        page.get_by_key("attention_view").set_value(view).run()
        assert not page.exception
    assert page.session_state["attention_off"] == ["1.2"]


@pytest.mark.parametrize(
    "variant", [{"attention_bias": False, "n_layers": 1, "n_heads": 2}], ids=str, indirect=True
)
def test_a_link_to_a_head_that_this_model_does_not_have_falls_back(variant):
    page = opened(attention_layer="4", attention_head="4", measure="true")
    assert "`blocks.0.pattern[0]`" in sentences(page)
    opened(attention_view="switches", attention_off="4.4")


def test_shared_keys_that_do_not_divide_are_explained(manager):
    page = opened(attention_view="Shared keys", attention_sizes="own", attention_heads="12", attention_kv="5")
    assert "5 does not divide 12" in sentences(page) and "values of **4** heads" in sentences(page)


def test_seventy_billion_is_counted_right(manager):
    page = opened(attention_view="Shared keys", attention_sizes="LLaMA-2 70B")
    assert (
        "grouped-query" in sentences(page)
        and "320 KiB for each token" in sentences(page)
        and "87.5% less" in sentences(page)
    )


@pytest.mark.parametrize(
    "query",
    [
        {"attention_view": "<script>"},
        {"attention_layer": "99"},
        {"attention_layer": "-1"},
        {"attention_head": "x"},
        {"attention_as": "Pie"},
        {"attention_sort": "fame", "attention_strong": "very"},
        {"attention_view": "switches", "attention_off_layer": "77"},
        {"attention_view": "Steps", "attention_query": "10000"},
        {"attention_view": "Steps", "attention_key": "9999", "attention_stage": "no"},
        {"attention_view": "Steps", "attention_query": "3", "attention_key": "5"},
        {"attention_view": "Switch off", "attention_off": "9.9"},
        {
            "attention_view": "Switch things off",
            "attention_off": "1.1,x,<b>",
            "attention_how": "huh",
            "attention_order": "up",
        },
        {"attention_view": "Switch off", "attention_order": "shuffled", "attention_shuffle": "-5"},
        {"attention_view": "Switch off", "attention_at": "-1", "attention_mask": "perhaps"},
        {"attention_view": "Numbers", "attention_number": "IQ"},
        {"attention_view": "mask", "attention_mask_step": "7"},
        {"attention_view": "self", "attention_width": "3", "attention_self_seed": "x"},
        {"attention_view": "√d_k", "attention_dk": "100000"},
        {"attention_view": "√d_k", "attention_dk": "0"},
        {"attention_view": "√d_k", "attention_seed": "-1"},
        {"attention_view": "√d_k", "measure": "true", "attention_scale": "own", "attention_exponent": "99"},
        {"attention_view": "√d_k", "hand": "true", "attention_zeros": "0"},
        {
            "attention_view": "Shared keys",
            "attention_sizes": "own",
            "attention_heads": "1000000",
            "attention_kv": "0",
        },
    ],
    ids=str,
)
def test_links_that_make_no_sense_still_open(manager, query):
    opened(**query)


def test_heads_that_stand_out_are_named():
    shifted = np.eye(8, k=-1, dtype=np.float32)
    shifted[0, 0] = 1
    sink = np.zeros((8, 8), np.float32)
    sink[:, 0] = 1
    patterns = np.stack(
        [
            np.stack([shifted, sink]),
            np.stack([np.tril(np.ones((8, 8), np.float32)) / np.arange(1, 9)[:, None]] * 2),
        ]
    )
    lines = standing_out(head_numbers(patterns, np.tri(8, dtype=bool)), causal=True)
    assert any("Layer 0, head 0 (100%)" in line and "previous token" in line for line in lines)
    assert any("ayer 0, head 1 (100%)" in line and "first token" in line for line in lines)
    assert any("Layer 1, head 0" in line and "most evenly (100%" in line for line in lines)


@pytest.mark.parametrize("value", ["", "no such number"])
def test_no_number_chosen_is_the_first(manager, value):
    page = opened(attention_view="numbers", attention_number=value)
    assert not page.error and "How widely the weight is spread" in sentences(page)
    page.get_by_key("attention_number").set_value(None).run()
    assert not page.exception and not page.error and seen(page, "attention_numbers")
    assert "How widely the weight is spread" in sentences(page)


def answer_of(page: AppTest) -> str:
    """The sentence of a view: the one with bold numbers that its questions and folds have not."""
    return next(m.value for m in page.markdown if "**" in m.value and "%**" in m.value)


@pytest.mark.parametrize("width", [8, 64, 512])
def test_the_answer_about_the_square_root_is_what_the_bars_show(drawn, width):
    said = answer_of(opened(attention_view="scaling", attention_dk=str(width)))
    keys = ("attention_scaling_example", "attention_scaling_divided")
    plain, scaled = (np.array(drawn[key].traces[0]["y"]) for key in keys)
    assert plain.sum() == pytest.approx(1) == scaled.sum()
    # Of softmax(s) the logarithm is s up to a constant: divided by the square root, the other softmax.
    logs = np.log(plain) / np.sqrt(width)
    assert np.allclose(np.exp(logs) / np.exp(logs).sum(), scaled, atol=1e-5)
    assert f"one key takes **{plain.max():.1%}** of the weight" in said
    assert f"at any width, and it takes **{scaled.max():.1%}**" in said
    assert f"adds up {width} products" in said and f"√{width} = {np.sqrt(width):.1f}" in said
    assert f"a factor e^{np.sqrt(width):.1f}:" in said


@pytest.mark.parametrize(("asked", "width"), [("300", 256), ("400", 512), ("3", 2), ("x", 64), ("-3", 64)])
def test_a_link_to_any_width_leads_to_the_nearest_power_of_two(asked, width):
    assert f"A score adds up {width} products" in answer_of(
        opened(attention_view="scaling", attention_dk=asked)
    )


def test_the_heads_of_the_answer_add_up():
    said = answer_of(opened(attention_view="heads"))
    counted = said.partition(". Head ")[0]
    numbers = [int(n) for n in re.findall(r"\d+", counted)]
    assert numbers[0] == 16 == sum(numbers[1:])
