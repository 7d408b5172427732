"""The places in a corpus that excite a neuron most, found while one watches and kept for all neurons."""

from __future__ import annotations

import html
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from engine.data import corpora
from engine.data.progress import finish
from engine.errors import CorpusError
from studies.feedforward.neurons import (
    SIDES,
    Excerpt,
    FavouriteToken,
    Scan,
    activations_near,
    excerpts,
    liked,
    scan,
    shows_lowest,
    top_activations,
    windows,
)
from ui import content, memo, session, widgets
from ui.background_jobs import Key, begun, measured
from ui.figures import theme
from ui.model_bar import Subject
from ui.models import is_training
from ui.text.markdown import sentence

TEXT = content.beside(__file__)
CORPORA = ("python", "shakespeare")
SLOW_SPANS = {"2,048": 2_048, "8,192": 8_192}  # of a large model, which reads a few hundred in a second
SLOW_WINDOW, SLOW_BATCH = 64, 4
SPANS = {"8,000": 8_000, "32,000": 32_000, "all": 10**9}  # tokens of the validation text
BEFORE, AFTER = 40, 16  # tokens shown around the one that excites
WORDS_BEFORE, WORDS_AFTER = 14, 6  # of tokens that are words
WINDOW, BATCH = 128, 16
# The middle tones of the diverging scale, made transparent by two more digits: they do on a light page and on
# a dark one.
ABOVE, BELOW = theme.palette()["div5"][0], theme.palette()["div1"][0]
STYLE = (
    "<style>.gf-contexts{max-height:312px;overflow-y:auto;font-family:var(--st-code-font,ui-monospace,monospace);font-size:15px;line-height:2.1}.gf-contexts"
    " div{display:flex;gap:12px;white-space:pre-wrap;overflow-wrap:anywhere;padding:2px 0}.gf-contexts"
    " b{flex:none;width:4.5em;text-align:right;font-weight:600}.gf-contexts"
    " u{text-decoration:none;font-weight:700;box-shadow:0 0 0 1.5px"
    " currentColor;border-radius:2px}.gf-contexts"
    " s{text-decoration:none}@media(max-width:900px){"
    ".gf-contexts{max-height:none;line-height:1.6}.gf-contexts s{display:none}}</style>"
)


@dataclass(frozen=True)
class Seen:
    """The contexts that excite a neuron most, and how they were found: of `total` tokens, read `window` at a
    time, it was above zero at a share of `positive`.
    """

    liked: FavouriteToken
    total: int
    window: int
    positive: float


def contexts(subject: Subject, layer: int, neuron: int, is_signed: bool, container: Any) -> Seen | None:
    """Draws the contexts, with their controls in `container`; finds them first, with a bar that shows how far
    it is, where they are not known yet. Returns the neuron's best contexts; None where they are not known.
    """
    if subject.is_pretrained:
        return _elsewhere(subject, layer, neuron, is_signed, container)
    ids, problem = _validation(subject.corpus, subject.key, subject.tokenizer)
    if problem:
        st.info(f"{problem} {TEXT['text instead']}", icon=":material/info:")
    span, side = "8,000", SIDES[0]
    if not problem:
        hint = TEXT("span hint", tokens=len(ids))
        span = widgets.select(TEXT["span"], list(SPANS), "feedforward_span", hint=hint, container=container)
    if is_signed:
        side = widgets.select(TEXT["activation"], SIDES, "feedforward_side", container=container)
    key: Key = ("contexts", subject.key, span)
    if problem or (is_training(subject.key[0]) and not begun(key) and not _asked()):
        ids, span, key = np.asarray(subject.ids), "all", ("contexts", subject.key, subject.ids)
    window = min(subject.config.context, WINDOW)
    result = measured(
        key,
        partial(scan, subject.model, ids[: SPANS[span]], window=window, batch=BATCH),
        TEXT["reading"],
    )
    if result is None:
        return None
    lower = is_signed and shows_lowest(result[layer], neuron, side)
    return _draw(subject, ids, result[layer], layer, neuron, lower)


def _asked() -> bool:
    """Offers to read the corpus with the model of one step: at each step of the scrubber it is another."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(TEXT["in the text"], width="content")
        # Streamlit's own: a button that begins a measurement has no value.
        return st.button(TEXT["read"], key="feedforward_read", type="tertiary")


def _elsewhere(subject: Subject, layer: int, neuron: int, is_signed: bool, container: Any) -> Seen | None:
    """For a model whose own texts are not here: a corpus that is, cut by the model's own tokenizer."""
    here = {
        name: TEXT[f"corpus {name}"]
        for name in CORPORA
        if name != "shakespeare" or corpora.shakespeare_path()
    }
    hint = TEXT["corpus hint"]
    source = widgets.select(
        TEXT["corpus"], here, "feedforward_corpus", hint=hint, container=container, kind="list"
    )
    span = widgets.select(TEXT["span"], list(SLOW_SPANS), "feedforward_words", container=container)
    side = SIDES[0]
    if is_signed:
        side = widgets.select(TEXT["activation"], SIDES, "feedforward_side", container=container)
    ids, problem = _validation(source, (subject.key[0], 0), subject.tokenizer)
    if problem:
        st.info(problem, icon=":material/info:")
        return None
    ids = ids[: SLOW_SPANS[span]]
    scans = measured(
        ("contexts", subject.key, source, span),
        partial(scan, subject.model, ids, window=SLOW_WINDOW, batch=SLOW_BATCH),
        TEXT["reading"],
    )
    if scans is None:
        return None
    result = scans[layer]
    lower = is_signed and shows_lowest(result, neuron, side)
    at, values = top_activations(result, neuron, lower)
    starts = windows(at, result.window)
    near = measured(
        ("contexts near", subject.key, layer, neuron, source, tuple(at.tolist())),
        partial(activations_near, subject.model, ids, layer, neuron, starts, result.window, batch=1),
        TEXT["reading around"],
    )
    if near is None:
        return None
    _show(subject, ids, excerpts(at, values, near, result.window, WORDS_BEFORE, WORDS_AFTER))
    return _seen(result, at, values, ids, neuron)


def _seen(result: Scan, at: np.ndarray, values: np.ndarray, ids: np.ndarray, neuron: int) -> Seen:
    return Seen(liked(at, values, ids), result.total, result.window, float(result.positive[neuron]))


@memo.measured()
def _validation(name: str | None, key: tuple[str, int], _tokenizer: object) -> tuple[np.ndarray, str]:
    """(ids of the validation text, a sentence when it cannot be had)."""
    nothing = np.zeros(0, dtype=np.int64)
    if name is None:
        return nothing, TEXT["no training text"]
    if name == "shakespeare" and corpora.shakespeare_path() is None:
        return nothing, TEXT["no shakespeare"]
    try:
        corpus = session.corpus(name)
    except CorpusError as error:
        return nothing, sentence(error)
    text = corpus.text[-len(corpus.validation) :]  # a corpus is cut into characters
    unknown = set(_tokenizer.unknown(text))  # type: ignore[attr-defined]
    known = "".join(c for c in text if c not in unknown) if unknown else text
    return np.asarray(_tokenizer.encode(known), dtype=np.int64), (  # type: ignore[attr-defined]
        "" if known else TEXT["other characters"]
    )


def _draw(subject: Subject, ids: np.ndarray, result: Scan, layer: int, neuron: int, lower: bool) -> Seen:
    at, values = top_activations(result, neuron, lower)
    near = _near(
        (subject.key, layer, neuron, tuple(at.tolist()), result.total), result.window, ids, subject.model
    )
    _show(subject, ids, excerpts(at, values, near, result.window, BEFORE, AFTER))
    return _seen(result, at, values, ids, neuron)


def _show(subject: Subject, ids: np.ndarray, shown: list[Excerpt]) -> None:
    rows = "".join(_row(subject, ids, excerpt) for excerpt in shown)
    st.html(f'{STYLE}<div class="gf-contexts gf-text">{rows}</div>')


@memo.measured()
def _near(
    key: tuple[tuple[str, int], int, int, tuple[int, ...], int], window: int, _ids: np.ndarray, _model: object
) -> np.ndarray:
    """The neuron's activation along the windows of its contexts: (context, window)."""
    _, layer, neuron, at, _ = key
    starts = windows(np.array(at), window)
    return finish(activations_near(_model, _ids, layer, neuron, starts, window))  # type: ignore[arg-type]


def _row(subject: Subject, ids: np.ndarray, excerpt: Excerpt) -> str:
    """One context as HTML. Tokens come out of a corpus that somebody may have written: all of them are
    escaped.
    """
    # Of tokens of one letter each, the strongest stand below each other.
    cells = [] if subject.is_pretrained else [f"<s>{' ' * excerpt.missing}</s>"]
    for i, strength in enumerate(excerpt.strengths.tolist(), excerpt.first):
        text = html.escape(subject.vocabulary[int(ids[i])])
        shade = f"{ABOVE if strength > 0 else BELOW}{round(min(abs(strength), 1.0) * 190):02x}"
        tag = "u" if i == excerpt.at else "span"
        cells.append(f'<{tag} style="background:{shade}">{text}</{tag}>')
    return f"<div><b>{excerpt.value:.3f}</b><span>{''.join(cells)}</span></div>"
