"""What comes with the bug lab: made by the command, of today's settings, and it shows what is said of it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.data.corpora import load, shakespeare_path
from engine.errors import CheckpointError
from engine.parts.registry import parts_of
from engine.training.records import Step
from engine.training.train import train
from pages.lab.faults import cost
from runs.state import RunView
from studies.experiments import bug_races
from studies.experiments.bug_races import BROKEN, CLOSE, FOLDER, HEALTHY, SEEDS, compare_twins, shipped, specs
from studies.experiments.stored_races import Stored, load_race, run_race
from studies.guesses import training
from studies.lab.faults import FAULTS
from studies.tasks.text_statistics import known_share, words_of
from tests.engine.cases import for_each
from tests.engine.helpers import tiny, verse

TEXT = "to be or not to be"
PLACE = shakespeare_path()
WORDS = PLACE.read_text("utf-8") if PLACE else load("python").text


def test_a_share_of_words_is_counted_by_hand() -> None:
    words = words_of("To be, or not\nto BE 'twas o'er a")
    assert words == {"to", "be", "or", "not", "twas", "o'er"}
    assert known_share("To be::", words) == 4 / 6  # T o b e, of six visible
    assert known_share("tobe a or", words) == 2 / 7  # one letter alone is no word
    assert known_share(" \n", words) == 0.0


@pytest.fixture(scope="module")
def raced() -> tuple[RunView, ...]:
    corpus, both = verse(), specs(FAULTS["no_mask"])
    order = replace(both[0].train, steps=12, eval_every=4, eval_tokens=512, sample_every=12)
    small = tiny(vocab_size=corpus.vocab_size, context=32, d_model=32, position="rope")
    made = [replace(spec, corpus="text", text=corpus.text, model=small, train=order) for spec in both]
    return run_race(made, "a test", "cpu").runs


def test_what_is_found_is_read_off_the_runs(raced: tuple[RunView, ...]) -> None:
    both = compare_twins(raced, TEXT)
    ends = [view.history.evaluations[-1] for view in raced]
    assert all(end.complete for end in ends)
    assert (both.healthy.loss, both.broken.loss) == tuple(end.validation_loss for end in ends)
    assert both.cost == ends[1].validation_loss - ends[0].validation_loss
    for side, view in zip((both.healthy, both.broken), raced, strict=True):
        assert side.text == view.history.samples[-1].text and side.step == 12 and side.died is None
        assert side.words == known_share(side.text, {"to", "be", "or", "not"})


def ending(view: RunView, loss: float) -> RunView:
    looks = tuple(replace(e, validation_loss=loss) for e in view.history.evaluations)
    return replace(view, history=replace(view.history, evaluations=looks))


@for_each("loss, died, kind", [
    (2.0 + CLOSE / 2, False, "hides"), (1.0, False, "flatters"), (2.5, False, "costs"), (math.nan, False, "unknown"),
    (1.9, True, "dies"),
])  # fmt: skip
def test_what_a_loss_says(raced: tuple[RunView, ...], loss: float, died: bool, kind: str) -> None:
    changed = [ending(view, end) for view, end in zip(raced, (2.0, loss), strict=True)]
    if died:  # after its look at step 8
        looks = changed[1].history.evaluations
        cut = replace(changed[1].history, evaluations=tuple(e for e in looks if e.step <= 8))
        changed[1] = replace(changed[1], status="failed", step=9, history=cut)
    both = compare_twins(changed, TEXT)
    assert both.kind == kind and both.broken.died == (9 if died else None)
    if died:
        assert both.healthy.step == 12 and both.healthy.loss == 2.0


def test_the_cost_of_a_bug_is_the_median_over_seeds(raced: tuple[RunView, ...]) -> None:
    healthy, broken = raced
    repeats = [ending(healthy, 2.0), ending(broken, 2.1), ending(healthy, 2.0), ending(broken, 3.0)]
    both = compare_twins([ending(healthy, 2.0), ending(broken, 1.9)], TEXT, repeats)
    assert both.costs == pytest.approx((-0.1, 0.1, 1.0)) and both.cost == pytest.approx(0.1)
    assert both.typical == (2.0, 2.1)
    assert (
        f"median loss **{both.typical[1]:.2f}** with the bug, **{both.typical[0]:.2f}** healthy"
        in cost.answer(both)
    )
    assert both.kind == "varies", "it costs a nat with one seed, and nothing with another"
    steady = compare_twins([ending(healthy, 2.0), ending(broken, 1.9)], TEXT, [*repeats[:2], *repeats[:2]])
    assert steady.kind == "costs", "the first seed alone flatters"


def test_repeats_are_added_to_a_stored_race(tmp_path: Path, raced: tuple[RunView, ...]) -> None:
    """Each with its seed and without its curve; a second call trains nothing, and the rest of the file stays."""
    path, pair = tmp_path / "bug.json", [view.spec for view in raced]
    Stored("a test", raced, more={"patterns": [None], "clock": "none"}).save(path)
    bug_races._repeat(path, pair, {})
    again = load_race(path)
    ours = [(view.name, view.spec.train.seed) for view in again.repeats]
    assert ours == [(name, seed) for seed in (1, 2) for name in ("healthy", "with the bug")]
    for view in again.repeats:
        assert len(view.history.steps) == 0 and view.history.evaluations[-1].complete
    first, other = raced[0].history.evaluations[-1], again.repeats[0].history.evaluations[-1]
    assert first.validation_loss != other.validation_loss
    values = json.loads(path.read_text())
    assert (values["patterns"], values["clock"]) == ([None], "none")
    bug_races._repeat(path, pair, {})
    assert json.loads(path.read_text()) == values


def test_patterns_survive_the_file() -> None:
    made = bug_races.Patterns(("a", "b"), (0, 2), np.random.default_rng(0).random((2, 3, 2, 2), np.float32))
    again = bug_races._opened(bug_races._packed(made) or {})
    assert again.tokens == made.tokens and again.layers == made.layers
    np.testing.assert_allclose(again.weights, made.weights, atol=0.5 / 255 + 1e-6)


def test_a_clock_says_what_a_step_costs(raced: tuple[RunView, ...]) -> None:
    costs = {"healthy": 0.5, "no_mask": 0.25}
    timed = bug_races.clocked(Stored("a test", raced), lambda spec: costs[spec.parts])
    assert [view.seconds for view in timed.runs] == [6.0, 3.0]  # of 12 steps
    assert timed.runs[1].history.rows["seconds"].tolist() == [0.25 * step for step in range(1, 13)]
    before, after = (view.history for view in (raced[0], timed.runs[0]))
    assert [look.seconds for look in after.evaluations] == [0.5 * look.step for look in before.evaluations]
    np.testing.assert_array_equal(after.rows["loss"], before.rows["loss"])


@for_each("name", FAULTS)
def test_a_stored_race_is_of_today_s_settings(name: str) -> None:
    bug = shipped(name)
    healthy, broken = bug.race.runs
    assert healthy.status == "finished" and healthy.step == healthy.spec.train.steps
    assert broken.spec.parts == FAULTS[name].parts and healthy.spec.parts == "healthy"
    assert healthy.history.samples and broken.history.samples and len(bug.patterns) == 2
    seeds = sorted((view.name, view.spec.train.seed) for view in bug.race.repeats)
    assert seeds == sorted((who, seed) for who in (HEALTHY, BROKEN) for seed in SEEDS[1:])
    assert (FOLDER / f"{name}.json").stat().st_size < 120_000


def test_no_race_is_stored_of_a_bug_that_is_gone() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(FAULTS)


def test_a_race_of_other_settings_is_refused(tmp_path: Path) -> None:
    data = (FOLDER / "no_mask.json").read_text("utf-8")
    (tmp_path / "no_mask.json").write_text(data.replace('"d_model":64', '"d_model":32'), "utf-8")
    with pytest.raises(CheckpointError, match=r"other settings.*studies\.experiments bugs no_mask"):
        shipped("no_mask", tmp_path)
    with pytest.raises(CheckpointError):
        shipped("not_shifted", tmp_path)


KINDS = {
    "flatters": {
        *("no_mask", "transposed_mask", "leaky_mask", "mask_after_softmax", "softmax_over_queries"),
        *("not_shifted", "overlapping_split"),
    },
    "dies": {"half_softmax", "no_clipping_sgd"},
    "costs": {
        *("unscaled_scores", "no_transpose", "keys_not_normed", "no_positions", "no_residual"),
        *("first_block_only", "loud_embedding", "learning_rate_30x", "no_clipping", "shifted_by_two"),
        "dropout_left_on",
        "loud_positions",
    },
    "varies": {"post_norm_no_warmup"},
    "hides": {"unscaled_writes", "norm_in_loop"},
}
CHEATS = {"no_mask", "transposed_mask", "mask_after_softmax", "softmax_over_queries", "not_shifted"}


@for_each("name", FAULTS)
def test_a_stored_race_shows_what_is_said_of_it(name: str) -> None:
    """A cheat has a better loss and says nothing; which others cost, flatter or die."""
    race = shipped(name).race
    both = compare_twins(race.runs, WORDS, race.repeats)
    for kind, names in KINDS.items():
        assert (name in names) <= (both.kind == kind), both
    if name in CHEATS and PLACE:  # what it says is held beside the words of the text that it has read
        assert both.broken.words < both.healthy.words / 2


@pytest.mark.exhaustive
@pytest.mark.skipif(PLACE is None, reason="Tiny Shakespeare is not here")
@for_each("name", ["leaky_mask", "keys_not_normed"])
def test_a_stored_race_can_be_run_again(name: str) -> None:
    corpus = load("shakespeare")
    for view in shipped(name).race.runs:
        rows = view.history.rows
        wanted = {int(row["step"]): float(row["loss"]) for row in rows[:6]}
        order = replace(view.spec.train, eval_every=0, eval_tokens=64, sample_every=0, look_early=False)
        short = replace(corpus, validation=corpus.validation[:129])
        steps: dict[int, float] = {}
        for event in train(view.spec.model, order, short, device="cpu", parts=parts_of(view.spec.parts)):
            if isinstance(event, Step):
                steps[event.step] = event.loss
            if len(steps) == max(wanted):
                break
        assert {step: steps[step] for step in wanted} == pytest.approx(wanted, abs=2e-3)


def test_without_clipping_sgd_spikes_into_nan_with_every_seed_and_adamw_with_none() -> None:
    def ends(name: str, who: str) -> list[tuple[int, str, int]]:
        return [(v.spec.train.seed, v.status, v.step) for v in shipped(name).race.over_seeds(who)]

    assert ends("no_clipping_sgd", BROKEN) == [(0, "failed", 32), (1, "failed", 28), (2, "failed", 28)]
    for name, who in (("no_clipping_sgd", HEALTHY), ("no_clipping", BROKEN)):
        assert {status for _, status, _ in ends(name, who)} == {"finished"}
    norms = shipped("no_clipping_sgd").race.runs[1].history.grad_norms
    assert norms[:12].max() < 5 and norms[:24].max() > 30


@for_each("name", ["half_softmax", "no_clipping_sgd"])
def test_a_guess_about_a_run_that_diverges_says_so(name: str) -> None:
    bug = bug_races.shipped(name)
    truth = training.mistake(compare_twins(bug.race.runs, TEXT, bug.race.repeats))
    assert truth is not None and truth.right == "worse" and math.isnan(truth.numbers["broken"])
