"""Families, the whole square: each number that is shown, held against files and arithmetic done here."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine.checkpoints import load
from engine.measure.square import alone, opened
from tests.pages import helpers
from tests.pages.helpers import said
from ui.site import ROOT

SHIPPED = ROOT / "checkpoints"
NAMES = ("masked", "opened", "unmasked", "blanks")
TEXT = "My lord, what news?"

pytestmark = pytest.mark.usefixtures("manager")


def shown(**query: str) -> AppTest:
    return helpers.opened("models/families", families_view="square", **query)


def metrics(name: str) -> dict:
    return json.loads((SHIPPED / name / "metrics.json").read_text())


def patterns(model, ids: list[int]) -> list[np.ndarray]:
    """A layer's weights (head, query, key), caught on their way."""
    caught = []

    def probe(name, tensor):
        if name.endswith(".pattern"):
            caught.append(tensor[0].double().numpy())
        return tensor

    model(torch.tensor([ids]), probe)
    return caught


def test_the_answer_has_the_losses_of_the_files():
    masked, cheat, blanks = metrics("square/masked"), metrics("square/unmasked"), metrics("encoders/blanks")
    told = said(shown())
    assert f"With its mask **{masked['validation_loss']:.2f}** nats" in told
    assert f"do worse: **{masked['opened']['validation_loss']:.2f}**" in told
    assert (
        f"without it: **{cheat['validation_loss']:.2f}**, copied; but **{cheat['end_loss']:.2f}** at the end"
        in told
    )
    assert f"**{blanks['guessed_right']:.1%}** of blanks right" in told


@pytest.mark.parametrize("layer", ["all", "1"])
def test_the_table_and_the_squares(drawn, layer):
    page = shown(square_text=TEXT, square_layer=layer)
    (table,) = page.table
    masked, cheat, blanks = (
        load(SHIPPED / n) for n in ("square/masked", "square/unmasked", "encoders/blanks")
    )
    ids = masked.tokenizer.encode(TEXT)
    models = [masked.model, opened(masked.model), cheat.model, blanks.model]
    files = metrics("square/masked")
    losses = [files, files["opened"], metrics("square/unmasked")]
    for column, (name, model) in enumerate(zip(NAMES, models, strict=True)):
        figure = drawn[f"square_{name}"]
        cells = list(table.value.iloc[:, column])
        found = patterns(model, ids)
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
            assert cells[1:3] == [f"{metrics('encoders/blanks')['validation_loss']:.2f} a hidden one", "–"]
        blank = 65 if column == 3 else None
        wrote = masked.tokenizer.decode(alone(model, ids, 20, blank))
        plain = cells[3].replace("\\", "").replace("\u2060", "")
        assert plain == f"“{wrote.replace(' ', '␣').replace(chr(10), '⏎')}”" and len(wrote) == 20


def test_the_encoder_s_letters_are_hidden_one_by_one(drawn):
    shown(square_text=TEXT)
    blanks = load(SHIPPED / "encoders/blanks")
    ids = blanks.tokenizer.encode(TEXT)
    chances = []
    for place, letter in enumerate(ids):
        text = [*ids[:place], 65, *ids[place + 1 :]]
        chances.append(float(blanks.model(torch.tensor([text]))[0, place].double().softmax(-1)[letter]))
    strip = drawn["square_blanks"].traces[1]["z"][0]
    np.testing.assert_allclose(strip, chances, atol=1e-4)
    assert drawn["square_blanks"].table["letter"][:3] == ["M", "y", "␣"]


@pytest.mark.parametrize(("text", "words"), [("Zürich", "know 65 letters"), ("a", "two letters or more")])
def test_texts_without_a_square_get_a_sentence(text, words):
    page = shown(square_text=text)
    assert words in said(page) and not page.table
