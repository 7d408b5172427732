"""A model that was downloaded earlier, used again: looked over, asked for a text, its sizes put into the
controls.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import partial
from typing import Any

import streamlit as st

from engine import checkpoints
from engine.checkpoints import Checkpoint
from engine.config import TrainConfig
from engine.data.tokenizers.bpe import BpeTokenizer
from engine.errors import CheckpointError, GlassformerError
from engine.sample import complete
from engine.sample.generate import fills_gaps
from runs.profiles import check_model
from studies.costs.ledger import parameter_formula
from ui import content, memo, session
from ui.controls import fill
from ui.fields import visible
from ui.text.markdown import safe, sentence, whole

TEXT = content.beside(__file__)
LENGTH = 300  # tokens of text asked for at a time


def unpacked(data: bytes) -> Checkpoint:
    """Returns the model in an uploaded file, once for each content. Raises CheckpointError for a file that is
    none, and for a model that is too large for this server: before it takes memory.
    """
    return _unpacked(hashlib.sha256(data).hexdigest(), data)


@memo.loaded(TEXT["checking"])
def _unpacked(digest: str, _data: bytes) -> Checkpoint:
    return checkpoints.unpack(_data, partial(check_model, session.profile()))


def saved_model() -> None:
    """Draws the uploader and, once a model is there, what can be done with it."""
    with st.expander(TEXT["downloaded"], icon=":material/upload_file:"):
        most = session.profile().max_upload_mb
        file = st.file_uploader(TEXT["zip"], key="model_upload", max_upload_size=most)
        if file is None:
            return
        if file.size > most << 20:
            st.error(TEXT("too large", most=most))
            return
        data = file.getvalue()
        try:
            checkpoint = unpacked(data)
        except CheckpointError as error:
            st.error(sentence(error))
            return
        _show(checkpoint)


def _about(checkpoint: Checkpoint) -> str:
    """Describes the model, with the last validation loss in a file that anybody may have written."""
    config, tokenizer, metrics = checkpoint.config, checkpoint.tokenizer, checkpoint.metrics
    looks = metrics.get("evaluations")
    last = looks[-1] if isinstance(looks, list) and looks else metrics
    last = last if isinstance(last, dict) else {}
    loss = last.get("validation_loss")
    known = isinstance(loss, int | float) and not isinstance(loss, bool) and 0 <= loss < 1e6
    quick = last.get("complete") is False
    cut = "characters"
    if isinstance(tokenizer, BpeTokenizer):
        cut = "merges" if tokenizer.merges else "bytes"
    return TEXT(
        "complete" if not known else "complete with estimate" if quick else "complete with loss",
        parameters=parameter_formula(config, checkpoint.model.parts),
        layers=config.n_layers,
        width=config.d_model,
        cut=TEXT(f"cut {cut}", size=tokenizer.vocab_size),
        loss=loss,
    )


def _settings(checkpoint: Checkpoint) -> dict[str, Any]:
    """Its architecture and, where the file says it, how it was trained."""
    settings = {name: value for name, value in checkpoint.config.to_dict().items() if name != "vocab_size"}
    train = checkpoint.metrics.get("train")
    if isinstance(train, dict) and train:  # a hand-made file: its architecture alone is used
        with suppress(GlassformerError, TypeError):
            settings |= TrainConfig.from_dict(train).validate().to_dict()
    return settings


def _show(checkpoint: Checkpoint) -> None:
    st.markdown(_about(checkpoint))
    st.button(
        TEXT["copy settings"],
        icon=":material/tune:",
        on_click=fill,
        args=(_settings(checkpoint),),
        key="use_settings",
    )
    with st.form("write", border=False):
        left, middle, right = st.columns([3, 1, 1], vertical_alignment="bottom")
        prompt = left.text_input(
            TEXT["prompt"], value="⏎", key="saved_prompt", max_chars=200, help=TEXT["break hint"]
        )
        warmth = middle.number_input(
            TEXT["temperature"], value=0.8, min_value=0.0, max_value=3.0, step=0.1, key="saved_temperature"
        )
        if right.form_submit_button(TEXT["write"], icon=":material/edit_note:", width="stretch"):
            try:
                text = complete(
                    checkpoint.model,
                    checkpoint.tokenizer,
                    visible(prompt or ""),
                    LENGTH,
                    float(warmth),
                    seed=0,
                )
                st.session_state["written"] = (
                    text
                    if fills_gaps(checkpoint.config, checkpoint.tokenizer)
                    else visible(prompt or "") + text
                )
            except GlassformerError as error:
                st.error(safe(str(error)))
    if written := st.session_state.get("written"):
        st.code(whole(written), language=None, wrap_lines=True)
