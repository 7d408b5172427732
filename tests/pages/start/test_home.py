"""The home page, without a browser: every preset, the button, and what strangers write into URLs."""

from dataclasses import replace

import pytest

from engine.ledger import ledger
from engine.presets import PRESETS
from tests.pages import helpers
from tests.pages.stage import StageManager
from ui import site, state


def opened(preset):
    """The home page as a link with this preset opens it."""
    return helpers.opened("app.py", preset=preset)


def the_map(app):
    return helpers.sent(app, "glassformer_map")


@pytest.mark.parametrize("name", ["fast", "gpt2", "bert-base", "llama2-70b", "gpt3-175b"])
def test_a_preset_is_drawn_and_counted_as_on_parameters(name):
    home = opened(name)
    assert not home.exception
    drawn, preset = the_map(home), PRESETS[name]
    counted = ledger(preset.model, preset.encoder)
    assert drawn["alt"].endswith(
        f"{preset.title}: from tokens through {preset.model.n_layers} blocks to probabilities;"
        f" {counted.total:,} parameters."
    )
    assert str(preset.model.n_layers) in drawn["map"]["parts"]["block"]["title"]
    said = " ".join(text.value for text in home.markdown)
    assert f"**{preset.title}.**" in said and f"**{counted.total:,} parameters**, " in said
    share = counted.in_blocks / counted.total
    assert f" parameters**, {share:.0%} of them in the {preset.model.n_layers} blocks." in said
    assert ("*Source: " in said) == (not preset.trainable and bool(preset.source))


@pytest.mark.parametrize(("chosen", "trained"), [("modern", "modern"), ("llama2-70b", "fast")])
def test_train_one_now_starts_a_training_and_shows_it(chosen, trained, monkeypatch):
    stage = StageManager()
    monkeypatch.setattr(state, "manager", lambda: stage)
    app = opened(chosen)
    assert stage.asked == []
    app.button(key="train_now").click().run()
    assert not app.exception
    assert app.session_state["preset"] == trained
    assert [what for what in stage.asked if what[0] == "start"] == [("start", "run-0")]
    spec = stage.views["run-0"].spec
    assert (spec.train, replace(spec.model, vocab_size=65)) == (
        PRESETS[trained].train,
        PRESETS[trained].model,
    )
    app.run()
    assert len(stage.views) == 1  # once
    assert any("rain" in title.value for title in app.title)


def test_the_map_leads_only_to_pages_that_are_there():
    assert all((site.ROOT / path).is_file() for path in site.explanations().values())
    assert [entry.url for entry in site.built()][:3] == ["", "courses", "train"]
    assert len({entry.url for entry in site.ENTRIES}) == len(site.ENTRIES)
