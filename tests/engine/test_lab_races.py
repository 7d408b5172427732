"""The races that come with the app: what is claimed of them holds, over seeds and when they are run again."""

from __future__ import annotations

from itertools import pairwise

import pytest

from engine.ledger import ledger
from engine.presets.ladder import FIRST_FOUR, LADDER
from engine.presets.raced import NORM_DEPTHS, QUESTIONS
from engine.service import lab_races
from engine.service.climbing import idea, losses
from engine.service.lab_races import RUNGS, SEEDS, UNSEEDED, seed_losses, shipped, specs_of
from tests.engine.cases import for_each

STORED = [name for name in QUESTIONS if (lab_races.SHIPPED / f"{name}.json").exists()]


@for_each("name", [RUNGS, *STORED])
def test_what_is_shipped_is_what_the_button_starts(name: str) -> None:
    found = shipped(name)
    specs = specs_of(name)
    assert len(found.runs) == len(specs) and "engine.pretrain races" in found.made
    for view, spec in zip(found.runs, specs, strict=True):
        assert view.spec.same_recipe(spec) and view.name == spec.name
        assert view.status in ("finished", "failed")
        if view.status == "finished":
            last = view.history.evaluations[-1]
            assert last.step == spec.train.steps and last.complete


def test_the_first_race_has_an_order_that_holds_over_seeds() -> None:
    """average > last letter > full block > positions, each by more than the seeds differ."""
    assert FIRST_FOUR == ("mean", "last", "block-4", "positions")
    over = {name: seed_losses(name) for name in FIRST_FOUR}
    assert all(len(found) == len(SEEDS) == 3 for found in over.values())
    for above, below in pairwise(FIRST_FOUR):
        assert min(over[above]) - max(over[below]) > 0.05
    bigram = 2.482
    assert max(over["block-4"]) < bigram < min(over["last"])


def test_the_seeds_are_those_of_the_shipped_race() -> None:
    race = losses(shipped(RUNGS).runs)
    for name in LADDER:
        if name in UNSEEDED:
            assert seed_losses(name) == ()
        elif seed_losses(name):
            assert len(seed_losses(name)) == len(SEEDS)
            assert seed_losses(name)[0] == pytest.approx(race[name], abs=0.03)


# What the page says of a rung against the one below it (pages.lab.ladder.words.REMARKS).
BETTER = (
    "similarity",
    "values",
    "attention-1",
    "attention-4",
    "block-1",
    "block-2",
    "output",
    "positions",
    "modern",
)
WORSE = ("mean", "two-matrices")


@for_each("name", [*BETTER, *WORSE])
def test_a_rung_beats_the_one_that_the_page_says_it_beats(name: str) -> None:
    found = idea(name, losses(shipped(RUNGS).runs), seed_losses)
    assert found is not None and found.seeds == (3 if seed_losses(name) else 0)
    assert found.verdict == ("better" if name in BETTER else "worse")


def test_above_the_table_of_pairs_positions_buy_most() -> None:
    found, names = losses(shipped(RUNGS).runs), list(LADDER)
    bought = [idea(name, found) for name in names[names.index("similarity") + 1 :]]
    sound = [each for each in bought if each is not None and each.verdict != "exploded"]
    assert max(sound, key=lambda each: each.saved).name == "positions"
    assert min(found["values"], found["two-matrices"]) > found["last"]  # no better than the table


def test_what_explodes_starts_with_a_stream_that_has_grown() -> None:
    """Eight layers without a norm: the first loss is tens of nats; with one it is near ln 65 + 1/2."""
    first = {view.name: view.history.evaluations[0].validation_loss for view in shipped(RUNGS).runs}
    assert first[LADDER["attention-8"].title] > 20 and first[LADDER["block-8"].title] > 50
    assert first[LADDER["norm"].title] < 5
    found = losses(shipped(RUNGS).runs)
    assert all(idea(name, found).verdict == "exploded" for name in UNSEEDED)  # type: ignore[union-attr]


def test_contestants_differ_in_what_is_asked_alone() -> None:
    def differ(name: str) -> set[str]:
        made = [one.model.to_dict() | one.train.to_dict() for one in QUESTIONS[name].contestants]
        return {key for key, value in made[0].items() if any(each[key] != value for each in made)}

    fields = {"heads": {"n_heads"}, "widths": {"d_ff"}, "shapes": {"n_layers", "d_model"}, "inits": {"init"}}
    fields |= {"cuts": {"vocab_size", "tokenizer"}}
    fields |= {f"norms-{depth}": {"wiring", "warmup_steps"} for depth in NORM_DEPTHS}
    assert {name: differ(name) for name in fields} == fields
    for depth in NORM_DEPTHS:
        assert {each.model.n_layers for each in QUESTIONS[f"norms-{depth}"].contestants} == {depth}


def test_deep_or_wide_has_as_many_parameters_in_its_blocks() -> None:
    """12 L d^2 in attention and networks: 196,608."""
    for each in QUESTIONS["shapes"].contestants:
        found = ledger(each.model)
        norms = 2 * each.model.n_layers * each.model.d_model
        assert found.in_blocks - norms == 12 * each.model.n_layers * each.model.d_model**2 == 196_608
