"""The view of patching: where a model keeps what an answer hangs on."""

from __future__ import annotations

import numpy as np
import streamlit as st

from engine.errors import GlassformerError
from engine.measure.circuits.patching import (
    Patching,
    patch,
    sites,
)
from engine.measure.circuits.prompt_pairs import (
    Prompts,
    inside_a_word,
    prompts_of,
)
from pages.inside.circuits import figures_patching as figures
from pages.inside.circuits import words_patching as words
from pages.inside.circuits.prompts import OWN, Pair, custom_pair, pairs_for
from ui import explain, widgets
from ui.background_jobs import measured
from ui.figures.labels import crowded
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.text.markdown import sentence

NOTHING = Pair("", "", "", ("", ""))
HEIGHT, LINES = 360, 76  # pixels: of the map, and of the lines above it in which a person writes


def draw_patching(subject: Subject) -> None:
    pairs = pairs_for(subject.tokenizer)
    titles = {name: pair.title for name, pair in pairs.items()} | {OWN: words.YOUR_OWN}
    chosen = widgets.select(words.PROMPTS, titles, "patching_pair", kind="pills", wrap=True, hidden=True)
    pair = custom_pair(next(iter(pairs.values()), NOTHING)) if chosen == OWN else pairs[chosen]
    try:
        prompts = prompts_of(subject.tokenizer, pair.clean, pair.corrupted, pair.answers)
    except GlassformerError as error:
        _refuse(subject, pair, error)
        return
    left, right = st.columns([5, 2], gap="medium")
    with right:
        offered = {site: words.SITES[site] for site in sites(subject.config, subject.model.parts)}
        site = widgets.select(
            words.SITE, offered, "patching_site", kind="pills", hint=words.SITE_HINT, wrap=True
        )
        baseline = st.empty()
    patching = measured(
        ("patching", subject.key, prompts, site),
        lambda: patch(subject.model, prompts, site),
        words.PATCHED,
    )
    if patching is None:
        return
    with left:
        _draw(subject, prompts, patching, HEIGHT - (LINES if chosen == OWN else 0))
    names, guesses = (
        (subject.vocabulary[a], subject.vocabulary[b])
        for a, b in (prompts.answers, patching.contrast.guesses)
    )
    baseline.caption(words.untouched(patching.contrast, names, guesses))
    explain.answer(words.sentence(patching, both_labels(subject, prompts), names))
    _notes(subject, pair)


def _refuse(subject: Subject, pair: Pair, error: GlassformerError) -> None:
    if not (pair.clean or pair.corrupted):
        st.info(words.NO_PROMPTS)
        return
    st.warning(sentence(error), icon=":material/info:")
    for name, text in zip(words.PROMPT_NAMES, (pair.clean, pair.corrupted), strict=True):
        ids = [] if subject.tokenizer.unknown(text) else subject.tokenizer.encode(text)
        st.caption(words.cut(name, [subject.vocabulary[i] for i in ids]))


def _notes(subject: Subject, pair: Pair) -> None:
    """Says how the answers were read."""
    for text, answer in zip((pair.clean, pair.corrupted), pair.answers, strict=True):
        ids = subject.tokenizer.encode(answer)
        if len(ids) > 1:
            st.caption(words.only_first(answer, len(ids), subject.vocabulary[ids[0]]))
        elif inside_a_word(subject.tokenizer, text, answer):
            st.caption(words.continues(answer))


def both_labels(subject: Subject, prompts: Prompts) -> list[str]:
    """Returns the tokens of the clean prompt; where the other has another, both."""
    shown = subject.vocabulary
    return [
        shown[a] if a == b else f"{shown[a]} / {shown[b]}"
        for a, b in zip(prompts.clean, prompts.corrupted, strict=True)
    ]


def _draw(subject: Subject, prompts: Prompts, patching: Patching, height: int) -> None:
    shown = subject.vocabulary
    labels = both_labels(subject, prompts)
    depths = words.depth_names(len(patching.restored)) if patching.site == "resid_pre" else None
    if patching.site == "z":
        names = [str(head) for head in range(subject.config.n_heads)]
        figure = figures.patch_map(
            patching.restored,
            names,
            names,
            upright=0,
            title=words.HEAD,
            hover=f"{words.HEAD} %{{customdata}}",
        )
        column = words.HEAD
    else:
        clean, corrupted = ([shown[i] for i in ids] for ids in (prompts.clean, prompts.corrupted))
        figure = figures.patch_map(
            patching.restored,
            figures.both(clean, corrupted),
            labels,
            upright=crowded(clean, 420),
            title=words.TOKEN_TITLE,
            hover=words.TOKEN_HOVER,
            depths=depths,
        )
        names, column = labels, words.TOKEN
    layer, column_index = (grid.ravel() for grid in np.indices(patching.restored.shape))
    plot(
        figure,
        key="patching_map",
        height=height,
        name=f"patching-{words.SITES[patching.site]}",
        data={
            "block": layer if depths is None else np.asarray(depths)[layer],
            "place": column_index,
            column: np.asarray(names)[column_index],
            "restored": patching.restored.ravel(),
        },
        alt=words.map_alt(column, patching.site),
    )
