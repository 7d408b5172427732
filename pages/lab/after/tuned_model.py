"""The model that a fine-tuning leaves behind: opened on other pages, named, exported, and the change of its
matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st

from engine.errors import PretrainedError
from studies.after.finetune import with_weights
from studies.after.lessons import Setting, TextLesson
from studies.after.new_fact import MOST_BYTES, Taught, matrix_change
from studies.weights.export.adapter import peft
from studies.weights.pretrained import sources
from ui import content, models, tuned, widgets
from ui.fields import visible
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.widgets import line

TEXT = content.beside(__file__)
METHOD, LORA = "tune_method", "lora-4"  # a control's key, and the value that it begins with
NAME, MOST_NAME = "tune_name", 60  # key, and characters
CIRCUITS, GENERATION = "pages/inside/circuits/page.py", "pages/output/generation/page.py"


def counted(trained: int, total: int, done: bool) -> str:
    """Says how many numbers were trained, or will be."""
    return TEXT("trained" if done else "to train", trained=trained, total=total, share=trained / total)


def look_inside(subject: Subject, setting: Setting, taught: Taught[Any]) -> None:
    """Offers the fine-tuned model on the pages that look inside; LoRA where its weights are not held."""
    if not taught.adapters and not taught.weights:
        left, right = st.columns([4, 1], gap="small", vertical_alignment="center")
        left.caption(TEXT("not held", size=4 * taught.total, most=MOST_BYTES))
        with right:
            use_lora()
        return
    text = isinstance(setting.topic, TextLesson)
    label = TEXT["let write" if text else "look inside"]
    # Streamlit's own: it leads away and has no value.
    if not st.button(label, icon=":material/search:", type="tertiary", key="tune_look_inside"):
        return
    model = {"model": _keep(subject, setting, taught)}
    if text:
        st.switch_page(GENERATION, query_params=model)
    fact = {"fact_prompt": setting.topic.prompt, "fact_answer_text": setting.topic.answer}
    st.switch_page(CIRCUITS, query_params=model | {"circuits_view": "fact", "fact_question": "own"} | fact)


def use_lora() -> None:
    """Offers to choose LoRA in place of all weights."""
    # Streamlit's own: it sets another control and has no value.
    st.button(TEXT["use lora"], key="tune_use_lora", on_click=widgets.put, args=(METHOD, LORA))


def _keep(subject: Subject, setting: Setting, taught: Taught[Any]) -> str:
    """Keeps the fine-tuned model on this server, titled as the visitor chose or by its lesson; returns its
    name in links.
    """
    changed = taught.changed(subject.model)
    title = visible(str(widgets.held_or_linked(NAME) or "")).strip()[:MOST_NAME] or _title(subject, setting)
    return tuned.keep(
        repr((subject.key, setting, title)),
        tuned.Tuned(
            with_weights(subject.model, changed), subject.tokenizer, models.origin(subject.key[0]), title
        ),
        sum(weight.nbytes for weight in changed.values()),
    )


def _title(subject: Subject, setting: Setting) -> str:
    began = subject.title.removesuffix(", pretrained").removesuffix(" (trained)")
    # A plain text, which others escape: a visitor wrote a part of it.
    return str(TEXT("title", began=began, lesson=setting.topic.answer.strip()))


def changes(subject: Subject, setting: Setting, taught: Taught[Any]) -> None:
    """Draws the singular values of one matrix's change, the one that moved most until another is chosen."""
    largest = taught.largest
    names = sorted((*taught.adapters, *(n for n in taught.weights if _is_matrix(taught, n))), key=_order)
    moved = largest
    if names:
        name = widgets.select(TEXT["matrix"], names, "tune_matrix", first=largest.name, kind="list")
        if name != largest.name:
            moved = matrix_change(subject.model, name, taught.changed(subject.model)[name])
    which = "moved most" if moved.name == largest.name else "moved"
    rank = setting.recipe.rank
    says = TEXT(which, name=content.Filled(moved.name), share=moved.share)  # stands in code
    st.markdown(f"{says} {TEXT('rank bounded' if rank else 'rank free', rank=rank)}")
    plot(
        singular_values(moved.singular),
        key="tune_singular",
        height=220,
        name="singular-values",
        data={"singular_value": np.array(moved.singular)},
        alt=TEXT("alt", values=", ".join(f"{value:.2g}" for value in moved.singular)),
    )


def _is_matrix(taught: Taught[Any], name: str) -> bool:
    return name.startswith("blocks.") and taught.weights[name].dim() == 2


def _order(name: str) -> tuple[int, str]:
    """Orders the matrices by their block."""
    return int(name.split(".")[1]), name


def take_along(subject: Subject, setting: Setting, taught: Taught[Any]) -> None:
    """Offers a name for the model, its merged weights on the page that exports, and the adapters in PEFT's
    layout, where the model's family has one.
    """
    if not taught.adapters and not taught.weights:
        return
    line(TEXT["name"], "", NAME, MOST_NAME, TEXT["name hint"])
    # Streamlit's own: it leads away and has no value.
    if st.button(TEXT["export"], icon=":material/download:", key="tune_export"):
        query = {"reference_view": "export", "model": _keep(subject, setting, taught)}
        st.switch_page("pages/models/reference/page.py", query_params=query)
    if not taught.adapters:
        return
    known = sources.KNOWN.get(subject.key[0].removeprefix(models.PRETRAINED))
    base = known.repository if known else "model"
    try:
        data = peft(subject.model, taught.adapters, base)
    except PretrainedError as error:
        st.caption(TEXT("no adapter file", error=str(error)))
        return
    # Streamlit's own: a file has no value.
    st.download_button(
        TEXT["download"],
        data,
        "adapter.zip",
        "application/zip",
        icon=":material/download:",
        key="tune_adapter",
    )


def singular_values(values: Sequence[float]) -> go.Figure:
    """Draws singular values, largest first."""
    bar = go.Bar(
        x=list(range(1, len(values) + 1)),
        y=list(values),
        marker={"color": colour("feedforward")},
        hovertemplate="%{x}: %{y:.3g}<extra></extra>",
    )
    return go.figure(
        [bar],
        margin={"l": 52, "r": 12, "t": 8, "b": 40},
        xaxis=go.axis(TEXT["values axis"], dtick=1),
        yaxis=go.axis("", showgrid=True),
    )
