"""The feed-forward page alone: every view, every model, every option, and links written by strangers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine import corpora
from engine.probe import Recorder
from pages.inside.feedforward import contexts as feedforward_contexts
from pages.inside.feedforward.neurons import clicked_neuron
from tests.pages.helpers import opened, said
from tests.pages.inside.models import KINDS, run_of, shipped
from ui import slow, state, subject

PAGE = "inside/feedforward"

pytestmark = pytest.mark.usefixtures("manager")


@pytest.fixture
def short_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A corpus that is there on every machine, and short."""
    text = "ROMEO:\nBut, soft! what light through yonder window breaks?\n" * 200
    monkeypatch.setattr(corpora, "shakespeare_path", lambda: Path("here"))
    monkeypatch.setattr(state, "corpus", lambda name: corpora.from_text(text, name))
    feedforward_contexts._validation.clear()
    slow._server = slow.Jobs()


def feedforward(**query: str) -> AppTest:
    return opened(PAGE, **query)


def test_it_opens_on_the_most_active_neuron_and_finds_its_contexts(short_corpus):
    page = feedforward(measure="true")
    layer, neuron = (
        page.number_input(key="feedforward_layer").value,
        page.number_input(key="feedforward_neuron").value,
    )
    assert f"Neuron {neuron} of layer {layer} looks for" in said(page)
    first = page.dataframe[0].value.iloc[0]
    assert (first["layer"], first["neuron"]) == (layer, neuron)
    assert "From 1,152 tokens read, 128 at a time" in said(page)
    assert (page.query_params["feedforward_layer"], page.query_params["feedforward_neuron"]) == (
        str(layer),
        str(neuron),
    )


def test_what_a_neuron_looks_for_and_raises_is_what_its_activations_say(short_corpus):
    """Nine windows of the corpus are read here by whole passes; of 16 neighbours the strongest counts."""
    layer, neuron = 3, 71
    known = shipped()
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
    words = said(feedforward(feedforward_layer=str(layer), feedforward_neuron=str(neuron)))
    assert f"Neuron 71 of layer 3 {told} raises “{raised[0]}”, “{raised[1]}”, “{raised[2]}”." in words


def test_clicks_are_read_with_care():
    assert clicked_neuron("3000344", 4, 512) == (3, 344)
    assert clicked_neuron("3000344", 3, 512) is None and clicked_neuron("3000344", 4, 344) is None
    for bad in (None, "", "-1", "1e3", "[1]", "9" * 40):
        assert clicked_neuron(bad, 4, 512) is None


def test_corpus_text_never_becomes_html(short_corpus, monkeypatch):
    text = "<img src=x onerror=alert(1)>&amp;" * 400
    monkeypatch.setattr(state, "corpus", lambda name: corpora.from_text(text, name))
    monkeypatch.setattr("ui.text.tokens.show_bytes", lambda t: "<i>" + t.decode())
    subject._vocabulary.clear()
    feedforward_contexts._validation.clear()
    slow._server = slow.Jobs()
    page = feedforward()
    subject._vocabulary.clear()
    (drawn,) = [e.proto.body for e in page.get("html") if "gf-contexts" in e.proto.body]
    assert "<i>" not in drawn and "&lt;i&gt;" in drawn


@pytest.mark.parametrize("fields", KINDS, ids=str)
def test_every_view_takes_every_kind_of_model(manager, fields):
    page = feedforward(model=run_of(manager, "text", vocab_size=90, **fields), measure="true", words="true")
    if fields.get("ffn") == "none":
        assert "has no feed-forward networks" in said(page) and not page.dataframe
        assert "What you see" not in said(page)
    else:
        assert "is not a corpus of this server" in said(page)
        assert "tokens read" in said(page) and "What you see" in said(page)
    for view in ("functions", "parameters"):
        page.get_by_key("feedforward_view").set_value(view).run()
        assert not page.exception and page.button_group(key="feedforward_view").value == view


def test_a_run_reads_the_corpus_only_when_asked(manager, short_corpus):
    """The scrubber would otherwise read it anew at each step."""
    run = run_of(manager, vocab_size=90, context=16)
    page = feedforward(model=run, measure="true")
    assert "Not read yet" in said(page)
    page.button(key="feedforward_read").click().run()
    assert not page.exception and "tokens read, 16 at a time" in said(page)
    page.number_input(key="feedforward_neuron").set_value(3).run()
    assert "feedforward_read" not in {button.key for button in page.button} and "tokens read" in said(
        page
    )  # known for all neurons of the layer
    page = feedforward(model=run, step="0")
    assert "Not read yet" in said(page)
