"""Runs that form heads, learn from pairs, labels or a task, or cut a text of one's own into tokens."""

import json
import math
import random
import re
import time
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine.config import ModelConfig, TrainConfig
from engine.data import corpora
from engine.data.corpora import shakespeare_path
from engine.data.progress import finish
from engine.data.tokenizers import token_bytes
from engine.errors import RunError, TokenizerError
from engine.probe import Recorder
from engine.training.records import Evaluation, HeadScores, Sample, Step, TaskScores
from pages.input.tokens import training_text
from pages.start.train import samples
from pages.start.train.shown_runs import comparable
from pages.start.train.what_if import WHAT_IFS
from runs import bpe_process, kinds
from runs.history import HistoryLog
from runs.profiles import PROFILES, check
from runs.snapshot_series import open_lapse
from runs.state import RunSpec
from studies.circuits.induction import drawn as draw_letters
from studies.circuits.induction import ordinary
from studies.pairs.corpora import pair_text
from studies.pairs.presets import PAIRED
from studies.tasks.all import TASKS
from studies.tasks.recipes import task_recipe
from studies.tokens import bpe_watch, bpe_work
from tests.pages import helpers
from tests.pages.helpers import lacking
from tests.pages.stage import StageManager, view_of
from tests.pages.start.training import begun, clicked, opened, recipe, sentences
from ui import background_jobs
from ui.site import ROOT

pytestmark = pytest.mark.usefixtures("manager")

SHIPPED = ROOT / "checkpoints" / "timelapse"
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


def heads_state(count: int) -> dict[str, Any]:
    return {"history": heads_looked(count).view(), "snapshots": tuple(one[0] for one in HEADS[:count])}


def heads_watched(manager: StageManager, count: int) -> AppTest:
    return opened(preset="induction", run=begun(manager, recipe("induction"), **heads_state(count)))


COPIED = (
    "First head **0.2** learned to attend to the previous character (step 20), then head **1.3** learned to copy"
    " (step **40**), with **0.74** of its weight; at step 20, 5 s of training earlier, it was 0.08."
)


@pytest.mark.parametrize(
    ("count", "says"),
    [
        (3, ("At step **20** no head copies yet. The best, head 1.0, puts **0.12**",
             "Head 0.2 already attends to the previous character (**0.55**).", "cost 4.41 nats, and **3.13**")),
        (5, (COPIED, "cost 4.63 nats, and **0.85**")),
    ],
)  # fmt: skip
def test_the_answer_is_of_the_newest_look(manager, count, says):
    assert not lacking(sentences(heads_watched(manager, count)), *says)


def scores(drawn: Any) -> dict[str, list[float]]:
    return {trace["hovertemplate"].split(":")[0]: trace["y"] for trace in drawn["head_scores"].traces}


def test_every_heads_score_is_drawn_and_named_where_it_passed_a_half(manager, drawn):
    heads_watched(manager, 5)
    lines, columns = scores(drawn), [*zip(*HEADS, strict=True)]
    assert len([name for name in lines if name.startswith("head")]) == 16, "eight heads, two scores each"
    names = ("head 1.3 copies", "head 0.2 previous token", "new characters", "the same, repeated")
    for name, column in zip(names, columns[3:], strict=True):
        assert lines[name] == pytest.approx(column)
    notes = drawn["head_scores"].layout["annotations"]
    named = [(note["text"], note["x"], note["y"]) for note in notes]
    assert named.pop(0)[0] == "formed", "the dashed line has its name"
    assert named[:2] == [("0.2", 20, 0.55), ("1.3", 40, 0.74)]
    assert [text for text, *_ in named[2:]] == ["new characters 4.63", "repeated 0.85"]


def test_of_a_pair_the_heads_are_those_of_the_run_that_is_chosen(manager: StageManager, drawn: Any) -> None:
    spec = recipe("induction")
    pair = manager.start_comparison(spec, WHAT_IFS["positions"].applied(spec), "this-browser")
    for run, count in zip(pair, (5, 3), strict=True):
        manager.change(run, **heads_state(count))
    page = opened(preset="induction", run=pair[0])
    assert scores(drawn)["head 1.3 copies"] == pytest.approx([one[3] for one in HEADS])
    assert "Best at copying: induction, head 1.3 with **0.74** of its weight; no positions, head 1.0 with **0.12**" in (
        sentences(page).replace("\u2060", "")
    )  # fmt: skip
    assert drawn["head_patterns"].alt.startswith("What two heads attend to, at step 40")
    page.segmented_control(key="heads_of").set_value("second").run()
    assert scores(drawn)["head 1.3 copies"] == pytest.approx([one[3] for one in HEADS[:3]])
    assert drawn["head_patterns"].alt.startswith("What two heads attend to, at step 20")
    assert page.query_params["heads_of"] == "second"


def patterns(checkpoint: Any) -> Recorder:
    """What every head attends to where 24 letters by chance are read twice."""
    once = draw_letters(ordinary(token_bytes(checkpoint.tokenizer)), 24, 0)
    recorder = Recorder({"pattern"})
    checkpoint.model(torch.tensor([[*once, *once]]), recorder)
    return recorder


def test_the_patterns_are_those_of_both_heads_at_the_newest_snapshot(manager, drawn):
    page, recorder = heads_watched(manager, 5), patterns(manager.model("run-0", 40))
    for trace, (layer, head) in zip(drawn["head_patterns"].traces, ((0, 2), (1, 3)), strict=True):
        wanted = recorder[f"blocks.{layer}.pattern"][0, head].numpy()
        assert np.array(trace["z"]) == pytest.approx(wanted, abs=1e-6)
    titles = [note["text"] for note in drawn["head_patterns"].layout["annotations"]]
    assert titles == ["0.2 previous token: 0.63", "1.3 copies: 0.74"]
    assert "Step **40**: random characters, then the same again" in sentences(page)


def test_before_the_first_run_it_is_seen_how_it_went_in_the_shipped_training(drawn):
    """All of it read off the shipped numbers and weights by hand."""
    said = sentences(opened(preset="induction"))
    looks = json.loads((SHIPPED / "metrics.json").read_text())["looks"]
    last = looks[-1]["heads"]

    def best(kind: str, layer: int) -> tuple[int, int]:
        """The head, and the step since which it has half of its weight there."""
        head = int(np.argmax(last[kind][layer]))
        assert last[kind][layer][head] == np.max(last[kind])
        return head, next(one["step"] for one in looks if one["heads"][kind][layer][head] >= 0.5)

    (before, first), (copies, second) = best("previous", 0), best("induction", 1)
    assert first < second
    assert not lacking(
        said,
        f"First head **0.{before}** learned to attend to the previous character (step {first}), then head",
        f"then head **1.{copies}** learned to copy (step **{second}**).",
        f"cost {last['first_loss']:.2f} nats, and **{last['second_loss']:.2f}** when",
        "2 layers, width 96, 35% of the windows repeating their beginning, seed 0, 1,000 steps",
    )
    assert [note["text"] for note in drawn["head_patterns"].layout["annotations"]] == [
        f"0.{before} previous token: {last['previous'][0][before]:.2f}",
        f"1.{copies} copies: {last['induction'][1][copies]:.2f}",
    ]
    wanted = patterns(open_lapse(SHIPPED).at(looks[-1]["step"]))["blocks.1.pattern"][0, copies]
    assert np.array(drawn["head_patterns"].traces[1]["z"]) == pytest.approx(wanted.detach().numpy(), abs=1e-6)


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


def watched(manager: StageManager, *samples: Sample, name: str = "pairs-reverse") -> AppTest:
    spec = RunSpec(*kinds.recipe(name), name)
    return opened(data="pairs", pairs=name, run=begun(manager, spec, history=looked(COURSE, *samples).view()))


def test_a_task_is_chosen_described_and_started_with_its_settings(manager: StageManager) -> None:
    page, text = opened(data="pairs", pairs="pairs-dates"), pair_text("dates")
    assert page.header[0].value == "Dates: when does it get whole targets right?"
    told = f"**20,000** pairs to train on and **1,000** held out; **{text.vocab_size:,}** symbols"
    assert told in sentences(page)
    clicked(clicked(page, "pairs_settings"), "train")
    spec = manager.views["run-0"].spec
    assert (spec.model, spec.train) == kinds.recipe("pairs-dates")
    assert (spec.corpus, spec.name) == ("pairs-dates", "dates")


def test_before_the_first_run_the_loss_of_knowing_nothing_is_said(drawn):
    page, signs = opened(data="pairs", pairs="pairs-sort"), 12 + 3  # a to l, and padding, begin and end
    assert f"it guesses among **{signs}** symbols: a loss of {math.log(signs):.2f} nats" in sentences(page)
    assert [math.log(signs)] == lines_across(drawn, "empty_chart")
    first = pair_text("sort").train[0]
    assert f"{first.source} → {first.target}" in " ".join(str(one.value) for one in page.code)


def lines_across(drawn: dict[str, Any], chart: str = "loss_chart") -> Any:
    return pytest.approx(sorted(shape["y0"] for shape in drawn[chart].layout["shapes"]))


def test_what_is_shown_of_a_run(manager: StageManager, drawn: dict[str, Any]) -> None:
    page = watched(manager)
    shown, said = drawn["solved_chart"], sentences(page)
    assert [trace["y"] for trace in shown.traces] == [[0.0, 0.17, 0.89], [0.0, 0.22, 0.96]]
    assert [trace["name"] for trace in shown.traces] == ["held out 89%", "trained on 96%"]
    assert shown.layout["yaxis"]["title"]["text"] == "targets written without an error"
    assert [trace["x"] for trace in shown.traces] == [[0, 50, 100]] * 2
    assert not lacking(
        said,
        PAIRED["reverse"].summary,
        "After **100** steps it writes **89%** of the held-out targets without an error",
        "(96% of the training targets)",
        f"Its loss is **0.071** nats; a uniform guess would cost {math.log(15):.2f}.",
    )
    notes = [note["text"] for note in drawn["loss_chart"].layout["annotations"]]
    assert "0.07" in notes and "0.30" not in notes and "From noise to Shakespeare" not in said
    assert [math.log(15)] == lines_across(drawn)
    assert "Bits / character" not in [metric.label for metric in page.metric]
    assert "Loss in" not in [one.label for one in page.get("button_group")]


@needs_shakespeare
def test_what_is_shown_of_labels(manager: StageManager, drawn: dict[str, Any]) -> None:
    said = sentences(watched(manager, name=kinds.SPEAKERS))
    assert "it names the speaker of **89%** of the held-out texts (96% of the training texts)" in said
    assert f"a uniform guess would cost {math.log(8):.2f}" in said
    assert drawn["solved_chart"].layout["yaxis"]["title"]["text"] == "speakers named correctly"


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the player of the samples is sent: the last message holds the newest."""
    sent: list[Any] = []
    monkeypatch.setattr(samples, "mounted", lambda *_, **__: lambda **data: sent.append(data["data"]))
    return sent


def texts(sent: list[Any]) -> list[str]:
    return [s["text"] for s in sent[-1]["runs"][0]["samples"]]


def test_what_it_writes_is_marked(manager: StageManager, written: list[Any]) -> None:
    watched(manager, Sample(0, "abc", "abc"), Sample(50, "abc", "cba"), Sample(100, "a!", "a"))
    assert texts(written) == ["\n✗ wrong  abc\n← abc", "\n✓ right  cba\n← abc", "\n? not known  a\n← a!"]


def test_only_runs_of_the_same_task_are_laid_over() -> None:
    names = ("pairs-reverse", "pairs-sort", "python", "x")
    views = [view_of(RunSpec(*kinds.recipe("pairs-reverse"), name), name) for name in names]
    alike = {(a, b) for a, one in zip(names, views, strict=True) for b, other in zip(names, views, strict=True)
             if comparable(one, other)}  # fmt: skip
    assert alike == {(name, name) for name in names} | {("python", "x"), ("x", "python")}


# (step, validation loss, share solved of those trained on, of those held out)
SOLVING = ((0, 2.4, 0.0, 0.0), (50, 1.31, 0.22, 0.17), (100, 0.97, 0.86, 0.79))
WROTE = "abcdefgh>hgfedcba\nabcdefgh>abcdefgh\nab"


def watched_task(manager: StageManager) -> AppTest:
    spec = RunSpec(*task_recipe(TASKS["reverse"]), "reverse")
    log = looked(SOLVING, Sample(100, "\n", WROTE)).view()
    return opened(data="task", task="reverse", preset="task", run=begun(manager, spec, history=log))


def test_a_task_is_a_text_to_train_on(manager: StageManager) -> None:
    page = opened(data="task", task="sort")
    assert page.header[0].value == "When does it find the rule? Write the characters in alphabetical order."
    assert not lacking(
        sentences(page),
        "**18,000** problems to train on and **2,000** held out",
        f"It begins at {math.log(10):.2f} nats, and no model can get below **{TASKS['sort'].floor(64):.2f}**",
    )
    clicked(page, "train")
    assert manager.views["run-0"].spec.corpus == "sort"


def test_what_is_shown_of_a_run_on_a_task(manager: StageManager, drawn: dict[str, Any]) -> None:
    said, shown = sentences(watched_task(manager)), drawn["solved_chart"]
    floor = TASKS["reverse"].floor(manager.views["run-0"].spec.model.context)
    assert floor == pytest.approx(8 * math.log(8) / 18)
    assert [trace["y"] for trace in shown.traces] == [[0.0, 0.17, 0.79], [0.0, 0.22, 0.86]]
    assert [trace["name"] for trace in shown.traces] == ["held out 79%", "trained on 86%"]
    assert shown.traces[0]["x"] == [0, 50, 100]
    assert any(str(trace["name"]).endswith(" 0.97") for trace in drawn["loss_chart"].traces)
    notes = [note["text"] for note in drawn["loss_chart"].layout["annotations"]]
    assert f"entropy floor: {floor:.2f}" in notes and "0.97" in notes
    assert any(shape["y0"] == pytest.approx(floor) for shape in drawn["loss_chart"].layout["shapes"])
    assert not lacking(
        said,
        "After **100** steps it solves **79%** of the held-out problems (86% of those it",
        f"Its loss is **0.970** nats; no model gets below {floor:.3f}.",
    )


def test_answers_to_a_task_are_marked(manager: StageManager, written: list[Any]) -> None:
    watched_task(manager)
    assert texts(written) == ["\n✓ right  abcdefgh>hgfedcba\n✗ wrong  abcdefgh>abcdefgh"]


@pytest.mark.parametrize(
    ("data", "field", "value", "says"),
    [
        ("pairs", "wiring", "parallel", "does not support cross-attention"),
        ("pairs", "window", "4", "**Window** 4: needs the causal mask"),
        ("pairs", "batch_size", "1000000", "tokens per step"),
        ("task", "tokenizer", "bpe", "the tokenizer must be char"),
        ("task", "context", "9", "must be at least 18"),
    ],
)
def test_what_does_not_go_with_pairs_or_a_task_is_said(data, field, value, says):
    page = opened(data=data, pairs="pairs-reverse", task="reverse", **{field: value})
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
        finish(bpe_process.learning_for(text, "bpe:2048", HOSTED.max_merging))
    assert time.thread_time() - begun < 1
    with pytest.raises(RunError, match="characters would fit"):
        check(HOSTED, RunSpec(ModelConfig(), TrainConfig(tokenizer="bpe:2048"), "text", text))


@pytest.mark.parametrize("source", ["train", "compare", "watched"])
def test_the_heaviest_that_is_let_in_can_be_cancelled_and_others_are_answered(source: str) -> None:
    text = never_again(250_000, ord("a"))
    steps = {
        "train": partial(bpe_process.learning_for, text, "bpe:2048", HOSTED.max_merging),
        "compare": partial(training_text._learning, text, HOSTED.max_merging),
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


@pytest.mark.parametrize("view", ["compare", "cost"])
def test_the_tokens_page_refuses_it_with_a_sentence_and_no_trace(view: str, monkeypatch) -> None:
    monkeypatch.setenv("GLASSFORMER_PROFILE", "hosted")
    yours = {"tokens_view": view, "cost_corpus": "yours", "compare_corpus": "yours"}
    page = helpers.opened("input/tokens", {"compare_text": never_again(HOSTED.max_watched)}, **yours)
    assert any("characters would fit" in error.value for error in page.error)


@pytest.mark.parametrize("kept", [False, True])
def test_prose_as_long_as_a_text_may_be_is_learned_from(kept: bool) -> None:
    profile = PROFILES["small" if kept else "hosted"]
    prose = (corpora.load("python").text * 9)[: profile.max_text]
    bpe_work.check(prose, profile.max_vocabulary, profile.max_merging)
    bpe_work.check(prose[: profile.max_watched], 8192, profile.max_merging)
