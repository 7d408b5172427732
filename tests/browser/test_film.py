"""The film of a view in a real Chromium: both files have a frame for each step, and hold the engine's own numbers."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from PIL import Image, ImageChops
from playwright.sync_api import Page, expect

from engine.data.tokenizers import token_bytes
from engine.measure.circuits.induction import drawn, ordinary
from engine.training.snapshot_series import Lapse, open_lapse
from tests.browser.conftest import settled
from tests.browser.scrubbing import where

pytestmark = pytest.mark.exhaustive

SLOW = 240_000
LAPSE = Path(__file__).parents[2] / "checkpoints" / "timelapse"
COUNT = 24  # random tokens that the view reads twice


def filmed(page: Page, address: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto(address, wait_until="domcontentloaded")
    page.locator(".gf-scrubber input[type=range]").wait_for(timeout=SLOW)
    settled(page, SLOW)
    expect(page.locator(".st-key-answer")).not_to_be_empty(timeout=SLOW)
    page.locator(".gf-scrub-film").click()


def saved(page: Page, words: str, to: Path) -> Path:
    with page.expect_download(timeout=SLOW) as coming:
        page.get_by_role("button", name=re.compile(words)).click(timeout=SLOW)
    coming.value.save_as(to)
    return to


def film_in(page: Path) -> dict[str, Any]:
    found = re.search(
        r'<script type="application/json" id="film">(.*?)</script>', page.read_text("utf-8"), re.S
    )
    assert found
    return json.loads(found[1])


def second_reading(lapse: Lapse, step: int) -> list[float]:
    """Losses of random tokens when they are read again, nats, by torch alone."""
    found = lapse.at(step)
    once = drawn(ordinary(token_bytes(found.tokenizer)), COUNT, 0)
    tokens = torch.tensor([[*once, *once]])
    with torch.inference_mode():
        logits = found.model(tokens)[0]
    return F.cross_entropy(logits[:-1], tokens[0, 1:], reduction="none").tolist()[COUNT - 1 :]


def test_a_view_is_filmed_and_saved_as_a_page_that_runs_alone_and_as_a_gif(
    page: Page, app_url: str, tmp_path: Path
) -> None:
    lapse = open_lapse(LAPSE)
    filmed(page, f"{app_url}/circuits?circuits_view=induction&model=timelapse&step=330")
    html = saved(page, "Save HTML", tmp_path / "film.html")
    film = film_in(html)
    assert [frame["step"] for frame in film["frames"]] == list(lapse.steps)
    assert film["title"] == "Can the model repeat what it has read only once?"
    assert (
        film["frames"][24]["said"] == "step 330 · 1.3 copies"
        and "No induction head" in film["frames"][0]["answer"]
    )
    shown = {
        frame["step"]: trace["y"]
        for frame in film["frames"]
        for trace in frame["shots"][0]["data"]
        if trace.get("name") == "second reading"
    }
    assert len({json.dumps(y) for y in shown.values()}) == len(lapse.steps), "each frame is another"

    gif = Image.open(saved(page, "Save GIF", tmp_path / "film.gif"))
    assert gif.n_frames == len(lapse.steps)
    pictures = []
    for i in range(gif.n_frames):
        gif.seek(i)
        pictures.append(gif.convert("RGB"))
    pairs = pairwise(pictures)
    assert all(ImageChops.difference(one, other).getbbox() for one, other in pairs)
    assert len(pictures[0].getcolors(1_000_000) or []) > 10, "not an empty picture"

    page.get_by_role("button", name="Close").click()
    page.wait_for_function("new URL(location).searchParams.get('step') === '330'", timeout=SLOW)
    assert where(page) == "step 330 · 1.3 copies", "it is as it was before"

    alone = page.context.new_page()
    asked: list[str] = []
    alone.on("request", lambda request: asked.append(request.url))
    alone.context.set_offline(True)
    try:
        alone.goto(html.as_uri())
        slider = alone.get_by_role("slider")
        for index, step in ((0, 0), (24, 330)):
            slider.evaluate("(node, at) => { node.value = at; node.oninput() }", index)
            expect(alone.locator("output")).to_have_text(film["frames"][index]["said"])
            drawn_there = alone.evaluate(
                "Array.from(document.querySelector('#stage > div')._fullData"
                ".find((trace) => trace.name === 'second reading').y)"
            )
            assert drawn_there == pytest.approx(second_reading(lapse, step), abs=2e-4)
        assert [one for one in asked if not one.startswith(("file:", "data:"))] == []
        slider.evaluate("(node) => { node.value = 33; node.oninput() }")
        alone.get_by_role("button", name="Play").click()
        expect(alone.locator("output")).to_contain_text("step 1,000", timeout=SLOW)
        expect(alone.get_by_role("button", name="Play")).to_be_visible(timeout=SLOW)
    finally:
        alone.context.set_offline(False)
