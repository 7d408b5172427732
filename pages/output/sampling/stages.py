"""The view "Stage by stage": one position's logits on their way to a token, drawn once or often."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.sample import Stage, uniform
from engine.sample.outcome import Tally, likeliest_ids, outcome, removed_by, tally
from pages.output.sampling import figures, guesses, words
from pages.output.sampling.position_and_seed import LIKELIEST, position_and_seed, staged
from ui import explain, widgets
from ui.guess import ask
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.players.sampler import sampler, settings
from ui.text.markdown import safe

DRAWS = 1000
TITLES = {
    "logits": "logits",
    "repetition_penalty": "repetition penalty",
    "temperature": "temperature",
    "top_k": "top-k",
    "top_p": "top-p",
    "min_p": "min-p",
}
FORMATS = {
    "tokens left": "localized",
    "removed here": "localized",
    "mass kept": "%.4f",
    "entropy (nats)": "%.4f",
    "choices": "%.2f",
}


def draw_stages(subject: Subject) -> None:
    """Draws one position's logits through every stage, with sliders that answer in the browser, and one draw
    or a thousand of them.
    """
    left, right = st.columns([7, 3], gap="medium", vertical_alignment="center")
    mode = widgets.select("Draws", words.MODES, "sampling_draws", container=right, hidden=True)
    position, seed = position_and_seed(subject, beside=left)
    config = settings(seed)
    logits, previous = subject.recording().logits[position], subject.ids[: position + 1]
    records = staged(subject, position, config, logits)
    numbers = uniform(seed, 1 if mode == "stages" else DRAWS).numpy()
    draws = tally(records[-1].probabilities, numbers)
    sampler(logits, subject.vocabulary, previous, config, numbers, mode=mode, drawn=draws.ids)
    if mode == "draws":
        likely = draws.likeliest
        explain.answer(words.drawn(draws, seed, safe(subject.vocabulary[likely]), likely))
        explain.measure_it(_shares, subject, draws, records[-1].remaining)
        return
    explain.answer(words.left(outcome(records)))
    ask("nucleus", guesses.nucleus, logits)
    explain.measure_it(_measured, subject, records, int(draws.ids[0]))
    explain.by_hand(_strategies, subject, position, logits)


def _strategies(subject: Subject, position: int, logits: np.ndarray) -> None:
    """The usual strategies, with what each leaves of this very distribution."""
    rows = {}
    for name, (config, how, effect) in words.STRATEGIES.items():
        left = outcome(staged(subject, position, config, logits)) if config else None
        rows[name] = {
            "how": how,
            "tokens left here": f"{left.left:,}" if left else "whole branches",
            "effective choices here": f"{left.after:.1f}" if left else "",
            "effect": effect,
        }
    with st.container(key="whole_words"):
        st.table(pd.DataFrame.from_dict(rows, orient="index"), border="horizontal")


def _measured(subject: Subject, records: tuple[Stage, ...], token: int) -> None:
    st.markdown(words.engine_result(safe(subject.vocabulary[token]), token))
    _table(records)
    _map(subject, records)


def _table(records: tuple[Stage, ...]) -> None:
    rows = [
        {
            "stage": TITLES[r.name],
            "tokens left": r.remaining,
            "removed here": np.count_nonzero(r.removed),
            "mass kept": r.mass,
            "entropy (nats)": r.entropy,
            "choices": r.choices,
        }
        for r in records
    ]
    numbers = {name: st.column_config.NumberColumn(format=form) for name, form in FORMATS.items()}
    st.dataframe(pd.DataFrame(rows), hide_index=True, key="sampling_engine", column_config=numbers)


def _map(subject: Subject, records: tuple[Stage, ...]) -> None:
    order = likeliest_ids(records[0].logits, LIKELIEST)
    tokens = [subject.vocabulary[i] for i in order]
    names = [TITLES[r.name] for r in records]
    values = np.stack([r.probabilities[order] for r in records])
    gone = removed_by(records)
    table = pd.DataFrame(
        {
            "id": order,
            "token": tokens,
            "removed_by": [TITLES[gone[i]] if i in gone else "" for i in order.tolist()],
            **dict(zip(names, values, strict=True)),
        }
    )
    plot(
        figures.stage_map(tokens, values, names),
        key="sampling_stage_map",
        height=120 + 30 * len(names),
        name="sampling-stages",
        data=table,
        alt=words.stages_alt(len(tokens), len(names)),
    )


def _shares(subject: Subject, tally: Tally, candidates: int) -> None:
    order = likeliest_ids(tally.probabilities, min(LIKELIEST, candidates))
    tokens = [subject.vocabulary[i] for i in order]
    p, shares = tally.probabilities[order], tally.shares[order]
    table = pd.DataFrame(
        {"token": tokens, "id": order, "probability": p, "draws": tally.counts[order], "share": shares}
    )
    st.markdown(words.ENGINE_DRAWS)
    plot(
        figures.shares(tokens, p, shares),
        key="sampling_shares",
        height=300,
        name="thousand-draws",
        data=table,
        alt=words.shares_alt(DRAWS, len(tokens)),
    )
