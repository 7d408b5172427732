"""The residual stream and the neurons of the real model, against arithmetic on its recording."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine.measure.recording import Recording, record
from tests.pages.helpers import opened, said
from tests.pages.real import REAL, carried, leave_nothing_running
from ui import models

TEXT = "The capital of France is"
pytestmark = [carried, pytest.mark.exhaustive, pytest.mark.usefixtures("manager")]


@pytest.fixture(autouse=True)
def nothing_is_left_running() -> Iterator[None]:
    yield
    leave_nothing_running()


def inside(page: str, **query: str) -> AppTest:
    return opened(f"inside/{page}", model=REAL, text=TEXT, **query)


def known() -> Any:
    """The one copy that all pages share."""
    return models._pretrained("smollm2-135m", None)


@pytest.fixture(scope="module")
def recording() -> Recording:
    return record(known().model, known().tokenizer.encode(TEXT))


def test_means_leave_out_the_massive_token(recording, drawn):
    page = inside("residual", residual_view="norms")
    final = np.linalg.norm(recording["blocks.29.resid_post"].astype(np.float64), axis=-1)
    assert drawn["residual_line"].table["mean_norm"][-1] == pytest.approx(final[1:].mean(), rel=1e-5)
    assert "massive activation" in said(page) and f"**{final[1:].mean():.2f}**" in said(page)
    page.toggle(key="residual_apart").set_value(False).run()
    assert drawn["residual_line"].table["mean_norm"][-1] == pytest.approx(final.mean(), rel=1e-5)


def test_neurons_are_read_behind_the_massive_token(recording, drawn):
    page = inside("feedforward", measure="true")
    post = np.stack([recording[f"blocks.{i}.ffn_post"] for i in range(30)])[:, 1:]
    layer, _, neuron = np.unravel_index(np.abs(post).argmax(), post.shape)
    assert page.number_input(key="feedforward_layer").value == layer
    assert page.number_input(key="feedforward_neuron").value == neuron
    table = drawn["feedforward_overview"].table
    column = table[f"layer_{layer}"]
    assert len(column) == 1536
    peak = post[layer, :, neuron]
    assert column[neuron] == pytest.approx(peak[np.abs(peak).argmax()], rel=1e-5)
    assert len(drawn["feedforward_tokens"].table["token"]) == 1000  # of 49,152
