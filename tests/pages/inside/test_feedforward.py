"""The feed-forward page alone: every view, every model, every option, and links written by strangers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine import checkpoints, corpora
from engine.config import ModelConfig, TrainConfig
from engine.ledger.block import block_of
from engine.model import build
from engine.probe import Recorder
from engine.service.state import RunSpec
from pages.inside.feedforward import contexts as feedforward_contexts
from pages.inside.feedforward import figures
from pages.inside.feedforward.neurons import clicked_neuron
from tests.pages.stage import open_page, view_of
from ui import slow, state, subject
from ui.site import ROOT

PAGE = str(Path(__file__).parents[3] / "pages" / "inside" / "feedforward" / "page.py")


pytestmark = pytest.mark.usefixtures("manager")


@pytest.fixture
def short_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A corpus that is there on every machine, and short."""
    text = "ROMEO:\nBut, soft! what light through yonder window breaks?\n" * 200
    monkeypatch.setattr(corpora, "shakespeare_path", lambda: Path("here"))
    monkeypatch.setattr(state, "corpus", lambda name: corpora.from_text(text, name))
    feedforward_contexts._validation.clear()
    slow._server = slow.Jobs()


def opened(**query: str) -> AppTest:
    return open_page(AppTest.from_file(PAGE, default_timeout=60), **query)


def sentences(page: AppTest) -> str:
    return " | ".join(
        str(e.value)
        for kind in (page.error, page.warning, page.info, page.caption, page.markdown, page.subheader)
        for e in kind
    )


def test_it_opens_on_the_most_active_neuron_and_finds_its_contexts(short_corpus):
    page = opened(measure="true")
    layer, neuron = (
        page.number_input(key="feedforward_layer").value,
        page.number_input(key="feedforward_neuron").value,
    )
    assert f"Neuron {neuron} of layer {layer} looks for" in sentences(page)
    first = page.dataframe[0].value.iloc[0]
    assert (first["layer"], first["neuron"]) == (layer, neuron)
    assert "From 1,152 tokens read, 128 at a time" in sentences(page)
    assert (page.query_params["feedforward_layer"], page.query_params["feedforward_neuron"]) == (
        str(layer),
        str(neuron),
    )


def test_what_a_neuron_looks_for_and_raises_is_what_its_activations_say(short_corpus):
    """Nine windows of the corpus are read here by whole passes; of 16 neighbours the strongest counts."""
    layer, neuron = 3, 71
    known = checkpoints.load(ROOT / "checkpoints" / "shakespeare-classic")
    text = ("ROMEO:\nBut, soft! what light through yonder window breaks?\n" * 200)[-1180:]
    ids = np.array(known.tokenizer.encode(text)[:1152])
    activations = []
    for window in ids.reshape(9, 128):
        recorder = Recorder({f"blocks.{layer}.ffn_post"})
        with torch.no_grad():
            known.model(torch.tensor(window)[None], recorder)
        activations.append(recorder[f"blocks.{layer}.ffn_post"][0, :, neuron].double().numpy())
    strongest = np.concatenate(activations).reshape(72, 16)
    places = 16 * np.arange(72) + strongest.argmax(1)
    eight = places[np.argsort(-strongest.max(1), kind="stable")[:8]]
    (token, count), *_ = Counter(ids[eight].tolist()).most_common()

    column = known.model.blocks[layer].ffn.w_out.weight[:, neuron].detach().double()
    gain = known.model.norm_final.gain.detach().double()
    scores = known.model.output_matrix.detach().double() @ ((column - column.mean()) * gain)
    letters = [known.tokenizer.decode([i]) for i in [token, *scores.topk(3).indices.tolist()]]
    liked, *raised = (letter.replace(" ", "␣").replace("\n", "⏎") for letter in letters)
    places_said = "all 8 of its strongest places" if count == 8 else f"**{count}** of its 8 strongest places"
    told = (
        f"looks for **“{liked}”**: {places_said} are there, up to **{strongest.max():.2f}**. What it writes"
    )
    said = sentences(opened(feedforward_layer=str(layer), feedforward_neuron=str(neuron)))
    assert f"Neuron 71 of layer 3 {told} raises “{raised[0]}”, “{raised[1]}”, “{raised[2]}”." in said


def test_a_link_chooses_the_neuron(short_corpus):
    query = {
        "layer": "1",
        "neuron": "17",
        "rows": "all",
        "span": "all",
        "view": "Neurons",
        "token": "3",
        "norm": "false",
    }
    page = opened(measure="true", **{f"feedforward_{name}": value for name, value in query.items()})
    assert (
        "Neuron 17 of layer 1" in sentences(page)
        and "(position 3)" in sentences(page)
        and "No norm is applied." in sentences(page)
    )


@pytest.mark.parametrize("value", ["-1", "9" * 30, "abc", "<b>", "1.5", "nan", ""])
def test_a_neuron_that_is_not_there_falls_back(short_corpus, value):
    page = opened(
        **{
            f"feedforward_{name}": value
            for name in ("layer", "neuron", "rows", "span", "view", "token", "norm", "side")
        }
    )
    assert "euron " in sentences(page)


def test_a_gated_model_has_two_signs_and_a_smaller_layer(short_corpus):
    page = opened(model="shakespeare-modern", feedforward_neuron="511", feedforward_layer="3")  # it has 344
    assert page.number_input(key="feedforward_neuron").value < 344
    assert page.button_group(key="feedforward_side").value == "strongest"
    for side in ("highest", "lowest"):
        page.button_group(key="feedforward_side").set_value(side).run()
        assert not page.exception
        (drawn,) = [e.proto.body for e in page.get("html") if "gf-contexts" in e.proto.body]
        assert drawn.count("<b>-") == (8 if side == "lowest" else 0)


def test_the_neuron_follows_when_the_model_becomes_a_smaller_one(short_corpus):
    page = opened(feedforward_neuron="500", feedforward_layer="3")
    page.selectbox(key="subject_model").select("shakespeare-modern").run()
    assert not page.exception and page.number_input(key="feedforward_neuron").value < 344


def test_without_the_corpus_the_text_is_searched(monkeypatch):
    monkeypatch.setattr(corpora, "shakespeare_path", lambda: None)
    feedforward_contexts._validation.clear()
    page = opened(measure="true")
    assert "Tiny Shakespeare, which this model was trained on, is not on this server" in sentences(page)
    assert "tokens read" in sentences(page)


def test_clicks_are_read_with_care():
    assert clicked_neuron("3000344", 4, 512) == (3, 344)
    assert clicked_neuron("3000344", 3, 512) is None and clicked_neuron("3000344", 4, 344) is None
    for bad in (None, "", "-1", "1e3", "[1]", "9" * 40):
        assert clicked_neuron(bad, 4, 512) is None


def test_labels_are_made_distinct_without_being_changed():
    names = figures.distinct(["e", "e", "<b>", "e"])
    assert len(set(names)) == 4 and [n.strip("\u200b\u200c") for n in names] == ["e", "e", "&lt;b&gt;", "e"]


def test_signed_colours_are_symmetric_and_others_start_at_zero():
    values = np.array([[-0.5, 2.0]], dtype=np.float32)
    signed, plain = (figures.overview(values, (0, 0), 2.0, signed=s).data[0] for s in (True, False))
    assert (signed.zmin, signed.zmax) == (-2.0, 2.0) and (plain.zmin, plain.zmax) == (0.0, 2.0)


def test_corpus_text_never_becomes_html(short_corpus, monkeypatch):
    text = "<img src=x onerror=alert(1)>&amp;" * 400
    monkeypatch.setattr(state, "corpus", lambda name: corpora.from_text(text, name))
    monkeypatch.setattr("ui.text.tokens.show_bytes", lambda t: "<i>" + t.decode())
    subject._vocabulary.clear()
    feedforward_contexts._validation.clear()
    slow._server = slow.Jobs()
    page = opened()
    subject._vocabulary.clear()
    (drawn,) = [e.proto.body for e in page.get("html") if "gf-contexts" in e.proto.body]
    assert "<i>" not in drawn and "&lt;i&gt;" in drawn


# The other views, and every kind of model -------------------------------------------------------

ODD = [{"ffn": kind} for kind in ("relu", "relu2", "gelu", "gelu_tanh", "swiglu", "geglu", "none")] + [
    {"wiring": "post"},
    {"wiring": "parallel"},
    {"wiring": "none"},
    {"norm": "none"},
    {"norm": "rmsnorm", "norm_gain": False},
    {"mixer": "none"},
    {"mixer": "mean"},
    {"mixer": "none", "ffn": "none", "norm": "none", "position": "none"},
    {"causal": False, "vocab_size": 91},
    {"tie_embeddings": False, "ffn_bias": True},
    {"d_ff": 1, "n_layers": 1},
    {"n_kv_heads": 1, "position": "rope"},
]


@pytest.mark.parametrize("fields", ODD, ids=str)
def test_every_model_in_every_view(manager, fields):
    config = ModelConfig(
        **{"vocab_size": 90, "context": 16, "d_model": 16, "n_layers": 2, "n_heads": 2, **fields}
    )
    run = "ff-" + "-".join(f"{k}{v}" for k, v in fields.items())
    manager.views[run] = view_of(
        RunSpec(config, TrainConfig(steps=40), "text", "abc " * 20, name=run), run, "finished", 40
    )
    page = opened(model=f"run-{run}", measure="true", words="true")
    if fields.get("ffn") == "none":
        assert "has no feed-forward networks" in sentences(page) and not page.dataframe
        assert "What you see" not in sentences(page)
    else:
        assert "is not a corpus of this server" in sentences(page)
        assert "tokens read" in sentences(page) and "What you see" in sentences(page)
    for view in ("functions", "parameters"):
        page.get_by_key("feedforward_view").set_value(view).run()
        assert not page.exception and page.button_group(key="feedforward_view").value == view


def test_a_run_reads_the_corpus_only_when_asked(manager, short_corpus):
    """The scrubber would otherwise read it anew at each step."""
    config = ModelConfig(vocab_size=90, context=16, d_model=16, n_layers=2, n_heads=2)
    manager.views["reads"] = view_of(
        RunSpec(config, TrainConfig(steps=40), "shakespeare", name="reads"), "reads", "finished", 40
    )
    page = opened(model="run-reads", measure="true")
    assert "Not read yet" in sentences(page)
    page.button(key="feedforward_read").click().run()
    assert not page.exception and "tokens read, 16 at a time" in sentences(page)
    page.number_input(key="feedforward_neuron").set_value(3).run()
    assert "feedforward_read" not in {button.key for button in page.button} and "tokens read" in sentences(
        page
    )  # known for all neurons of the layer
    page = opened(model="run-reads", step="0")
    assert "Not read yet" in sentences(page)


@pytest.mark.parametrize("value", ["", "abc", "<b>", "-1", "9" * 30, "1e9", "nan"])
@pytest.mark.parametrize("view", ["Activation functions", "Parameters"])
def test_the_other_views_take_any_link(view, value):
    keys = ("functions", "reach", "inputs", "gate", "form", "width", "ratio")
    opened(feedforward_view=view, **{f"feedforward_{key}": value for key in keys})


def test_functions_and_gates_can_be_chosen():
    page = opened(feedforward_view="Activation functions", model="shakespeare-modern", measure="true")
    assert "bends by **SiLU, on the gate of SwiGLU**" in sentences(page) and "0.000473" in sentences(page)
    for key, values in {
        "feedforward_gate": ("geglu", "swiglu"),
        "feedforward_form": ("slices", "map"),
    }.items():
        for value in values:
            page.button_group(key=key).set_value(value).run()
            assert not page.exception
    page.button_group(key="feedforward_functions").set_value([]).run()
    assert not page.exception
    page.selectbox(key="feedforward_inputs").select("3").run()
    assert not page.exception
    page.selectbox(key="subject_model").select("shakespeare-classic").run()
    assert "bends by **GELU**" in sentences(page)


def test_the_numbers_of_the_unit_are_right():
    page = opened(feedforward_view="Parameters", hand="true")
    assert [m.value for m in page.metric] == ["1,048,576", "2,097,152", "2,048", "3,147,776"]
    assert "66.62%" in sentences(page) and "2,097,152" in sentences(page)
    for width, plain, gated in ((512, 8 * 512**2, 3 * 512 * 1368), (768, 8 * 768**2, 8 * 768**2)):
        page.select_slider(key="feedforward_width").set_value(width).run()
        assert f"{plain:,}" in sentences(page) and f"{gated:,}" in sentences(page)
        rounding = f"+{gated - plain:,}" if gated > plain else "±0"
        assert f"{rounding} by rounding up" in sentences(page)
    for ratio in (0.5, 8.0):
        page.select_slider(key="feedforward_ratio").set_value(ratio).run()
        assert not page.exception


def test_a_block_is_what_the_model_has():
    config = ModelConfig(d_model=32, n_layers=3, n_heads=2, ffn="swiglu", norm="rmsnorm").resolved()
    counts = block_of(config)
    own = build(config, device="meta").blocks[0]
    assert counts.total == sum(p.numel() for p in own.parameters())
    assert counts.feedforward == sum(p.numel() for p in own.ffn.parameters())
