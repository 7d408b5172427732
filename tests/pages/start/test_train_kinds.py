"""Runs that form heads, learn from pairs, labels or a task, or cut a text of one's own into tokens."""

from __future__ import annotations

import json
import math
import random
import re
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine.config import ModelConfig, TrainConfig
from engine.data import corpora
from engine.data.corpora import shakespeare_path
from engine.data.pair_corpora import pair_text
from engine.data.progress import finish
from engine.data.tasks.all import TASKS
from engine.data.tokenizers import bpe_watch, bpe_work, token_bytes
from engine.errors import RunError, TokenizerError
from engine.measure.circuits.induction import drawn as draw_letters
from engine.measure.circuits.induction import ordinary
from engine.presets import PAIRED
from engine.presets.task_recipes import task_recipe
from engine.probe import Recorder
from engine.service.history import HistoryLog
from engine.service.profiles import PROFILES, check
from engine.service.state import RunSpec
from engine.training import kinds
from engine.training.records import Evaluation, HeadScores, Sample, Step, TaskScores
from engine.training.snapshot_series import open_lapse
from pages.input.tokens import shared
from tests.pages.stage import StageManager, view_of
from tests.pages.start.training import changed, clicked, opened, sentences
from ui import background_jobs
from ui.site import ROOT

SHIPPED = Path(__file__).parents[3] / "checkpoints" / "timelapse"
# (step, seconds of training, copying of heads 1.0 and 1.3, reading the letter before of head 0.2, both losses)
HEADS = (
    (0, 0.0, 0.02, 0.03, 0.07, 4.25, 4.26),
    (10, 2.0, 0.04, 0.09, 0.21, 4.30, 4.02),
    (20, 4.5, 0.12, 0.08, 0.55, 4.41, 3.13),
    (30, 7.0, 0.21, 0.38, 0.61, 4.52, 2.24),
    (40, 9.5, 0.33, 0.74, 0.63, 4.63, 0.85),
)


def heads_looked(count: int) -> HistoryLog:
    log = HistoryLog()
    for step in range(1, HEADS[count - 1][0] + 1):
        log.add(Step(step, 3.0, 1.0, 1e-3, 100 * step, 0.2 * step))
    for step, seconds, one, other, before, first, second in HEADS[:count]:
        scores = HeadScores(
            ((0.0, 0.0, 0.0, 0.0), (one, 0.0, 0.0, other)),
            ((0.0, 0.0, before, 0.0), (0.0,) * 4),
            first,
            second,
        )
        log.add(Evaluation(step, 2.5, 2.6, seconds, False, 1.0, 1.0, scores))
    return log


def heads_watched(manager: StageManager, count: int, **query: str) -> AppTest:
    page = clicked(opened(preset="induction", **query), "train")
    manager.change(
        "run-0", history=heads_looked(count).view(), snapshots=tuple(one[0] for one in HEADS[:count])
    )
    return page.run()


@pytest.mark.parametrize(
    ("count", "says"),
    [
        (
            3,
            (
                "At step **20** no head copies yet. The best, head 1.0, puts **0.12**",
                "Head 0.2 already attends to the previous character (**0.55**).",
                "cost 4.41 nats, and **3.13**",
            ),
        ),
        (
            5,
            (
                "First head **0.2** learned to attend to the previous character (step 20), then head **1.3**"
                " learned to copy (step **40**), with **0.74** of its weight; at step 20, 5 s of training"
                " earlier, it was 0.08.",
                "cost 4.63 nats, and **0.85**",
            ),
        ),
    ],
)
def test_the_answer_is_of_the_newest_look(manager, drawn, count, says):
    said = sentences(heads_watched(manager, count))
    for words in says:
        assert words in said


def test_every_heads_score_is_drawn_and_named_where_it_passed_a_half(manager, drawn):
    heads_watched(manager, 5)
    figure = drawn["head_scores"]
    lines = {trace["hovertemplate"].split(":")[0]: trace["y"] for trace in figure.traces}
    assert len([name for name in lines if name.startswith("head")]) == 16, "eight heads, two scores each"
    assert lines["head 1.3 copies"] == pytest.approx([one[3] for one in HEADS])
    assert lines["head 0.2 previous token"] == pytest.approx([one[4] for one in HEADS])
    assert lines["new characters"] == pytest.approx([one[5] for one in HEADS])
    assert lines["the same, repeated"] == pytest.approx([one[6] for one in HEADS])
    named = [(note["text"], note["x"], note["y"]) for note in figure.layout["annotations"]]
    assert named.pop(0)[0] == "formed", "the dashed line has its name"
    assert named[:2] == [("0.2", 20, 0.55), ("1.3", 40, 0.74)]
    assert [text for text, *_ in named[2:]] == ["new characters 4.63", "repeated 0.85"]


def test_of_a_pair_the_heads_are_those_of_the_run_that_is_chosen(manager: StageManager, drawn: Any) -> None:
    page = clicked(opened(preset="induction", what_if="positions"), "train_both")
    for run, count in (("run-0", 5), ("run-1", 3)):
        changed(
            page,
            manager,
            run,
            history=heads_looked(count).view(),
            snapshots=tuple(one[0] for one in HEADS[:count]),
        )
    lines = {trace["hovertemplate"].split(":")[0]: trace["y"] for trace in drawn["head_scores"].traces}
    assert lines["head 1.3 copies"] == pytest.approx([one[3] for one in HEADS])
    assert "Best at copying: induction, head 1.3 with **0.74** of its weight; no positions, head 1.0 with **0.12**" in (
        sentences(page).replace("\u2060", "")
    )  # fmt: skip
    assert drawn["head_patterns"].alt.startswith("What two heads attend to, at step 40")
    page.segmented_control(key="heads_of").set_value("second").run()
    lines = {trace["hovertemplate"].split(":")[0]: trace["y"] for trace in drawn["head_scores"].traces}
    assert lines["head 1.3 copies"] == pytest.approx([one[3] for one in HEADS[:3]])
    assert drawn["head_patterns"].alt.startswith("What two heads attend to, at step 20")
    assert page.query_params["heads_of"] == "second"


def test_the_patterns_are_those_of_both_heads_at_the_newest_snapshot(manager, drawn):
    page = heads_watched(manager, 5)
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
    assert titles == ["0.2 previous token: 0.63", "1.3 copies: 0.74"]
    assert "Step **40**: random characters, then the same again" in sentences(page)


def test_before_the_first_run_it_is_seen_how_it_went_in_the_shipped_training(manager, drawn):
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
        f"First head **0.{before}** learned to attend to the previous character (step {first}), then head"
        f" **1.{copies}** learned to copy (step **{second}**)." in said
    )
    last = looks[-1]["heads"]
    assert f"cost {last['first_loss']:.2f} nats, and **{last['second_loss']:.2f}** when" in said
    assert "2 layers, width 96, 35% of the windows repeating their beginning, seed 0, 1,000 steps" in said
    assert [note["text"] for note in drawn["head_patterns"].layout["annotations"]] == [
        f"0.{before} previous token: {last['previous'][0][before]:.2f}",
        f"1.{copies} copies: {last['induction'][1][copies]:.2f}",
    ]
    once = draw_letters(ordinary(token_bytes(open_lapse(SHIPPED).tokenizer)), 24, 0)
    recorder = Recorder({"pattern"})
    open_lapse(SHIPPED).at(looks[-1]["step"]).model(torch.tensor([[*once, *once]]), recorder)
    wanted = recorder["blocks.1.pattern"][0, copies].detach().numpy()
    assert np.array(drawn["head_patterns"].traces[1]["z"]) == pytest.approx(wanted, abs=1e-6)


# (step, validation loss, share right of those learned from, of those held out)
COURSE = ((0, 2.9, 0.0, 0.0), (50, 1.31, 0.22, 0.17), (100, 0.0712, 0.96, 0.89))
needs_shakespeare = pytest.mark.skipif(shakespeare_path() is None, reason="needs Tiny Shakespeare")


def looked(course: tuple[tuple[int, float, float, float], ...], *samples: Sample) -> HistoryLog:
    log = HistoryLog()
    for step in range(1, course[-1][0] + 1):
        log.add(Step(step, 1.5, 1.0, 1e-3, 864 * step, 0.02 * step))
    for step, loss, train, held_out in course:
        end = step == course[-1][0]
        if end:  # a quick look first, then one at all that is held out
            log.add(Evaluation(step, 0.2, 0.3, step / 50, False, task=TaskScores(0.95, 0.71)))
        log.add(Evaluation(step, loss, loss, step / 50, end, task=TaskScores(train, held_out)))
    for sample in samples:
        log.add(sample)
    return log


def watched(manager: StageManager, *samples: Sample, name: str = "pairs-reverse", **query: str) -> AppTest:
    page = clicked(clicked(opened(data="pairs", pairs=name, **query), "pairs_settings"), "train")
    manager.change("run-0", history=looked(COURSE, *samples).view())
    return page.run()


def test_a_task_is_chosen_described_and_started_with_its_settings(manager: StageManager) -> None:
    page = opened(data="pairs", pairs="pairs-dates")
    said = sentences(page)
    text = pair_text("dates")
    assert page.header[0].value == "Dates: when does it get whole targets right?"
    assert f"**20,000** pairs to train on and **1,000** held out; **{text.vocab_size:,}** symbols" in said
    page = clicked(clicked(page, "pairs_settings"), "train")
    assert not page.exception
    spec = manager.view("run-0").spec
    assert (spec.model, spec.train) == kinds.recipe("pairs-dates")
    assert (spec.corpus, spec.name) == ("pairs-dates", "dates")


def test_before_the_first_run_the_loss_of_knowing_nothing_is_said(manager, drawn):
    page = opened(data="pairs", pairs="pairs-sort")
    signs = 12 + 3  # a to l, and padding, begin and end
    assert f"it guesses among **{signs}** symbols: a loss of {math.log(signs):.2f} nats" in sentences(page)
    lines = [shape["y0"] for shape in drawn["empty_chart"].layout["shapes"]]
    assert any(line == pytest.approx(math.log(signs)) for line in lines)
    first = pair_text("sort").train[0]
    assert f"{first.source} → {first.target}" in " ".join(str(one.value) for one in page.code)


def test_what_is_shown_of_a_run(manager: StageManager, drawn: dict[str, Any]) -> None:
    page = watched(manager)
    shown = drawn["solved_chart"]
    assert [trace["y"] for trace in shown.traces] == [[0.0, 0.17, 0.89], [0.0, 0.22, 0.96]]
    assert [trace["name"] for trace in shown.traces] == ["held out 89%", "trained on 96%"]
    assert shown.layout["yaxis"]["title"]["text"] == "targets written without an error"
    assert [trace["x"] for trace in shown.traces] == [[0, 50, 100]] * 2
    said = sentences(page)
    assert "From noise to Shakespeare" not in said and PAIRED["reverse"].summary in said
    notes = [note["text"] for note in drawn["loss_chart"].layout["annotations"]]
    assert "0.07" in notes and "0.30" not in notes
    assert "After **100** steps it writes **89%** of the held-out targets without an error" in said
    assert "(96% of the training targets)" in said
    assert f"Its loss is **0.071** nats; a uniform guess would cost {math.log(15):.2f}." in said
    lines = [shape["y0"] for shape in drawn["loss_chart"].layout["shapes"]]
    assert any(line == pytest.approx(math.log(15)) for line in lines)
    assert "Bits / character" not in [metric.label for metric in page.metric]
    assert "Loss in" not in [one.label for one in page.get("button_group")]


@needs_shakespeare
def test_what_is_shown_of_labels(manager: StageManager, drawn: dict[str, Any]) -> None:
    said = sentences(watched(manager, name=kinds.SPEAKERS))
    assert "it names the speaker of **89%** of the held-out texts (96% of the training texts)" in said
    assert f"a uniform guess would cost {math.log(8):.2f}" in said
    assert drawn["solved_chart"].layout["yaxis"]["title"]["text"] == "speakers named correctly"


def test_what_it_writes_is_marked(manager: StageManager, monkeypatch: pytest.MonkeyPatch) -> None:
    from pages.start.train import samples

    sent: list[Any] = []
    monkeypatch.setattr(samples, "mounted", lambda *_, **__: lambda **data: sent.append(data))
    watched(manager, Sample(0, "abc", "abc"), Sample(50, "abc", "cba"), Sample(100, "a!", "a"))
    texts = [s["text"] for s in sent[-1]["data"]["runs"][0]["samples"]]
    assert texts == ["\n✗ wrong  abc\n← abc", "\n✓ right  cba\n← abc", "\n? not known  a\n← a!"]


def test_only_runs_of_the_same_task_are_laid_over(manager: StageManager) -> None:
    from pages.start.train.beside import comparable

    model, train = kinds.recipe("pairs-reverse")
    views = [
        view_of(RunSpec(model, train, name), name) for name in ("pairs-reverse", "pairs-sort", "python", "x")
    ]
    assert [[comparable(a, b) for b in views] for a in views] == [
        [True, False, False, False],
        [False, True, False, False],
        [False, False, True, True],
        [False, False, True, True],
    ]


# (step, validation loss, share solved of those trained on, of those held out)
SOLVING = ((0, 2.4, 0.0, 0.0), (50, 1.31, 0.22, 0.17), (100, 0.97, 0.86, 0.79))
WROTE = "abcdefgh>hgfedcba\nabcdefgh>abcdefgh\nab"
FLOOR = 8 * math.log(8) / 18


def watched_task(manager: StageManager, **query: str) -> AppTest:
    page = clicked(opened(data="task", task="reverse", preset="task", **query), "train")
    manager.change("run-0", history=looked(SOLVING, Sample(100, "\n", WROTE)).view())
    return page.run()


def test_a_task_is_a_text_to_train_on(manager: StageManager) -> None:
    page = opened(data="task", task="sort")
    assert page.header[0].value == "When does it find the rule? Write the characters in alphabetical order."
    said = sentences(page)
    assert "**18,000** problems to train on and **2,000** held out" in said
    assert f"It begins at {math.log(10):.2f} nats, and no model can get below **0.89**" in said.replace(
        f"{TASKS['sort'].floor(64):.2f}", "0.89"
    )
    page = clicked(page, "train")
    assert manager.view("run-0").spec.corpus == "sort"


def test_what_is_shown_of_a_run_on_a_task(manager: StageManager, drawn: dict[str, Any]) -> None:
    page = watched_task(manager)
    floor = TASKS["reverse"].floor(task_recipe(TASKS["reverse"])[0].context)
    assert floor == pytest.approx(FLOOR)
    shown = drawn["solved_chart"]
    assert [trace["y"] for trace in shown.traces] == [[0.0, 0.17, 0.79], [0.0, 0.22, 0.86]]
    assert [trace["name"] for trace in shown.traces] == ["held out 79%", "trained on 86%"]
    assert shown.traces[0]["x"] == [0, 50, 100]
    context = manager.view("run-0").spec.model.context
    lowest = TASKS["reverse"].floor(context)
    assert any(str(trace["name"]).endswith(" 0.97") for trace in drawn["loss_chart"].traces)
    notes = [note["text"] for note in drawn["loss_chart"].layout["annotations"]]
    assert f"entropy floor: {lowest:.2f}" in notes and "0.97" in notes
    lines = [shape["y0"] for shape in drawn["loss_chart"].layout["shapes"]]
    assert any(line == pytest.approx(lowest) for line in lines)
    said = sentences(page)
    assert "After **100** steps it solves **79%** of the held-out problems (86% of those it" in said
    assert f"Its loss is **0.970** nats; no model gets below {lowest:.3f}." in said


def test_answers_to_a_task_are_marked(manager: StageManager, monkeypatch: pytest.MonkeyPatch) -> None:
    from pages.start.train import samples

    sent: list[Any] = []
    monkeypatch.setattr(samples, "mounted", lambda *_, **__: lambda **data: sent.append(data))
    watched_task(manager)
    (text,) = [s["text"] for s in sent[-1]["data"]["runs"][0]["samples"]]
    assert text == "\n✓ right  abcdefgh>hgfedcba\n✗ wrong  abcdefgh>abcdefgh"
    assert "<" not in json.dumps(text)


PAIRS = {"data": "pairs", "pairs": "pairs-reverse"}
TASK = {"data": "task", "task": "reverse"}


@pytest.mark.parametrize(
    ("query", "says"),
    [
        (PAIRS | {"wiring": "parallel"}, "does not support cross-attention"),
        (PAIRS | {"window": "4"}, "**Window** 4: needs the causal mask"),
        (PAIRS | {"batch_size": "1000000"}, "tokens per step"),
        (TASK | {"tokenizer": "bpe"}, "the tokenizer must be char"),
        (TASK | {"context": "9"}, "must be at least 18"),
    ],
)
def test_what_does_not_go_with_pairs_or_a_task_is_said(query, says, manager):
    page = opened(**query)
    assert says in sentences(page), sentences(page)
    assert page.button(key="train").disabled


HOSTED = PROFILES["hosted"]


def never_again(size: int, first: int = 0x10400) -> str:
    """`size` characters of random words, of letters of four bytes (Deseret): none comes twice."""
    chance = random.Random(1)
    letters = [chr(first + n) for n in range(26)]
    return "".join(" " + "".join(chance.choices(letters, k=9)) for _ in range(size // 10))


def test_the_work_is_what_the_words_that_differ_hold_times_the_rounds() -> None:
    assert [bpe_work.rounds(size) for size in (256, 512, 2048, 8192)] == [1, 2, 4, 6]
    text = never_again(2_000)
    words = 200 * (1 + 9 * 4)  # bytes
    bpe_work.check(text * 50, 512, 2 * words)
    with pytest.raises(TokenizerError, match=f"may have {words - 1:,} bytes") as refused:
        bpe_work.check(text * 50, 512, 2 * words - 1)
    told = int(re.search(r"first ([\d,]+) characters", str(refused.value))[1].replace(",", ""))
    assert 1_980 < told < 2_000
    bpe_work.check((text * 50)[:told], 512, 2 * words - 1)


def test_two_megabytes_of_words_that_never_come_again_are_refused_within_a_second() -> None:
    text = never_again(HOSTED.max_text)
    assert len(text) <= HOSTED.max_text and len(text.encode()) > 1.8e6
    begun = time.thread_time()
    with pytest.raises(TokenizerError, match="characters would fit"):
        finish(corpora.learning(text, "bpe:2048", HOSTED.max_merging))
    assert time.thread_time() - begun < 1
    with pytest.raises(RunError, match="characters would fit"):
        check(HOSTED, RunSpec(ModelConfig(), TrainConfig(tokenizer="bpe:2048"), "text", text))


@pytest.mark.parametrize("source", ["train", "compare", "watched"])
def test_the_heaviest_that_is_let_in_can_be_cancelled_and_others_are_answered(source: str) -> None:
    text = never_again(250_000, ord("a"))
    steps = {
        "train": partial(corpora.learning, text, "bpe:2048", HOSTED.max_merging),
        "compare": partial(shared._learning, text, HOSTED.max_merging),
        "watched": partial(bpe_watch.learning, text, 2_000),
    }[source]
    other = AppTest.from_file(str(ROOT / "pages/models/parameters/page.py"), default_timeout=60)
    for visited in (True, False):
        job = background_jobs.Jobs().of((source,), steps)
        while not job.progress.done:
            assert not job.wait(0.01), "it is over before anybody can leave it"
        if visited:
            assert not other.run().exception and other.main.children
        begun = time.monotonic()
        job.cancel()
        assert job.wait(10) and time.monotonic() - begun < 5
    assert job.left


def test_the_tokens_page_refuses_it_with_a_sentence_and_no_trace(monkeypatch) -> None:
    monkeypatch.setenv("GLASSFORMER_PROFILE", "hosted")
    for view, box in (("compare", "compare_text"), ("cost", "compare_text")):
        page = AppTest.from_file(str(ROOT / "pages/input/tokens/page.py"), default_timeout=60)
        page.query_params.update({"tokens_view": view, "cost_corpus": "yours", "compare_corpus": "yours"})
        page.session_state[box] = never_again(HOSTED.max_watched)
        page.run()
        assert not page.exception
        assert any("characters would fit" in error.value for error in page.error), view


@pytest.mark.parametrize("kept", [False, True])
def test_prose_as_long_as_a_text_may_be_is_learned_from(kept: bool) -> None:
    profile = PROFILES["small" if kept else "hosted"]
    prose = (corpora.load("python").text * 9)[: profile.max_text]
    bpe_work.check(prose, profile.max_vocabulary, profile.max_merging)
    bpe_work.check(prose[: profile.max_watched], 8192, profile.max_merging)
