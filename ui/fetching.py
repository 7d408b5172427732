"""Models that are not there yet: fetched from Hugging Face when asked, or opened from a file here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from studies.weights.pretrained import sources
from studies.weights.pretrained.download import download
from ui import session
from ui.background_jobs import measured
from ui.text.markdown import safe

FILE = "file-"  # before the path of a model on this computer
CHOSEN, FETCHED = "subject_model", "fetched_model"


def file_name(name: str) -> str:
    return Path(name.removeprefix(FILE)).name


def path_of(name: str) -> Path:
    return Path(name.removeprefix(FILE))


def files(named: str | None) -> list[str]:
    """Returns the names of models that were opened from files here, and the one that a link names: on a
    server that opens files for who asks, and only if they are models.
    """
    if not session.profile().may_open_files:
        return []
    opened: list[str] = st.session_state.setdefault("opened_files", [])
    if named and named.startswith(FILE) and named not in opened and sources.find("", path_of(named)):
        opened.append(named)
    return opened


def more_models(prefix: str) -> None:
    """Draws below the choice what can be fetched, and a path; nothing where neither is allowed."""
    profile = session.profile()
    if not profile.max_download and not profile.may_open_files:
        return
    with st.expander("More published models", icon=":material/add:", key="more_models"):
        offers(tuple(sources.KNOWN), CHOSEN, prefix)
        if profile.may_open_files:
            # Streamlit's own: a path is not a value to keep in the link; what it opens is.
            st.text_input(
                "Or a model on this computer",
                key="model_path",
                placeholder="/path/to/model.gguf, or a folder with config.json",
                help="A GGUF file, or a folder in Hugging Face's layout (config.json, tokenizer.json,"
                " model.safetensors). No code in it is run.",
                on_change=_open,
            )
            if problem := st.session_state.pop("model_path_problem", None):
                st.caption(f":material/info: {safe(problem)}")


def offers(names: Sequence[str], chosen: str, prefix: str) -> None:
    """Offers to fetch those of `names` that are not on this server. A fetched model becomes the value of the
    widget `chosen`, under its name after `prefix`, once `take` puts it there.
    """
    for name in names if session.profile().max_download else ():
        if sources.find(name) is None:
            _offer(name, chosen, prefix)


def _offer(name: str, chosen: str, prefix: str) -> None:
    """One that can be fetched: its facts, the button, then its progress."""
    known = sources.KNOWN[name]
    words, button = st.columns([3, 2], vertical_alignment="center")
    words.markdown(f"{known.title}  \n:small[{known.made_by} · {known.licence} · about {known.megabytes} MB]")
    state_key = f"fetch_{name}"
    # Streamlit's own: it begins something and has no value.
    button.button("Download", key=f"{state_key}_button", on_click=_ask, args=(state_key,), width="stretch")
    if st.session_state.get(state_key):
        largest = session.profile().max_download
        if measured((state_key,), lambda: download(name, largest), f"Fetching {known.short}") is not None:
            st.session_state[FETCHED] = (chosen, prefix + name)
            st.session_state.pop(state_key)
            st.rerun()


def take(chosen: str) -> None:
    """Puts what was fetched for the widget `chosen` there: before it is drawn, as Streamlit wants it."""
    if st.session_state.get(FETCHED, ("",))[0] == chosen:
        st.session_state[chosen] = st.session_state.pop(FETCHED)[1]


def _ask(state_key: str) -> None:
    st.session_state[state_key] = True


def _open() -> None:
    """Takes a path over as the model to look at, or says why not."""
    typed = str(st.session_state["model_path"] or "").strip()
    if not typed:
        return
    path = sources.typed_path(typed)
    if sources.find("", path) is None:
        st.session_state["model_path_problem"] = sources.refusal(path) + "."
        return
    name = FILE + str(path)
    st.session_state.setdefault("opened_files", []).append(name)
    st.session_state[CHOSEN] = name
