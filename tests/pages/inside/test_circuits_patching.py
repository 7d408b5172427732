"""Patching as it is shown: the map is the engine's, the sentence is the map's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine.measure.contrast import Contrast, prompts_of
from engine.measure.patching import Patching, patch
from engine.progress import finish
from pages.inside.circuits.patching_answer import sentence
from pages.inside.circuits.prompts import PAIRS
from tests.pages.helpers import opened, said, unescaped
from tests.pages.inside.circuits import circuit
from tests.pages.inside.models import SMALL, run_of, shipped
from tests.pages.real import carried
from tests.pages.stage import StageManager
from ui.models import REAL_MODEL

pytestmark = pytest.mark.usefixtures("manager", "measured_anew")


def expected(name: str, pair: str, site: Any) -> Patching:
    found = shipped(name)
    chosen = PAIRS[pair]
    prompts = prompts_of(found.tokenizer, chosen.clean, chosen.corrupted, chosen.answers)
    return finish(patch(found.model, prompts, site))


def signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


@pytest.mark.parametrize("site", ["resid_pre", "attn_out", "ffn_out", "z"])
def test_the_map_is_the_engines(site: str, drawn: dict[str, Any]) -> None:
    page = circuit("patching", patching_pair="hast", patching_site=site)
    found, shown = expected(SMALL, "hast", site), drawn["patching_map"]
    assert np.array(shown.traces[0]["z"]) == pytest.approx(found.restored, abs=1e-6)
    assert (shown.traces[0]["zmin"], shown.traces[0]["zmax"]) == (-1, 1)
    assert f"first prompt **{signed(found.contrast.clean)}**; it would write “s”" in said(page)
    assert f"second prompt **{signed(found.contrast.corrupted)}**; it would write “v”" in said(page)
    if site == "resid_pre":  # before block 0 the stream is the embedding
        assert shown.layout["yaxis"]["ticktext"] == ["E", "0", "1", "2"]
    ticks = shown.layout["xaxis"]["ticktext"]
    letters = ["t", "h", "<b>o</b><br>e", "<b>u</b><br>y", "␣", "h", "a"]
    assert ticks == (["0", "1", "2", "3"] if site == "z" else letters)


def test_prompts_that_a_model_does_not_tell_apart() -> None:
    page = circuit("patching", patching_pair="far")
    span = expected(SMALL, "far", "resid_pre").contrast.span
    assert 0 < span < 1
    assert f"hardly tells the two prompts apart**: the difference moves by only {span:.2f} nats" in said(page)
    assert "hardly tells the two prompts apart" in said(circuit("patching", model="untrained-fast"))


def own(first: str, second: str, a: str, b: str, **query: str) -> AppTest:
    return circuit(
        "patching",
        patching_pair="own",
        patching_first_prompt=first,
        patching_second_prompt=second,
        patching_first_text=a,
        patching_second_text=b,
        **query,
    )


@pytest.mark.parametrize(
    ("first", "second", "a", "b", "reason"),
    [
        ("the cat", "the bird", "s", "t", "The first prompt has 7 tokens and the second 8"),
        ("the cat", "the rat", "s", "é", "does not know é, which stands in the second answer"),
        ("the cat", "the rat", "sat", "sit", "Both answers begin with the token “s”"),
        ("a" * 200, "b" * 200, "s", "t", "at most 48"),
    ],
)
def test_prompts_that_cannot_be_compared_get_a_sentence(
    first: str, second: str, a: str, b: str, reason: str, drawn: dict[str, Any]
) -> None:
    page = own(first, second, a, b)
    assert reason in unescaped(page, "warning")
    assert f"First prompt, {len(first)} tokens: " in said(page)
    assert "patching_map" not in drawn


def test_what_cannot_be_patched_is_said(manager: StageManager, drawn: dict[str, Any]) -> None:
    page = circuit("patching", run_of(manager, "text", vocab_size=100, causal=False))
    assert "This model fills gaps" in said(page) and "patching_map" not in drawn
    deaf = run_of(
        manager, "text", vocab_size=100, mixer="none"
    )  # the last token alone decides, and it is the same
    page = circuit("patching", deaf, patching_pair="thou")
    assert "answers both prompts alike" in said(page)
    page = circuit("patching", run_of(manager, "text", vocab_size=100, context=8), patching_pair="far")
    assert "this model reads 8" in unescaped(page)


LABELS = ["The", "␣France / ␣Italy", "␣is"]
NAMES = ("␣Paris", "␣Rome")


def answer(
    rows: list[list[float]], site: Any = "resid_pre", clean: float = 7.0, corrupted: float = -6.0
) -> str:
    found = Patching(site, np.array(rows, np.float32), Contrast(clean, corrupted, (0, 1)))
    return sentence(found, LABELS, NAMES)


def test_where_it_sits_and_when_it_moves() -> None:
    moved = answer([[0, 1, 0], [0, 0.75, 0.2], [0, 0.25, 0.875], [0, 0, 1]])
    assert (
        "**␣France / ␣Italy** until **after block 0** (at least 0.75 of it), and by **␣is** from **after block 1**"
        " on (at" in moved
    )
    assert "at least 0.88 of it)." in moved and "then" not in moved


def test_the_patches_that_count_most() -> None:
    told = answer([[0, 0.25, 0], [0, 0.05, 0.5]], "attn_out")
    assert (
        "Alone, attention of **block 1 at ␣is** brings back **0.50** of the answer. Next: block 0 at" in told
    )
    assert "(0.25)." in told and "0.05" not in told
    assert "**head 1.2** brings back **0.50**" in answer([[0, 0.25, 0], [0, 0, 0.5]], "z")
    first, second = (answer(rows, "ffn_out") for rows in ([[0, 1, 0], [0, 0, 0]], [[0, 0, 0], [0, 1, 0]]))
    assert "which word it is" in first and "which word it is" not in second
    assert "No single one restores more than 0.05" in answer([[0, 0.05, 0]], "ffn_out")


@carried
@pytest.mark.exhaustive
def test_paris_sits_on_france_and_one_head_carries_it(drawn: dict[str, Any]) -> None:
    """As tried by hand with whole passes: 7.3 and -6.0, on " France" up to block 21, on " is" from 24 on."""
    page = opened("inside/circuits")
    assert page.query_params["model"] == REAL_MODEL
    restored = np.array(drawn["patching_map"].traces[0]["z"])
    assert restored.shape == (30, 5) and restored[:22, 3] == pytest.approx(1, abs=0.03)
    assert restored[24:, 4] == pytest.approx(1, abs=0.03)
    assert "first prompt **+7.31**; it would write “␣Paris”" in said(page)
    assert "second prompt **−6.02**; it would write “␣Rome”" in said(page)
    assert "**␣France / ␣Italy** until **after block 22**" in said(page)
    page.get_by_key("patching_site").set_value("z").run()
    assert np.array(drawn["patching_map"].traces[0]["z"]).shape == (30, 9)
    assert "**head 23.4** brings back **0.93**" in said(page)
    page.get_by_key("patching_pair").set_value("gender").run()
    assert "hardly tells the two prompts apart" in said(page)
