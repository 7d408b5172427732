"""The view "Architectures": eight choices turn one machine into another model of the table; the drawing and
the counts follow.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from engine.errors import ConfigError
from engine.presets import Preset
from pages.models.families.drawing import drawing, figure, parameters, part_names
from studies.costs.cards.norms import norm_title
from studies.costs.ledger import ledger_of
from studies.costs.model_choices import (
    OFFERED,
    TOKENS,
    choices_of,
    costs,
    morphed,
    named,
    nearest_model,
    unchanged,
    users,
)
from studies.costs.published_models import BY_YEAR
from studies.costs.since_2023 import CARDS
from ui import content, explain, widgets
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.numbers import short

TEXT = content.beside(__file__)
SIZE, FIRST, HEIGHT = "families_size", "gpt2", 392
ORIGINAL = "transformer-base"
MADE = (  # models with choices of their own: buttons
    *(ORIGINAL, "bert-base", "gpt2", "t5-base", "llama2-7b"),
    *("pythia-70m", "gemma-2b", "llama3-8b", "qwen2.5-0.5b", "smollm2-135m"),
)
LISTED = 5  # models that made a choice: of more, the first and the last


def draw() -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(TEXT["make"], width="content")
        for name in MADE:
            st.button(TEXT(f"make {name}"), key=f"families_make_{name}", on_click=_make, args=(name,))
    left, controls = st.columns([6, 8], gap="medium")
    with left:
        sizes = {name: TEXT("sizes", title=_title(name)) for name in BY_YEAR}
        size = widgets.select(TEXT["sizes of"], sizes, SIZE, first=FIRST, kind="list", hidden=True)
        pictured = st.container()
    with controls, st.container(key="pairs_beside"):
        chosen = {facet: _choice(facet, choices_of(BY_YEAR[FIRST])[facet]) for facet in OFFERED}
    base = BY_YEAR[size]
    try:
        changed = morphed(base, chosen)
    except ConfigError as error:
        explain.answer(TEXT("cannot", why=content.Filled(error)))  # stands in code
        changed = base
    else:
        explain.answer(_answer(size, changed, chosen))
    with pictured:
        _picture(changed)
    explain.measure_it(_table)
    explain.by_hand(st.markdown, TEXT["by hand"])


def _make(name: str) -> None:
    """All eight switches go to a model's choices."""
    for facet, value in choices_of(BY_YEAR[name]).items():
        st.session_state[_key(facet)] = value


def _key(facet: str) -> str:
    return f"families_{facet}"


def _choice(facet: str, first: str) -> str:
    """One of the eight: its control, and who else chose so."""
    left, right = st.columns([6, 7], gap="small", vertical_alignment="center")
    options = {value: _chosen(value) for value in OFFERED[facet]}
    with left:
        chosen = widgets.select(
            TEXT(f"facet {facet}"), options, _key(facet), first=first, kind="list", hidden=True
        )
    right.caption(_used(facet, users(facet, chosen)))
    return chosen


def _title(name: str) -> str:
    if name == ORIGINAL:
        return TEXT["original"]
    return content.Filled(BY_YEAR[name].title.removesuffix(" (published)"))  # ours


def _chosen(value: str) -> str:
    return TEXT(f"choice {value}") if f"choice {value}" in TEXT else norm_title(value)


def _used(facet: str, names: Sequence[str]) -> str:
    """Names the models of the table that made a choice (Markdown)."""
    if not names:
        return TEXT["no position" if facet == "position" else "none"]
    shorts = [TEXT(f"short {name}") for name in names]
    if len(names) > LISTED:
        return TEXT("used by many", count=len(names), models=len(BY_YEAR), first=shorts[0], last=shorts[-1])
    return ", ".join(shorts)


def _answer(size: str, changed: Preset, chosen: dict[str, str]) -> str:
    """Says which models make these choices, and what they cost at these sizes (Markdown)."""
    before, after = costs(BY_YEAR[size]), costs(changed)
    said = TEXT(
        "costs" if after == before else "costs changed",
        parameters=after.parameters,
        title=_title(size),
        before=before.parameters,
        flops=after.flops,
        tokens=TOKENS,
        cache=TEXT("cache" if after.cache else "no cache", numbers=after.cache),
    )
    return f"{_whose(size, chosen)} {said}"


def _whose(size: str, chosen: dict[str, str]) -> str:
    same = named(chosen)
    if size in same:
        return TEXT("this is", title=_title(size))
    if same:
        *models, last = (TEXT(f"short {name}") for name in same)
        return TEXT(
            "choices of several" if models else "choices of",
            choices=len(OFFERED),
            models=content.Filled(", ".join(models)) if models else last,
            last=last,
            title=_title(size),
        )
    other, apart = nearest_model(chosen)
    differences = ", ".join(TEXT(f"facet {each}").lower() for each in apart)
    nearest = TEXT(f"short {other}")
    return TEXT("nearest", nearest=nearest, count=len(apart), differences=differences)


def _picture(preset: Preset) -> None:
    counted = ledger_of(preset)
    counts = parameters(counted)
    boxes, names = drawing(counted).boxes, part_names(counted)
    plot(
        figure(counted, HEIGHT - 10),
        key="families_machine",
        alt=TEXT("alt", layers=counted.config.n_layers, parts="; ".join(names)),
        height=HEIGHT,
        name="machine",
        data={
            "stack": [box.stack for box in boxes],
            "part": names,
            "parameters": [counts.get((box.stack, box.component), 0) for box in boxes],
        },
    )


def _table() -> None:
    """Every model of the table at each of the eight, with a dot where it is as in 2017, its counts, and where
    they are published.
    """
    choices = {name: choices_of(preset) for name, preset in BY_YEAR.items()}
    counted = {name: costs(preset) for name, preset in BY_YEAR.items()}
    same = {name: unchanged(name) for name in BY_YEAR}
    columns = {}
    for facet in OFFERED:
        cells = {name: _chosen(chosen[facet]) for name, chosen in choices.items()}
        cells |= {name: TEXT("as in 2017", choice=cells[name]) for name in cells if facet in same[name]}
        head = TEXT["column wiring"] if facet == "wiring" else TEXT(f"facet {facet}")
        columns[head] = list(cells.values())
    columns[TEXT["column same"]] = [TEXT("of", count=len(same[name]), all=len(OFFERED)) for name in BY_YEAR]
    columns[TEXT["column parameters"]] = [f"{counted[name].parameters:,}" for name in BY_YEAR]
    columns[TEXT["column flops"]] = [short(counted[name].flops) for name in BY_YEAR]
    with st.container(key="whole_words"), st.container(key="models_table"):
        st.table(pd.DataFrame(columns, index=[_title(name) for name in BY_YEAR]), border="horizontal")
    publications = " · ".join(
        TEXT("publication", title=_title(name), source=preset.source or "")
        for name, preset in BY_YEAR.items()
    )
    st.markdown(TEXT("publications", publications=content.Filled(publications)))
    st.markdown(TEXT["reasons"])
    st.markdown(TEXT["reading"])
    _since_2023()


def _since_2023() -> None:
    """The models since 2023, by the choices that are new: which attention, which layers have a window, how
    many experts.
    """
    rows = {}
    for card in CARDS.values():
        windowed, layers, window = card.windows
        some = TEXT("windows", windowed=windowed, layers=layers, window=window)
        rows[card.title] = {
            TEXT["column attention"]: ", ".join(f"{kind} ({count})" for kind, count in card.kinds.items()),
            TEXT["column window"]: some if windowed else TEXT["no window"],
            TEXT["column experts"]: card.experts or TEXT["dense"],
            TEXT["column parameters"]: f"{card.total:,}",
            TEXT["column active"]: short(card.active),
        }
    st.markdown(TEXT["since"])
    st.table(pd.DataFrame(rows).T, border="horizontal")


VIEW = View("machine", TEXT, draw, code=(choices_of, morphed), needs_model=False)
