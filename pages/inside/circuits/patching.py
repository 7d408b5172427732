"""The view "Patching": where a model keeps what an answer hangs on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import streamlit as st

from engine.data.tokenizers import Tokenizer
from engine.errors import GlassformerError
from pages.inside.circuits.prompts import OWN, PAIRS, Pair
from studies.circuits.patching import (
    CausalCone,
    Patching,
    Station,
    causal_cone,
    patch,
    sites,
    stations,
    strongest_patches,
    verdict,
)
from studies.circuits.prompt_pairs import Prompts, both_runs, fits, inside_a_word, prompts_of
from ui import content, explain, widgets
from ui.background_jobs import measured
from ui.figures import specs as go
from ui.figures.axes import MONO
from ui.figures.labels import LETTER, MOST_LETTERS, crowded, plain, short
from ui.figures.theme import colour
from ui.model_bar import Subject
from ui.model_needs import CAUSAL, SAYS
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.markdown import sentence
from ui.widgets import MOST_ANSWER, MOST_PROMPT, line

TEXT = content.beside(__file__)
NOTHING = Pair("", "", ("", ""))
HEIGHT, LINES = 360, 76  # pixels: of the map, and of the lines above it in which a person writes
LITTLE = 0.1  # of the answer: less is not worth a name
ALL = 0.995  # of the answer: it would be written as 1.00
MAP, CONE, ROW, COLUMN = "patching_map", "patching_cone", "patching_row", "patching_column"
VEIL = 55  # percent: over the cells outside the causal cone


def draw(subject: Subject) -> None:
    pairs = pairs_for(subject.tokenizer)
    titles = {name: TEXT(f"pair {name}") for name in (*pairs, OWN)}
    chosen = widgets.select(TEXT["prompts"], titles, "patching_pair", kind="pills", wrap=True, hidden=True)
    pair = _own(next(iter(pairs.values()), NOTHING)) if chosen == OWN else pairs[chosen]
    try:
        prompts = prompts_of(subject.tokenizer, *pair)
    except GlassformerError as error:
        _refuse(subject, pair, error)
        return
    left, right = st.columns([5, 2], gap="medium")
    with right:
        offered = {site: TEXT(f"site {site}") for site in sites(subject.config, subject.model.parts)}
        hint = TEXT["site hint"]
        site = widgets.select(TEXT["site"], offered, "patching_site", kind="pills", hint=hint, wrap=True)
        baseline, controls = st.empty(), st.container()
    patching = measured(
        ("patching", subject.key, prompts, site),
        partial(patch, subject.model, prompts, site),
        TEXT["patching"],
    )
    if patching is None:
        return
    with controls:
        cone = _chosen_cone(subject, prompts, patching)
    with left:
        _draw(subject, prompts, patching, cone, HEIGHT - (LINES if chosen == OWN else 0))
    shown, contrast = subject.vocabulary, patching.contrast
    a, b = (shown[i] for i in prompts.answers)
    first_guess, second_guess = (shown[i] for i in contrast.guesses)
    baseline.caption(
        TEXT(
            "untouched",
            a=a,
            b=b,
            first=contrast.clean,
            first_guess=first_guess,
            second=contrast.corrupted,
            second_guess=second_guess,
        )
    )
    explain.answer(answer(patching, both_labels(subject, prompts), (a, b)))
    for text, wanted in zip((pair.clean, pair.corrupted), pair.answers, strict=True):
        _note(subject, text, wanted)


def pairs_for(tokenizer: Tokenizer) -> dict[str, Pair]:
    """Returns the pairs whose prompts have equally many tokens here, and whose answers are one token each."""
    return {name: pair for name, pair in PAIRS.items() if fits(tokenizer, *pair)}


def _own(first: Pair) -> Pair:
    """Returns the visitor's pair; `first` stands there until one is written."""
    a, b, c, d = st.columns([4, 4, 2, 2], gap="small")
    with a:
        clean = line(TEXT["first prompt"], first.clean, "patching_first_prompt", MOST_PROMPT)
    with b:
        corrupted = line(TEXT["second prompt"], first.corrupted, "patching_second_prompt", MOST_PROMPT)
    answers = []
    for column, which, known in zip((c, d), ("first", "second"), first.answers, strict=True):
        with column:
            label, hint = TEXT(f"{which} answer"), TEXT(f"{which} answer hint")
            answers.append(line(label, known, f"patching_{which}_text", MOST_ANSWER, hint))
    return Pair(clean, corrupted, (answers[0], answers[1]))


def _chosen_cone(subject: Subject, prompts: Prompts, patching: Patching) -> CausalCone | None:
    """Returns the cell clicked in the map, or chosen in the lists, and its causal cone; None where none is
    shown.
    """
    shape = patching.restored.shape
    clicked = widgets.indexes_of(widgets.picked(MAP, "clicked"), shape)
    if clicked is not None:
        for key, value in ((CONE, True), *zip((ROW, COLUMN), clicked, strict=True)):
            widgets.put(key, value)
    if not widgets.switch(TEXT["cone"], False, CONE, hint=TEXT["cone hint"]):
        return None
    strongest = patching.strongest_in(0)  # of the lowest row, whose cones are largest
    with st.container(horizontal=True, gap="small"):
        rows = dict(enumerate(row_names(patching)))
        row = widgets.select(TEXT["row"], rows, ROW, kind="list", hidden=True, width=130)
        columns = dict(enumerate(column_names(subject, prompts, patching)))
        column = widgets.select(
            TEXT["column"], columns, COLUMN, first=strongest, kind="list", hidden=True, width=130
        )
    cone = causal_cone(subject.model, patching.site, (row, column), len(prompts.clean))
    back, cells = subject.config.window - 1, cone.reached.size - 1
    st.caption(TEXT(f"reaches {cone.spread}", reached=cone.others, cells=cells, back=back))
    return cone


def row_names(patching: Patching) -> list[str]:
    """Returns the rows of the map, bottom up: blocks, or where the stream stands."""
    rows = range(len(patching.restored))
    if patching.site == "resid_pre":
        return [TEXT["first row"], *(TEXT("later row", block=row - 1) for row in rows[1:])]
    return [TEXT("block", block=row) for row in rows]


def column_names(subject: Subject, prompts: Prompts, patching: Patching) -> list[str]:
    """Returns the columns of the map, no two alike: heads, or tokens with their positions."""
    if patching.site == "z":
        return [TEXT("numbered head", head=head) for head in range(subject.config.n_heads)]
    labels = both_labels(subject, prompts)
    return [TEXT("numbered token", position=i, token=label) for i, label in enumerate(labels)]


def _refuse(subject: Subject, pair: Pair, error: GlassformerError) -> None:
    if not (pair.clean or pair.corrupted):
        st.info(TEXT["no prompts"])
        return
    st.warning(sentence(error), icon=":material/info:")
    for which, text in (("first", pair.clean), ("second", pair.corrupted)):
        ids = [] if subject.tokenizer.unknown(text) else subject.tokenizer.encode(text)
        tokens = " · ".join(subject.vocabulary[i] for i in ids)
        st.caption(TEXT("cut", name=TEXT(f"{which} prompt"), count=len(ids), tokens=tokens))


def _note(subject: Subject, text: str, answer: str) -> None:
    """Says how an answer was read."""
    ids = subject.tokenizer.encode(answer)
    if len(ids) > 1:
        first = subject.vocabulary[ids[0]]
        st.caption(TEXT("only the first", answer=answer, count=len(ids), first=first))
    elif inside_a_word(subject.tokenizer, text, answer):
        st.caption(TEXT("continues", answer=answer))


def both_labels(subject: Subject, prompts: Prompts) -> list[str]:
    """Returns the tokens of the clean prompt; where the other has another, both."""
    shown = subject.vocabulary
    return [
        shown[a] if a == b else f"{shown[a]} / {shown[b]}"
        for a, b in zip(prompts.clean, prompts.corrupted, strict=True)
    ]


def depth_names(rows: int) -> list[str]:
    """Returns where the stream stands before blocks 0, 1, ...: named by what came last, as in Fact recall.

    >>> depth_names(3)
    ['the embedding', 'after block 0', 'after block 1']
    """
    return [TEXT["embedding"], *(TEXT("after block", block=i) for i in range(rows - 1))]


# The answer: where it sits and when it moves, or which patches count most -------------------------


def answer(patching: Patching, labels: Sequence[str], names: tuple[str, str]) -> str:
    """Returns where it sits and where it moves, or which patches count most (Markdown)."""
    kind, span, (a, b) = verdict(patching.contrast), abs(patching.contrast.span), names
    doubt = "" if kind == "tells" else TEXT(f"verdict {kind}", span=span, a=a, b=b) + " "
    return doubt + (way(patching, labels) if patching.site == "resid_pre" else best(patching, labels))


def way(patching: Patching, labels: Sequence[str]) -> str:
    """Returns which tokens carry the difference, and in which blocks."""
    top = len(patching.restored) - 1
    held = [station for station in stations(patching) if station.position is not None]
    if not held:
        return TEXT["spread"]
    first, last = held[0], held[-1]
    if len(held) == 1:
        everywhere = first.position == len(labels) - 1 and (first.first, first.last) == (0, top)
        to_the_end = "carried throughout" if everywhere else "carried"
        while_held = to_the_end if first.last == top else "carried at first"
        return TEXT(while_held, held=_held(first, labels, top))
    between = dict.fromkeys(station.position for station in held[1:-1])
    others = [labels[p] for p in between if p is not None and p not in (first.position, last.position)]
    name = "moved through others" if others else "moved with gaps" if len(held) > 2 else "moved"
    return TEXT(
        name,
        held=_held(first, labels, top),
        others=content.Filled(", ".join(TEXT("quoted", token=token) for token in others)),
        last=_held(last, labels, top),
    )


def _held(station: Station, labels: Sequence[str], top: int) -> content.Filled:
    """A token that carries the difference, and where."""
    assert station.position is not None
    starts, ends = station.first, station.last
    if ends == top:
        name = "in every block" if starts == 0 else "from a block"
    elif starts == 0:
        name = "only the embedding" if ends == 0 else "up to a block"
    else:
        name = "only one block" if starts == ends else "between blocks"
    first, last = (TEXT("block", block=i - 1) if i else TEXT["embedding"] for i in (starts, ends))
    return TEXT(
        "held",
        token=labels[station.position],
        blocks=TEXT(name, first=first, last=last),
        share=TEXT("whole" if station.least >= ALL else "share", least=station.least),
    )


def best(patching: Patching, labels: Sequence[str]) -> str:
    """Returns the patches that restore most of the answer."""
    top, *rest = strongest_patches(patching)
    if top.share < LITTLE:
        return TEXT("no patch", share=top.share)

    def name(layer: int, index: int) -> content.Filled:
        if patching.site == "z":
            return TEXT("part head", layer=layer, index=index)
        return TEXT("part token", layer=layer, token=labels[index])

    said = [
        TEXT(
            "best head" if patching.site == "z" else "best token",
            site=TEXT(f"site {patching.site}"),
            name=name(top.layer, top.index),
            share=top.share,
        )
    ]
    others = [
        TEXT("part and share", name=name(other.layer, other.index), share=other.share)
        for other in rest
        if other.share >= LITTLE
    ]
    if others:
        said.append(TEXT("next", rest=content.Filled(", ".join(others))))
    if patching.site == "ffn_out" and top.layer == 0:
        said.append(TEXT["first network"])
    return " ".join(said)


# The map ------------------------------------------------------------------------------------------


def _draw(
    subject: Subject, prompts: Prompts, patching: Patching, cone: CausalCone | None, height: int
) -> None:
    shown, labels = subject.vocabulary, both_labels(subject, prompts)
    depths = depth_names(len(patching.restored)) if patching.site == "resid_pre" else None
    if patching.site == "z":
        column, names = TEXT["head"], [str(head) for head in range(subject.config.n_heads)]
        figure = patch_map(
            patching.restored, names, names, upright=0, title=column, hover=TEXT["hover of a head"]
        )
    else:
        column, names = TEXT["token"], labels
        clean, corrupted = ([shown[i] for i in ids] for ids in (prompts.clean, prompts.corrupted))
        figure = patch_map(
            patching.restored,
            both(clean, corrupted),
            labels,
            upright=crowded(clean, 420),
            title=TEXT["token axis"],
            hover=TEXT["hover of a token"],
            depths=depths,
        )
    layer, place = (grid.ravel() for grid in np.indices(patching.restored.shape))
    plot(
        figure if cone is None else with_cone(figure, cone),
        key=MAP,
        height=height,
        name=f"patching-{TEXT(f'site {patching.site}')}",
        data={
            "block": layer if depths is None else np.asarray(depths)[layer],
            "place": place,
            column: np.asarray(names)[place],
            "restored": patching.restored.ravel(),
        }
        | ({} if cone is None else {"reached": cone.reached.ravel().astype(int)}),
        alt=TEXT(
            "alt" if cone is None else "alt cone",
            column=column,
            what=TEXT(f"patched {patching.site}"),
            reached=0 if cone is None else cone.others + 1,
        ),
    )


def both(clean: Sequence[str], corrupted: Sequence[str]) -> list[str]:
    """Returns the tokens of two prompts; where they differ, one above the other."""
    return [
        plain(short(a, MOST_LETTERS))
        if a == b
        else f"<b>{plain(short(a, MOST_LETTERS))}</b><br>{plain(short(b, MOST_LETTERS))}"
        for a, b in zip(clean, corrupted, strict=True)
    ]


def patch_map(
    restored: np.ndarray,
    ticks: Sequence[str],
    names: Sequence[str],
    *,
    upright: int,
    title: str,
    hover: str,
    depths: Sequence[str] | None = None,
) -> go.Figure:
    """Draws restored (layer, place): orange brings the answer back, blue pushes it further off. The scale
    ends at 1, the whole answer; what lies beyond is in the hover. `names` are said there, `ticks` stand
    below, turned where they are `upright`: that many letters high. `depths` (layer,) are where a patch of
    the stream stands, bottom up; else rows are blocks.
    """
    layers, columns = restored.shape
    row = TEXT["hover of a block" if depths is None else "hover of a depth"]
    heat = go.signed(
        restored,
        1,
        xgap=1,
        ygap=int(layers <= 12),
        text=np.broadcast_to(np.asarray([plain(n) for n in names]), restored.shape).tolist(),
        customdata=[[f"{layer}-{column}" for column in range(columns)] for layer in range(layers)],
        hovertext=None if depths is None else [[depth] * columns for depth in depths],
        hovertemplate=TEXT("hover", row=row, column=hover),
        colorbar=dict(
            title={"text": TEXT["restored"], "side": "top"}, thickness=10, tickvals=[-1, -0.5, 0, 0.5, 1]
        ),
    )
    at = np.arange(layers)[:: max(1, round(layers / 10))]
    return go.figure(
        [heat],
        margin={"l": 8, "r": 8, "t": 8, "b": 36 + (LETTER * upright or 16)},
        showlegend=False,
        xaxis=go.ticks(
            np.arange(columns),
            list(ticks),
            title=title,
            tickangle=-90 if upright else 0,
            tickfont=MONO,
            range=[-0.5, columns - 0.5],
        ),
        yaxis=go.ticks(
            at,
            at if depths is None else ["E" if i == 0 else str(i - 1) for i in at.tolist()],
            title=TEXT["blocks axis" if depths is None else "depths axis"],
        ),
        uirevision=f"patching-{layers}-{columns}",
    )


def with_cone(figure: go.Figure, cone: CausalCone) -> go.Figure:
    """Draws a veil over the cells that an edit does not reach, and a box around the edited one."""
    shade, (row, column) = colour("quiet", VEIL), cone.cell
    veil = go.Heatmap(
        z=np.where(cone.reached, np.nan, 1).astype(np.float32),
        zmin=0,
        zmax=1,
        colorscale=[[0, shade], [1, shade]],
        showscale=False,
        hoverinfo="skip",
    )
    return go.Figure([*figure.traces, veil], figure.arrangement | {"shapes": [go.box(column, row, "output")]})


def _variant(subject: Subject) -> str:
    return "" if subject.is_pretrained else "letters"


VIEW = View(
    "patching",
    TEXT,
    draw,
    (patch, both_runs),
    brings_text=True,
    shows=("interpretability", "mechanistic interpretability", "causal cone"),
    takes=(SAYS, CAUSAL),
    variant=_variant,
)
