"""Worked examples on a page: arithmetic by hand of which more and more is left to the reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import streamlit as st

from studies.exercises.catalogue import LARGEST_SEED
from studies.exercises.forms import Form, Numbers
from studies.exercises.worked_example import LEVELS, Cell, Given, Judgement, Level, Row, WorkedExample
from ui import content, explain, widgets
from ui.text.numbers import minus

TEXT = content.beside(__file__)
TITLE, CELL, WIDE = 185, 132, 300  # pixels of a row's title, a number, several numbers
MOST = 200  # characters of an answer
STAGES = 3  # of a hint
MARKS = {True: ":material/check:", False: ":material/close:", None: ""}


def hides(name: str) -> bool:
    """True if a view leaves numbers to the reader, so that they must not stand elsewhere on it."""
    return explain.hand_open() and widgets.settled(LEVELS, f"{name}_fill") != "nothing"


def draw(
    name: str,
    make: Callable[[int], WorkedExample | None],
    shown: Callable[[], object] | None = None,
    renew: Callable[[], None] | None = None,
) -> None:
    """Draws how much is left to the reader, and the example that `make` gives for a seed, with that blank;
    where nothing is, what is `shown` instead, if there is that. `name` begins the names in the address. None
    is no example: `make` has said why. `renew` brings other numbers where the view's controls hold them, and
    no seed does.
    """
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="fill_line"):
        st.markdown(TEXT["fill in"], width="content")
        levels: dict[Level, str] = {level: TEXT[f"level {level}"] for level in LEVELS}
        level = widgets.select(TEXT["fill in"], levels, f"{name}_fill", hidden=True)
        if level != "nothing" or shown is None:
            # Streamlit's own: it begins something, and holds no value.
            st.button(
                TEXT["new numbers"],
                key=f"{name}_renew",
                icon=":material/refresh:",
                type="tertiary",
                on_click=renew or partial(_next_seed, name),
            )
    if level == "nothing" and shown is not None:
        shown()
        return
    if (example := make(_seed(name))) is not None:
        _draw_example(name, example, level)


def _seed(name: str) -> int:
    return widgets.url_index(f"{name}_seed", LARGEST_SEED + 1) or 0


def _next_seed(name: str) -> None:
    widgets.put_index(f"{name}_seed", _seed(name) % LARGEST_SEED + 1)


def _draw_example(name: str, example: WorkedExample, level: Level) -> None:
    judgement = example.judge(level, _answers(name, example))
    if not any(_key(name, example, id_) in st.session_state for id_ in judgement.blanks):
        st.session_state.pop(f"{name}_hinted", None)  # nothing of it has been on the screen just before
    if example.given:
        st.markdown(example.given)
    if not judgement.blanks:
        _draw_rows(name, example, judgement, level)
        _draw_result(example)
        return
    with st.form(f"{name}_form_{example.digest}", border=False, clear_on_submit=False):
        _draw_rows(name, example, judgement, level)
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="fill_check"):
            st.form_submit_button(TEXT["check"], type="primary", key=f"{name}_check")
            stage = _stage(name, example, judgement)
            st.form_submit_button(
                TEXT[f"hint {min(stage + 1, STAGES)}"],
                key=f"{name}_hint",
                disabled=judgement.complete,
                on_click=_ask_hint,
                args=(name, example, level),
            )
            st.markdown(_verdict(example, judgement, level))
    if stage and (at := judgement.at) is not None:
        step, hint = content.Filled(example.name(at)), judgement.blanks[at].hints[stage - 1]
        st.markdown(TEXT("hint", stage=TEXT[f"stage {stage}"], name=step, hint=content.Filled(hint)))
    if judgement.complete:
        _draw_result(example)


def _draw_result(example: WorkedExample) -> None:
    if example.result:
        st.markdown(example.result)


def _draw_rows(name: str, example: WorkedExample, judgement: Judgement, level: Level) -> None:
    """Draws the steps below each other; columns that are called as in the row above have no name again."""
    above: tuple[str, ...] = ()
    with st.container(key="fill_in", gap="xxsmall"):
        for at, row in enumerate(example.shown(level, judgement.complete)):
            bare = "fill_bare" if row.labels == above else "fill_row"
            with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key=f"{bare}_{at}"):
                st.markdown(row.title, width=TITLE)
                _draw_cells(name, example, judgement, at, row)
            above = row.labels


def _draw_cells(name: str, example: WorkedExample, judgement: Judgement, at: int, row: Row) -> None:
    for column, cell in enumerate(row.cells):
        id_ = f"{at}-{column}"
        width = CELL if isinstance(cell, Given) or _is_narrow(cell.form) else WIDE
        if id_ not in judgement.blanks or isinstance(cell, Given):
            with st.container(width=width, gap=None):
                st.caption(cell.label)
                st.markdown(f"**{_signed(cell)}**")
            continue
        verdict = judgement.verdicts.get(id_)
        # Streamlit's own: an answer begins empty and never goes into the link.
        st.text_input(
            cell.label,
            key=_key(name, example, id_),
            max_chars=MOST,
            autocomplete="off",
            placeholder=_expected(cell.form),
            icon=MARKS[None if verdict is None else verdict.right],
            width=width,
        )


def _signed(cell: Given | Cell) -> str:
    """Writes what a cell holds, a number with a true minus."""
    return minus(cell.text) if isinstance(cell, Given) or isinstance(cell.form, Numbers) else cell.text


def _is_narrow(form: Form) -> bool:
    return not isinstance(form, Numbers) or form.count == 1


def _expected(form: Form) -> str:
    """Says what is written into a box."""
    if not isinstance(form, Numbers):
        return TEXT["pieces"]
    if form.count != 1:
        return TEXT["several"]
    return TEXT("decimals", count=form.decimals) if form.decimals else TEXT["whole"]


def _key(name: str, example: WorkedExample, id_: str) -> str:
    return f"{name}_cell_{example.digest}_{id_}"


def _answers(name: str, example: WorkedExample) -> Mapping[str, object]:
    return {id_: st.session_state.get(_key(name, example, id_)) for id_ in example.cells}


def _verdict(example: WorkedExample, judgement: Judgement, level: Level) -> str:
    blanks, right = len(judgement.blanks), judgement.right
    if judgement.complete:
        if level == LEVELS[-1]:
            return TEXT["right alone"]
        return TEXT("right", next=TEXT[f"level {LEVELS[LEVELS.index(level) + 1]}"])
    if (wrong := judgement.first_wrong) is not None:
        hint = content.Filled(judgement.verdicts[wrong].hint)  # Markdown of ours
        if blanks == 1:
            return TEXT("wrong", hint=hint)
        name = content.Filled(example.name(wrong))
        return TEXT("wrong in several", right=right, blanks=blanks, name=name, hint=hint)
    return TEXT("so far", right=right, blanks=blanks) if right else TEXT("unanswered", blanks=blanks)


def _stage(name: str, example: WorkedExample, judgement: Judgement) -> int:
    """Returns how many hints there have been about the first blank that is not right."""
    held = st.session_state.get(f"{name}_hinted")
    return held[1] if held is not None and held[0] == (example.digest, judgement.at) else 0


def _ask_hint(name: str, example: WorkedExample, level: Level) -> None:
    """Goes on to the next hint, of what is filled in now."""
    judgement = example.judge(level, _answers(name, example))
    stage = min(_stage(name, example, judgement) + 1, STAGES)
    st.session_state[f"{name}_hinted"] = (example.digest, judgement.at), stage
