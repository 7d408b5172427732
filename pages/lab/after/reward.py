"""The part of reward: a half-trained model draws answers, and those that are rewarded become likelier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.experiments.reward_runs import LEASHES, shipped
from engine.training.post_training.reward import Plan, Rewarded, RewardEvaluation, measure
from pages.lab.after import figures_reward as figures
from pages.lab.after import guesses_reward as guesses
from pages.lab.after import words_reward as words
from pages.lab.after.stored_runs import draw_ends, joined, seed_and_button, stored_runs, tables_of, trained
from ui import explain, guess, widgets
from ui.players.plot import plot

HEIGHT = 350
Looks = tuple[RewardEvaluation, ...]


def draw_reward(container: DeltaGenerator) -> None:
    """Draws the share of right answers by step, over the seeds of the stored runs until one is trained here,
    and one group with its advantages.
    """
    with container:
        plan, pressed = _plan()
    stored = _stored(plan)
    if plan.rewarded == "right":
        hacked = _stored(replace(plan, rewarded="ends in 0"))
        guess.ask("hacked", guesses.hacked, hacked, "reward_for")
    live = trained(
        ("reward", plan),
        pressed,
        lambda: measure(plan),
        words.DOING,
        lambda looks: _by_step(plan, stored, looks),
    )
    if live is None:
        return
    if not (live or stored):
        explain.answer(words.NOTHING)
        return
    shown = live or stored[plan.seed % len(stored)]
    left, right = st.columns([5, 4], gap="small")
    with left:
        _by_step(plan, stored, live)
    with right:
        _group(shown[0])
    explain.answer(words.answer(plan, (live,) if live else stored))
    explain.measure_it(draw_ends, *tables_of(figures.table, stored, live), words.MEASURED)
    explain.by_hand(st.markdown, words.by_hand(shown[0].group))


def _plan() -> tuple[Plan, bool]:
    """Returns the run that is shown, or would be trained, and whether its button was pressed."""
    a, b, c, d = st.columns([7, 3, 3, 4], gap="small", vertical_alignment="bottom")
    rewarded: Rewarded = widgets.select("Reward for", words.REWARDS, "reward_for", container=a)
    names = {leash: f"{leash:g}" for leash in LEASHES}
    leash = widgets.select("KL penalty", names, "reward_leash", container=b, hint=words.LEASH_HINT)
    seed, pressed = seed_and_button(c, d, "reward", words.SEED_HINT, words.TRAIN)
    return Plan(rewarded, leash=leash, seed=seed), pressed


def _stored(plan: Plan) -> tuple[Looks, ...]:
    """Returns the stored runs with this reward and penalty, by seed; none where the file is not whole."""
    wanted = plan.rewarded, plan.leash
    runs = stored_runs(shipped)
    return tuple(run.looks for run in runs if (run.plan.rewarded, run.plan.leash) == wanted)


def _by_step(plan: Plan, stored: Sequence[Looks], live: Looks) -> None:
    if not (stored or live):
        return
    tables = tables_of(figures.table, stored, live)
    plot(
        figures.shares_by_step(*tables, plan.steps, plan.rewarded),
        key="reward_by_step",
        height=HEIGHT,
        name="reward",
        data=joined(*tables),
        alt=words.alt((live,) if live else stored),
    )


def _group(look: RewardEvaluation) -> None:
    """Draws the answers to one question, and their advantages."""
    group = look.group
    plot(
        figures.advantages(group),
        key="reward_group",
        height=HEIGHT,
        name="advantages",
        data=pd.DataFrame({"answer": group.answers, "reward": group.rewards, "advantage": group.advantages}),
        alt=words.group_alt(group),
    )
