"""The logit lens: one token's guesses from block to block; then a table of all tokens, and what stands in one
of its cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st

from engine.measure.residual.lens import (
    Lens,
    cell,
    depth_table,
    fits_at_once,
    latest,
    lens_steps,
    logit_lens,
    reach,
)
from pages.inside.residual import figures, words
from pages.inside.residual.figures_depth import guess_bars
from ui import explain, memo, widgets
from ui.background_jobs import measured
from ui.figures.labels import crowded
from ui.layout import scrolled
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.players.tokens import token_strip

CELL = "residual_cell"
TOKEN = "residual_token"
BLANKS = "␣⏎⇥"
READ = 24  # letters of the text before a token that are repeated
ROW, DEEP = (26, 18), 16  # pixels of a row, and of one of more rows than that


@memo.measured()
def _lens(key: tuple[str, int], ids: tuple[int, ...], _subject: Subject) -> Lens:
    return logit_lens(_subject.model, _subject.recording())


def _measured(subject: Subject) -> Lens | None:
    """The lens at once where that is quick; else with a bar, and None until it is there."""
    if fits_at_once(subject.config, len(subject.ids)):
        return _lens(subject.key, subject.ids, subject)
    return measured(
        ("lens", subject.key, subject.ids),
        lambda: lens_steps(subject.model, subject.recording()),
        words.LENS_MEASURED,
    )


def draw_lens(subject: Subject) -> None:
    """Draws one token's guesses, climbing through the blocks."""
    if (lens := _measured(subject)) is None:
        return
    names = words.depth_names(subject.config)
    position = token_strip(subject.labels, key=TOKEN, chosen=_first(subject, lens), label=words.LENS_STRIP)
    depths, final = depth_table(lens, position), int(lens.guess[-1, position])
    rows = [words.depth_row(name, subject.labels[position]) for name in names]
    plot(
        guess_bars(depths, subject.vocabulary, rows, final),
        key="residual_climb",
        height=max(260, min(34 * len(depths.depths) + 90, 400)),
        name="logit-lens-climb",
        data=_climb_rows(subject, lens, names, position),
        alt=words.depths_alt(subject.config, position),
    )
    before = int(lens.guess[max(depths.settled - 1, 0), position])
    word, earlier = subject.vocabulary[final], subject.vocabulary[before]
    read = read_so_far(subject, position)
    explain.answer(words.lens_answer(depths, read, word, earlier, names, subject.config.causal))
    explain.measure_it(_grid, subject, lens, names, position)


def read_so_far(subject: Subject, position: int) -> str:
    """Returns the end of the text that is read up to a token; an encoder's token alone."""
    if not subject.config.causal:
        return subject.labels[position]
    read = "".join(subject.labels[: position + 1])
    return read if len(read) <= READ else f"…{read[-READ:]}"


def blanks(subject: Subject, guesses: np.ndarray) -> set[int]:
    """Returns the ids among some guesses that are blanks only."""
    return {int(i) for i in guesses if not subject.vocabulary[int(i)].strip(BLANKS)}


def following(subject: Subject) -> list[int | None]:
    """Returns the token that each guess is held against: the next one, for an encoder the token itself; None
    where nothing is known.
    """
    return [*subject.ids[1:], None] if subject.config.causal else list(subject.ids)


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
    for caveat in words.caveats(subject.config, subject.model.parts):
        st.caption(f":material/info: {caveat}")
    vocabulary = subject.vocabulary
    shade = widgets.select(words.COLOUR, words.SHADES, "residual_shade")
    sure = shade == words.SHADES[0]
    table = st.container(key="residual_table")
    chosen = _cell(lens.guess.shape, position)
    values, scale = lens.probability if sure else lens.kl, reach(lens)
    guesses = [[vocabulary[i] for i in row] for row in lens.guess]
    figure = figures.lens_table(
        guesses,
        values,
        subject.labels,
        names,
        settled=lens.settled,
        chosen=chosen,
        hover=words.lens_hints(lens, subject.config, names, guesses, subject.labels),
        title=words.SCALES[shade],
        top=1.0 if sure else scale.top,
    )
    with table:
        wide = figures.CELL if crowded(subject.labels) else figures.LETTER_CELL
        scrolled("residual_table", wide * len(subject.labels) + 150)
        clicked = plot(
            figure,
            key="residual_lens",
            height=max(230, ROW[len(names) > DEEP] * len(names) + 130),
            name="logit-lens",
            data=_lens_rows(subject, lens, names),
            alt=words.TABLE_ALT.format(depths=len(names), tokens=len(subject.labels), shade=shade),
        )
    if (where := cell_of(clicked, lens.guess.shape)) not in (None, chosen):
        _go(*where)
        st.rerun()
    st.caption(words.reads_table(not sure and scale.is_short))
    _draw_cell(subject, lens, names, *chosen)
    explain.takeaway(words.settled_at(lens, names))


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
            figures.top_tokens(tokens, here.here, here.output),
            key="residual_top",
            height=300,
            name="lens-top-10",
            data={"token": tokens, "here": here.here, "at_the_output": here.output},
            alt=words.cell_alt(names[depth], position),
        )
    with text:
        _move_buttons(depth, position, lens.guess.shape)
        st.markdown(words.cell_title(names[depth], subject.config, position, subject.labels[position]))
        last = position + 1 == len(subject.ids) or not subject.config.causal
        following = None if last else subject.labels[position + 1]
        final, settled = subject.vocabulary[here.final], names[here.settled]
        st.markdown(words.cell_sentence(here, tokens[0], final, settled, following))


def _move_buttons(depth: int, position: int, shape: tuple[int, ...]) -> None:
    """From cell to cell without a mouse."""
    row = st.container(horizontal=True, gap="small")
    steps = (
        ("arrow_back", depth, position - 1),
        ("arrow_forward", depth, position + 1),
        ("arrow_upward", depth + 1, position),
        ("arrow_downward", depth - 1, position),
    )
    for name, (icon, d, p) in zip(words.MOVES, steps, strict=True):
        inside = 0 <= d < shape[0] and 0 <= p < shape[1]
        key = f"residual_{icon}"
        row.button(
            "", icon=f":material/{icon}:", key=key, help=name, disabled=not inside, on_click=_go, args=(d, p)
        )


def _go(depth: int, position: int) -> None:
    widgets.keep_in_url(CELL, f"{depth}-{position}")
