"""Glassformer's router: pages, sections, theme, logo. Nothing else."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import streamlit as st

from ui import plot, site, state

LOGO = Path(__file__).parent / "ui" / "assets" / "logo.svg"

st.set_page_config(page_title="Glassformer", page_icon=str(LOGO), layout="wide")
st.logo(str(LOGO), size="large")

sections: dict[str, list[st.Page]] = {}
for entry in site.built():
    page = st.Page(entry.path, title=entry.title, icon=entry.icon, url_path=entry.url or None, help=entry.help, default=not entry.url)
    sections.setdefault(entry.section, []).append(page)

chosen = st.navigation(sections)
if problem := plot.ensure_static():
    st.error(problem)
if find_spec("ui.training") is not None:
    from ui.training import sidebar_status

    with st.sidebar:
        sidebar_status()
chosen.run()
state.remember_owner()
