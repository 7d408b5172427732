"""Glassformer's router: pages, sections, theme, logo. Nothing else. `streamlit run app.py` serves it.

Streamlit imports this file once to serve it, and runs it again for everybody who looks at a page.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from ui import (
    asgi_limits,
    live,
    returns,
    server,
    session,
    site,
    widgets,
)
from ui.glossary_panel import draw_terms
from ui.operate import health, metrics
from ui.players import served
from ui.search import route as search_route
from ui.search.panel import draw_search
from ui.stage.draw import URL, draw_stage
from ui.status import sidebar_status
from ui.tour.bar import draw_tour

ASSETS = Path(__file__).parent / "ui" / "assets"
PAGES = "pages_of_the_menu"  # in the session
LOGO, WORDMARK = ASSETS / "logo.svg", ASSETS / "wordmark.svg"


def route() -> None:
    """Draws what stands on every page, and the page that was asked for."""
    st.html(f"<style>{(ASSETS / 'app.css').read_text('utf-8')}{site.icons()}</style>")
    if PAGES not in st.session_state:  # kept: each of them looks up its file
        st.session_state[PAGES] = _sections()
    chosen = st.navigation(st.session_state[PAGES], expanded=True)
    name = f"{chosen.title} · Glassformer" if chosen.url_path else "Glassformer"
    st.set_page_config(page_title=name, page_icon=str(LOGO), layout="wide")
    if chosen.url_path == URL:  # a phone has nothing but its question
        chosen.run()
        return
    st.logo(str(WORDMARK), size="large", icon_image=str(LOGO))
    # it may run the page again, which Streamlit takes for Home until there is a navigation
    session.drop_endless()
    widgets.arrived(chosen.url_path)
    draw_tour()
    with st.sidebar:
        sidebar_status()
        draw_terms()
    draw_search()
    draw_stage()
    watch = st.container(key="watch_place")
    chosen.run()
    with watch:  # it notes the view that was drawn
        returns.draw_watch()
    search_route.build_ahead()


def _sections() -> dict[str, list[st.Page]]:
    """Returns the pages by their section in the menu."""
    sections: dict[str, list[st.Page]] = {}
    for entry in site.built():
        # Without an icon: Streamlit would fetch it for the browser's tab from a server of fonts.
        page = st.Page(
            entry.path,
            title=entry.title,
            url_path=entry.url or None,
            help=entry.help,
            default=not entry.url,
        )
        sections.setdefault(entry.section, []).append(page)
    # where phones answer: in no section, and in no menu
    room = st.Page("pages/stage/room/page.py", title="Your answer", url_path=URL, visibility="hidden")
    sections["Stage"] = [room]
    return sections


if get_script_run_ctx(suppress_warning=True) is None:
    server.heed_settings()
    app = st.App(
        __file__,
        lifespan=server.lifespan,
        middleware=asgi_limits.middleware(),
        routes=[*health.routes(), *served.routes(), *live.routes(), *search_route.routes()],
        on_script_error=server.report_error,
    )
else:
    with metrics.page_timed():
        route()
