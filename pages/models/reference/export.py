"""The model of the bar as files for other programs."""

from __future__ import annotations

import json
import re

import pandas as pd
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
    found = _planned(subject)
    note = pack.tokenizer_note(subject.model, subject.tokenizer)
    explain.answer(words.packed(found, size.megabytes, dtype))
    st.table(pd.DataFrame(_ways(found, size, bool(note))).set_index("way"), border="horizontal")
    with st.container(horizontal=True):
        if isinstance(found, Plan):
            _zip(subject, found, dtype)
        _one_file(subject, dtype)
    if isinstance(found, str):
        st.info(safe(f"Not for this model: {found}."))
    elif note:
        st.caption(safe(f"No tokenizer.json: {note}."))
    explain.measure_it(_files, subject, found)
    explain.by_hand(_opened, subject, found)


def _planned(subject: Subject) -> Plan | str:
    """The family at Hugging Face that the model is, or why there is none."""
    try:
        return plan(subject.model)
    except PretrainedError as error:
        return str(error)


def _ways(found: Plan | str, size: pack.Size, no_tokenizer: bool) -> list[dict[str, str]]:
    """Both ways out: which files, how large, and what opens them."""
    hub = {"way": "Hugging Face's layout", "files": "–", "size": "–", "opened by": "–"}
    if isinstance(found, Plan):
        files = "`model.safetensors`, `config.json`" + ("" if no_tokenizer else ", `tokenizer.json`")
        title = WRITERS[found.family].title
        hub |= {"files": files, "size": size.megabytes, "opened by": f"`transformers`, as {title}"}
    one = {
        "way": "One file of PyTorch",
        "files": "`model.py`, `model.safetensors`",
        "size": size.megabytes,
        "opened by": "`python model.py`, with torch and safetensors",
    }
    return [hub, one]


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


def _zip(subject: Subject, found: Plan, dtype: str) -> None:
    model, tokenizer = subject.model, subject.tokenizer
    # Streamlit's own: a file is built when it is asked for, not before.
    st.download_button(
        "Download the zip",
        lambda: pack.hugging_face(model, found, tokenizer, dtype),
        f"{_file(subject)}-{found.family}.zip",
        "application/zip",
        icon=":material/download:",
        on_click="ignore",
        key="reference_zip",
    )


def _one_file(subject: Subject, dtype: str) -> None:
    model = subject.model
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


def _file(subject: Subject) -> str:
    """The model's title as a file's name."""
    return re.sub(r"[^a-z0-9]+", "-", subject.title.lower()).strip("-")[:60] or "model"
