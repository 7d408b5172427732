"""The view "Why": the same words in two orders, through attention that knows no positions, and through
attention that does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import Position
from engine.model import Transformer
from pages.input.positions.maps import SCALE, counted
from pages.input.positions.schemes import TITLES
from studies.guesses import order as guesses
from studies.positions.permutation import (
    SAME,
    SCHEMES,
    Comparison,
    Move,
    OrderEffect,
    Plan,
    Setting,
    compare,
    fresh,
    in_order_and_out,
    moves_nothing,
    new_order,
    order_effect,
    setting_of,
    word_ids,
    word_order,
)
from ui import content, explain, memo, session, widgets
from ui.figures import specs as go
from ui.figures.axes import MONO, rows_axis, symmetric, token_axis
from ui.figures.labels import plain
from ui.figures.theme import colour
from ui.guess import Guess, ask
from ui.layout import fewer_labels_on_phones
from ui.model_bar import Subject, subject_bar
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.markdown import whole
from ui.text.numbers import number

TEXT = content.beside(__file__)
FIRST = "dog bites man"
MOVES: tuple[Move, ...] = ("reverse", "rotate", "shuffle")
MAX_WORDS, MAX_LETTERS, MAX_SEED = 16, 200, 9999
MATCHED, STANDING = "matched", "as given"
FLOOR = 1e-8  # where a difference of exactly 0 is drawn on a logarithmic axis
UNITS = ("words", "tokens")


def draw() -> None:
    """Draws words in two orders, joined by lines that say what became of each."""
    picture, controls = st.columns([3, 1], gap="medium")
    with controls:
        sentence = _choose_words()
        hint = TEXT["positions hint"]
        scheme = widgets.select(TEXT["positions"], TITLES, "why_scheme", hint=hint, wrap=True)
        causal = widgets.switch(TEXT["causal"], False, "why_causal", hint=TEXT["causal hint"])
        move, seed = _choose_order()
    order = new_order(len(sentence), move, seed)
    effect = _effect(word_ids(sentence), tuple(order.tolist()))
    with picture:
        _draw_orders(sentence, effect.comparisons[scheme, causal], scheme)
    explain.answer(
        TEXT(
            f"answer {effect.verdict(scheme, causal)}",
            before=" ".join(sentence),
            after=" ".join(sentence[i] for i in order),
            scheme=TITLES[scheme],
            largest=effect.largest(scheme, causal),
            bare=effect.largest("none", False),
        )
    )
    ask("order", _guess, effect, scheme, causal)
    explain.measure_it(_draw_measured, sentence, effect, scheme, causal, move, seed)


def _choose_words() -> list[str]:
    # Streamlit's own: a line of text that a link holds; whatever stands there is cut to words below.
    typed = st.text_input(
        TEXT["sentence"],
        FIRST,
        key="why_sentence",
        bind="query-params",
        max_chars=MAX_LETTERS,
        help=TEXT["sentence hint"],
    )
    sentence = whole(typed or "").replace("\0", " ")[:MAX_LETTERS].split()
    if len(sentence) < 2:
        st.caption(TEXT("single word", sentence=FIRST))
        sentence = FIRST.split()
    if len(sentence) > MAX_WORDS:
        st.caption(TEXT("first words", words=len(sentence), most=MAX_WORDS))
    return sentence[:MAX_WORDS]


def _choose_order() -> tuple[Move, int]:
    """How the order is changed, and the seed of a shuffle."""
    move = widgets.select(TEXT["order"], MOVES, "why_order", hint=TEXT["order hint"], wrap=True)
    if move != "shuffle":
        return move, 0
    session.drop_endless()
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        seed = widgets.whole(TEXT["seed"], 0, MAX_SEED, 0, "why_seed", width=110)
        st.button(
            TEXT["again"],
            on_click=_next_seed,
            key="why_again",
            icon=":material/shuffle:",
            help=TEXT["again hint"],
        )
    return move, seed


def _next_seed() -> None:
    st.session_state["why_seed"] = (int(st.session_state.get("why_seed") or 0) + 1) % (MAX_SEED + 1)


@memo.measured()
def _effect(ids: tuple[int, ...], order: tuple[int, ...]) -> OrderEffect:
    return order_effect(ids, np.array(order, dtype=np.int64))


def _guess(effect: OrderEffect, scheme: Position, causal: bool) -> Guess | None:
    """A guess about the same words without positions."""
    truth = guesses.reordered(effect, scheme, causal)
    if truth is None:
        return None
    bare, mask = guesses.next_setting(scheme, causal)
    question = TEXT["guess masked" if mask else "guess unmasked"]
    outcome = TEXT("outcome", **truth.numbers)
    return Guess.of(TEXT, truth, question, outcome, {"why_scheme": bare, "why_causal": mask})


def _draw_orders(sentence: list[str], comparison: Comparison, scheme: Position) -> None:
    moved = [sentence[i] for i in comparison.order]
    plot(
        two_orders(comparison, sentence),
        key="why_orders",
        height=340,
        name="two-orders",
        data=pd.DataFrame({"word": sentence, "largest_difference": comparison.by_word}),
        alt=TEXT("alt", before=" ".join(sentence), after=" ".join(moved), scheme=TITLES[scheme]),
    )


def _draw_measured(
    sentence: list[str], effect: OrderEffect, scheme: Position, causal: bool, move: Move, seed: int
) -> None:
    """Draws the words of the view, or a text through a trained model, in the order that was chosen above."""
    through = {name: TEXT[f"through {name}"] for name in ("fresh", "trained")}
    if widgets.select(TEXT["through"], through, "why_on", hidden=True, wrap=True) == "trained":
        with subject_bar() as subject:
            _draw_order(subject, move, seed)
        return
    label, hint = TEXT["rows"], TEXT["rows hint"]
    matched = widgets.select(label, (MATCHED, STANDING), "why_rows", hint=hint, wrap=True) == MATCHED
    _draw_pictures(sentence, effect.comparisons[scheme, causal], matched)
    left, right = st.columns([1, 2], gap="medium")
    with left:
        largest = number(effect.largest(scheme, causal))
        explain.worked(TEXT["largest difference"], largest, TEXT["largest of what"])
        plan, enters = Plan(scheme, causal), TEXT[f"enters {scheme}"]
        st.caption(TEXT("one layer", heads=plan.n_heads, width=plan.d_model, seed=plan.seed, enters=enters))
    with right:
        _draw_schemes(effect, scheme, causal)


def _draw_pictures(sentence: list[str], comparison: Comparison, matched: bool) -> None:
    moved = [sentence[i] for i in comparison.order]
    top = symmetric(np.stack((comparison.before, comparison.after)))
    after = (comparison.matched, sentence) if matched else (comparison.after, moved)
    pictures = (
        ("before", "before", comparison.before, sentence),
        ("after", "after matched" if matched else "after", *after),
        ("difference", "difference", comparison.difference, sentence),
    )
    for column, (name, title, values, labels) in zip(st.columns(3, gap="medium"), pictures, strict=True):
        with column:
            st.markdown(TEXT[f"title {title}"])
            plot(
                word_rows(values, [short(w) for w in labels], top, name),
                key=f"why_{name}",
                height=120 + 28 * len(sentence),
                data=pd.DataFrame(values, columns=[f"dimension {i}" for i in range(values.shape[1])]).assign(
                    word=labels
                ),
                name=f"attention-{name}",
                alt=TEXT("alt rows", name=name, dimensions=values.shape[1]),
            )


def _draw_schemes(effect: OrderEffect, scheme: Position, causal: bool) -> None:
    """All six schemes, with and without the mask; the one above is ringed."""
    masks = {False: TEXT["no mask"], True: TEXT["causal mask"]}
    every: dict[str, dict[str, float]] = {
        name: {TITLES[s]: effect.largest(s, mask) for s in SCHEMES} for mask, name in masks.items()
    }
    plot(
        scheme_dots(every, (masks[causal], TITLES[scheme])),
        key="why_schemes",
        height=290,
        name="order-by-scheme",
        data=pd.DataFrame(
            [(s, name, v) for name, by in every.items() for s, v in by.items()],
            columns=["scheme", "mask", "largest_difference"],
        ),
        alt=TEXT["alt schemes"],
    )


def _draw_order(subject: Subject, move: Move, seed: int) -> None:
    """The text in another order: how far each token's vector moves, and the losses, with positions and mask
    on and off.
    """
    if len(subject.ids) < 2:
        st.info(TEXT["one token"])
        return
    unit = widgets.select(TEXT["unit"], UNITS, "why_unit", hint=TEXT["unit hint"], wrap=True)
    texts = [subject.tokenizer.decode([i]) for i in subject.ids]
    order = word_order(texts, move, seed) if unit == "words" else new_order(len(texts), move, seed)
    st.markdown(TEXT("reads", text="".join(subject.labels[i] for i in order)))
    if unit == "words" and moves_nothing(order):
        st.caption(TEXT["one word"])
    settings = _measured(subject.key, subject.ids, tuple(order.tolist()), subject.model)
    _draw_losses(settings, subject)
    _draw_moved(settings, subject)
    explain.takeaway(_lesson(settings, subject))


def _draw_losses(settings: tuple[Setting, ...], subject: Subject) -> None:
    """A row for each setting of the switches."""
    has_none = subject.config.position == "none"
    rows = [
        TEXT(
            "row",
            positions=TEXT["off" if not each.position else "has none" if has_none else "on"],
            mask=TEXT["on" if each.mask else "off"],
            moved=each.relative,
            loss_in=_loss(each.loss_in),
            loss_out=_loss(each.loss_out),
        )
        for each in settings
    ]
    st.markdown("\n".join([TEXT["settings"], *rows]))
    none = TEXT["no loss unmasked" if subject.config.causal else "no loss hidden"]
    st.caption(TEXT("moved by", none=none, scheme=TITLES[subject.config.position]))


def _loss(nats: float | None) -> str:
    return TEXT["none"] if nats is None else f"{nats:.3f}"


def _draw_moved(settings: tuple[Setting, ...], subject: Subject) -> None:
    """How far each token moved, in one setting."""
    by_name = {
        TEXT[f"positions {'on' if s.position else 'off'}, mask {'on' if s.mask else 'off'}"]: s
        for s in settings
    }
    chosen = widgets.select(TEXT["setting"], list(by_name), "why_setting", wrap=True)
    fewer_labels_on_phones(len(subject.ids))
    plot(
        moved_bars(by_name[chosen].moved, subject.labels),
        key="why_moved",
        height=270,
        name="moved-by-order",
        data=pd.DataFrame({"token": subject.labels} | {name: s.moved for name, s in by_name.items()}),
        alt=TEXT("alt moved", setting=chosen),
    )


def _lesson(settings: tuple[Setting, ...], subject: Subject) -> str:
    """Sums up the numbers of all settings."""
    bare, placed = (setting_of(settings, position, False) for position in (False, True))
    leak, both = (setting_of(settings, position, True) for position in (False, True))
    assert bare is not None and placed is not None
    said = [TEXT("lesson without", bare=bare.relative)]
    if leak is None or both is None:
        said.append(TEXT("lesson no mask", placed=placed.relative))
    elif subject.config.position == "none":
        said.append(TEXT("lesson no positions", leak=leak.relative))
    else:
        scheme = TITLES[subject.config.position]
        said.append(TEXT("lesson both", leak=leak.relative, both=both.relative, scheme=scheme))
        if both.loss_in is not None and both.loss_out is not None and leak.loss_in is not None:
            losses = {"ordered": both.loss_in, "shuffled": both.loss_out, "bare": leak.loss_in}
            said.append(TEXT("lesson losses", **losses))
    return " ".join(said)


@memo.measured()
def _measured(
    key: tuple[str, int], ids: tuple[int, ...], order: tuple[int, ...], _model: Transformer
) -> tuple[Setting, ...]:
    return in_order_and_out(_model, ids, np.array(order, dtype=np.int64))


# Figures ------------------------------------------------------------------------------------------


def short(word: str, letters: int = 12) -> str:
    """Returns a word that fits beside a picture.

    >>> short("incomprehensibilities")
    'incomprehen…'
    """
    return word if len(word) <= letters else word[: letters - 1] + "…"


def two_orders(comparison: Comparison, words: Sequence[str]) -> go.Figure:
    """Draws attention's output for each word, as written on the left and in the new order on the right; a
    line joins the rows of the same word. The difference stands on the right if it is more than rounding.
    """
    top = symmetric(np.stack((comparison.before, comparison.after)))
    moved = [words[i] for i in comparison.order]
    heats = [
        _half(values, named, top, axis)
        for values, named, axis in ((comparison.before, words, ""), (comparison.after, moved, "2"))
    ]
    at = -np.arange(len(words))
    side = {"tickvals": at, "tickfont": MONO, "showgrid": False, "zeroline": False}
    side["range"] = [-len(words) + 0.5, 0.5]
    across = {"showticklabels": False, "showgrid": False, "zeroline": False, "fixedrange": True}
    return go.figure(
        heats,
        margin={"l": 8, "r": 8, "t": 30, "b": 8},
        showlegend=False,
        xaxis=across | {"domain": [0, 0.36]},
        xaxis2=across | {"domain": [0.64, 1], "anchor": "y2"},
        yaxis=side | {"ticktext": [plain(short(w)) for w in words], "automargin": True},
        yaxis2=side
        | {
            "ticktext": [
                _told(w, comparison.by_word[old]) for w, old in zip(moved, comparison.order, strict=True)
            ],
            "side": "right",
            "anchor": "x2",
            "automargin": True,
        },
        shapes=[_thread(old, new, comparison.by_word[old]) for new, old in enumerate(comparison.order)],
        annotations=[_title(" ".join(words), 0.18), _title(" ".join(moved), 0.82)],
    )


def _half(values: np.ndarray, words: Sequence[str], top: float, axis: str) -> go.Trace:
    return go.signed(
        values,
        top,
        y=-np.arange(len(words)),
        xaxis=f"x{axis}",
        yaxis=f"y{axis}",
        showscale=False,
        xgap=1,
        ygap=4,
        customdata=np.broadcast_to(np.asarray([plain(w) for w in words])[:, None], values.shape).tolist(),
        hovertemplate=f"{TEXT['hover']}<extra></extra>",
    )


def _thread(old: int, new: int, change: float) -> dict[str, Any]:
    """From the row of a word on the left to its row on the right."""
    same = change < SAME
    return {
        "type": "line",
        "xref": "paper",
        "yref": "y",
        "x0": 0.368,
        "x1": 0.632,
        "y0": -old,
        "y1": -new,
        "line": {
            "color": colour("quiet" if same else "position"),
            "width": 1.5 if same else 3,
            "dash": "solid" if same else "dot",
        },
    }


def _told(word: str, change: float) -> str:
    """A word of the right side, and what became of it."""
    became = TEXT("same row" if change < SAME else "changed", change=change)
    return f"{plain(short(word))}<br><i>{became}</i>"


def _title(text: str, x: float) -> dict[str, Any]:
    shown = text if len(text) <= 44 else text[:43] + "…"
    return go.note(
        f"<b>{plain(shown)}</b>",
        x,
        1,
        xref="paper",
        yref="paper",
        xanchor="center",
        yanchor="bottom",
        font={"size": 15},
    )


def word_rows(values: np.ndarray, words: Sequence[str], top: float, name: str) -> go.Figure:
    """Draws values (word, dimension), the first word on top; blue below zero, orange above, the scale ending
    at `top`.
    """
    at = -np.arange(len(words))
    heat = go.signed(
        values,
        top,
        y=at,
        xgap=1,
        ygap=2,
        colorbar=SCALE,
        customdata=np.broadcast_to(np.asarray([plain(w) for w in words])[:, None], values.shape).tolist(),
        hovertemplate=f"{TEXT('hover rows', name=name)}<extra></extra>",
    )
    return go.figure(
        [heat],
        margin={"l": 8, "r": 8, "t": 8, "b": 40},
        showlegend=False,
        xaxis=counted(TEXT["dimension"], values.shape[1], 4),
        yaxis=go.ticks(at, [plain(w) for w in words], tickfont=MONO),
    )


def scheme_dots(largest: Mapping[str, Mapping[str, float]], chosen: tuple[str, str]) -> go.Figure:
    """Draws mask words -> scheme -> largest difference, on a logarithmic axis; `chosen` (mask words, scheme)
    is ringed. 0 is drawn at FLOOR.
    """
    looks = {0: ("circle", "position", -0.09), 1: ("diamond", "attention", 0.09)}
    traces = []
    for row, (name, by_scheme) in enumerate(largest.items()):
        symbol, part, aside = looks[row % 2]
        values = np.array(list(by_scheme.values()))
        ring = [3 if (name, scheme) == chosen else 0 for scheme in by_scheme]
        traces.append(
            go.Scatter(
                x=np.arange(len(by_scheme)) + aside,
                y=np.maximum(values, FLOOR),
                mode="markers",
                name=name,
                text=list(by_scheme),
                customdata=values,
                marker={
                    "symbol": symbol,
                    "size": 15,
                    "color": colour(part),
                    "line": {"width": ring, "color": colour("residual")},
                },
                hovertemplate=TEXT["hover schemes"],
            )
        )
    return go.figure(
        traces,
        margin={"l": 8, "r": 8, "t": 30, "b": 30},
        xaxis=rows_axis(list(next(iter(largest.values()))), tickfont=MONO, range=[-0.5, 5.5]),
        yaxis=go.axis(
            TEXT["difference axis"],
            showgrid=True,
            type="log",
            exponentformat="power",
            dtick=2,
            range=[-8.4, 1.0],
        ),
    )


def moved_bars(values: np.ndarray, labels: Sequence[str]) -> go.Figure:
    """Draws how far each token's final vector moved (position,), in units of the usual length of such a
    vector.
    """
    bars = go.Bar(
        x=np.arange(len(labels)),
        y=values.astype(np.float32),
        marker={"color": colour("position")},
        customdata=[plain(label) for label in labels],
        hovertemplate=f"{TEXT['hover moved']}<extra></extra>",
    )
    return go.figure(
        [bars],
        margin={"l": 8, "r": 8, "t": 8, "b": 44},
        showlegend=False,
        bargap=0.15,
        xaxis=token_axis(labels, TEXT["token axis"]),
        yaxis={"title": {"text": TEXT["moved axis"]}, "rangemode": "tozero", "exponentformat": "power"},
    )


VIEW = View("why", TEXT, draw, code=(compare, fresh, new_order, in_order_and_out), needs_model=False)
