"""The view "Logit lens": one token's guesses from block to block; then a table of all tokens, and what stands
in one of its cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from engine.config import ModelConfig
from engine.recording import on_recording
from pages.inside.residual.chosen_token import blanks, following, read_so_far, where
from studies.residual.lens import (
    Cell,
    DepthTable,
    Lens,
    cell,
    depth_table,
    first_settled,
    fits_at_once,
    latest,
    lens_steps,
    logit_lens,
    reach,
    read_lens,
    settling,
)
from ui import content, explain, memo, widgets
from ui.background_jobs import measured
from ui.figures import specs as go
from ui.figures.axes import MONO, rows_axis, token_axis
from ui.figures.labels import LETTER, MOST_LETTERS, crowded, plain, short
from ui.figures.theme import SEQUENTIAL, colour
from ui.layout import scrolled
from ui.model_bar import Subject
from ui.model_needs import SAYS
from ui.page_frame import View
from ui.players.plot import plot
from ui.players.tokens import token_strip

TEXT = content.beside(__file__)
CELL = "residual_cell"
TOKEN = "residual_token"
ROW, DEEP = (26, 18), 16  # pixels of a row, and of one of more rows than that
FITS = 5  # letters of a guess that there is always room for, and that room in pixels
CELL_WIDTH = 36
LETTER_WIDTH = 16  # pixels of a column whose cells hold one letter
ON_PALE, ON_DARK = SEQUENTIAL[-1][1], SEQUENTIAL[0][1]  # letters on a pale bar, and on one of full colour
ROOM = 0.012  # of the whole width: what a letter needs inside a bar
SHADES = (60, 40, 26, 16)  # percent of the colour of a guess by its rank


def draw(subject: Subject) -> None:
    """Draws one token's guesses, climbing through the blocks."""
    if (lens := _measured(subject)) is None:
        return
    names = depth_names(subject.config)
    position = token_strip(subject.labels, key=TOKEN, chosen=_first(subject, lens), label=TEXT["token"])
    depths, final = depth_table(lens, position), int(lens.guess[-1, position])
    # The lowest says which token's embedding it is.
    rows = [TEXT("embedding of", token=subject.labels[position]), *names[1:]]
    plot(
        guess_bars(depths, subject.vocabulary, rows, final),
        key="residual_climb",
        height=max(260, min(34 * len(depths.depths) + 90, 400)),
        name="logit-lens-climb",
        data=_climb_rows(subject, lens, names, position),
        alt=TEXT(f"alt climb {where(subject.config)}", position=position),
    )
    _answer(subject, lens, depths, position)
    explain.measure_it(_grid, subject, lens, names, position)


@memo.measured()
def _lens(key: tuple[str, int], ids: tuple[int, ...], _subject: Subject) -> Lens:
    return logit_lens(_subject.model, _subject.recording())


def _measured(subject: Subject) -> Lens | None:
    """The lens at once where that is quick; else with a bar, and None until it is there."""
    if fits_at_once(subject.config, len(subject.ids)):
        return _lens(subject.key, subject.ids, subject)
    return measured(
        ("lens", subject.key, subject.ids),
        partial(on_recording, lens_steps, subject.model, subject.ids),
        TEXT["measuring"],
    )


def depth_names(config: ModelConfig) -> list[str]:
    """Returns the names of the stream before the first block and after each; the last is the output."""
    last = config.n_layers - 1
    return [
        TEXT["depth embedding"],
        *(TEXT("depth block", block=i) for i in range(last)),
        TEXT("depth output", block=last),
    ]


def _read_at(depth: int) -> str:
    """Where the lens reads."""
    return TEXT("depth block", block=depth - 1) if depth else TEXT["read embedding"]


def _answer(subject: Subject, lens: Lens, depths: DepthTable, position: int) -> None:
    """Says when the final guess came up, and which one it took the place of."""
    settled = depths.settled
    case = ("after the embedding", "after one block", "later")[min(settled, 2)]
    explain.answer(
        TEXT(
            f"settled {case}",
            where=TEXT(f"where {where(subject.config)}", read=read_so_far(subject, position)),
            word=subject.vocabulary[int(lens.guess[-1, position])],
            before=subject.vocabulary[int(lens.guess[max(settled - 1, 0), position])],
            since=_read_at(settled),
            until=_read_at(settled - 1) if settled else "",
            final=depths.final,
            earlier=depths.earlier,
        )
    )


def _first(subject: Subject, lens: Lens) -> int:
    """The token that is looked at until another is chosen: a link's cell's, else one that is worth it."""
    linked = widgets.indexes_of(widgets.read_url(CELL), lens.guess.shape, nearest=True)
    if linked is None and subject.gap is not None:
        return subject.gap
    return linked[1] if linked else latest(lens, following(subject), blanks(subject, lens.guess[-1]))


def _climb_rows(subject: Subject, lens: Lens, names: Sequence[str], position: int) -> dict[str, Any]:
    """Returns a row for every depth, also for those that are not drawn."""
    tokens, shares = lens.likeliest[:, position], lens.here[:, position]
    depth, rank = (grid.ravel() for grid in np.indices(tokens.shape))
    return {
        "depth": np.asarray(names)[depth],
        "rank": rank,
        "token": np.asarray(subject.vocabulary)[tokens.ravel()],
        "probability": shares.ravel(),
    }


def _grid(subject: Subject, lens: Lens, names: list[str], position: int) -> None:
    """A table of guesses by depth and token; a click on a cell opens it."""
    _caveats(subject)
    vocabulary = subject.vocabulary
    shades = (TEXT["by probability"], TEXT["by kl"])
    shade = widgets.select(TEXT["colour"], shades, "residual_shade")
    sure = shade == shades[0]
    table = st.container(key="residual_table")
    chosen = _cell(lens.guess.shape, position)
    values, scale = lens.probability if sure else lens.kl, reach(lens)
    guesses = [[vocabulary[i] for i in row] for row in lens.guess]
    figure = lens_table(
        guesses,
        values,
        subject.labels,
        names,
        settled=lens.settled,
        chosen=chosen,
        hover=_hints(subject, lens, names, guesses),
        title=TEXT["scale probability" if sure else "scale kl"],
        top=1.0 if sure else scale.top,
    )
    with table:
        wide = CELL_WIDTH if crowded(subject.labels) else LETTER_WIDTH
        scrolled("residual_table", wide * len(subject.labels) + 150)
        clicked = plot(
            figure,
            key="residual_lens",
            height=max(230, ROW[len(names) > DEEP] * len(names) + 130),
            name="logit-lens",
            data=_lens_rows(subject, lens, names),
            alt=TEXT("alt table", depths=len(names), tokens=len(subject.labels), shade=shade),
        )
    if (opened := cell_of(clicked, lens.guess.shape)) not in (None, chosen):
        _go(*opened)
        st.rerun()
    ends_short = not sure and scale.is_short  # below the values of the lowest row
    st.caption(TEXT["reads table with a short scale" if ends_short else "reads table"])
    _draw_cell(subject, lens, names, *chosen)
    _tell_settling(lens, names)


def _caveats(subject: Subject) -> None:
    """Says where the lens reads vectors that were not meant for it."""
    parts, config = subject.model.parts, subject.config
    wiring = parts.wiring(config)
    if wiring.replaces:
        st.caption(f":material/info: {TEXT['no residual stream']}")
    if wiring.ends_normed and parts.norm(config).present:
        st.caption(f":material/info: {TEXT['no final norm']}")


def _hints(
    subject: Subject, lens: Lens, names: Sequence[str], guesses: Sequence[Sequence[str]]
) -> list[list[str]]:
    """The hover text of each cell, (depth, query)."""
    tokens, hint = [plain(label) for label in subject.labels], TEXT(f"hover {where(subject.config)}")
    return [
        [
            hint.format(depth=name, token=token, guess=plain(word), p=p, kl=kl)
            for token, word, p, kl in zip(tokens, row, probabilities, kls, strict=True)
        ]
        for name, row, probabilities, kls in zip(names, guesses, lens.probability, lens.kl, strict=True)
    ]


def _tell_settling(lens: Lens, names: Sequence[str]) -> None:
    """Says which layer settles the tokens, counted."""
    settled = settling(lens)
    counts = [
        TEXT("count at depth", depth=names[d], tokens=count)
        for d, count in enumerate(settled.counts)
        if count
    ]
    told = TEXT(
        "half settled",
        half=_read_at(settled.half),
        by=settled.by[settled.half],
        tokens=settled.tokens,
        counts=content.Filled(", ".join(counts)),
        kl=settled.kl[0],
    )
    if (step := settled.step) is not None:
        falls = TEXT("falls most", block=step - 1, before=settled.kl[step - 1], after=settled.kl[step])
        told = content.Filled(f"{told} {falls}")
    explain.takeaway(told)


def cell_of(clicked: str | None, shape: tuple[int, ...]) -> tuple[int, int] | None:
    """Returns the cell (depth, position) that a click names."""
    index = widgets.index_of(clicked, shape[0] * shape[1])
    return None if index is None else divmod(index, shape[1])


def _cell(shape: tuple[int, ...], position: int) -> tuple[int, int]:
    """(depth, position) from the URL, kept inside the table; at first the middle depth of the token above."""
    linked = widgets.indexes_of(widgets.read_url(CELL), shape, nearest=True)
    return (shape[0] // 2, position) if linked is None else (linked[0], linked[1])


def _lens_rows(subject: Subject, lens: Lens, names: Sequence[str]) -> dict[str, Any]:
    depth, position = (grid.ravel() for grid in np.indices(lens.guess.shape))
    return {
        "depth": np.asarray(names)[depth],
        "position": position,
        "token": np.asarray(subject.labels)[position],
        "guess": np.asarray(subject.vocabulary)[lens.guess.ravel()],
        "probability": lens.probability.ravel(),
        "kl_nats": lens.kl.ravel(),
        "settled": depth >= lens.settled[position],
    }


def _draw_cell(subject: Subject, lens: Lens, names: Sequence[str], depth: int, position: int) -> None:
    here = cell(lens, depth, position)
    tokens = [subject.vocabulary[i] for i in here.tokens]
    chart, text = st.columns([3, 2], gap="medium", vertical_alignment="center")
    with chart:
        plot(
            top_tokens(tokens, here.here, here.output),
            key="residual_top",
            height=300,
            name="lens-top-10",
            data={"token": tokens, "here": here.here, "at_the_output": here.output},
            alt=TEXT("alt cell", depth=names[depth] if depth else TEXT["at embedding"], position=position),
        )
    with text:
        _move_buttons(depth, position, lens.guess.shape)
        title = f"cell {where(subject.config)}"
        st.markdown(TEXT(title, depth=names[depth], position=position, token=subject.labels[position]))
        _tell_cell(subject, here, position)


def _tell_cell(subject: Subject, here: Cell, position: int) -> None:
    """Says what the model would guess at one depth, and from which depth on the guess is the final one."""
    told = TEXT(
        "stopping here",
        guess=subject.vocabulary[here.tokens[0]],
        p=here.here[0],
        kl=here.kl,
        final=subject.vocabulary[here.final],
        settled=_read_at(here.settled),
    )
    if subject.config.causal and position + 1 < len(subject.ids):
        told = content.Filled(f"{told} {TEXT('follows', token=subject.labels[position + 1])}")
    st.markdown(told)


def _move_buttons(depth: int, position: int, shape: tuple[int, ...]) -> None:
    """From cell to cell without a mouse."""
    row = st.container(horizontal=True, gap="small")
    steps = (
        (TEXT["previous token"], "arrow_back", depth, position - 1),
        (TEXT["next token"], "arrow_forward", depth, position + 1),
        (TEXT["block up"], "arrow_upward", depth + 1, position),
        (TEXT["block down"], "arrow_downward", depth - 1, position),
    )
    for name, icon, d, p in steps:
        inside = 0 <= d < shape[0] and 0 <= p < shape[1]
        key = f"residual_{icon}"
        row.button(
            "", icon=f":material/{icon}:", key=key, help=name, disabled=not inside, on_click=_go, args=(d, p)
        )


def _go(depth: int, position: int) -> None:
    widgets.keep_in_url(CELL, f"{depth}-{position}")


def guess_bars(lens: DepthTable, vocabulary: Sequence[str], names: Sequence[str], final: int) -> go.Figure:
    """Draws a row for each depth, the embedding at the bottom: the likeliest tokens side by side, as long as
    they are likely. The token that wins in the end has a colour of its own wherever it is.
    """
    rows = np.arange(len(lens.depths))
    bars = [_rank(lens, rank, vocabulary, rows, final) for rank in range(lens.tokens.shape[1])]
    return go.figure(
        bars,
        barmode="stack",
        margin={"l": 8, "r": 12, "t": 8, "b": 44},
        showlegend=False,
        bargap=0.22,
        xaxis=go.axis(TEXT["probability of guesses"], range=[0, 1], tickformat=".0%", zeroline=False),
        yaxis=go.ticks(
            rows,
            [plain(names[depth]) for depth in lens.depths],
            tickfont={"size": 14},
            range=[-0.6, len(rows) - 0.4],
            automargin=True,
        ),
    )


def _rank(
    depth_table: DepthTable, rank: int, vocabulary: Sequence[str], rows: np.ndarray, final: int
) -> go.Trace:
    """The guesses of one rank, in all rows."""
    words = [vocabulary[int(token)] for token in depth_table.tokens[:, rank]]
    shares = depth_table.shares[:, rank]
    wins = [int(token) == final for token in depth_table.tokens[:, rank]]
    shade = SHADES[min(rank, len(SHADES) - 1)]
    return go.Bar(
        y=rows,
        x=shares,
        orientation="h",
        text=[_written(word, share) for word, share in zip(words, shares.tolist(), strict=True)],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        constraintext="none",
        textfont={**MONO, "size": 17, "color": [ON_DARK if win else ON_PALE for win in wins]},
        customdata=[plain(word) for word in words],
        hovertemplate=TEXT["hover guess"] + "<extra></extra>",
        marker={
            "color": [colour("output") if win else colour("residual", shade // 2) for win in wins],
            "line": {"width": 1, "color": colour("quiet")},
        },
    )


def _written(word: str, share: float) -> str:
    """A guess in its bar, where it fits in."""
    text = short(word, 12)
    return plain(text) if share > ROOM * (len(text) + 1) else ""


def lens_table(
    words: Sequence[Sequence[str]],
    values: np.ndarray,
    labels: Sequence[str],
    depths: Sequence[str],
    *,
    settled: np.ndarray,
    chosen: tuple[int, int],
    title: str,
    top: float,
    hover: Sequence[Sequence[str]],
) -> go.Figure:
    """Draws `words`, `values`, `hover`: (depth, query). Cells hold the guessed token; a click gives depth *
    query count + query.

    The line runs below the first depth from which on the guess is the final one.
    """
    rows, columns = values.shape
    tall = crowded(labels)
    size, fits = (
        (11, max(FITS, 620 // 7 // columns)) if tall else (13, MOST_LETTERS)
    )  # letters of a guess in its cell; the hover has all of them
    heat = go.Heatmap(
        z=values.astype(np.float32),
        text=[[plain(short(w, fits)) for w in row] for row in words],
        texttemplate="%{text}",
        textfont={**MONO, "size": size},
        hovertext=hover,
        hovertemplate="%{hovertext}<extra></extra>",
        customdata=np.arange(rows * columns, dtype=np.int32).reshape(rows, columns),
        colorscale=SEQUENTIAL,
        zmin=0,
        zmax=max(top, 1e-6),
        xgap=1,
        ygap=1,
        colorbar=go.scale_above(title),
    )
    edges = np.repeat(np.arange(columns + 1), 2)[1:-1] - 0.5
    line = go.line(edges, np.repeat(settled, 2) - 0.5, "output", hoverinfo="skip")
    depth, position = chosen
    return go.figure(
        [heat, line],
        margin={"l": 8, "r": 8, "t": 8, "b": 44 + LETTER * tall},
        showlegend=False,
        shapes=[go.box(position, depth, "attention")],
        xaxis=token_axis(labels, upright=tall > 0),
        yaxis=rows_axis(depths, range=[-0.52, rows - 0.48]),
        uirevision=f"lens-{columns}",
    )


def top_tokens(words: Sequence[str], probabilities: np.ndarray, final: np.ndarray) -> go.Figure:
    """Draws the likeliest tokens at one place (token,), best on top, beside what the finished model gives
    them.
    """
    at = -np.arange(len(words))
    bars = go.Bar(
        x=probabilities,
        y=at,
        orientation="h",
        name=TEXT["here"],
        marker={"color": colour("residual")},
        hovertemplate="%{x:.4f}",
    )
    ends = go.Scatter(
        x=final,
        y=at,
        mode="markers",
        name=TEXT["at the output"],
        hovertemplate="%{x:.4f}",
        marker={"color": colour("output"), "symbol": "diamond", "size": 9},
    )
    return go.figure(
        [bars, ends],
        margin={"l": 8, "r": 12, "t": 26, "b": 40},
        xaxis={"title": {"text": TEXT["probability"]}, "rangemode": "tozero", "nticks": 5},
        yaxis=go.ticks(at, [plain(w) for w in words], tickfont=MONO),
    )


VIEW = View(
    "lens",
    TEXT,
    draw,
    code=(lens_steps, read_lens, first_settled),
    shows=("interpretability",),
    takes=(SAYS,),
    figures_only=True,
)
