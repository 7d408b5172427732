"""The view of reward: a half-trained model draws answers, and those that are rewarded become likelier. Its
second mode are preferences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.errors import CheckpointError
from engine.experiments.reward_runs import LEASHES, shipped
from engine.training.post_training.preferences import drawn_pairs, prefer, preference_loss
from engine.training.post_training.reward import (
    Plan,
    Rewarded,
    RewardEvaluation,
    advantages,
    measure,
    reinforce,
    rewards,
)
from pages.lab.after import figures_reward as figures
from pages.lab.after import guesses_reward as guesses
from pages.lab.after import words_preferences
from pages.lab.after import words_reward as words
from pages.lab.after.preferences import draw_preferences
from ui import explain, guess, widgets
from ui.background_jobs import begun, measured
from ui.page_frame import Ask, Words
from ui.players.plot import plot
from ui.text.markdown import safe

MOST_SEED = 100
HEIGHT = 350
Looks = tuple[RewardEvaluation, ...]


def _mode() -> str:
    return widgets.settled(words.MODES, "reward_mode", "reward")


ASKS = (
    Ask(words.REWARD_QUESTION, words.REWARD),
    Ask(words_preferences.QUESTION, words_preferences.PREFERENCES, (("reward_mode", "preferences"),)),
)


def question() -> str:
    """Returns the question of the mode that is chosen."""
    return words_preferences.QUESTION if _mode() == "preferences" else words.REWARD_QUESTION


def read_as() -> Words:
    """Returns the words of the mode that is chosen."""
    return words_preferences.PREFERENCES if _mode() == "preferences" else words.REWARD


def sources() -> tuple[Callable[..., object], ...]:
    """Returns the engine's functions behind the mode that is chosen."""
    if _mode() == "preferences":
        return prefer, preference_loss, drawn_pairs
    return reinforce, advantages, rewards


def draw_reward() -> None:
    """Draws the mode that is chosen: learning from reward, or from preferences."""
    left, right = st.columns([2, 7], gap="small", vertical_alignment="bottom")
    mode = widgets.select("Learn from", words.MODES, "reward_mode", container=left)
    if mode == "preferences":
        draw_preferences(right)
    else:
        _draw_rewarded(right)


def _draw_rewarded(container: DeltaGenerator) -> None:
    """Draws the share of right answers by step, over the seeds of the stored runs until one is trained here,
    and one group with its advantages.
    """
    with container:
        plan, pressed = _plan()
    stored = _stored(plan)
    if plan.rewarded == "right":
        hacked = _stored(replace(plan, rewarded="ends in 0"))
        guess.ask("hacked", guesses.hacked, hacked, "reward_for")
    key = ("reward", plan)
    live: Looks = ()
    if pressed or begun(key):
        found = measured(
            key,
            lambda: measure(plan),
            words.DOING,
            lambda looks: _by_step(plan, stored, looks or ()),
            pausable=True,
        )
        if found is None:
            return
        live = found.looks
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
    explain.measure_it(_more, stored, live)
    explain.by_hand(st.markdown, words.by_hand(shown[0].group))


def _plan() -> tuple[Plan, bool]:
    """Returns the run that is shown, or would be trained, and whether its button was pressed."""
    a, b, c, d = st.columns([7, 3, 3, 4], gap="small", vertical_alignment="bottom")
    rewarded: Rewarded = widgets.select("Reward for", words.REWARDS, "reward_for", container=a)
    names = {leash: f"{leash:g}" for leash in LEASHES}
    leash = widgets.select("KL penalty", names, "reward_leash", container=b, hint=words.LEASH_HINT)
    seed = widgets.whole("Seed", 0, MOST_SEED, 0, "reward_seed", container=c, hint=words.SEED_HINT)
    with d:
        # Streamlit's own: it begins something and has no value.
        pressed = st.button(
            f"Train seed {seed}", icon=":material/play_arrow:", type="primary", key="reward_train"
        )
    return Plan(rewarded, leash=leash, seed=seed), pressed


def _stored(plan: Plan) -> tuple[Looks, ...]:
    """Returns the stored runs with this reward and penalty, by seed; none where the file is not whole."""
    try:
        runs = shipped()
    except CheckpointError as error:
        st.info(safe(str(error)))
        return ()
    alike = ((run.plan.rewarded, run.plan.leash) == (plan.rewarded, plan.leash) for run in runs)
    return tuple(run.looks for run, same in zip(runs, alike, strict=True) if same)


def _by_step(plan: Plan, stored: Sequence[Looks], live: Looks) -> None:
    if not (stored or live):
        return
    tables = [table(looks) for looks in stored]
    mine = table(live) if live else None
    plot(
        figures.shares_by_step(tables, mine, plan.steps, plan.rewarded),
        key="reward_by_step",
        height=HEIGHT,
        name="reward",
        data=_all(stored, live),
        alt=words.alt((live,) if live else stored),
    )


def table(looks: Looks) -> pd.DataFrame:
    """Returns the shares of a run, a row for each look."""
    names = ("step", "first_try", "greedy", "any_of", "reward", "divergence")
    return pd.DataFrame({name: np.array([getattr(look, name) for look in looks]) for name in names})


def _all(stored: Sequence[Looks], live: Looks) -> pd.DataFrame:
    tables = [table(looks).assign(run=f"stored, seed {i}") for i, looks in enumerate(stored)]
    return pd.concat([*tables, *([table(live).assign(run="trained here")] if live else [])])


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


def _more(stored: Sequence[Looks], live: Looks) -> None:
    ends = _all(stored, live).groupby("run", sort=False).tail(1).set_index("run").reset_index()
    st.dataframe(ends, hide_index=True)
    st.caption(words.MEASURED)
