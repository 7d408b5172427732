"""The model that a fine-tuning leaves behind: opened on other pages, named, exported, and the change of its
matrices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from engine.errors import PretrainedError
from engine.training.post_training.finetune import with_weights
from engine.training.post_training.lessons import Setting, TextLesson
from engine.training.post_training.new_fact import Taught, matrix_change
from engine.weights.export.adapter import peft
from engine.weights.pretrained import sources
from pages.lab.after import figures_finetune as figures
from pages.lab.after import words_finetune as words
from ui import models, tuned, widgets
from ui.fields import visible
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.text.markdown import safe
from ui.widgets import line

METHOD, LORA = "tune_method", "lora-4"  # a control's key, and the value that it begins with
NAME, MOST_NAME = "tune_name", 60  # key, and characters
CIRCUITS, GENERATION = "pages/inside/circuits/page.py", "pages/output/generation/page.py"


def look_inside(subject: Subject, setting: Setting, taught: Taught[Any]) -> None:
    """Offers the fine-tuned model on the pages that look inside; LoRA where its weights are not held."""
    if not taught.adapters and not taught.weights:
        left, right = st.columns([4, 1], gap="small", vertical_alignment="center")
        left.caption(words.not_held(4 * taught.total))
        with right:
            use_lora()
        return
    text = isinstance(setting.topic, TextLesson)
    label = words.LET_WRITE if text else words.LOOK_INSIDE
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
    st.button(words.USE_LORA, key="tune_use_lora", on_click=widgets.put, args=(METHOD, LORA))


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
    return f"{began}, fine-tuned: {setting.topic.answer.strip()}"


def changes(subject: Subject, setting: Setting, taught: Taught[Any]) -> None:
    """Draws the singular values of one matrix's change, the one that moved most until another is chosen."""
    largest = taught.largest
    names = sorted((*taught.adapters, *(n for n in taught.weights if _is_matrix(taught, n))), key=_order)
    moved = largest
    if names:
        name = widgets.select("Matrix", names, "tune_matrix", first=largest.name, kind="list")
        if name != largest.name:
            moved = matrix_change(subject.model, name, taught.changed(subject.model)[name])
    st.markdown(words.change(moved, largest, setting.recipe))
    plot(
        figures.singular_values(moved.singular),
        key="tune_singular",
        height=220,
        name="singular-values",
        data={"singular_value": np.array(moved.singular)},
        alt=words.singular_alt(moved),
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
    line(words.NAME, "", NAME, MOST_NAME, words.NAME_HINT)
    # Streamlit's own: it leads away and has no value.
    if st.button(words.EXPORT, icon=":material/download:", key="tune_export"):
        query = {"reference_view": "export", "model": _keep(subject, setting, taught)}
        st.switch_page("pages/models/reference/page.py", query_params=query)
    if not taught.adapters:
        return
    known = sources.KNOWN.get(subject.key[0].removeprefix(models.PRETRAINED))
    base = known.repository if known else "model"
    try:
        data = peft(subject.model, taught.adapters, base)
    except PretrainedError as error:
        st.caption(safe(f"No file for PEFT: {error}."))
        return
    # Streamlit's own: a file has no value.
    st.download_button(
        words.DOWNLOAD, data, "adapter.zip", "application/zip", icon=":material/download:", key="tune_adapter"
    )
