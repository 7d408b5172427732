"""The residual stream and the neurons of the real model, against arithmetic on its recording."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine.measure.attribution import attribute
from engine.measure.neurons import scan
from engine.measure.recording import Recording, record
from pages.inside.feedforward import contexts
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


def test_the_lens_reads_every_depth(recording, drawn):
    page = inside("residual", measure="true")
    table = drawn["residual_lens"].table
    assert len(table["guess"]) == 31 * len(recording.ids)
    last = [known().tokenizer.decode([int(i)]).replace(" ", "␣") for i in recording.logits.argmax(-1)]
    assert table["guess"][-len(last) :] == last and last[-1] == "␣Paris"
    assert "“␣Paris”" in said(page)


def test_three_hundred_writers_are_the_hardest_pushes_and_the_rest(recording, drawn):
    page = inside("residual", residual_view="push")
    at, best = len(recording.ids) - 1, recording.likeliest(len(recording.ids) - 1)
    found = attribute(known().model, recording, at, best)
    single = {"embed": found.embedding}
    single |= {f"head {i}.{h}": v for (i, h), v in np.ndenumerate(found.heads)}
    single |= {f"ffn {i}": float(v) for i, v in enumerate(found.feedforward)}
    order = sorted(single, key=lambda name: -abs(single[name]))
    table = drawn["residual_parts"].table
    assert sorted(table["writer"][:-1]) == sorted(order[:16]) and table["writer"][-1] == "285 others"
    assert sum(table["contribution"]) == pytest.approx(float(recording.logits[at, best]), abs=1e-3)
    assert table["contribution"][-1] == pytest.approx(sum(single[name] for name in order[16:]), abs=1e-4)
    most = max(single, key=lambda name: single[name])
    of = f"of a logit of {float(recording.logits[at, best]):.2f}."
    words = said(page)
    assert f"**{most}**" in words and f"pushes hardest: **{single[most]:+.2f}** {of}" in words
    assert len(page.selectbox(key="residual_target").options) == 201  # of 49,152


def test_a_token_that_is_called_nothing_can_be_chosen_and_compared(recording):
    page = inside(
        "residual", residual_view="push", residual_target=" Rome", residual_versus="nothing", measure="true"
    )
    (rome,) = known().tokenizer.encode(" Rome")
    logits = recording.logits[-1].astype(np.float64)
    metrics = {m.label: m.value for m in page.metric}
    assert metrics["Logit of “␣Rome”"] == f"{logits[rome]:+.4f}"
    page = inside("residual", residual_view="push", residual_versus="nothing (token)", measure="true")
    (nothing,) = known().tokenizer.encode("nothing")
    wanted = f"{logits.max() - logits[nothing]:+.4f}"
    assert wanted in {m.value for m in page.metric}


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


def test_contexts_come_out_of_a_text_that_is_here(monkeypatch):
    monkeypatch.setattr(contexts, "SLOW_SPANS", {"256": 256})
    page = inside(
        "feedforward",
        feedforward_layer="0",
        feedforward_neuron="7",
        feedforward_side="highest",
        measure="true",
    )
    assert "tokens read" in said(page)
    ids = contexts._validation("python", (REAL, 0), known().tokenizer)[0][:256]
    assert len(ids) == 256
    *_, found = scan(known().model, ids, 0, window=64)
    (shown,) = [e.proto.body for e in page.get("html") if "gf-contexts" in e.proto.body]
    assert f"<b>{found.highest[7, 0]:.3f}</b>" in shown
    assert f"above zero at {found.positive[7]:.1%}" in said(page)
