"""The view "Stage by stage": one position's logits on their way to a token, drawn once or often."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import SampleConfig
from engine.sample import Stage, uniform
from engine.sample.stages import draw as draw_token
from engine.sample.stages import min_p, repetition_penalty, stages, temperature, top_k, top_p
from pages.output.sampling import two_positions
from pages.output.sampling.position_and_seed import LIKELIEST, position_and_seed, staged
from studies.generation.outcome import Tally, likeliest_ids, outcome, removed_by, tally
from studies.guesses import sampling
from ui import content, explain, widgets
from ui.figures import specs as go
from ui.figures.axes import token_axis
from ui.figures.labels import LETTER, crowded, plain
from ui.figures.theme import SEQUENTIAL, colour
from ui.guess import Guess, ask
from ui.model_bar import Subject
from ui.model_needs import SAYS
from ui.page_frame import View
from ui.players.plot import plot
from ui.players.sampler import sampler, settings

TEXT = content.beside(__file__)
DRAWS = 1000
STRATEGIES = {
    "greedy": SampleConfig(temperature=0.0),
    "colder": SampleConfig(temperature=0.5),
    "hotter": SampleConfig(temperature=1.5),
    "top-k": SampleConfig(temperature=1.0, top_k=10),
    "top-p": SampleConfig(temperature=1.0, top_p=0.9),
    "beam": None,  # keeps branches
}


def draw(subject: Subject) -> None:
    """Draws one position's logits through every stage, with sliders that answer in the browser, and one draw
    or a thousand of them.
    """
    left, right = st.columns([7, 3], gap="medium", vertical_alignment="center")
    modes = {"stages": TEXT["one draw"], "draws": TEXT["thousand draws"], "two": TEXT["sure and unsure"]}
    mode = widgets.select(TEXT["draws"], modes, "sampling_draws", container=right, hidden=True)
    if mode == "two":
        left.caption(TEXT["two positions"])
        two_positions.draw(subject)
        return
    position, seed = position_and_seed(subject, beside=left)
    config = settings(seed)
    logits, previous = subject.recording().logits[position], subject.ids[: position + 1]
    records = staged(subject, position, config, logits)
    numbers = uniform(seed, 1 if mode == "stages" else DRAWS).numpy()
    draws = tally(records[-1].probabilities, numbers)
    sampler(logits, subject.vocabulary, previous, config, numbers, mode=mode, drawn=draws.ids)
    if mode == "draws":
        _answer_draws(subject, draws, seed)
        explain.measure_it(_shares, subject, draws, records[-1].remaining)
        return
    left_over = outcome(records)
    explain.answer(
        TEXT(
            "left",
            left=left_over.left,
            vocab=left_over.vocab,
            before=left_over.before,
            after=left_over.after,
        )
    )
    ask("nucleus", nucleus, logits)
    explain.measure_it(_measured, subject, records, int(draws.ids[0]))
    explain.by_hand(_strategies, subject, position, logits)


def _answer_draws(subject: Subject, draws: Tally, seed: int) -> None:
    """Says how often the likeliest token came, and how far all shares strayed."""
    explain.answer(
        TEXT(
            "drawn",
            total=draws.total,
            seed=seed,
            token=subject.vocabulary[draws.likeliest],
            count=draws.counts[draws.likeliest],
            expected=draws.expected[draws.likeliest],
            away=draws.away,
        )
    )


def nucleus(logits: np.ndarray) -> Guess | None:
    """Returns how many tokens top-p 0.9 keeps of logits (vocab,)."""
    truth = sampling.nucleus(logits)
    if truth is None:
        return None
    n = truth.numbers
    choices = {name: f"{n[name]:,.0f}" for name in sorted(truth.offered, key=n.__getitem__)}
    question, outcome = TEXT("guess", vocab=len(logits)), TEXT("outcome", found=n["found"], mass=n["mass"])
    return Guess.of(TEXT, truth, question, outcome, choices=choices)


def _strategies(subject: Subject, position: int, logits: np.ndarray) -> None:
    """The usual strategies, with what each leaves of this very distribution."""
    rows = {}
    for name, config in STRATEGIES.items():
        left = outcome(staged(subject, position, config, logits)) if config else None
        rows[TEXT(f"strategy {name}")] = {
            TEXT["how"]: TEXT(f"how {name}"),
            TEXT["tokens left here"]: f"{left.left:,}" if left else TEXT["whole branches"],
            TEXT["choices here"]: f"{left.after:.1f}" if left else "",
            TEXT["effect"]: TEXT(f"effect {name}"),
        }
    with st.container(key="whole_words"):
        st.table(pd.DataFrame.from_dict(rows, orient="index"), border="horizontal")


def _measured(subject: Subject, records: tuple[Stage, ...], token: int) -> None:
    st.markdown(TEXT("engine result", token=subject.vocabulary[token], id=token))
    _table(records)
    _map(subject, records)


def _table(records: tuple[Stage, ...]) -> None:
    columns: dict[str, tuple[str, list[float]]] = {  # title: (format, values)
        TEXT["tokens left"]: ("localized", [r.remaining for r in records]),
        TEXT["removed here"]: ("localized", [int(np.count_nonzero(r.removed)) for r in records]),
        TEXT["mass kept"]: ("%.4f", [r.mass for r in records]),
        TEXT["entropy"]: ("%.4f", [r.entropy for r in records]),
        TEXT["choices"]: ("%.2f", [r.choices for r in records]),
    }
    table = pd.DataFrame(
        {TEXT["stage"]: _names(records)} | {title: values for title, (_, values) in columns.items()}
    )
    form = {title: st.column_config.NumberColumn(format=each) for title, (each, _) in columns.items()}
    st.dataframe(table, hide_index=True, key="sampling_engine", column_config=form)


def _names(records: tuple[Stage, ...]) -> list[str]:
    return [TEXT(f"stage {r.name}") for r in records]


def _map(subject: Subject, records: tuple[Stage, ...]) -> None:
    order = likeliest_ids(records[0].logits, LIKELIEST)
    tokens = [subject.vocabulary[i] for i in order]
    names = _names(records)
    values = np.stack([r.probabilities[order] for r in records])
    gone = removed_by(records)
    table = pd.DataFrame(
        {
            "id": order,
            "token": tokens,
            "removed_by": [TEXT(f"stage {gone[i]}") if i in gone else "" for i in order.tolist()],
            **dict(zip(names, values, strict=True)),
        }
    )
    plot(
        stage_map(tokens, values, names),
        key="sampling_stage_map",
        height=120 + 30 * len(names),
        name="sampling-stages",
        data=table,
        alt=TEXT("alt stage map", tokens=len(tokens), stages=len(names)),
    )


def _shares(subject: Subject, tally: Tally, candidates: int) -> None:
    order = likeliest_ids(tally.probabilities, min(LIKELIEST, candidates))
    tokens = [subject.vocabulary[i] for i in order]
    p, shares = tally.probabilities[order], tally.shares[order]
    table = pd.DataFrame(
        {"token": tokens, "id": order, "probability": p, "draws": tally.counts[order], "share": shares}
    )
    st.markdown(TEXT["engine draws"])
    plot(
        share_bars(tokens, p, shares),
        key="sampling_shares",
        height=300,
        name="thousand-draws",
        data=table,
        alt=TEXT("alt shares", draws=DRAWS, tokens=len(tokens)),
    )


def stage_map(tokens: Sequence[str], values: np.ndarray, names: Sequence[str]) -> go.Figure:
    """Draws probabilities (stage, token) as cells, the first stage on top; tokens along the bottom, likeliest
    first.
    """
    heat = go.Heatmap(
        z=values.astype(np.float32),
        y=list(names),
        zmin=0,
        zmax=max(float(values.max()), 1e-6),
        colorscale=SEQUENTIAL,
        xgap=1,
        ygap=1,
        customdata=np.broadcast_to(np.asarray([plain(w) for w in tokens]), values.shape),
        hovertemplate=TEXT["hover cell"] + "<extra></extra>",
        colorbar={"title": {"text": "p", "side": "top"}, "thickness": 10},
    )
    tall = crowded(tokens)
    return go.figure(
        [heat],
        margin={"l": 8, "r": 8, "t": 8, "b": 40 + LETTER * tall},
        showlegend=False,
        xaxis=token_axis(tokens, TEXT["most likely first"], upright=tall > 0),
        yaxis={"autorange": "reversed", "showgrid": False, "ticks": ""},
    )


def share_bars(tokens: Sequence[str], probabilities: np.ndarray, drawn: np.ndarray) -> go.Figure:
    """Draws share of the draws (token,) as bars, the probability as a mark on each."""
    at = np.arange(len(tokens))
    bars = go.Bar(
        x=at,
        y=drawn.astype(np.float32),
        name=TEXT["share drawn"],
        marker={"color": colour("output")},
        hovertemplate=TEXT["hover share"] + "<extra></extra>",
    )
    marks = go.Scatter(
        x=at,
        y=probabilities,
        mode="markers",
        name=TEXT["probability"],
        hovertemplate=TEXT["hover probability"] + "<extra></extra>",
        marker={"symbol": "line-ew", "size": 18, "line": {"width": 3, "color": colour("quiet")}},
    )
    tall = crowded(tokens)
    return go.figure(
        [bars, marks],
        margin={"l": 48, "r": 8, "t": 30, "b": 44 + LETTER * tall},
        xaxis=token_axis(tokens, TEXT["most likely first"], upright=tall > 0),
        yaxis={"rangemode": "tozero"},
    )


VIEW = View(
    "stages",
    TEXT,
    draw,
    code=(stages, repetition_penalty, temperature, top_k, top_p, min_p, draw_token, tally),
    takes=(SAYS,),
    figures_only=True,
)
