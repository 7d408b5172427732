"""The view "Reward": a model draws answers, and those that are rewarded become likelier; or it learns from
pairs of texts (preferences.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.slices import seed_median
from pages.lab.after import preferences
from pages.lab.after.answer_bars import answer_bars
from pages.lab.after.stored_runs import (
    choose_seed,
    draw_ends,
    joined,
    seed_lines,
    stored_runs,
    tables_of,
    train_button,
    trained,
)
from studies.after.reward import (
    ASKED,
    CONFIG,
    HALF,
    TRIES,
    Group,
    Plan,
    Rewarded,
    RewardEvaluation,
    advantages,
    measure,
    reinforce,
    rewards,
)
from studies.experiments.reward_runs import LEASHES, shipped
from studies.guesses import reward as truths
from ui import content, explain, guess, widgets
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.guess import Guess
from ui.page_frame import Parts, View
from ui.players.plot import plot
from ui.text.numbers import minus

TEXT = content.beside(__file__)
REWARDED: tuple[Rewarded, ...] = ("right", "ends in 0")
CLEAR = 0.05  # a share that changes by less is not said to have changed
HEIGHT = 350
LINES = {  # column -> (colour, dash, width)
    "any_of": ("validation", "dot", 2.0),
    "first_try": ("output", "solid", 3.0),
    "greedy": ("quiet", "solid", 1.5),
    "reward": ("run1", "dash", 2.5),
}
Looks = tuple[RewardEvaluation, ...]


def draw(container: DeltaGenerator) -> None:
    """Draws the share of right answers by step, over the seeds of the stored runs until one is trained here,
    and one group with its advantages.
    """
    with container:
        plan, pressed = _plan()
    stored = _stored(plan)
    if plan.rewarded == "right":
        guess.ask("hacked", _guess, _stored(replace(plan, rewarded="ends in 0")))
    live = trained(
        ("reward", plan),
        pressed,
        partial(measure, plan),
        TEXT["training"],
        lambda looks: _by_step(plan, stored, looks),
    )
    if live is None:
        return
    if not (live or stored):
        explain.answer(TEXT["nothing"])
        return
    shown = live or stored[plan.seed % len(stored)]
    left, right = st.columns([5, 4], gap="small")
    with left:
        _by_step(plan, stored, live)
    with right:
        _group(shown[0].group)
    explain.answer(answer(plan, (live,) if live else stored))
    measured = TEXT("measured", asked=ASKED, tries=TRIES)
    explain.measure_it(draw_ends, table, stored, live, measured)
    mean = shown[0].group.mean
    explain.by_hand(st.markdown, TEXT("by hand", mean=mean, rewarded=1 - mean, other=-mean))


def _plan() -> tuple[Plan, bool]:
    """Returns the run that is shown, or would be trained, and whether its button was pressed."""
    a, b, c, d = st.columns([7, 3, 3, 4], gap="small", vertical_alignment="bottom")
    titles = {rewarded: TEXT(f"reward {rewarded}") for rewarded in REWARDED}
    rewarded = widgets.select(TEXT["reward for"], titles, "reward_for", container=a)
    names = {leash: f"{leash:g}" for leash in LEASHES}
    leash = widgets.select(TEXT["penalty"], names, "reward_leash", container=b, hint=TEXT["leash hint"])
    seed = choose_seed(c, "reward", TEXT["seed hint"])
    return Plan(rewarded, leash=leash, seed=seed), train_button(d, "reward", TEXT("train", seed=seed))


def _stored(plan: Plan) -> tuple[Looks, ...]:
    """Returns the stored runs with this reward and penalty, by seed; none where the file is not whole."""
    wanted = plan.rewarded, plan.leash
    runs = stored_runs(shipped)
    return tuple(run.looks for run in runs if (run.plan.rewarded, run.plan.leash) == wanted)


def _by_step(plan: Plan, stored: Sequence[Looks], live: Looks) -> None:
    if not (stored or live):
        return
    tables = tables_of(table, stored, live)
    ends = [
        TEXT("alt end", first=run[-1].first_try, tries=TRIES, any_of=run[-1].any_of, reward=run[-1].reward)
        for run in ((live,) if live else stored)
    ]
    plot(
        shares_by_step(*tables, plan.steps, plan.rewarded),
        key="reward_by_step",
        height=HEIGHT,
        name="reward",
        data=joined(*tables),
        alt=TEXT("alt", ends="; ".join(ends)),
    )


def _group(group: Group) -> None:
    """Draws the answers to one question, and their advantages."""
    answers = [
        f"{a} {minus(f'{value:+.2f}')}" for a, value in zip(group.answers, group.advantages, strict=True)
    ]
    plot(
        advantage_bars(group),
        key="reward_group",
        height=HEIGHT,
        name="advantages",
        data=pd.DataFrame({"answer": group.answers, "reward": group.rewards, "advantage": group.advantages}),
        alt=TEXT("alt group", question=group.question, answers=", ".join(answers)),
    )


def answer(plan: Plan, runs: Sequence[Sequence[RewardEvaluation]]) -> str:
    """Says what reward has changed: in one run, or by the median of several."""
    before, after = ([run[at] for run in runs] for at in (0, -1))
    first, reward, any_of = (
        seed_median(getattr(look, name) for look in after) for name in ("first_try", "reward", "any_of")
    )
    began = seed_median(look.first_try for look in before)
    changes = [b.first_try - a.first_try for a, b in zip(before, after, strict=True)]
    if plan.rewarded == "right":
        case = "more reliable" if all(change > CLEAR for change in changes) else "not reliable"
    else:
        case = "hacked" if all(change < -CLEAR for change in changes) else "learned"
    several = len(runs) > 1
    return TEXT(
        case,
        first=first,
        reward=reward,
        any_of=any_of,
        tries=TRIES,
        before=TEXT("before of seeds" if several else "before once", began=began, seeds=len(runs)),
    )


def _guess(runs: Sequence[Sequence[RewardEvaluation]]) -> Guess | None:
    """Makes a guess about a reward for sums that end in 0; a choice sets it."""
    truth = truths.hacked(runs)
    if truth is None:
        return None
    outcome = TEXT("outcome", runs=len(runs), **truth.numbers)
    return Guess.of(TEXT, truth, TEXT["guess"], outcome, {"reward_for": "ends in 0"})


def table(looks: Sequence[RewardEvaluation]) -> pd.DataFrame:
    """Returns the shares of a run, a row for each look."""
    names = ("step", "first_try", "greedy", "any_of", "reward", "divergence")
    return pd.DataFrame({name: np.array([getattr(look, name) for look in looks]) for name in names})


def shares_by_step(
    stored: Sequence[pd.DataFrame], live: pd.DataFrame | None, steps: int, rewarded: Rewarded
) -> go.Figure:
    """Draws each share by step: stored runs as thin lines, thick the live one, or the median of the stored;
    the reward where it is another than the right answer.
    """
    traces = []
    for column, (shade, dash, width) in LINES.items():
        if column == "reward" and rewarded == "right":
            continue
        name = TEXT(f"line {column}", tries=TRIES)
        look = {"shade": shade, "dash": dash, "name": name, "hover": TEXT["hover"]}
        traces += seed_lines(stored, live, column, width, **look)
    return go.figure(
        traces,
        margin={"l": 52, "r": 12, "t": 8, "b": 40},
        xaxis=go.axis(TEXT["step axis"], range=[0, steps]),
        yaxis=go.axis(TEXT["share axis"], range=[-0.02, 1.04], tickformat=".0%", showgrid=True),
    )


def advantage_bars(group: Group) -> go.Figure:
    """Draws the advantage of each answer, rewarded ones in another colour."""
    return answer_bars(
        group.answers,
        group.advantages,
        [minus(f"{value:+.2f}") for value in group.advantages],
        [bool(reward) for reward in group.rewards],
        title=f"{group.question} …",
        hover="%{text}",
        left=64,
        xaxis=go.axis(
            TEXT["advantage axis"], range=[-1.15, 1.15], zeroline=True, zerolinecolor=colour("quiet")
        ),
    )


REWARD = View(
    "reward",
    TEXT,
    draw,
    (reinforce, advantages, rewards),
    fields={"half": HALF, "blocks": CONFIG.n_layers, "width": CONFIG.d_model},
)
VIEW = View(
    "reward",
    TEXT,
    needs_model=False,
    parts=Parts("reward_mode", (REWARD, preferences.PART), label=TEXT["learn from"], line=(2, 7)),
)
