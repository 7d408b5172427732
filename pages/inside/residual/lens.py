"""The logit lens: one token's guesses from block to block; then a table of all tokens, and what stands in one
of its cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st

from engine.config import ModelConfig
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
from ui import explain, widgets
from ui.background_jobs import measured
from ui.figures.labels import crowded, plain
from ui.layout import scrolled
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.players.tokens import token_strip
from ui.text.markdown import safe

CELL = "residual_cell"
TOKEN = "residual_token"
BLANKS = "␣⏎⇥"
READ = 24  # letters of the text before a token that are repeated
ROW, DEEP = (26, 18), 16  # pixels of a row, and of one of more rows than that
SHADES = ("Probability of the guess", "KL to the output")


def depth_names(config: ModelConfig) -> list[str]:
    """Returns the names of the stream before the first block and after each; the last is the output."""
    names = ["embedding", *(f"after block {i}" for i in range(config.n_layers))]
    return [*names[:-1], f"{names[-1]} = output"]


@st.cache_resource(max_entries=32, show_spinner=False)
def _lens(key: tuple[str, int], ids: tuple[int, ...], _subject: Subject) -> Lens:
    return logit_lens(_subject.model, _subject.recording())


def _found(subject: Subject) -> Lens | None:
    """The lens at once where that is quick; else with a bar, and None until it is there."""
    if fits_at_once(subject.config, len(subject.ids)):
        return _lens(subject.key, subject.ids, subject)
    return measured(
        ("lens", subject.key, subject.ids),
        lambda: lens_steps(subject.model, subject.recording()),
        "Applying the lens at every depth",
    )


def draw_lens(subject: Subject) -> None:
    """Draws one token's guesses, climbing through the blocks."""
    if (lens := _found(subject)) is None:
        return
    names = depth_names(subject.config)
    position = token_strip(
        subject.labels, key=TOKEN, chosen=_first(subject, lens), label="After which token?"
    )
    found, final = depth_table(lens, position), int(lens.guess[-1, position])
    rows = [words.depth_row(name, subject.labels[position]) for name in names]
    plot(
        guess_bars(found, subject.vocabulary, rows, final),
        key="residual_climb",
        height=max(260, min(34 * len(found.depths) + 90, 400)),
        name="logit-lens-climb",
        data=_climb_rows(subject, lens, names, position),
        alt=f"The likeliest tokens {words.position_word(subject.config)} token {position}, at each depth.",
    )
    before = int(lens.guess[max(found.settled - 1, 0), position])
    word, earlier = subject.vocabulary[final], subject.vocabulary[before]
    read = read_so_far(subject, position)
    explain.answer(words.lens_answer(found, read, word, earlier, names, subject.config.causal))
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
    _caveats(subject)
    vocabulary = subject.vocabulary
    sure = widgets.select("Colour", SHADES, "residual_shade") == SHADES[0]
    table = st.container(key="residual_table")
    chosen = _cell(lens.guess.shape, position)
    values, scale = lens.probability if sure else lens.kl, reach(lens)
    said = [[vocabulary[i] for i in row] for row in lens.guess]
    figure = figures.lens_table(
        said,
        values,
        subject.labels,
        names,
        settled=lens.settled,
        chosen=chosen,
        hover=_hints(lens, subject, names, said),
        title="probability" if sure else "KL (nats)",
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
            alt=(
                f"Logit lens: the likeliest next token at each of {len(names)} depths for each of"
                f" {len(subject.labels)} tokens, by {SHADES[not sure]}."
            ),
        )
    if (where := cell_of(clicked, lens.guess.shape)) not in (None, chosen):
        _go(*where)
        st.rerun()
    beyond = " The scale ends at the largest KL above that row." if not sure and scale.is_short else ""
    st.caption(
        f"Bottom row: the embedding alone.{beyond} Top row: the model's output. Above the red line the guess"
        " is already the final one. Click a cell."
    )
    _draw_cell(subject, lens, names, *chosen)
    explain.takeaway(words.settled_at(lens, names))


def _caveats(subject: Subject) -> None:
    """Where the lens reads what was not meant for it."""
    parts = subject.model.parts
    wiring = parts.wiring(subject.config)
    if wiring.replaces:
        st.info(
            "This model has no residual stream: each sublayer *replaces* what it reads, so the vectors"
            " between blocks were never meant for the unembedding. The lens can still be applied there, but"
            " expect it to make little sense before the last block."
        )
    if wiring.ends_normed and parts.norm(subject.config).card.present:
        st.caption(
            "A post-norm model has no final norm: the lens reads the stream after each block's second norm,"
            " and the embedding as it is."
        )


def _hints(
    lens: Lens, subject: Subject, names: Sequence[str], said: Sequence[Sequence[str]]
) -> list[list[str]]:
    """Returns the hover text of each cell, (depth, query)."""
    tokens, where = [plain(label) for label in subject.labels], words.position_word(subject.config)
    return [
        [
            f"{name}, {where} “{token}”<br>guess “{plain(word)}”, probability {p:.3f}<br>KL to the output"
            f" {kl:.3f} nats"
            for token, word, p, kl in zip(tokens, row, probabilities, kls, strict=True)
        ]
        for name, row, probabilities, kls in zip(names, said, lens.probability, lens.kl, strict=True)
    ]


def cell_of(clicked: str | None, shape: tuple[int, ...]) -> tuple[int, int] | None:
    """Returns the cell (depth, position) that a click names."""
    index = widgets.index_of(clicked, shape[0] * shape[1])
    return None if index is None else divmod(index, shape[1])


def _cell(shape: tuple[int, ...], position: int) -> tuple[int, int]:
    """(depth, position) from the URL, kept inside the table; at first the middle depth of the token above."""
    found = widgets.indexes_of(widgets.read_url(CELL), shape, nearest=True)
    return (shape[0] // 2, position) if found is None else (found[0], found[1])


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
    found = cell(lens, depth, position)
    said = [subject.vocabulary[i] for i in found.tokens]
    chart, text = st.columns([3, 2], gap="medium", vertical_alignment="center")
    with chart:
        plot(
            figures.top_tokens(said, found.here, found.output),
            key="residual_top",
            height=300,
            name="lens-top-10",
            data={"token": said, "here": found.here, "at_the_output": found.output},
            alt=f"The ten likeliest next tokens {_at_depth(names[depth])}, at position {position}.",
        )
    with text:
        _move_buttons(depth, position, lens.guess.shape)
        st.markdown(
            f"**{safe(names[depth])}**, {words.position_word(subject.config)} token {position},"
            f" “{safe(subject.labels[position])}”"
        )
        following = (
            f" In the text, “{safe(subject.labels[position + 1])}” follows."
            if position + 1 < len(subject.ids) and subject.config.causal
            else ""
        )
        st.markdown(
            f"Stopping here, the model would guess “{safe(said[0])}” with probability {found.here[0]:.3f};"
            f" the KL to its final distribution is **{found.kl:.3f} nats**. The final guess,"
            f" “{safe(subject.vocabulary[found.final])}”, takes the lead for good"
            f" **{safe(words.read_at(names[found.settled]))}**.{following}"
        )


def _at_depth(name: str) -> str:
    """Returns where in the stack a depth is, as it stands in a sentence.

    >>> _at_depth("after block 1"), _at_depth("embedding")
    ('after block 1', 'at embedding')
    """
    return name if name.startswith("after") else f"at {name}"


def _move_buttons(depth: int, position: int, shape: tuple[int, ...]) -> None:
    """From cell to cell without a mouse."""
    row = st.container(horizontal=True, gap="small")
    for name, icon, d, p in (
        ("Previous token", "arrow_back", depth, position - 1),
        ("Next token", "arrow_forward", depth, position + 1),
        ("One block up", "arrow_upward", depth + 1, position),
        ("One block down", "arrow_downward", depth - 1, position),
    ):
        inside = 0 <= d < shape[0] and 0 <= p < shape[1]
        key = f"residual_{icon}"
        row.button(
            "", icon=f":material/{icon}:", key=key, help=name, disabled=not inside, on_click=_go, args=(d, p)
        )


def _go(depth: int, position: int) -> None:
    widgets.write_url(CELL, f"{depth}-{position}")
