"""The view "Token by token": a text is written while one watches, and each of its tokens can be chosen
otherwise.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import SampleConfig
from engine.sample.branches import Written, likelihood
from pages.output.generation.figures import surprise
from pages.output.generation.session import (
    LENGTHS,
    TREE,
    Limits,
    Session,
    again,
    answer,
    begin,
    left_out,
    link,
    message,
    resting,
)
from ui import explain, state
from ui.controls import visible
from ui.figures import theme
from ui.players import sampler
from ui.players.component import mounted
from ui.players.plot import plot
from ui.subject import Subject
from ui.text.markdown import safe

KEY, SESSIONS = "writer", "generation_sessions"
KEPT = 4  # sessions of one visitor: with the settings put back, an earlier tree is there again
LENGTH = 200
TREE_LINK, AT_LINK = "generation_tree", "generation_at"


def draw_tokens(subject: Subject) -> None:
    """Settings, the writer, and how surprising the text was."""
    if not subject.config.causal:
        st.info(
            "This model looks both ways and fills gaps: it does not write on. Choose a causal model, which"
            " sees only what came before."
        )
        return
    sampling, limits = _settings(subject)
    _write(subject, sampling, limits)


def _settings(subject: Subject) -> tuple[SampleConfig, Limits]:
    """Whatever a link says, settings that can be used."""
    state.drop_endless()
    a, b, c, d = st.columns([2, 2, 3, 2], gap="medium", vertical_alignment="bottom")
    asked = a.number_input(
        "Tokens to write",
        value=LENGTH,
        step=50,
        key="generation_length",
        bind="query-params",
        help="A branch ends there at the latest.",
    )
    stop = b.text_input(
        "Stop after",
        "",
        max_chars=40,
        key="generation_stop",
        bind="query-params",
        placeholder="nothing",
        help=(
            "A character or a string, for instance `.` or `⏎⏎` (⏎ is a line break). The text ends with the"
            " token that completes it."
        ),
    )
    temperature = c.slider(
        "Temperature",
        0.0,
        2.0,
        sampler.START.temperature,
        0.05,
        key="generation_temperature",
        bind="query-params",
        help="0: greedy.",
    )
    seed = d.number_input(
        "Seed",
        value=0,
        min_value=0,
        max_value=2**31 - 1,
        step=1,
        key="generation_seed",
        bind="query-params",
        help="The same seed writes the same text.",
    )
    with st.expander("Cuts and penalty"):
        e, f, g, h = st.columns(4, gap="medium", vertical_alignment="bottom")
        most = subject.config.vocab_size
        top_k = e.number_input(
            "Top-k",
            value=0,
            min_value=0,
            step=1,
            key="generation_top_k",
            bind="query-params",
            help=f"The k likeliest of {most:,}. 0: off.",
        )
        top_p = f.slider(
            "Top-p",
            0.0,
            1.0,
            sampler.START.top_p,
            0.01,
            key="generation_top_p",
            bind="query-params",
            help="Fewest that reach p. 1: off.",
        )
        min_p = g.slider(
            "Min-p",
            0.0,
            1.0,
            0.0,
            0.01,
            key="generation_min_p",
            bind="query-params",
            help="Keep what has this share of the likeliest's probability. 0: all.",
        )
        penalty = h.slider(
            "Repetition penalty",
            0.5,
            2.0,
            1.0,
            0.05,
            key="generation_penalty",
            bind="query-params",
            help="Makes tokens of the text so far rarer. 1: off.",
        )
    values = {
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "min_p": min_p,
        "repetition_penalty": penalty,
    }
    sampling = sampler.valid(values, min(max(int(seed or 0), 0), 2**31 - 1))
    most = LENGTHS.get(state.profile().name, min(LENGTHS.values()))
    wanted = LENGTH if asked is None else int(asked)
    length = min(max(wanted, 0), most)
    if wanted > most:
        st.caption(
            f":material/info: {wanted:,} tokens were asked for; a branch here has at most {most:,}, a tree"
            f" {TREE * most:,}."
        )
    elif wanted < 1:
        st.caption(
            f":material/info: {wanted:,} tokens were asked for, so nothing is written. Ask for at least 1."
        )
    return sampling, Limits(length, most, visible(str(stop or ""))[:40])


@st.fragment
def _write(subject: Subject, sampling: SampleConfig, limits: Limits) -> None:
    """Runs again, and nothing else of the page, at each thing that the browser asks for: a batch of tokens, a
    pick, a branch less.
    """
    session = _session(subject, sampling, limits)
    ask = _asked()
    answer(session, ask, subject, sampling, limits)
    note = _keep_link(session)
    mounted("writer")(
        key=KEY,
        data=message(session, ask, subject, limits) | {"palette": theme.palette()},
        on_ask_change=lambda: None,
    )
    if note:
        st.caption(f":material/info: {note}")
    if not session.todo:
        _surprise(subject, resting(session, limits, ask.get("do") == "more"))


def _asked() -> Mapping[str, Any]:
    held = st.session_state.get(KEY)
    ask = held.get("ask") if held is not None and hasattr(held, "get") else None
    return ask if isinstance(ask, Mapping) else {}


def _session(subject: Subject, sampling: SampleConfig, limits: Limits) -> Session:
    """The tree of this model, text and settings: as it was left, else of the link, else a new one. Another
    step of a training writes the same branches.
    """
    family, name = (
        hashlib.sha256(repr((key, subject.ids, sampling)).encode()).hexdigest()[:16]
        for key in (subject.key[0], subject.key)
    )
    first = SESSIONS not in st.session_state
    kept: OrderedDict[str, Session] = st.session_state.setdefault(SESSIONS, OrderedDict())
    before = kept.get(family)
    empty = (
        before is not None and not before.tree.nodes and not before.todo and limits.length > 0
    )  # none were asked for before
    if before is None or before.name.partition(".")[0] != name or empty:
        linked = (st.query_params.get(TREE_LINK, ""), st.query_params.get(AT_LINK, "")) if first else ("", "")
        own = (  # a tree written again numbers its tokens anew: the browser must not mix them
            f"{name}.{secrets.token_hex(4)}"
        )
        kept[family] = begin(own, subject, sampling, limits, *(linked if before is None else again(before)))
    kept.move_to_end(family)
    while len(kept) > KEPT:
        kept.popitem(last=False)
    return kept[family]


def _keep_link(session: Session) -> str:
    """Puts the tree into the link. Returns a sentence about what does not fit."""
    if session.todo:
        return ""
    branches, place, out = link(session)
    plain = "-" not in branches and "_" not in branches and session.at == 0
    for name, value in ((TREE_LINK, "" if plain else branches), (AT_LINK, "" if plain else place)):
        if value != st.query_params.get(name, ""):
            if value:
                st.query_params[name] = value
            else:
                st.query_params.pop(name, None)
    return left_out(out)


def _surprise(subject: Subject, path: Sequence[Written]) -> None:
    """The tokens of a branch in numbers."""
    if not path:
        return
    labels = [subject.vocabulary[node.token] for node in path]
    logs = np.array([node.log_p for node in path])
    if not np.isfinite(logs).all():
        st.info(
            "This model has diverged: its logits are no numbers, so there are no probabilities, and what it"
            " writes is as good as any."
        )
        return
    found = likelihood(path)
    table = pd.DataFrame(
        {
            "token_written": np.arange(1, len(path) + 1),
            "position": np.arange(1, len(path) + 1) + len(subject.ids) - 1,
            "id": [n.token for n in path],
            "token": labels,
            "p": np.exp(logs),
            "nats": -logs,
            "nats_so_far": -np.cumsum(logs) / np.arange(1, len(path) + 1),
            "q_with_settings": [n.q for n in path],
            "drawn_id": [n.drawn for n in path],
            "picked": [n.picked for n in path],
            "sees_from_position": [n.begin for n in path],
        }
    )
    st.markdown("**How surprising each token was**")
    plot(
        surprise(labels, -logs, np.array([n.picked for n in path]), math.log(subject.config.vocab_size)),
        key="generation_surprise",
        height=280,
        name="generation",
        data=table,
        alt=(
            f"Surprise of each of the {len(path)} tokens written so far, in nats, and their mean so far,"
            f" which ends at {found.nats:.2f}."
        ),
    )
    worst = int(np.argmin(logs))
    best = sum(node.token == node.alternatives[0][0] for node in path) / len(path)
    own = sum(not node.picked for node in path)
    explain.takeaway(
        f"**The {len(path)} tokens written so far cost the model {found.nats:.2f} nats each: a perplexity of"
        f" {found.perplexity:.2f}.** They surprised it as draws among {found.perplexity:.1f} equally likely"
        f" tokens would, not among all {subject.config.vocab_size:,}. It took its likeliest token in"
        f" {best:.0%} of the places; the least expected was “{safe(labels[worst])}”, token {worst + 1}, with"
        f" p = {chance(float(logs[worst]))}."
        + (f" {len(path) - own} of them you picked." if own < len(path) else "")
    )


def chance(log_p: float) -> str:
    """A probability that may be tiny: in percent, and where that would be 0, as one in so many.

    >>> chance(math.log(0.0147)), chance(math.log(1 / 320_000_000)), chance(-900.0)
    ('1.47%', '1 in 3.2e+08', '1 in more than can be written')
    """
    if log_p < -700:
        return "1 in more than can be written"
    if log_p > math.log(0.0005):
        return f"{math.exp(log_p):.2%}"
    return f"1 in {math.exp(-log_p):,.0f}" if log_p > math.log(1e-7) else f"1 in {math.exp(-log_p):.1e}"
