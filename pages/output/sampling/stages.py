"""The view "Stage by stage": one position's logits on their way to a token, and the engine's own result."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.sample import Stage, draw, uniform
from engine.sample.outcome import likeliest_ids, outcome, removed_by
from pages.output.sampling import figures, guesses, words
from pages.output.sampling.place import LIKELIEST, place, staged
from ui import explain
from ui.guess import ask
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.players.sampler import sampler, settings
from ui.text.markdown import safe

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
    """Draws one position's logits through every stage, with sliders that answer in the browser, and the
    engine's own result.
    """
    position, seed = place(subject)
    config = settings(seed)
    logits, previous = subject.recording().logits[position], subject.ids[: position + 1]
    records = staged(subject, position, config, logits)
    numbers = uniform(seed, 1).numpy()
    token = draw(records[-1].probabilities, float(numbers[0]))
    sampler(logits, subject.vocabulary, previous, config, numbers, mode="stages", drawn=[token])
    explain.answer(words.left(outcome(records)))
    ask("nucleus", guesses.nucleus, logits)
    explain.measure_it(_measured, subject, records, token)


def _measured(subject: Subject, records: tuple[Stage, ...], token: int) -> None:
    st.markdown(
        "**The engine's own result**, computed on the server when the sliders rest: it draws"
        f" “{safe(subject.vocabulary[token])}” (token {token})."
    )
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
        alt=(
            f"Probability of the {len(tokens)} likeliest tokens after each of {len(names)} stages, by the"
            " engine."
        ),
    )
