"""The logit lens: a table of guesses by depth and token, and what stands in one of its cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st

from engine.config import ModelConfig
from engine.measure.lens import Lens, in_one_step, lens_steps, logit_lens
from engine.measure.settling import cell, reach, settling
from pages.inside.residual import figures
from ui import explain, widgets
from ui.figures.labels import crowded, plain
from ui.layout import scrolled
from ui.players.plot import plot
from ui.slow import measured
from ui.subject import Subject
from ui.text.markdown import safe

CELL = "residual_cell"
ROW, DEEP = (26, 18), 16  # pixels of a row, and of one of more rows than that
SHADES = ("Probability of the guess", "KL to the output")


def depth_names(config: ModelConfig) -> list[str]:
    """What the stream is called before the first block and after each; the last is the output."""
    names = ["embed", *(f"block {i}" for i in range(config.n_layers))]
    return [*names[:-1], f"{names[-1]} = output"]


@st.cache_resource(max_entries=32, show_spinner=False)
def _lens(key: tuple[str, int], ids: tuple[int, ...], _subject: Subject) -> Lens:
    return logit_lens(_subject.model, _subject.recording())


def _found(subject: Subject) -> Lens | None:
    """The lens at once where that is quick; else with a bar, and None until it is there."""
    if in_one_step(subject.config, len(subject.ids)):
        return _lens(subject.key, subject.ids, subject)
    return measured(
        ("lens", subject.key, subject.ids),
        lambda: lens_steps(subject.model, subject.recording()),
        "Holding the lens at every depth",
    )


def draw_lens(subject: Subject) -> None:
    """A table of guesses by depth and token; a click on a cell opens it."""
    parts = subject.model.parts
    wiring = parts.wiring(subject.config)
    if wiring.replaces:
        st.info(
            "This model has no residual stream: each sublayer *replaces* what it reads, so what stands"
            " between two blocks was never meant for the unembedding. The lens can still be held there, but"
            " expect it to make little sense before the last block."
        )
    if wiring.ends_normed and parts.norm(subject.config).present:
        st.caption(
            "A post-norm model has no final norm: the lens reads the stream after each block's second norm,"
            " and the embedding as it is."
        )
    if (lens := _found(subject)) is None:
        return
    vocabulary, names = subject.vocabulary, depth_names(subject.config)
    sure = widgets.one_of("Colour", SHADES, "residual_shade") == SHADES[0]
    table = st.container(key="residual_table")
    chosen = _cell(lens.guess.shape)
    values, scale = lens.probability if sure else lens.kl, reach(lens)
    words = [[vocabulary[i] for i in row] for row in lens.guess]
    figure = figures.lens_table(
        words,
        values,
        subject.labels,
        names,
        settled=lens.settled,
        chosen=chosen,
        hover=_hints(lens, subject, names, words),
        title="probability" if sure else "KL (nats)",
        top=1.0 if sure else scale.top,
    )
    with table:
        wide = figures.CELL if crowded(subject.labels) else 11
        scrolled("residual_table", wide * len(subject.labels) + 120)
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
    if (where := place_of(clicked, lens.guess.shape)) not in (None, chosen):
        _go(*where)
        st.rerun()
    beyond = " The scale ends at the largest KL above that row." if not sure and scale.is_short else ""
    st.caption(
        f"Bottom row: the embedding alone.{beyond} Top row: the model's output. Above the red line the guess"
        " is already the final one. Click a cell."
    )
    _draw_cell(subject, lens, names, *chosen)
    explain.takeaway(_settling(lens, names))


def position_word(config: ModelConfig) -> str:
    """A causal model guesses what comes after a token; an encoder, what stands there."""
    return "after" if config.causal else "at"


def _hints(
    lens: Lens, subject: Subject, names: Sequence[str], words: Sequence[Sequence[str]]
) -> list[list[str]]:
    """What the box over a cell says: (depth, query)."""
    tokens, where = [plain(label) for label in subject.labels], position_word(subject.config)
    return [
        [
            f"{name}, {where} “{token}”<br>guess “{plain(word)}”, probability {p:.3f}<br>KL to the output"
            f" {kl:.3f} nats"
            for token, word, p, kl in zip(tokens, row, probabilities, kls, strict=True)
        ]
        for name, row, probabilities, kls in zip(names, words, lens.probability, lens.kl, strict=True)
    ]


def place_of(clicked: str | None, shape: tuple[int, ...]) -> tuple[int, int] | None:
    """The cell (depth, position) that a click names."""
    index = widgets.index_of(clicked, shape[0] * shape[1])
    return None if index is None else divmod(index, shape[1])


def _cell(shape: tuple[int, ...]) -> tuple[int, int]:
    """(depth, position) from the URL, kept inside the table; at first the middle depth of the last token."""
    found = widgets.indexes_of(st.query_params.get(CELL), shape, nearest=True)
    return (shape[0] // 2, shape[1] - 1) if found is None else (found[0], found[1])


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
    words = [subject.vocabulary[i] for i in found.tokens]
    chart, text = st.columns([3, 2], gap="medium", vertical_alignment="center")
    with chart:
        plot(
            figures.top_tokens(words, found.here, found.output),
            key="residual_top",
            height=300,
            name="lens-top-10",
            data={"token": words, "here": found.here, "at_the_output": found.output},
            alt=f"The ten likeliest next tokens at {names[depth]}, position {position}.",
        )
    with text:
        _move_buttons(depth, position, lens.guess.shape)
        st.markdown(
            f"**{safe(names[depth])}**, {position_word(subject.config)} token {position},"
            f" “{safe(subject.labels[position])}”"
        )
        following = (
            f" In the text “{safe(subject.labels[position + 1])}” follows."
            if position + 1 < len(subject.ids) and subject.config.causal
            else ""
        )
        st.markdown(
            f"Stopping here, the model would guess “{safe(words[0])}” with probability {found.here[0]:.3f};"
            f" this is **{found.kl:.3f} nats** from its final distribution. The final guess,"
            f" “{safe(subject.vocabulary[found.final])}”, is on top from **{safe(names[found.settled])}**"
            f" on.{following}"
        )


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
    st.query_params[CELL] = f"{depth}-{position}"


def _settling(lens: Lens, names: Sequence[str]) -> str:
    """Which layer settles the tokens, counted."""
    found = settling(lens)
    told = ", ".join(f"{names[d]}: {n}" for d, n in enumerate(found.counts) if n)
    step = (
        ""
        if found.step is None
        else f"The largest step towards the output is {names[found.step]}'s: mean KL"
        f" {found.kl[found.step - 1]:.2f} → {found.kl[found.step]:.2f} nats."
    )
    return (
        f"**Half of the tokens are settled by {names[found.half]}** ({found.by[found.half]} of"
        f" {found.tokens}). First depth from which on the top guess stays: {told}. At the embedding the"
        f" guesses are {found.kl[0]:.2f} nats from the output on average. {step}"
    )
