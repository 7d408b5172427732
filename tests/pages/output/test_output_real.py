"""Sampling and Generation with the real model: what is drawn is the engine's, what is sent is small."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine.config import SampleConfig
from engine.measure.recording import record
from engine.progress import finish
from engine.sample import draw, generate, stages, steps, uniform
from engine.sample.decoder import ready
from engine.sample.rounding import rounding
from tests.pages import helpers
from tests.pages.helpers import ran, sent
from tests.pages.helpers import said as told
from tests.pages.real import REAL, carried, leave_nothing_running
from ui import models
from ui.players import sampler

TEXT = "The capital of France is"
pytestmark = [carried, pytest.mark.exhaustive, pytest.mark.usefixtures("manager")]


@pytest.fixture(autouse=True)
def nothing_is_left_running() -> Iterator[None]:
    yield
    leave_nothing_running()


def opened(page: str, **query: str) -> AppTest:
    folds = {"measure": "true", "hand": "true"}
    return helpers.opened(f"output/{page}", model=REAL, text=TEXT, **folds, **query)


def known() -> Any:
    """The one copy that all pages share."""
    return models._pretrained("smollm2-135m", None)


@pytest.fixture(scope="module")
def logits() -> torch.Tensor:
    """As the page records them: in the tail of 49,152 tokens another order of sums draws others."""
    torch.set_num_threads(1)
    return torch.from_numpy(record(known().model, known().tokenizer.encode(TEXT)).logits[-1].copy())


def finished(page: AppTest, what: str, seconds: float = 90) -> str:
    """The page's sentences once one of them holds `what`: slow things are measured in a thread."""
    until = time.monotonic() + seconds
    while what not in told(page) and time.monotonic() < until:
        time.sleep(0.3)
        ran(page)
    return told(page)


def test_all_logits_are_sent_but_only_the_words_that_are_read(logits):
    page = opened("sampling")
    data = sent(page, "sampler")
    assert np.allclose(np.frombuffer(base64.b64decode(data["logits"]), np.float32), logits, atol=1e-4)
    assert len(logits) == 49_152
    records = stages(logits, sampler.START, known().tokenizer.encode(TEXT))
    token = draw(records[-1].probabilities, float(uniform(0, 1)[0]))
    best = int(logits.argmax())
    assert data["labels"][str(best)] == "␣Paris" and str(token) in data["labels"]
    assert 300 <= len(data["labels"]) < 320
    assert f"**{records[-1].kept:,} of 49,152 tokens" in told(page)
    rows = page.dataframe[0].value.set_index("stage")
    assert rows["tokens left"]["top-p"] == records[-1].kept
    p = logits.double().softmax(-1)
    assert rows["entropy (nats)"]["logits"] == pytest.approx(float(-(p * p.log()).sum()), abs=1e-4)


def test_a_conversation_puts_the_template_around_the_text():
    real = known()
    ids = real.tokenizer.chat([{"role": "user", "content": TEXT}])
    page = opened("generation", generation_chat="true", generation_temperature="0", generation_length="3")
    data = sent(page, "writer")
    assert data["prompt"] == ids and data["words"][str(ids[0])][0] == "<|im_start|>"
    around = len(ids) - len(real.tokenizer.encode(TEXT))
    special = sum(i in real.tokenizer.special.values() for i in ids)
    assert f"**{around} others**" in told(page) and f"and {special} special tokens" in told(page)
    assert "writes `<|im_end|>`" in told(page)
    nodes = json.loads(data["nodes"])
    greedy = list(generate(real.model, ids, len(nodes), SampleConfig(temperature=0.0)))
    assert [node[1] for node in nodes] == greedy and nodes
    page.toggle(key="generation_chat").set_value(False).run()
    assert not page.exception
    assert sent(page, "writer")["prompt"] == real.tokenizer.encode(TEXT)


def test_weights_in_eight_bits_write_what_the_engine_writes_with_them() -> None:
    """And what that costs on the text is said, as the engine measures it."""
    page = opened(
        "generation", generation_arithmetic="int8", generation_length="6", generation_temperature="0"
    )
    found = known()
    products = ready(found.model, "int8")
    ids = found.tokenizer.encode(TEXT)
    records = list(steps(found.model, ids, 6, SampleConfig(temperature=0.0), products=products))
    nodes = page.session_state["generation_sessions"].popitem()[1].tree.nodes[:6]
    assert nodes  # a slow machine stops early, after one if need be: the browser asks for the rest
    assert [node.token for node in nodes] == [one.token for one in records][: len(nodes)]
    cost = finish(rounding(found.model, ids, products))
    finished(page, "off by", 120)
    assert f"are off by **{cost.largest:.2f}** at most" in told(page)
    assert f"**{cost.loss:.3f}** nats a token in place of {cost.exact:.3f}" in told(page)
    assert cost.largest > 0.01  # else it would be the same arithmetic
