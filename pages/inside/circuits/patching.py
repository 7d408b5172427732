"""The view of patching: where a model keeps what an answer hangs on."""

from __future__ import annotations

import numpy as np
import streamlit as st

from engine.errors import GlassformerError
from engine.measure.circuits.patching import (
    Patching,
    Site,
    patch,
    sites,
)
from engine.measure.circuits.prompt_pairs import (
    Contrast,
    Prompts,
    inside_a_word,
    prompts_of,
)
from pages.inside.circuits import figures_patching as figures
from pages.inside.circuits.prompts import OWN, Pair, custom_pair, pairs_for
from pages.inside.circuits.words_patching import SITES, depth_names, sentence, untouched
from ui import explain, widgets
from ui.background_jobs import measured
from ui.figures.labels import crowded
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.text.markdown import safe

SAID: dict[Site, str] = {
    "resid_pre": "the stream after that block",
    "attn_out": "what attention writes",
    "ffn_out": "what the feed-forward network writes",
    "z": "the output of one head, at all tokens",
}
NOTHING = Pair("", "", "", ("", ""))
HEIGHT, LINES = 360, 76  # pixels: of the map, and of the lines above it in which a person writes


def draw_patching(subject: Subject) -> None:
    pairs = pairs_for(subject.tokenizer)
    titles = {name: pair.title for name, pair in pairs.items()} | {OWN: "Your own"}
    chosen = widgets.select("Prompts", titles, "patching_pair", kind="pills", wrap=True, hidden=True)
    pair = custom_pair(next(iter(pairs.values()), NOTHING)) if chosen == OWN else pairs[chosen]
    try:
        prompts = prompts_of(subject.tokenizer, pair.clean, pair.corrupted, pair.answers)
    except GlassformerError as error:
        _refuse(subject, pair, error)
        return
    left, right = st.columns([5, 2], gap="medium")
    with right:
        offered = {site: SITES[site] for site in sites(subject.config, subject.model.parts)}
        site = widgets.select(
            "What is patched", offered, "patching_site", kind="pills", hint=_SITE_HINT, wrap=True
        )
        told = st.container()
    found = measured(
        ("patching", subject.key, prompts, site),
        lambda: patch(subject.model, prompts, site),
        "Patching each token in each block",
    )
    if found is None:
        return
    with left:
        _draw(subject, prompts, found, HEIGHT - (LINES if chosen == OWN else 0))
    names = (subject.vocabulary[prompts.answers[0]], subject.vocabulary[prompts.answers[1]])
    with told:
        _baseline(subject, found.contrast, names)
    explain.answer(sentence(found, both_labels(subject, prompts), names))
    _notes(subject, pair)


_SITE_HINT = (
    "Stream: the residual stream of one token after a block. Attention, feed-forward: what that sublayer"
    " writes for one token. Heads: the output of one head, patched at all tokens at once."
)


def _refuse(subject: Subject, pair: Pair, error: GlassformerError) -> None:
    if not (pair.clean or pair.corrupted):
        st.info("Write two prompts with the same number of tokens, and the answer to each.")
        return
    why = str(error)
    st.warning(safe(why[:1].upper() + why[1:] + "."), icon=":material/info:")
    for name, text in (("First", pair.clean), ("Second", pair.corrupted)):
        ids = [] if subject.tokenizer.unknown(text) else subject.tokenizer.encode(text)
        cut = " · ".join(safe(subject.vocabulary[i]) for i in ids)
        st.caption(f"{name} prompt, {len(ids)} tokens: {cut}")


def _notes(subject: Subject, pair: Pair) -> None:
    """Says how the answers were read."""
    for text, answer in zip((pair.clean, pair.corrupted), pair.answers, strict=True):
        ids = subject.tokenizer.encode(answer)
        if len(ids) > 1:
            first = subject.vocabulary[ids[0]]
            st.caption(
                f":material/info: “{safe(answer)}” is {len(ids)} tokens: only the first, “{safe(first)}”, is"
                " compared."
            )
        elif inside_a_word(subject.tokenizer, text, answer):
            st.caption(
                f":material/info: “{safe(answer)}” continues the last word. A new word begins with a space:"
                f" “␣{safe(answer)}”."
            )


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
    depths = depth_names(len(patching.restored)) if patching.site == "resid_pre" else None
    if patching.site == "z":
        names = [str(head) for head in range(subject.config.n_heads)]
        figure = figures.patch_map(
            patching.restored, names, names, upright=0, title="head", hover="head %{customdata}"
        )
        column = "head"
    else:
        clean, corrupted = ([shown[i] for i in ids] for ids in (prompts.clean, prompts.corrupted))
        figure = figures.patch_map(
            patching.restored,
            figures.both(clean, corrupted),
            labels,
            upright=crowded(clean, 420),
            title="token (bold: the first prompt's)",
            hover="token “%{customdata}”",
            depths=depths,
        )
        names, column = labels, "token"
    layer, place = (grid.ravel() for grid in np.indices(patching.restored.shape))
    plot(
        figure,
        key="patching_map",
        height=height,
        name=f"patching-{SITES[patching.site]}",
        data={
            "block": layer if depths is None else np.asarray(depths)[layer],
            "place": place,
            column: np.asarray(names)[place],
            "restored": patching.restored.ravel(),
        },
        alt=(
            f"Map of blocks against {column}s: share of the first answer restored when"
            f" {SAID[patching.site]} of the first prompt is patched into the second prompt's run."
        ),
    )


def _baseline(subject: Subject, contrast: Contrast, names: tuple[str, str]) -> None:
    """Shows the model's answer to each prompt, untouched."""
    a, b = (safe(name) for name in names)
    first, second = (safe(subject.vocabulary[i]) for i in contrast.guesses)
    st.caption(untouched(contrast, (a, b), (first, second)))
