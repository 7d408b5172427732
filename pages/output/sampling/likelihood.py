"""The view "Perplexity": the probability of a whole text, its loss and its perplexity, step by step."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pandas as pd
import streamlit as st

from engine.errors import CorpusError, ShapeError
from engine.sample.scoring import Scored, ladder, score
from engine.weights import checkpoints
from pages.output.sampling import figures, words
from ui import explain, memo, session
from ui.figures.labels import crowded
from ui.model_bar import Subject
from ui.models import FIRST_MODEL
from ui.players.plot import plot
from ui.site import ROOT
from ui.text.markdown import safe

HEIGHT = 330


def draw_likelihood(subject: Subject) -> None:
    """Draws a bar for each token, the four steps from there to the perplexity, and what others reach."""
    try:
        likelihood = score(subject.recording().logits, subject.ids)
    except ShapeError:
        st.info(words.ONE_TOKEN)
        return
    if not likelihood.finite:
        st.warning(words.DIVERGED)
        return
    bars, chain = st.columns([13, 7], gap="medium")
    with bars:
        _bars(subject, likelihood)
    with chain:
        st.markdown(words.chain(likelihood))
    explain.answer(words.scored(likelihood, "character" if subject.config.vocab_size < 300 else "token"))
    explain.measure_it(_others)
    explain.by_hand(_by_hand, subject, likelihood)


def _bars(subject: Subject, scored: Scored) -> None:
    tokens = subject.labels[1:]
    plot(
        figures.scored(tokens, scored, upright=crowded(tokens, 560)),
        key="sampling_scored",
        height=HEIGHT,
        name="likelihood",
        data=pd.DataFrame({"token": tokens, "id": subject.ids[1:], "p": scored.p, "nats": scored.nats}),
        alt=words.scored_alt(scored, len(tokens)),
    )


def _others() -> None:
    """Perplexities that others published beside our own."""
    rungs = ladder(_ours())
    table = pd.DataFrame(
        {
            "character model (V = 65)": [words.RUNGS[rung.name] for rung in rungs],
            "published (training)": [rung.published for rung in rungs],
            "here (validation)": [np.nan if rung.ours is None else rung.ours for rung in rungs],
        }
    )
    numbers = {name: st.column_config.NumberColumn(format="%.1f") for name in table.columns[1:]}
    st.dataframe(table, hide_index=True, key="sampling_ladder", column_config=numbers)
    st.caption(words.LADDER)


@memo.measured("Counting bigrams …", copied=True)
def _ours() -> dict[str, float]:
    """Validation losses in nats, by the names of the ladder."""
    losses: dict[str, float] = {}
    with suppress(CorpusError):
        baselines = session.corpus("shakespeare").baselines
        losses = {"guessing": baselines["uniform"], "pairs": baselines["bigram"]}
    metrics = checkpoints.load(ROOT / "checkpoints" / FIRST_MODEL).metrics
    return losses | {"4 layers": float(metrics["validation_loss"])}


def _by_hand(subject: Subject, scored: Scored) -> None:
    """Every token's line of the sum."""
    names = [safe(label) for label in subject.labels]
    before = ["".join(names[:i]) for i in range(1, len(names))]
    rows = {
        "after": ["…" + text[-12:] if len(text) > 12 else text for text in before],
        "token": names[1:],
        "p": scored.p,
        "−ln p": scored.nats,
        "sum so far": scored.sums,
    }
    form = {name: st.column_config.NumberColumn(format="%.4f") for name in ("p", "−ln p", "sum so far")}
    st.dataframe(pd.DataFrame(rows), hide_index=True, key="sampling_chain", column_config=form)
