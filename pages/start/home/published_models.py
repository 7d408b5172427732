"""The view "Published models": the map of a configuration, with what its parts hold and cost."""

from __future__ import annotations

from typing import Any

import streamlit as st

from engine.config import ModelConfig
from engine.presets import Preset
from pages.start.home.map import draw_stacks, opened
from pages.start.home.map_drawing import model_map
from studies.costs.ledger import Ledger, ledger_of
from studies.costs.presets import PRESETS
from studies.costs.published_models import ENCODER_DECODERS
from studies.costs.shares import beyond_the_map, where
from ui import content, controls, memo, site, widgets
from ui.fields import recipe
from ui.page_frame import View, boundary

TEXT = content.beside(__file__)
DRAWN = PRESETS | ENCODER_DECODERS


def draw() -> None:
    preset = _choose()
    with boundary():
        _map(preset, ledger_of(preset))


def _choose() -> Preset:
    """Draws one line: the models as a list, the button that trains one, and a summary of the chosen one."""
    choice, action, said = st.columns([2, 1.2, 4.5], vertical_alignment="center", gap="small")
    titles = {name: preset.title.removesuffix(" (published)") for name, preset in DRAWN.items()}
    with choice:
        name = widgets.select(TEXT["model"], titles, "preset", kind="list", hidden=True)
    with action:
        _train(name)
    said.markdown(about(DRAWN[name], ledger_of(DRAWN[name])))
    return DRAWN[name]


def _train(name: str) -> None:
    target = name if DRAWN[name].trainable else next(iter(PRESETS))
    wanted = st.button(
        TEXT["train"],
        type="primary",
        key="train_now",
        width="stretch",
        help=TEXT("train hint", preset=target),
        on_click=_prepare_training,
        args=(target,),
    )
    if wanted:
        st.session_state["start_at_once"] = True
        # {}: without it, Streamlit refuses to leave a page that has bound widgets
        st.switch_page("pages/start/train/page.py", query_params={})


def _prepare_training(name: str) -> None:
    """Puts every control of the training page where the preset has it."""
    if st.session_state.get("preset") != name:
        st.session_state["preset"] = name
    controls.fill(recipe(PRESETS[name]))


def about(preset: Preset, ledger: Ledger) -> str:
    """Returns the preset in a line (Markdown)."""
    sentences = [
        TEXT(
            "about" if ledger.encoder is None else "about two stacks",
            title=content.Filled(preset.title),
            summary=content.Filled(preset.summary),
            total=ledger.total,
            share=where(ledger).blocks_share,
            encoder=ledger.encoder.n_layers if ledger.encoder else 0,
            decoder=ledger.config.n_layers,
        )
    ]
    if ledger.encoder is None and (beyond := beyond_the_map(ledger)):
        sentences.append(TEXT("beyond", beyond=beyond))
    if preset.source and not preset.trainable:
        sentences.append(TEXT("source", source=content.Filled(preset.source)))
    return " ".join(sentences)


def _map(preset: Preset, ledger: Ledger) -> None:
    """Draws the map of the preset; a part whose page is asked for is gone to."""
    if ledger.encoder is not None:
        draw_stacks(ledger, key="map_towers", alt=alt(preset, ledger))
        return
    pages = site.explanations()
    part = opened(_drawn(ledger.config, tuple(sorted(pages.items()))), "map", alt(preset, ledger))
    if part in pages:
        st.switch_page(pages[part], query_params={})


def alt(preset: Preset, ledger: Ledger) -> str:
    """Returns the map in words."""
    stacks = "two stacks" if ledger.encoder else "decoder" if ledger.config.causal else "encoder"
    return TEXT(
        f"alt {stacks}",
        title=preset.title,
        encoder=ledger.encoder.n_layers if ledger.encoder else 0,
        decoder=ledger.config.n_layers,
        total=ledger.total,
    )


@memo.measured(copied=True)
def _drawn(config: ModelConfig, pages: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    return model_map(config, dict(pages))


VIEW = View("published", TEXT, draw, needs_model=False)
