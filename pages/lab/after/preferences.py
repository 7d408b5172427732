"""The part of preferences (DPO): a model sees pairs of texts, and makes the preferred ones likelier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.errors import ConfigError, CorpusError
from engine.experiments.preference_runs import BETAS, CORPUS, WORDS, begin, shipped
from engine.training.post_training.preferences import MOST_WORD, Kind, Plan, PreferenceEvaluation, Taste
from pages.lab.after import figures_preferences as figures
from pages.lab.after import guesses_reward as guesses
from pages.lab.after import words_preferences as words
from pages.lab.after.stored_runs import draw_ends, joined, seed_and_button, stored_runs, tables_of, trained
from ui import explain, guess, session, widgets
from ui.background_jobs import begun
from ui.players.plot import plot
from ui.text.markdown import safe

HEIGHT = 352
Looks = tuple[PreferenceEvaluation, ...]


def draw_preferences(container: DeltaGenerator) -> None:
    """Draws margin, ranking and log-probabilities by step, the stored runs until one is trained here, and
    what the model writes before and after. Controls go into the `container`.
    """
    with container:
        plan, pressed = _plan()
    key = ("preferences", plan)
    try:
        plan.check()
        wanted = plan.taste.of_word and (pressed or begun(key))
        text = session.corpus(CORPUS).text if wanted else ""
    except (ConfigError, CorpusError) as error:
        st.info(safe(str(error)))
        return
    stored = _stored(plan)
    live = trained(
        key,
        pressed,
        lambda: begin(plan, text),
        words.DOING,
        lambda looks: _by_step(plan, stored, looks),
    )
    if live is None:
        return
    if not (live or stored):
        explain.answer(words.NOTHING)
        return
    other = BETAS[-1] if plan.beta == BETAS[0] else BETAS[0]
    guess.ask("beta", guesses.beta, plan, other, stored, _stored(replace(plan, beta=other)))
    shown = live or stored[plan.seed % len(stored)]
    left, right = st.columns([7, 4], gap="small")
    with left:
        _by_step(plan, stored, live)
    with right:
        st.markdown(words.samples(shown[0].texts, shown[-1].texts, plan.steps))
    explain.answer(words.answer(plan, (live,) if live else stored))
    explain.measure_it(draw_ends, *tables_of(figures.table, stored, live), words.MEASURED)
    explain.by_hand(st.markdown, words.by_hand(plan, shown[-1]))


def _plan() -> tuple[Plan, bool]:
    """Returns the run that is shown, or would be trained, and whether its button was pressed."""
    kind: Kind = widgets.settled(words.TASTES, "preferred", "short")
    of_word = kind in WORDS
    a, *b, c, d, e = st.columns(
        [6, *([4] if of_word else []), 5, 3, 3], gap="small", vertical_alignment="bottom"
    )
    kind = widgets.select("Preferred", words.TASTES, "preferred", kind="list", container=a)
    word = ""
    if of_word:
        with b[0]:
            typed = widgets.line("Word", WORDS[kind], f"preferred_{kind}", MOST_WORD)
        word = typed.strip().lower()
    names = {beta: f"{beta:g}" for beta in BETAS}
    first = Plan().beta
    beta = widgets.select("Beta", names, "preferred_beta", first=first, container=c, hint=words.BETA_HINT)
    seed, pressed = seed_and_button(d, e, "preferred", words.SEED_HINT, words.TRAIN)
    return Plan(Taste(kind, word), beta, seed=seed), pressed


def _stored(plan: Plan) -> tuple[Looks, ...]:
    """Returns the stored runs with this taste and beta, by seed; none where the file is not whole."""
    wanted = plan.taste, plan.beta
    return tuple(
        run.preferred.looks for run in stored_runs(shipped) if (run.plan.taste, run.plan.beta) == wanted
    )


def _by_step(plan: Plan, stored: Sequence[Looks], live: Looks) -> None:
    if not (stored or live):
        return
    tables = tables_of(figures.table, stored, live)
    plot(
        figures.by_step(*tables, plan),
        key="preferences_by_step",
        height=HEIGHT,
        name="preferences",
        data=joined(*tables),
        alt=words.alt((live,) if live else stored),
    )
