"""The view "Export": the model of the bar as files for other programs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from engine import checkpoints
from engine.checkpoints import FILES
from engine.data.tokenizers import Tokenizer
from engine.errors import PretrainedError
from engine.model import Transformer
from engine.nano import __file__ as NANO
from studies.pairs.checkpoints import PairCheckpoint
from studies.pairs.seq2seq import Seq2Seq
from studies.pairs.tokenizer import PairTokenizer
from studies.weights.export import pack
from studies.weights.export.gather import gather
from studies.weights.export.hugging_face import Plan, plan, tensors, undone
from studies.weights.export.single_file import export_single_file
from studies.weights.export.writers import WRITERS
from ui import content, explain, session, widgets
from ui.model_bar import Subject
from ui.model_needs import DENSE
from ui.page_frame import View

TEXT = content.beside(__file__)
# field of a configuration -> what is written where a family has more than the model
MADE = {
    "attention_bias": "biases",
    "output_bias": "biases",
    "ffn_bias": "biases",
    "norm_bias": "biases",
    "norm_gain": "gains",
    "qk_gain": "gains",
    "position": "positions",
}
OPEN = """import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

folder = "{folder}"  # where you unpacked the zip
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


def draw(subject: Subject) -> None:
    taken = _taken(subject)
    hint = TEXT["precision hint"]
    dtype = widgets.select(TEXT["precision"], list(pack.DTYPES), "reference_dtype", hint=hint)
    size = pack.size(taken.model, dtype)
    try:
        size.allow(session.profile().max_export)
    except PretrainedError as error:
        st.warning(TEXT("too large", why=str(error)))
        return
    planned = _planned(taken)
    note = _note(taken) if isinstance(planned, Plan) else None
    _answer(planned, size.megabytes, dtype)
    st.table(
        pd.DataFrame(_ways(taken, planned, size, bool(note))).set_index(TEXT["way"]), border="horizontal"
    )
    with st.container(horizontal=True):
        _downloads(taken, planned, dtype)
    if isinstance(planned, str):
        st.info(TEXT("no family", why=planned))
    elif note:
        st.caption(TEXT("no tokenizer", why=note))
    explain.measure_it(_files, taken, planned)
    explain.by_hand(_opened, taken, planned)


def _answer(planned: Plan | str, size: str, dtype: str) -> None:
    """Says whether a family of Hugging Face's is this model, and how large the file is."""
    size = content.Filled(size)
    if isinstance(planned, str):
        explain.answer(TEXT("no architecture", size=size, dtype=dtype))
        return
    made = ", ".join(dict.fromkeys(TEXT(f"made {MADE[field]}") for field in planned.filled))
    explain.answer(
        TEXT(
            "filled in" if made else "counterpart",
            family=WRITERS[planned.family].title,
            size=size,
            dtype=dtype,
            made=made,
        )
    )


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


def _ways(taken: Taken, planned: Plan | str, size: pack.Size, no_tokenizer: bool) -> list[dict[str, str]]:
    """The ways out: which files, how large, and what opens them."""
    family, files = "–", "–"
    if isinstance(planned, Plan):
        files = "`model.safetensors`, `config.json`" + ("" if no_tokenizer else ", `tokenizer.json`")
        family = TEXT("opens hub", family=WRITERS[planned.family].title)
    engine_files = ", ".join(f"`{name}`" for name in FILES)
    rows = [
        (TEXT["hub"], files, size.megabytes if isinstance(planned, Plan) else "–", family),
        (TEXT["one file"], "`model.py`, `model.safetensors`", size.megabytes, TEXT["opens file"]),
        (TEXT["program"], "`nano.py`", TEXT["program size"], TEXT["opens program"])
        if taken.pair is None
        else (
            TEXT["own folder"],
            engine_files,
            pack.size(taken.model, "float32").megabytes,
            TEXT["opens folder"],
        ),
    ]
    titles = (TEXT["way"], TEXT["files"], TEXT["size"], TEXT["opened by"])
    return [dict(zip(titles, row, strict=True)) for row in rows]


def _files(taken: Taken, planned: Plan | str) -> None:
    """config.json and model.py, to be read first."""
    if isinstance(planned, Plan):
        st.caption("config.json")
        st.code(json.dumps(dict(planned.facts), indent=2), language="json")
    st.caption("model.py")
    st.code(taken.written(), language="python", height=480)


def _opened(taken: Taken, planned: Plan | str) -> None:
    """The same model through a library, in ten lines."""
    if isinstance(planned, Plan):
        st.markdown(TEXT["library"])
        st.code(OPEN.format(folder=taken.file), language="python")
    else:
        st.markdown(TEXT["no library"])
        st.code(f"python model.py {taken.source}".strip(), language="bash")


def _downloads(taken: Taken, planned: Plan | str, dtype: str) -> None:
    """Draws a button for each file; a file is built when it is asked for."""
    model, tokenizer, pair = taken.model, taken.tokenizer, taken.pair
    if isinstance(planned, Plan):
        assert isinstance(model, Transformer) and not isinstance(tokenizer, PairTokenizer)
        make = partial(pack.hugging_face, model, planned, tokenizer, dtype)
        _download(TEXT["zip"], make, f"{taken.file}-{planned.family}.zip", "application/zip", "reference_zip")
    _download("model.py", taken.written, "model.py", "text/x-python", "reference_py")
    weights, kind = "model.safetensors", "application/octet-stream"
    _download(weights, partial(pack.engine_weights, model, dtype), weights, kind, "reference_weights")
    if pair is None:
        read = partial(Path(NANO).read_text, "utf-8")
        _download("nano.py", read, "nano.py", "text/x-python", "reference_nano")
    else:
        folder = partial(checkpoints.pack, pair.model, pair.tokenizer, pair.metrics)
        _download(TEXT["own folder"], folder, f"{taken.file}.zip", "application/zip", "reference_own")


def _download(label: str, make: Callable[[], Any], file: str, kind: str, key: str) -> None:
    # Streamlit's own: a file is built when it is asked for, not before.
    st.download_button(label, make, file, kind, icon=":material/download:", on_click="ignore", key=key)


VIEW = View("export", TEXT, draw, code=(plan, tensors, undone, gather), takes=(DENSE,), whole=True)
