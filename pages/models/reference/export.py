"""The model of the bar as files for other programs."""

from __future__ import annotations

import json
import re

import streamlit as st

from engine.errors import PretrainedError
from engine.export import pack
from engine.export.hugging_face import Plan, plan
from engine.export.one_file import one_file
from engine.export.writers import WRITERS
from pages.models.reference import words
from ui import explain, state, widgets
from ui.subject import Subject
from ui.text.markdown import safe

MADE = {  # what is written where a family has more than the model
    "attention_bias": "biases of zeros",
    "output_bias": "biases of zeros",
    "ffn_bias": "biases of zeros",
    "norm_bias": "biases of zeros",
    "norm_gain": "gains of ones",
    "qk_gain": "gains of ones",
    "position": "its positions as a table, as long as its context",
}
OPEN = """import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

folder = "{folder}"  # into which you unpacked the zip
model = AutoModelForCausalLM.from_pretrained(folder)
tokenizer = AutoTokenizer.from_pretrained(folder)  # where there is a tokenizer.json
ids = tokenizer("First Citizen:", return_tensors="pt")
with torch.inference_mode():
    written = model.generate(**ids, max_new_tokens=100, do_sample=True, temperature=0.8)
print(tokenizer.decode(written[0]))
"""


def draw_export(subject: Subject) -> None:
    dtype = widgets.one_of(
        "Numbers as",
        list(pack.DTYPES),
        "reference_dtype",
        hint="float32 is exact. The others take half the room, and keep about 3 (bfloat16) or 4 digits.",
    )
    size = pack.size(subject.model, dtype)
    try:
        size.allow(state.profile().max_export)
    except PretrainedError as error:
        st.warning(safe(f"This model is not packed here: {error}."))
        return
    said = st.container()
    left, right = st.columns(2, gap="medium")
    with left.container(border=True, height="stretch"):
        found = _draw_hugging_face(subject, dtype, size)
    with right.container(border=True, height="stretch"):
        _draw_one_file(subject, dtype, size)
    with said:
        explain.answer(_told(subject, found))
    explain.measure_it(_files, subject, found)
    explain.by_hand(_opened, subject, found)


def _files(subject: Subject, found: Plan | str) -> None:
    """config.json and model.py, to be read first."""
    if isinstance(found, Plan):
        st.caption("config.json")
        st.code(json.dumps(dict(found.facts), indent=2), language="json")
    st.caption("model.py")
    st.code(_written(subject), language="python", height=480)


def _opened(subject: Subject, found: Plan | str) -> None:
    """The same model through a library, in ten lines."""
    if isinstance(found, Plan):
        st.markdown(words.LIBRARY)
        st.code(OPEN.format(folder=_file(subject)), language="python")
    else:
        st.markdown(words.NO_LIBRARY)
        st.code("python model.py", language="bash")


def _draw_hugging_face(subject: Subject, dtype: str, size: pack.Size) -> Plan | str:
    st.markdown("**Hugging Face's layout**")
    try:
        found = plan(subject.model)
    except PretrainedError as error:
        st.info(safe(f"Not for this model: {error}."))
        return str(error)
    note = pack.tokenizer_note(subject.model, subject.tokenizer)
    files = "`model.safetensors`, `config.json`" + ("" if note else ", `tokenizer.json`")
    st.markdown(f"{files}: {size.megabytes} before packing, as **{WRITERS[found.family].title}**.")
    if note:
        st.caption(safe(f"No tokenizer.json: {note}."))
    model, tokenizer, name = subject.model, subject.tokenizer, _file(subject)
    # Streamlit's own: a file is built when it is asked for, not before.
    st.download_button(
        "Download the zip",
        lambda: pack.hugging_face(model, found, tokenizer, dtype),
        f"{name}-{found.family}.zip",
        "application/zip",
        icon=":material/download:",
        on_click="ignore",
        key="reference_zip",
    )
    return found


def _draw_one_file(subject: Subject, dtype: str, size: pack.Size) -> None:
    st.markdown("**One file of PyTorch**")
    st.markdown(
        f"`model.py`, and beside it `model.safetensors`: {size.megabytes}. `python model.py` runs it, with"
        " torch and safetensors installed."
    )
    model = subject.model
    with st.container(horizontal=True):
        # Streamlit's own: files are built when they are asked for, not before.
        st.download_button(
            "model.py",
            lambda: _written(subject),
            "model.py",
            "text/x-python",
            icon=":material/download:",
            on_click="ignore",
            key="reference_py",
        )
        st.download_button(
            "model.safetensors",
            lambda: pack.own_weights(model, dtype),
            "model.safetensors",
            "application/octet-stream",
            icon=":material/download:",
            on_click="ignore",
            key="reference_weights",
        )


def _written(subject: Subject) -> str:
    return one_file(subject.model, subject.title, subject.tokenizer)


def _told(subject: Subject, found: Plan | str) -> str:
    if isinstance(found, str):
        return (
            "No family at Hugging Face that is written here is this model: **the one file is the way"
            " out.** It holds"
            " the engine's own parts that this model is made of, and nothing else."
        )
    title = WRITERS[found.family].title
    said = f"This model **is a {title}**: `transformers` opens it and gives the same logits"
    made = list(dict.fromkeys(MADE[field] for field in found.filled))
    if made:
        return (
            f"{said}. What that family has beside is written so that it changes nothing: {', '.join(made)}."
        )
    return f"{said}. Every property and every tensor has its place there."


def _file(subject: Subject) -> str:
    """The model's title as a file's name."""
    return re.sub(r"[^a-z0-9]+", "-", subject.title.lower()).strip("-")[:60] or "model"
