"""Heads that form while it trains: what the page says and draws is what the looks hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine.measure.induction import drawn as draw_letters
from engine.measure.induction import ordinary
from engine.probe import Recorder
from engine.service.history import HistoryLog
from engine.tokenizers import token_bytes
from engine.training.lapse import open_lapse
from engine.training.records import Evaluation, HeadScores, Step
from tests.pages.stage import StageManager
from tests.pages.start.training import clicked, opened, sentences

SHIPPED = Path(__file__).parents[3] / "checkpoints" / "timelapse"
# (step, seconds of training, copying of heads 1.0 and 1.3, reading the letter before of head 0.2, both losses)
COURSE = (
    (0, 0.0, 0.02, 0.03, 0.07, 4.25, 4.26),
    (10, 2.0, 0.04, 0.09, 0.21, 4.30, 4.02),
    (20, 4.5, 0.12, 0.08, 0.55, 4.41, 3.13),
    (30, 7.0, 0.21, 0.38, 0.61, 4.52, 2.24),
    (40, 9.5, 0.33, 0.74, 0.63, 4.63, 0.85),
)


def looked(count: int) -> HistoryLog:
    log = HistoryLog()
    for step in range(1, COURSE[count - 1][0] + 1):
        log.add(Step(step, 3.0, 1.0, 1e-3, 100 * step, 0.2 * step))
    for step, seconds, one, other, before, first, second in COURSE[:count]:
        scores = HeadScores(
            ((0.0, 0.0, 0.0, 0.0), (one, 0.0, 0.0, other)),
            ((0.0, 0.0, before, 0.0), (0.0,) * 4),
            first,
            second,
        )
        log.add(Evaluation(step, 2.5, 2.6, seconds, False, 1.0, 1.0, scores))
    return log


def watched(manager: StageManager, count: int, **query: str) -> AppTest:
    page = clicked(opened(preset="induction", **query), "train")
    manager.change("run-0", history=looked(count).view(), snapshots=tuple(one[0] for one in COURSE[:count]))
    return page.run()


@pytest.mark.parametrize(
    ("count", "says"),
    [
        (
            3,
            (
                "At step **20** no head copies yet: head 1.0 gives most, **0.12**",
                "Head 0.2 already reads the letter before (**0.55**).",
                "cost 4.41 nats, and **3.13**",
            ),
        ),
        (
            5,
            (
                "First head **0.2** learned to read the letter before (step 20), then head **1.3** to copy (step"
                " **40**): **0.74** of its weight, 0.08 at step 20, 5 s of training before.",
                "cost 4.63 nats, and **0.85**",
            ),
        ),
    ],
)
def test_the_answer_is_of_the_newest_look(
    manager: StageManager, drawn: Any, count: int, says: tuple[str, ...]
) -> None:
    said = sentences(watched(manager, count))
    for words in says:
        assert words in said


def test_every_heads_score_is_drawn_and_named_where_it_passed_a_half(
    manager: StageManager, drawn: Any
) -> None:
    watched(manager, 5)
    figure = drawn["head_scores"]
    lines = {trace["hovertemplate"].split(":")[0]: trace["y"] for trace in figure.traces}
    assert len([name for name in lines if name.startswith("head")]) == 16, "eight heads, two scores each"
    assert lines["head 1.3 copies"] == pytest.approx([one[3] for one in COURSE])
    assert lines["head 0.2 reads the letter before"] == pytest.approx([one[4] for one in COURSE])
    assert lines["new letters"] == pytest.approx([one[5] for one in COURSE])
    assert lines["the same letters again"] == pytest.approx([one[6] for one in COURSE])
    named = [(note["text"], note["x"], note["y"]) for note in figure.layout["annotations"]]
    assert named[:2] == [("0.2", 20, 0.55), ("1.3", 40, 0.74)]
    assert [text for text, *_ in named[2:]] == ["new letters 4.63", "again 0.85"]


def test_of_a_pair_the_heads_are_those_of_the_run_that_is_chosen(manager: StageManager, drawn: Any) -> None:
    page = clicked(opened(preset="induction", what_if="positions"), "train_both")
    for run, count in (("run-0", 5), ("run-1", 3)):
        manager.change(run, history=looked(count).view(), snapshots=tuple(one[0] for one in COURSE[:count]))
    page.run()
    lines = {trace["hovertemplate"].split(":")[0]: trace["y"] for trace in drawn["head_scores"].traces}
    assert lines["head 1.3 copies"] == pytest.approx([one[3] for one in COURSE])
    assert "Best at copying: induction: head 1.3 with **0.74** of its weight; no positions: head 1.0 with **0.12**" in (
        sentences(page).replace("\u2060", "")
    )  # fmt: skip
    assert drawn["head_patterns"].alt.startswith("What two heads look at, at step 40")
    page.segmented_control(key="heads_of").set_value("second").run()
    lines = {trace["hovertemplate"].split(":")[0]: trace["y"] for trace in drawn["head_scores"].traces}
    assert lines["head 1.3 copies"] == pytest.approx([one[3] for one in COURSE[:3]])
    assert drawn["head_patterns"].alt.startswith("What two heads look at, at step 20")
    assert page.query_params["heads_of"] == "second"


def test_the_patterns_are_those_of_both_heads_at_the_newest_snapshot(
    manager: StageManager, drawn: Any
) -> None:
    page = watched(manager, 5)
    checkpoint = manager.model("run-0", 40)
    once = draw_letters(ordinary(token_bytes(checkpoint.tokenizer)), 24, 0)
    recorder = Recorder({"pattern"})
    checkpoint.model(torch.tensor([[*once, *once]]), recorder)
    before, copies = (
        recorder[f"blocks.{layer}.pattern"][0, head].numpy() for layer, head in ((0, 2), (1, 3))
    )
    figure = drawn["head_patterns"]
    shown = [np.array(trace["z"]) for trace in figure.traces]
    assert shown[0] == pytest.approx(before, abs=1e-6) and shown[1] == pytest.approx(copies, abs=1e-6)
    titles = [note["text"] for note in figure.layout["annotations"]]
    assert titles == ["0.2 looks one back: 0.63", "1.3 copies: 0.74"]
    assert "Step **40**: random letters, then the same again" in sentences(page)


def test_before_the_first_run_it_is_seen_how_it_went_in_the_shipped_training(
    manager: StageManager, drawn: Any
) -> None:
    """All of it read off the shipped numbers and weights by hand."""
    said = sentences(opened(preset="induction"))
    looks = json.loads((SHIPPED / "metrics.json").read_text())["looks"]

    def best(kind: str) -> tuple[int, int, float, int]:
        grid = np.array(looks[-1]["heads"][kind])
        layer, head = (int(i) for i in np.unravel_index(grid.argmax(), grid.shape))
        since = next(one["step"] for one in looks if one["heads"][kind][layer][head] >= 0.5)
        return layer, head, float(grid.max()), since

    (_, before, _, first), (_, copies, _, second) = best("previous"), best("induction")
    assert first < second
    assert (
        f"First head **0.{before}** learned to read the letter before (step {first}), then head **1.{copies}** to"
        f" copy (step **{second}**)." in said
    )
    last = looks[-1]["heads"]
    assert f"cost {last['first_loss']:.2f} nats, and **{last['second_loss']:.2f}** when" in said
    assert "2 layers, 96 wide, 35% of the windows repeated, seed 0, 1,000 steps" in said
    assert [note["text"] for note in drawn["head_patterns"].layout["annotations"]] == [
        f"0.{before} looks one back: {last['previous'][0][before]:.2f}",
        f"1.{copies} copies: {last['induction'][1][copies]:.2f}",
    ]
    once = draw_letters(ordinary(token_bytes(open_lapse(SHIPPED).tokenizer)), 24, 0)
    recorder = Recorder({"pattern"})
    open_lapse(SHIPPED).at(looks[-1]["step"]).model(torch.tensor([[*once, *once]]), recorder)
    wanted = recorder["blocks.1.pattern"][0, copies].detach().numpy()
    assert np.array(drawn["head_patterns"].traces[1]["z"]) == pytest.approx(wanted, abs=1e-6)
