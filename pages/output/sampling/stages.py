"""The views of the Sampling page: the stages of one position, a thousand draws, temperatures side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st
import torch

from engine.config import SampleConfig
from engine.errors import ShapeError
from engine.sample import Stage, draw, stages, uniform, write
from pages.output.sampling import figures
from ui import explain
from ui.layout import scrolled
from ui.players.plot import plot
from ui.players.sampler import sampler, settings
from ui.players.tokens import token_strip
from ui.subject import Subject
from ui.text.markdown import safe

DRAWS = 1000
TEMPERATURES = (0.2, 0.5, 0.8, 1.0, 1.5)
LIKELIEST = 15
CHARACTERS = 200
MAX_SEED = 2**31 - 1
TITLES = {
    "logits": "logits",
    "repetition_penalty": "repetition penalty",
    "temperature": "temperature",
    "top_k": "top-k",
    "top_p": "top-p",
    "min_p": "min-p",
}


def draw_stages(subject: Subject) -> None:
    """One position's logits through every stage, with sliders that answer in the browser, and the engine's
    own result.
    """
    position, seed = _place(subject)
    config = settings(seed)
    logits, previous = subject.recording().logits[position], subject.ids[: position + 1]
    found = _records(subject, position, logits, config)
    if not found:
        return
    records = found[0]
    numbers = uniform(seed, 1).numpy()
    sampler(logits, subject.vocabulary, previous, config, numbers, mode="stages")
    token = draw(records[-1].probabilities, float(numbers[0]))
    _engine(subject, records, token, config)


def draw_draws(subject: Subject) -> None:
    """Drawing again and again from the last stage's distribution."""
    position, seed = _place(subject)
    config = settings(seed)
    logits, previous = subject.recording().logits[position], subject.ids[: position + 1]
    found = _records(subject, position, logits, config)
    if not found:
        return
    records = found[0]
    numbers = uniform(seed, DRAWS).numpy()
    sampler(logits, subject.vocabulary, previous, config, numbers, mode="draws")
    p = records[-1].probabilities
    counts = np.bincount([draw(p, float(u)) for u in numbers], minlength=len(p))
    order = np.argsort(-p, kind="stable")[: min(LIKELIEST, records[-1].kept)]
    words = [subject.vocabulary[i] for i in order]
    with st.expander("The engine's own thousand draws, to save"):
        table = pd.DataFrame(
            {
                "token": words,
                "id": order,
                "probability": p[order],
                "draws": counts[order],
                "share": counts[order] / DRAWS,
            }
        )
        plot(
            figures.shares(words, p[order], counts[order] / DRAWS),
            key="sampling_shares",
            height=300,
            name="thousand-draws",
            data=table,
            alt=f"Share of {DRAWS:,} draws beside the probability, for the {len(words)} likeliest tokens.",
        )
    away = float(np.abs(counts / DRAWS - p).sum() / 2)
    likely, drawn = int(order[0]), int(counts[order[0]])
    explain.takeaway(
        f"**{DRAWS:,} draws with seed {seed}: “{safe(subject.vocabulary[likely])}” came {drawn} times;"
        f" expected were {DRAWS * float(p[likely]):.0f}.** In all the shares are {away:.1%} away from the"
        f" probabilities. `engine.sample.draw` counted these; the browser uses the same {DRAWS:,} random"
        " numbers."
    )


def draw_temperatures(subject: Subject) -> None:
    """The likeliest tokens at five temperatures, and what the model writes at each."""
    position, seed = _place(subject)
    logits = subject.recording().logits[position]
    order = np.argsort(-logits, kind="stable")[:LIKELIEST]
    found = _records(subject, position, logits, *(SampleConfig(temperature=t) for t in TEMPERATURES))
    if not found:
        return
    records = [one[-1] for one in found]
    words = [subject.vocabulary[i] for i in order]
    values = np.stack([r.probabilities[order] for r in records])
    titles = [f"τ = {t:g}" for t in TEMPERATURES]
    table = pd.DataFrame(
        {
            "token": words,
            "id": order,
            "logit": logits[order],
            **{f"temperature_{t:g}": v for t, v in zip(TEMPERATURES, values, strict=True)},
        }
    )
    scrolled("sampling_five", 620)
    with st.container(key="sampling_five"):
        plot(
            figures.temperatures(words, values, titles),
            key="sampling_temperatures",
            height=440,
            name="temperatures",
            data=table,
            alt=(
                f"Probability of the {len(words)} likeliest tokens at temperatures"
                f" {', '.join(f'{t:g}' for t in TEMPERATURES)}."
            ),
        )
    facts = [f"{r.entropy:.2f} nats ≈ {r.choices:.1f} choices" for r in records]
    if subject.config.causal:
        _samples(subject, position, seed, facts)
    else:
        st.caption(
            "Entropy, and the effective number of choices: "
            + " · ".join(f"{title}: {fact}" for title, fact in zip(titles, facts, strict=True))
            + "."
        )
        st.info("This model looks both ways and fills gaps; it does not write on, so there are no samples.")
    first, last = records[0], records[-1]
    best = subject.vocabulary[order[0]]
    explain.takeaway(
        f"**Temperature changes no ranking, only how much it counts.** “{safe(best)}” has"
        f" {first.probabilities[order[0]]:.1%} at τ = {TEMPERATURES[0]:g} and"
        f" {last.probabilities[order[0]]:.1%} at τ = {TEMPERATURES[-1]:g}; the effective number of choices"
        f" goes from {first.choices:.1f} to {last.choices:.1f}."
    )


def _samples(subject: Subject, position: int, seed: int, facts: Sequence[str]) -> None:
    """A text for each temperature; `facts` say how uncertain its first draw was."""
    st.markdown(
        f"**What it writes after this text, {CHARACTERS} characters each** (seed {seed}), and the entropy"
        f" over {subject.config.vocab_size:,} tokens"
    )
    with st.spinner("Writing …"):
        texts = _written(subject.key, subject.ids[: position + 1], seed, subject)
    grid = st.grid("auto", min_column_width=250, gap="small")  # wide enough for a line of verse
    for t, text, fact in zip(TEMPERATURES, texts, facts, strict=True):
        with grid.cell():
            st.markdown(f"**τ = {t:g}** :small[{fact}]")
            st.code(text, language=None, wrap_lines=True)


def _place(subject: Subject) -> tuple[int, int]:
    """(position whose logits are looked at, seed)."""
    words = (
        "After which token? The model's next-token logits there are drawn from."
        if subject.config.causal
        else "At which token?"
    )
    st.caption(words)
    position = token_strip(
        subject.labels,
        key="sampling_position",
        chosen=len(subject.ids) - 1,
        label="The position whose logits are sampled",
    )
    left, _ = st.columns([1, 4])
    seed = left.number_input(
        "Seed",
        min_value=0,
        max_value=MAX_SEED,
        value=0,
        step=1,
        key="sampling_seed",
        bind="query-params",
        help="The same seed draws the same token.",
    )
    return position, min(max(int(seed or 0), 0), MAX_SEED)


def _engine(subject: Subject, records: tuple[Stage, ...], token: int, config: SampleConfig) -> None:
    """What `engine.sample.stages` says at the sliders' last resting place."""
    word = safe(subject.vocabulary[token])
    st.markdown(
        f"**The engine's own result**, computed on the server when the sliders rest: it draws “{word}” (token"
        f" {token})."
    )
    rows = [
        {
            "stage": TITLES[r.name],
            "tokens left": r.kept,
            "removed here": int(r.removed.sum()),
            "mass kept": r.mass,
            "entropy (nats)": r.entropy,
            "choices": r.choices,
        }
        for r in records
    ]
    numbers = {
        name: st.column_config.NumberColumn(format=form)
        for name, form in (("mass kept", "%.4f"), ("entropy (nats)", "%.4f"), ("choices", "%.2f"))
    }
    st.dataframe(pd.DataFrame(rows), hide_index=True, key="sampling_engine", column_config=numbers)
    order = np.argsort(-records[0].logits, kind="stable")[:LIKELIEST]
    words = [subject.vocabulary[i] for i in order]
    names = [TITLES[r.name] for r in records]
    values = np.stack([r.probabilities[order] for r in records])
    by = {i: TITLES[r.name] for r in records for i in np.flatnonzero(r.removed)}
    table = pd.DataFrame(
        {
            "id": order,
            "token": words,
            "removed_by": [by.get(i, "") for i in order],
            **dict(zip(names, values, strict=True)),
        }
    )
    plot(
        figures.stage_map(words, values, names),
        key="sampling_stage_map",
        height=120 + 30 * len(names),
        name="sampling-stages",
        data=table,
        alt=(
            f"Probability of the {len(words)} likeliest tokens after each of {len(names)} stages, by the"
            " engine."
        ),
    )
    last = records[-1]
    gone = len(last.logits) - last.kept
    cut = 1.0 - float(records[0].probabilities[np.isfinite(last.logits)].sum())
    explain.takeaway(
        f"**{last.kept:,} of {len(last.logits):,} tokens {'is' if last.kept == 1 else 'are'} left to draw"
        " from**"
        + (f"; the {gone:,} removed ones had {cut:.1%} of the model's probability." if gone else ".")
        + f" The model was as uncertain as between {records[0].choices:.1f} equally likely tokens; the draw"
        f" is between {last.choices:.1f}."
    )


def _records(
    subject: Subject, position: int, logits: np.ndarray, *configs: SampleConfig
) -> list[tuple[Stage, ...]]:
    """The stages of each of some settings; none where no logit is a number to draw from, which is then
    said.
    """
    try:
        return [_stages(subject.key, subject.ids, position, config, logits) for config in configs]
    except ShapeError as error:
        sentence = safe(f"{str(error)[:1].upper()}{str(error)[1:]}.")
        st.warning(
            f"{sentence} The weights have grown beyond all numbers, as they do when a"
            " training diverges: look at an earlier step, or at another model.",
            icon=":material/warning:",
        )
        return []


@st.cache_resource(max_entries=128, show_spinner=False)
def _stages(
    key: tuple[str, int], ids: tuple[int, ...], position: int, config: SampleConfig, _logits: np.ndarray
) -> tuple[Stage, ...]:
    return stages(torch.from_numpy(_logits.copy()), config, ids[: position + 1])


@st.cache_data(max_entries=64, show_spinner=False)
def _written(key: tuple[str, int], ids: tuple[int, ...], seed: int, _subject: Subject) -> list[str]:
    make = (SampleConfig(temperature=t, seed=seed) for t in TEMPERATURES)
    return [write(_subject.model, _subject.tokenizer, ids, CHARACTERS, config)[0] for config in make]
