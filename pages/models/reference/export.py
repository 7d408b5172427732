"""The model of the bar as files for other programs."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import streamlit as st

from engine.data.tokenizers import Tokenizer
from engine.data.tokenizers.pairs import PairTokenizer
from engine.errors import PretrainedError
from engine.model import Transformer
from engine.nano import __file__ as NANO
from engine.seq2seq import Seq2Seq
from engine.weights import checkpoints
from engine.weights.checkpoints import FILES, PairCheckpoint
from engine.weights.export import pack
from engine.weights.export.hugging_face import Plan, plan
from engine.weights.export.single_file import export_single_file
from engine.weights.export.writers import WRITERS
from pages.models.reference import words
from ui import explain, session, widgets
from ui.model_bar import Subject
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


@dataclass(frozen=True, eq=False)
class Taken:
    """The model to export: of an encoder-decoder both halves. `source` is what it may be given to read."""

    title: str
    model: Transformer | Seq2Seq = field(repr=False)
    tokenizer: Tokenizer | PairTokenizer = field(repr=False)
    source: str = ""
    pair: PairCheckpoint | None = field(default=None, repr=False)

    @property
    def file(self) -> str:
        """Its title as a file's name."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")[:60] or "model"

    def written(self) -> str:
        """Returns the text of model.py."""
        return export_single_file(self.model, self.title, self.tokenizer, example=self.source)


def _taken(subject: Subject) -> Taken:
    pair = subject.pair
    if pair is None:
        return Taken(subject.title, subject.model, subject.tokenizer)
    return Taken(subject.title, pair.model, pair.tokenizer, subject.text, pair)


def draw_export(subject: Subject) -> None:
    taken = _taken(subject)
    dtype = widgets.select(
        "Numbers as",
        list(pack.DTYPES),
        "reference_dtype",
        hint="float32 is exact. The others take half the room, and keep about 3 (bfloat16) or 4 digits.",
    )
    size = pack.size(taken.model, dtype)
    try:
        size.allow(session.profile().max_export)
    except PretrainedError as error:
        st.warning(safe(f"This model is not packed here: {error}."))
        return
    found = _planned(taken)
    note = _note(taken) if isinstance(found, Plan) else None
    explain.answer(words.packed(found, size.megabytes, dtype))
    st.table(pd.DataFrame(_ways(taken, found, size, bool(note))).set_index("way"), border="horizontal")
    with st.container(horizontal=True):
        if isinstance(found, Plan):
            _zip(taken, found, dtype)
        _one_file(taken, dtype)
        if taken.pair is not None:
            _own_folder(taken, taken.pair)
        else:
            _nano()
    if isinstance(found, str):
        st.info(safe(f"Not for this model: {found}."))
    elif note:
        st.caption(safe(f"No tokenizer.json: {note}."))
    explain.measure_it(_files, taken, found)
    explain.by_hand(_opened, taken, found)


def _planned(taken: Taken) -> Plan | str:
    """The family at Hugging Face that the model is, or why there is none."""
    try:
        return plan(taken.model)
    except PretrainedError as error:
        return str(error)


def _note(taken: Taken) -> str | None:
    """Why there is no tokenizer.json."""
    assert isinstance(taken.model, Transformer) and not isinstance(taken.tokenizer, PairTokenizer)
    return pack.tokenizer_note(taken.model, taken.tokenizer)


def _ways(taken: Taken, found: Plan | str, size: pack.Size, no_tokenizer: bool) -> list[dict[str, str]]:
    """The ways out: which files, how large, and what opens them."""
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
    own = {
        "way": "This app's own folder",
        "files": ", ".join(f"`{name}`" for name in FILES),
        "size": pack.size(taken.model, "float32").megabytes,
        "opened by": "`load_pair`, in this app's engine",
    }
    nano = {
        "way": "A program to read",
        "files": "`nano.py`",
        "size": "under 300 lines",
        "opened by": "`python nano.py`, which trains a small GPT and writes with it",
    }
    return [hub, one, nano] if taken.pair is None else [hub, one, own]


def _files(taken: Taken, found: Plan | str) -> None:
    """config.json and model.py, to be read first."""
    if isinstance(found, Plan):
        st.caption("config.json")
        st.code(json.dumps(dict(found.facts), indent=2), language="json")
    st.caption("model.py")
    st.code(taken.written(), language="python", height=480)


def _opened(taken: Taken, found: Plan | str) -> None:
    """The same model through a library, in ten lines."""
    if isinstance(found, Plan):
        st.markdown(words.LIBRARY)
        st.code(OPEN.format(folder=taken.file), language="python")
    else:
        st.markdown(words.NO_LIBRARY)
        st.code(f"python model.py {taken.source}".strip(), language="bash")


def _zip(taken: Taken, plan: Plan, dtype: str) -> None:
    model, tokenizer = taken.model, taken.tokenizer
    assert isinstance(model, Transformer) and not isinstance(tokenizer, PairTokenizer)
    # Streamlit's own: a file is built when it is asked for, not before.
    st.download_button(
        "Download the zip",
        lambda: pack.hugging_face(model, plan, tokenizer, dtype),
        f"{taken.file}-{plan.family}.zip",
        "application/zip",
        icon=":material/download:",
        on_click="ignore",
        key="reference_zip",
    )


def _one_file(taken: Taken, dtype: str) -> None:
    model = taken.model
    # Streamlit's own: files are built when they are asked for, not before.
    st.download_button(
        "model.py",
        taken.written,
        "model.py",
        "text/x-python",
        icon=":material/download:",
        on_click="ignore",
        key="reference_py",
    )
    st.download_button(
        "model.safetensors",
        lambda: pack.engine_weights(model, dtype),
        "model.safetensors",
        "application/octet-stream",
        icon=":material/download:",
        on_click="ignore",
        key="reference_weights",
    )


def _nano() -> None:
    # Streamlit's own: a file is read when it is asked for, not before.
    st.download_button(
        "nano.py",
        lambda: Path(NANO).read_text("utf-8"),
        "nano.py",
        "text/x-python",
        icon=":material/download:",
        on_click="ignore",
        key="reference_nano",
    )


def _own_folder(taken: Taken, pair: PairCheckpoint) -> None:
    # Streamlit's own: a file is built when it is asked for, not before.
    st.download_button(
        "This app's own folder",
        lambda: checkpoints.pack(pair.model, pair.tokenizer, pair.metrics),
        f"{taken.file}.zip",
        "application/zip",
        icon=":material/download:",
        on_click="ignore",
        key="reference_own",
    )
