"""The places in a corpus that excite a neuron most, found while one watches and kept for all neurons of the
layer.
"""

from __future__ import annotations

import html
from collections import OrderedDict
from threading import Lock

import numpy as np
import streamlit as st

from engine import corpora
from engine.errors import CorpusError
from engine.measure.firing import SIDES, Excerpt, excerpts, places, shows_lowest, windows
from engine.measure.neurons import Scan, activations_near, scan
from ui import state, widgets
from ui.figures import theme
from ui.models import RUN
from ui.subject import Subject
from ui.text.markdown import safe

SPANS = {"8,000": 8_000, "32,000": 32_000, "all": 10**9}  # tokens of the validation text
BEFORE, AFTER = 40, 16  # tokens shown around the one that excites
KEPT = 32
# The middle tones of the diverging scale, made transparent by two more digits: they do on a light page and on
# a dark one.
ABOVE, BELOW = theme.palette()["div5"][0], theme.palette()["div1"][0]
STYLE = (
    "<style>.gf-contexts{font-family:var(--st-code-font,ui-monospace,monospace);font-size:14px;line-height:1.75}.gf-contexts"
    " div{display:flex;gap:12px;white-space:pre-wrap;overflow-wrap:anywhere;padding:2px 0}.gf-contexts"
    " b{flex:none;width:4.5em;text-align:right;font-weight:600}.gf-contexts"
    " u{text-decoration:none;font-weight:700;box-shadow:0 0 0 1.5px"
    " currentColor;border-radius:2px}.gf-contexts s{text-decoration:none}@media(max-width:900px){.gf-contexts"
    " s{display:none}}</style>"
)

Key = tuple[tuple[str, int], int, str, tuple[int, ...]]


class Kept:
    """The last few finished scans, for all sessions of the server."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._found: OrderedDict[Key, Scan] = OrderedDict()

    def get(self, key: Key) -> Scan | None:
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
            return self._found.get(key)

    def put(self, key: Key, value: Scan) -> None:
        with self._lock:
            self._found[key] = value
            while len(self._found) > KEPT:
                self._found.popitem(last=False)


@st.cache_resource(show_spinner=False)
def _kept() -> Kept:
    return Kept()


def contexts(subject: Subject, layer: int, neuron: int, is_signed: bool) -> None:
    """Draws the contexts; finds them first, with a bar that shows how far it is, where they are not known
    yet.
    """
    st.markdown("**What excites it most in the corpus**")
    ids, problem = _validation(subject.corpus, subject.key, subject.tokenizer)
    if problem:
        st.info(f"{problem} The text above is searched instead.", icon=":material/info:")
        ids = np.asarray(subject.ids)
    row = st.container(horizontal=True, gap="medium")
    span, side = "8,000", SIDES[0]
    if not problem:
        with row:
            hint = (
                f"From the beginning of the validation text, which has {len(ids):,} tokens and was not"
                " trained on."
            )
            span = widgets.one_of("Tokens read", list(SPANS), "feedforward_span", hint=hint)
    if is_signed:
        with row:
            side = widgets.one_of("Activation", SIDES, "feedforward_side")
    key: Key = (subject.key, layer, span, subject.ids if problem else ())
    found = _kept().get(key)
    if found is None:
        if (
            subject.key[0].startswith(RUN)
            and not problem
            and not st.button("Read the corpus with the model of this step", key="feedforward_read")
        ):
            st.caption("Not read yet: the model is another one at each step of the scrubber.")
            return
        found = _read(subject, ids[: SPANS[span]], layer)
        _kept().put(key, found)
    _draw(subject, ids, found, layer, neuron, is_signed and shows_lowest(found, neuron, side))


def _read(subject: Subject, ids: np.ndarray, layer: int) -> Scan:
    bar = st.progress(0.0, "Reading the corpus …")
    last = None
    for last in scan(subject.model, ids, layer, window=min(subject.config.context, 128)):
        bar.progress(last.done / last.total, f"Reading the corpus: {last.done:,} of {last.total:,} tokens")
    bar.empty()
    assert last is not None
    return last


@st.cache_resource(max_entries=8, show_spinner=False)
def _validation(name: str | None, key: tuple[str, int], _tokenizer: object) -> tuple[np.ndarray, str]:
    """(ids of the validation text, a sentence when it cannot be had)."""
    nothing = np.zeros(0, dtype=np.int64)
    if name is None:
        return nothing, "The text that this model was trained on is not a corpus of this server."
    if name == "shakespeare" and corpora.shakespeare_path() is None:
        return nothing, "Tiny Shakespeare, which this model was trained on, is not on this server."
    try:
        corpus = state.corpus(name)
    except CorpusError as error:
        return nothing, safe(f"{str(error)[:1].upper()}{str(error)[1:]}.")
    text = corpus.text[-len(corpus.validation) :]  # a corpus is cut into characters
    unknown = set(_tokenizer.unknown(text))  # type: ignore[attr-defined]
    kept = "".join(c for c in text if c not in unknown) if unknown else text
    return np.asarray(_tokenizer.encode(kept), dtype=np.int64), (  # type: ignore[attr-defined]
        "" if kept else "None of the corpus's characters are in this model's alphabet."
    )


def _draw(subject: Subject, ids: np.ndarray, found: Scan, layer: int, neuron: int, lower: bool) -> None:
    at, values = places(found, neuron, lower)
    near = _near(
        (subject.key, layer, neuron, tuple(at.tolist()), found.total), found.window, ids, subject.model
    )
    rows = "".join(
        _row(subject, ids, excerpt) for excerpt in excerpts(at, values, near, found.window, BEFORE, AFTER)
    )
    st.html(f'{STYLE}<div class="gf-contexts">{rows}</div>')
    st.caption(
        f"From {found.total:,} tokens read, {found.window} at a time; shaded by its activation (orange above"
        " zero, blue below), the strongest token is framed. It was above zero at"
        f" {found.positive[neuron]:.1%} of them. Of 16 neighbouring tokens only the strongest counts. Tokens"
        " at the start of a window have little before them to go by."
    )


@st.cache_resource(max_entries=64, show_spinner=False)
def _near(
    key: tuple[tuple[str, int], int, int, tuple[int, ...], int], window: int, _ids: np.ndarray, _model: object
) -> np.ndarray:
    """The neuron's activation along the windows of its contexts: (context, window)."""
    _, layer, neuron, at, _ = key
    return activations_near(_model, _ids, layer, neuron, windows(np.array(at), window), window)  # type: ignore[arg-type]


def _row(subject: Subject, ids: np.ndarray, found: Excerpt) -> str:
    """One context as HTML. Tokens come out of a corpus that somebody may have written: all of them are
    escaped.
    """
    cells = [f"<s>{' ' * found.missing}</s>"]  # so that the strongest tokens stand below each other
    for i, strength in enumerate(found.strengths.tolist(), found.first):
        text = html.escape(subject.vocabulary[int(ids[i])])
        shade = f"{ABOVE if strength > 0 else BELOW}{round(min(abs(strength), 1.0) * 190):02x}"
        tag = "u" if i == found.at else "span"
        cells.append(f'<{tag} style="background:{shade}">{text}</{tag}>')
    return f"<div><b>{found.value:.3f}</b><span>{''.join(cells)}</span></div>"
