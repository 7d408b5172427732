"""The real model: each view opens, what it says is true of its weights, what is drawn is the engine's, what is sent is small."""

import base64
import json
import re
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine.config import SampleConfig
from engine.data.progress import finish
from engine.recording import Recording, record
from engine.sample import draw, generate, stages, steps, uniform
from pages.input.positions import arrows
from studies.generation.rounding import rounding
from studies.generation.single_row import ready
from tests.engine.cases import for_each
from tests.pages import helpers
from tests.pages.helpers import opened, ran, said, sent
from tests.pages.real_model import REAL, carried, leave_nothing_running
from ui import models
from ui.players import sampler

pytestmark = [carried, pytest.mark.usefixtures("manager")]
VIEWS = [
    *(("models/parameters", "parameters_view", view) for view in ("where", "flops", "memory")),
    ("models/parameters", "parameters_scope", "two"),
    *(("inside/shapes", "shapes_view", view) for view in ("pass", "backward", "hand", "wrong")),
    *(
        ("input/positions", "positions_view", view)
        for view in ("why", "sinusoidal", "learned", "rope", "biases", "bench")
    ),
]


@for_each("room, key, view", VIEWS, fast=2)
def test_a_view_opens_and_counts_its_own_weights(room: str, key: str, view: str) -> None:
    page = opened(room, model=REAL, parameters_model=REAL, **{key: view})
    assert bool(page.error) is (view == "wrong")  # there the fault is what is shown
    if room == "models/parameters":
        assert "Counted from its own file" in said(page)
    if view == "pass":
        assert "134,515,008 parameters" in said(page)


def test_parameters_follow_a_link_that_names_a_model_for_all_pages() -> None:
    assert "**134,515,008 parameters**" in said(opened("models/parameters", model=REAL))
    assert "**124,439,808 parameters**" in said(opened("models/parameters", model="nonsense"))


def test_the_turned_arrows_are_the_models_own(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: dict[str, Any] = {}
    monkeypatch.setattr(arrows, "mounted", lambda name: lambda **rest: sent.update(rest))
    page = opened("input/positions", model=REAL, positions_view="rope", rope_query="4", rope_key="1")
    assert sent["data"]["q"] == pytest.approx(recording["blocks.0.q"][0][4].tolist(), abs=1e-5)
    product = float(recording["blocks.0.q_rot"][0][4] @ recording["blocks.0.k_rot"][0][1])
    said_so = re.search(r"key 1 it is \*\*(\S+)\*\*", said(page))
    assert said_so and float(said_so[1].replace("−", "-")) == pytest.approx(product, abs=1e-3)


TEXT = "The capital of France is"


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


@pytest.mark.exhaustive
def test_means_leave_out_the_massive_token(recording: Recording, drawn: Any) -> None:
    page = inside("residual", residual_view="norms")
    final = np.linalg.norm(recording["blocks.29.resid_post"].astype(np.float64), axis=-1)
    assert drawn["residual_line"].table["mean_norm"][-1] == pytest.approx(final[1:].mean(), rel=1e-5)
    assert "massive activation" in said(page) and f"**{final[1:].mean():.2f}**" in said(page)
    page.toggle(key="residual_apart").set_value(False).run()
    assert drawn["residual_line"].table["mean_norm"][-1] == pytest.approx(final.mean(), rel=1e-5)


@pytest.mark.exhaustive
def test_neurons_are_read_behind_the_massive_token(recording: Recording, drawn: Any) -> None:
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


def output_page(page: str, **query: str) -> AppTest:
    folds = {"measure": "true", "hand": "true"}
    return helpers.opened(f"output/{page}", model=REAL, text=TEXT, **folds, **query)


@pytest.fixture(scope="module")
def logits() -> torch.Tensor:
    """As the page records them: in the tail of 49,152 tokens another order of sums draws others."""
    torch.set_num_threads(1)
    return torch.from_numpy(record(known().model, known().tokenizer.encode(TEXT)).logits[-1].copy())


def finished(page: AppTest, what: str, seconds: float = 90) -> str:
    """The page's sentences once one of them holds `what`: slow things are measured in a thread."""
    until = time.monotonic() + seconds
    while what not in said(page) and time.monotonic() < until:
        time.sleep(0.3)
        ran(page)
    return said(page)


@pytest.mark.exhaustive
def test_all_logits_are_sent_but_only_the_words_that_are_read(logits: torch.Tensor) -> None:
    page = output_page("sampling")
    data = sent(page, "sampler")
    assert np.allclose(np.frombuffer(base64.b64decode(data["logits"]), np.float32), logits, atol=1e-4)
    assert len(logits) == 49_152
    records = stages(logits, sampler.START, known().tokenizer.encode(TEXT))
    token = draw(records[-1].probabilities, float(uniform(0, 1)[0]))
    best = int(logits.argmax())
    assert data["labels"][str(best)] == "␣Paris" and str(token) in data["labels"]
    assert 300 <= len(data["labels"]) < 320
    assert f"**{records[-1].remaining:,} of 49,152 tokens" in said(page)
    rows = page.dataframe[0].value.set_index("stage")
    assert rows["tokens left"]["top-p"] == records[-1].remaining
    p = logits.double().softmax(-1)
    assert rows["entropy (nats)"]["logits"] == pytest.approx(float(-(p * p.log()).sum()), abs=1e-4)


@pytest.mark.exhaustive
def test_a_conversation_puts_the_template_around_the_text() -> None:
    real = known()
    ids = real.tokenizer.chat([{"role": "user", "content": TEXT}])
    page = output_page(
        "generation", generation_chat="true", generation_temperature="0", generation_length="3"
    )
    data = sent(page, "writer")
    assert data["prompt"] == ids and data["words"][str(ids[0])][0] == "<|im_start|>"
    around = len(ids) - len(real.tokenizer.encode(TEXT))
    special = sum(i in real.tokenizer.special.values() for i in ids)
    assert f"**{around} tokens**" in said(page) and f"and {special} special tokens" in said(page)
    assert "writes `<|im_end|>`" in said(page)
    nodes = json.loads(data["nodes"])
    greedy = list(generate(real.model, ids, len(nodes), SampleConfig(temperature=0.0)))
    assert [node[1] for node in nodes] == greedy and nodes
    page.toggle(key="generation_chat").set_value(False).run()
    assert not page.exception
    assert sent(page, "writer")["prompt"] == real.tokenizer.encode(TEXT)


@pytest.mark.exhaustive
def test_weights_in_eight_bits_write_what_the_engine_writes_with_them() -> None:
    """And what that costs on the text is said, as the engine measures it."""
    page = output_page(
        "generation", generation_arithmetic="int8", generation_length="6", generation_temperature="0"
    )
    finished(page, "off by", 120)  # the weights are rounded first, and nothing is written before
    found = known()
    products = ready(found.model, "int8")
    ids = found.tokenizer.encode(TEXT)
    records = list(steps(found.model, ids, 6, SampleConfig(temperature=0.0), products=products))
    nodes = page.session_state["generation_sessions"].popitem()[1].tree.nodes[:6]
    assert nodes  # a slow machine stops early, after one if need be: the browser asks for the rest
    assert [node.token for node in nodes] == [one.token for one in records][: len(nodes)]
    cost = finish(rounding(found.model, ids, products))
    assert f"are off by at most **{cost.largest:.2f}**" in said(page)
    assert f"**{cost.loss:.3f}** nats per token instead of {cost.exact:.3f}" in said(page)
    assert cost.largest > 0.01  # else it would be the same arithmetic
