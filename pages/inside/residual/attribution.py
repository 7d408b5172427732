"""The view "Attribution": which component pushed the logit, by direct logit attribution."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from pages.inside.residual.chosen_token import POSITION, first_position, read_so_far, where
from pages.inside.residual.writers import in_full, not_a_sum, part_bars
from studies.costs.cards.table import card_of
from studies.generation.outcome import likeliest_ids
from studies.residual.attribution import Attribution, Push, Pushes, Versus, attribute, pushes
from ui import content, explain, memo, widgets
from ui.figures import specs as go
from ui.figures.axes import rows_axis
from ui.model_bar import Subject
from ui.model_needs import SAYS
from ui.page_frame import View
from ui.players.plot import plot
from ui.players.tokens import token_strip
from ui.text.numbers import scientific

TEXT = content.beside(__file__)
SHOWN = 16  # that push hardest, where a model has hundreds of heads
TOP, ITSELF, MEAN = "top guess", "nothing", "mean of all"  # choices, which stand in links
FEW = 1000  # tokens that all stand in the list
LISTED = 200  # of a larger vocabulary: the likeliest ones. Any other can be typed


def draw(subject: Subject) -> None:
    """Draws the parts of one logit, as bars; heads against layers and the sum are folded."""
    parts, config = subject.model.parts, subject.config
    if not parts.logit_is_sum(config):
        st.info(not_a_sum(config, parts))
        return
    label = TEXT(f"position {where(config)}")
    position = token_strip(subject.labels, key=POSITION, chosen=first_position(subject), label=label)
    wide, narrow = st.columns([3, 1], gap="medium")
    with narrow:
        target, versus = choose_tokens(subject, position)
    attribution = _attribution(subject.key, subject.ids, position, target, versus, subject)
    sums = pushes(config, attribution, parts)
    name = subject.vocabulary[target]
    with narrow:
        writers = _writers(sums)
    compared = _compared(versus)
    with wide:
        axis = TEXT["contribution" if versus is None else "contribution to a lead"]
        _bars(
            writers, axis, TEXT("alt bars", what=_sum_of(subject, compared, name, versus), position=position)
        )
    _answer(subject, sums, (attribution.logit, compared, versus), name, position)
    explain.measure_it(_more, subject, attribution, sums.difference, name, versus)


@memo.measured()
def _attribution(
    key: tuple[str, int], ids: tuple[int, ...], position: int, target: int, versus: Versus, _subject: Subject
) -> Attribution:
    return attribute(_subject.model, _subject.recording(), position, target, versus)


def _writers(sums: Pushes) -> Sequence[Push]:
    """The bars: where heads are many, the largest or those of a block summed."""
    if len(sums.single) <= len(sums.writers):
        return sums.writers
    options = {"largest": TEXT["largest"], "layers": TEXT["layers"]}
    hint = TEXT("bars hint", components=len(sums.single))
    bars = widgets.select(TEXT["bars"], options, "residual_bars", hint=hint, wrap=True)
    return sums.leading(SHOWN) if bars == "largest" else sums.writers


def _compared(versus: Versus) -> str:
    """Returns the case of what is taken apart: a logit, or its lead over what it is compared with."""
    return "logit" if versus is None else "mean" if versus == "mean" else "token"


def _sum_of(subject: Subject, compared: str, name: str, versus: Versus) -> str:
    other = subject.vocabulary[versus] if isinstance(versus, int) else ""
    return TEXT(f"sum {compared}", name=name, other=other)


def _bars(writers: Sequence[Push], axis: str, alt: str) -> None:
    labels, parts = ([getattr(push, what) for push in writers] for what in ("label", "part"))
    values = np.array([push.value for push in writers])
    plot(
        part_bars(labels, parts, values, title=axis),
        key="residual_parts",
        height=390,
        name="logit-attribution",
        data=pd.DataFrame({"writer": labels, "part": parts, "contribution": values}),
        alt=alt,
    )


def _answer(
    subject: Subject, sums: Pushes, whole: tuple[float, str, Versus], target: str, position: int
) -> None:
    """Says which part raises a logit most, or its lead over what it is compared with, and which lowers it."""
    most, least = sums.most, sums.least
    value, compared, versus = whole
    other = subject.vocabulary[versus] if isinstance(versus, int) else ""
    raised = TEXT(
        "most in full" if in_full(most.label) else "most",
        target=target,
        where=TEXT(f"where {where(subject.config)}", read=read_so_far(subject, position)),
        most=most.label,
        full=in_full(most.label),
        by=most.value,
        whole=TEXT(f"whole {compared}", value=value, other=other),
    )
    lowered = TEXT["none lowers"]
    if least.value < 0:
        full = in_full(least.label)
        lowered = TEXT("least in full" if full else "least", least=least.label, full=full, by=least.value)
    explain.answer(f"{raised} {lowered}")


def _more(subject: Subject, attribution: Attribution, difference: float, name: str, versus: Versus) -> None:
    """The sum, and heads against layers."""
    other = subject.vocabulary[versus] if isinstance(versus, int) else ""
    compared = {"logit": "logit", "mean": "logit over mean", "token": "logit over token"}[_compared(versus)]
    metrics = {
        TEXT["sum"]: f"{attribution.total:+.4f}",
        TEXT(compared, token=name, other=other): f"{attribution.logit:+.4f}",
        TEXT["difference"]: scientific(difference),
    }
    for column, (label, value) in zip(st.columns(3), metrics.items(), strict=True):
        column.metric(label, value)
    _tell_frozen(subject, attribution.scale)
    if subject.model.parts.mixer(subject.config).present:
        columns = [f"head_{head}" for head in range(subject.config.n_heads)]
        plot(
            head_map(attribution.heads),
            key="residual_heads",
            height=390,
            name="head-attribution",
            data=pd.DataFrame(attribution.heads, columns=columns).rename_axis("layer").reset_index(),
            alt=TEXT["alt heads"],
        )


def _tell_frozen(subject: Subject, divisor: float) -> None:
    """Says how the final norm was treated."""
    norm = subject.model.parts.norm(subject.config)
    treated = card_of(norm).linear_words(subject.config)
    case = "no final norm" if not norm.present else "frozen" if treated else "frozen only"
    st.caption(TEXT(case, divisor=divisor, norm=card_of(norm).title, treated=treated))


def choose_tokens(subject: Subject, position: int) -> tuple[int, Versus]:
    """Draws two boxes of shown tokens; returns (target id, what it is compared with). A leftover of another
    alphabet falls back.
    """
    recording = subject.recording()
    listed = _listed(subject, recording.logits[position])
    hint = TEXT("target hint", top=TOP)
    chosen = _choice(subject, listed, (TOP,), TEXT["target"], "residual_target", hint)
    hint = TEXT["versus hint"]
    other = _choice(subject, listed, (ITSELF, MEAN), TEXT["versus"], "residual_versus", hint)
    target = None if chosen == TOP else _token(subject, chosen)
    versus: Versus = "mean" if other == MEAN else None if other == ITSELF else _token(subject, other)
    return (recording.likeliest(position) if target is None else target), versus


def _listed(subject: Subject, logits: np.ndarray) -> list[str]:
    """The words in both lists: all there are, or the likeliest."""
    names = _names(subject.key[0], len(subject.vocabulary), subject)
    if len(names) <= FEW:
        return list(dict.fromkeys(names))
    return list(dict.fromkeys(names[i] for i in likeliest_ids(logits, LISTED)))


def _choice(
    subject: Subject, listed: list[str], first: tuple[str, ...], label: str, key: str, hint: str
) -> str:
    """One of `first`, of the listed tokens, or, of a large vocabulary, any that is typed."""
    if len(subject.vocabulary) <= FEW:
        return widgets.select(label, (*first, *listed), key, kind="list", hint=hint)
    wanted = widgets.held_or_linked(key)
    typed = (
        isinstance(wanted, str) and wanted not in (*first, *listed) and _token(subject, wanted) is not None
    )
    options = (*first, *((wanted,) if typed else ()), *listed)
    hint = f"{hint} {TEXT['typed hint']}"
    return widgets.select(label, options, key, kind="list", hint=hint, accept_new_options=True)


def _token(subject: Subject, word: str) -> int | None:
    """The id of a listed word; of a text that somebody typed, its first token.
    ␣ and ⏎ stand for a space and a line break.
    """
    ids = _ids(subject.key[0], len(subject.vocabulary), subject)
    if word in ids:
        return ids[word]
    text = word[:200].replace("␣", " ").replace("⏎", "\n")
    tokens = subject.tokenizer.encode(text) if text and not subject.tokenizer.unknown(text) else []
    return tokens[0] if tokens else None


@memo.loaded()
def _names(model: str, vocab: int, _subject: Subject) -> list[str]:
    """Returns the name of each token here, by id: its word, and where that word means something else in these
    lists, that it is the token.
    """
    return [f"{word} (token)" if word in (TOP, ITSELF, MEAN) else word for word in _subject.vocabulary]


@memo.loaded()
def _ids(model: str, vocab: int, _subject: Subject) -> dict[str, int]:
    """The id of each name; of the first token where several look alike."""
    return {name: i for i, name in reversed(list(enumerate(_names(model, vocab, _subject))))}


def head_map(nats: np.ndarray) -> go.Figure:
    """Draws what each head adds to a logit, (layer, head), blue below zero, orange above; layer 0 at the
    bottom.
    """
    layers, heads = ([str(i) for i in range(count)] for count in nats.shape)
    every = 5 if len(nats) > 20 else 1
    heat = go.signed(
        nats,
        xgap=1,
        ygap=1,
        hovertemplate=TEXT["hover head"] + "<extra></extra>",
        colorbar={"title": {"text": TEXT["nats"], "side": "top"}},
        texttemplate="%{z:+.2f}" if nats.size <= 64 else None,
    )
    return go.figure(
        [heat],
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        showlegend=False,
        xaxis=rows_axis(heads, title={"text": TEXT["head"]}, tickangle=0),
        yaxis=go.ticks(np.arange(0, len(nats), every), layers[::every], title=TEXT["block"]),
    )


VIEW = View("push", TEXT, draw, code=(attribute,), takes=(SAYS,), figures_only=True)
