"""The view "Token by token": a text is written while one watches, and each of its tokens can be chosen
otherwise; how surprising it was, and what rounded weights change.
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
from engine.data.progress import Progress, Steps
from engine.errors import ConfigError
from engine.sample.generate import steps, window
from pages.output.generation.conversation import conversation, converses
from pages.output.generation.link import again, link
from pages.output.generation.message import message
from pages.output.generation.records import LENGTHS, Limits, Session
from pages.output.generation.session import answer, begin, products_of, resting
from studies.generation.branches import Written, ended_by, likelihood, pick
from studies.generation.rounding import Rounding, rounding
from studies.generation.row_products import ARITHMETICS, Arithmetic, check_arithmetic
from studies.generation.surprise import Surprise, odds, surprise
from ui import content, explain, widgets
from ui import session as visits
from ui.background_jobs import measured
from ui.fields import visible
from ui.figures import specs as go
from ui.figures import theme
from ui.figures.labels import plain
from ui.figures.theme import SEQUENTIAL, colour
from ui.model_bar import Subject
from ui.model_needs import CAUSAL, SAYS
from ui.page_frame import View
from ui.players import sampler
from ui.players.component import mounted
from ui.players.plot import plot
from ui.text.numbers import scientific

TEXT = content.beside(__file__)
KEY, SESSIONS = "writer", "generation_sessions"
# It plays what it has while the server writes on: it is never out of date.
STYLE = (
    '<style>.st-key-generation_writer, .st-key-generation_writer [data-stale="true"] { opacity: 1 !important;'
    " transition: none !important; }</style>"
)
KEPT = 4  # sessions of one visitor: with the settings put back, an earlier tree is there again
TREE_LINK, AT_LINK = "generation_tree", "generation_at"
LENGTH = 200
FARTHEST = 10**9  # a number of tokens that can be asked for; how many are written is said beside it
MAX_SEED = 2**31 - 1


def draw(subject: Subject) -> None:
    """Settings, the writer, and how surprising the text was."""
    # of a model that converses one more, for the switch
    wide = [2, 2, 3, 2, 2] + [2.4] * converses(subject)
    columns = st.columns(wide, gap="small", vertical_alignment="bottom")
    speaking, ends, about = conversation(subject, columns[-1])
    sampling, limits = _settings(speaking, ends, columns)
    if about:
        st.caption(about)
    if draw_rounding(speaking, limits.arithmetic):
        _write(speaking, sampling, limits)


def _settings(
    subject: Subject, ends: frozenset[int], containers: Sequence[Any]
) -> tuple[SampleConfig, Limits]:
    """Draws how tokens are drawn, how many, and where they end. Whatever a link says, they can be used."""
    a, b, c, d, e = containers[:5]
    wanted = widgets.whole(
        TEXT["length"],
        -FARTHEST,
        FARTHEST,
        LENGTH,
        "generation_length",
        step=50,
        container=a,
        hint=TEXT["length hint"],
    )
    stop = b.text_input(
        TEXT["stop"],
        "",
        max_chars=40,
        key="generation_stop",
        bind="query-params",
        placeholder=TEXT["no stop"],
        help=TEXT["stop hint"],
    )
    start, hint = sampler.START.temperature, TEXT["temperature hint"]
    heat = widgets.slide(
        TEXT["temperature"], 0.0, 2.0, start, "generation_temperature", step=0.05, container=c, hint=hint
    )
    seed = widgets.whole(TEXT["seed"], 0, MAX_SEED, 0, "generation_seed", container=d, hint=TEXT["seed hint"])
    # Streamlit's own: a box that opens over the page and takes no room on it
    with e.popover(TEXT["truncation"], width="stretch"):
        values = {"temperature": heat} | _cuts(subject.config.vocab_size)
        arithmetic = _choose_arithmetic(subject)
    most = LENGTHS.get(visits.profile().name, min(LENGTHS.values()))
    if not 1 <= wanted <= most:
        case = "too many" if wanted > most else "too few"
        st.caption(TEXT(case, wanted=wanted, most=most, tree=Limits(most, most).tree))
    limits = Limits(min(max(wanted, 0), most), most, visible(str(stop or ""))[:40], ends, arithmetic)
    return sampler.valid(values, seed), limits


def _cuts(vocab: int) -> dict[str, float]:
    start = sampler.START
    with st.container(width=320):
        hint = TEXT("top-k hint", vocab=vocab)
        return {
            "top_k": widgets.whole(TEXT["top-k"], 0, FARTHEST, 0, "generation_top_k", hint=hint),
            "top_p": widgets.slide(
                TEXT["top-p"], 0.0, 1.0, start.top_p, "generation_top_p", step=0.01, hint=TEXT["top-p hint"]
            ),
            "min_p": widgets.slide(
                TEXT["min-p"], 0.0, 1.0, 0.0, "generation_min_p", step=0.01, hint=TEXT["min-p hint"]
            ),
            "repetition_penalty": widgets.slide(
                TEXT["penalty"], 0.5, 2.0, 1.0, "generation_penalty", step=0.05, hint=TEXT["penalty hint"]
            ),
        }


def _choose_arithmetic(subject: Subject) -> Arithmetic:
    """Draws the choice of a large model's arithmetic, of those that this machine has; small
    models have one.
    """
    if not subject.is_pretrained:
        return "float32"
    offered = {name: TEXT(f"weights {name}") for name in ARITHMETICS if _has(name, subject)}
    return widgets.select(TEXT["weights in"], offered, "generation_arithmetic", hint=TEXT["arithmetic hint"])


def _has(arithmetic: Arithmetic, subject: Subject) -> bool:
    try:
        check_arithmetic(arithmetic, subject.model.embedding.device)
    except ConfigError:
        return False
    return True


def draw_rounding(subject: Subject, arithmetic: Arithmetic) -> bool:
    """Draws one line on what rounded weights change; nothing where they are not rounded, or nothing is
    foretold. Returns False while the weights are being rounded: nothing can be written with them yet.
    """
    if arithmetic == "float32":
        return True
    rounded = measured(
        ("products", subject.key, arithmetic), lambda: _round(subject, arithmetic), TEXT["rounding"]
    )
    if rounded is None:
        return False
    if len(subject.ids) < 2:
        return True
    products = products_of(subject.key, arithmetic, subject.model)
    difference = measured(
        ("rounding", subject.key, subject.ids, arithmetic),
        lambda: rounding(subject.model, subject.ids, products),
        TEXT["reading both"],
    )
    if difference is not None:
        st.caption(rounded_by(difference))
    return True


def rounded_by(rounding: Rounding) -> str:
    """
    >>> rounded_by(Rounding("int8", 5, 1.62, 0.2, 3.1, 2.5, 2.512, 0.8))[16:89]
    'With weights in 8 bits the logits of your text are off by at most **1.62*'
    """
    return TEXT(
        "rounded",
        weights=TEXT(f"weights {rounding.arithmetic}"),
        largest=rounding.largest,
        spread=rounding.spread,
        loss=rounding.loss,
        exact=rounding.exact,
        alike=rounding.alike,
    )


def _round(subject: Subject, arithmetic: Arithmetic) -> Steps[bool]:
    """Seconds of work, done once for all visitors and not in the run of a page."""
    yield Progress(0, 1)
    products_of(subject.key, arithmetic, subject.model)
    return True


@st.fragment
def _write(subject: Subject, sampling: SampleConfig, limits: Limits) -> None:
    """Runs again, and nothing else of the page, at each thing that the browser asks for: a batch of tokens, a
    pick, a branch less.
    """
    session = _session(subject, sampling, limits)
    ask = _asked()
    answer(session, ask, subject, sampling, limits)
    left_out = _keep_link(session)
    st.html(STYLE)
    with st.container(key="generation_writer"):
        mounted("writer", stepper=True)(
            key=KEY,
            data=message(session, ask, subject, limits) | {"palette": theme.palette()},
            on_ask_change=lambda: None,
        )
    if left_out:
        st.caption(TEXT("left out", count=left_out))
    if not session.todo:
        path, shown = resting(session, limits, ask.get("do") == "more")
        draw_surprise(subject, path, shown)


def _asked() -> Mapping[str, Any]:
    ask = widgets.picked(KEY, "ask")
    return ask if isinstance(ask, Mapping) else {}


def _session(subject: Subject, sampling: SampleConfig, limits: Limits) -> Session:
    """The tree of this model, text and settings: as it was left, else of the link, else a new one. Another
    step of a training writes the same branches.
    """
    family, name = (
        hashlib.sha256(repr((key, subject.ids, sampling, limits.arithmetic)).encode()).hexdigest()[:16]
        for key in (subject.key[0], subject.key)
    )
    first = SESSIONS not in st.session_state
    sessions: OrderedDict[str, Session] = st.session_state.setdefault(SESSIONS, OrderedDict())
    before = sessions.get(family)
    empty = (
        before is not None and not before.tree.nodes and not before.todo and limits.length > 0
    )  # none were asked for before
    if before is None or before.name.partition(".")[0] != name or empty:
        linked = (widgets.read_url(TREE_LINK), widgets.read_url(AT_LINK)) if first else ("", "")
        session_name = (  # a tree written again numbers its tokens anew: the browser must not mix them
            f"{name}.{secrets.token_hex(4)}"
        )
        sessions[family] = begin(
            session_name, subject, sampling, limits, *(linked if before is None else again(before))
        )
    sessions.move_to_end(family)
    while len(sessions) > KEPT:
        sessions.popitem(last=False)
    return sessions[family]


def _keep_link(session: Session) -> int:
    """Puts the tree into the link. Returns how many branches do not fit."""
    if session.todo:
        return 0
    branches, position, out = link(session)
    bare = "-" not in branches and "_" not in branches and session.at == 0
    for name, value in ((TREE_LINK, branches), (AT_LINK, position)):
        widgets.keep_in_url(name, None if bare or not value else value)
    return out


def draw_surprise(subject: Subject, path: Sequence[Written], shown: int) -> None:
    """Draws the tokens of a branch in numbers: in the answer those that are `shown`, in the fold all."""
    if not path:
        return
    vocab = subject.config.vocab_size
    whole = surprise(path, vocab)
    if not whole.finite:
        st.info(TEXT["diverged"])
        return
    cost = surprise(path[:shown], vocab).likelihood
    case = "one token" if cost.tokens == 1 else "several tokens"
    explain.answer(TEXT(case, tokens=cost.tokens, nats=cost.nats, perplexity=cost.perplexity, vocab=vocab))
    labels = [subject.vocabulary[node.token] for node in path]
    explain.measure_it(_every_token, subject, labels, path, whole)


def _every_token(subject: Subject, labels: list[str], path: Sequence[Written], surprise: Surprise) -> None:
    st.markdown(TEXT["each token"])
    plot(
        surprise_bars(labels, surprise),
        key="generation_surprise",
        height=280,
        name="generation",
        data=_table(labels, path, surprise, len(subject.ids)),
        alt=TEXT("alt", tokens=len(surprise.depth), nats=surprise.likelihood.nats),
    )
    st.markdown(
        TEXT(
            "least expected, picked" if surprise.picks else "least expected",
            likeliest=surprise.likeliest,
            worst=labels[surprise.worst],
            at=surprise.worst + 1,
            chance=chance(path[surprise.worst].log_p),
            picks=surprise.picks,
        )
    )


def chance(log_p: float) -> content.Filled:
    """Returns a probability that may be tiny: in percent, and where that would be 0, as one in so many.

    >>> chance(math.log(0.0147)), chance(math.log(1 / 320_000_000)), chance(-900.0)
    ('1.47%', '1 in 3.2 × 10⁸', 'less than 1 in 10³⁰⁰')
    """
    p, draws = odds(log_p)
    if math.isinf(draws):
        return content.Filled("less than 1 in 10³⁰⁰")
    if p > 0.0005:
        return content.Filled(f"{p:.2%}")
    return content.Filled(f"1 in {draws:,.0f}" if p > 1e-7 else f"1 in {scientific(draws)}")


def _table(labels: Sequence[str], path: Sequence[Written], surprise: Surprise, prompt: int) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "token_written": surprise.depth,
            "position": surprise.positions(prompt),
            "id": [n.token for n in path],
            "token": labels,
            "p": surprise.p,
            "nats": surprise.nats,
            "nats_so_far": surprise.mean,
            "q_with_settings": [n.q for n in path],
            "drawn_id": [n.drawn for n in path],
            "picked": surprise.picked,
            "sees_from_position": [n.begin for n in path],
        }
    )


def surprise_bars(labels: Sequence[str], surprise: Surprise) -> go.Figure:
    """Draws a bar for each token, -ln p in nats, in the colours of the text; over them the mean so far.
    labels (token,).
    """
    count, depth = len(labels), surprise.depth
    shown = [plain(label) for label in labels]
    bars = go.Bar(
        x=depth,
        y=surprise.nats.astype(np.float32),
        name=TEXT["this token"],
        customdata=surprise.p.astype(np.float32),
        hovertext=shown,
        marker={
            "color": surprise.p.astype(np.float32),
            "colorscale": SEQUENTIAL,
            "cmin": 0,
            "cmax": 1,
            "line": {"width": 0.8 if count <= 400 else 0, "color": colour("quiet", 50)},
        },
        hovertemplate=TEXT["hover token"],
    )
    traces: list[go.Trace] = [
        bars,
        go.Scatter(
            x=depth,
            y=surprise.mean.astype(np.float32),
            mode="lines",
            name=TEXT["mean"],
            line={"color": colour("output"), "width": 2.5},
            hovertemplate=TEXT["hover mean"],
        ),
    ]
    if surprise.picked.any():
        traces.append(
            go.Scatter(
                x=depth[surprise.picked],
                y=surprise.nats[surprise.picked].astype(np.float32),
                mode="markers",
                name=TEXT["picked"],
                hoverinfo="skip",
                marker={"symbol": "diamond", "size": 10, "color": colour("attention")},
            )
        )
    few = count <= 40
    axis: dict[str, object] = {}
    if few:  # single characters stand upright side by side even on a phone; longer tokens may be turned
        axis = {"tickvals": depth, "ticktext": shown, "tickfont": {"family": "monospace"}} | (
            {"tickangle": 0} if max(map(len, labels)) == 1 else {}
        )
    return go.figure(
        traces,
        xaxis={"title": {"text": TEXT["axis token"]}, "range": [0.4, count + 0.6], **axis},
        yaxis={"title": {"text": TEXT["axis surprisal"]}, "rangemode": "tozero"},
        bargap=0.0 if count > 150 else 0.15,
        **go.level(TEXT("uniform", nats=surprise.guessing), surprise.guessing),
    )


def _variant(subject: Subject) -> str:
    """A model of words forgets no speaker of a play."""
    return "pretrained" if subject.is_pretrained else ""


VIEW = View(
    "tokens", TEXT, draw, (steps, window, pick, likelihood, ended_by), takes=(SAYS, CAUSAL), variant=_variant
)
