"""A page with a race of three, for the tests of ui/race.py."""

from dataclasses import replace
from typing import Any

from engine.config import ModelConfig, TrainConfig
from runs.state import RunSpec
from studies.experiments.race_table import standing
from studies.experiments.stored_races import Stored

TEXT = "the quick brown fox jumps over the lazy dog. " * 12
V = len(set(TEXT))
MODEL = ModelConfig(V, context=8, d_model=16, n_layers=1, n_heads=2)
TRAIN = TrainConfig(steps=200, batch_size=2)


def specs(steps: int = 200) -> list[RunSpec]:
    models = {"small": MODEL, "wide": replace(MODEL, d_model=32), "deep": replace(MODEL, n_layers=2)}
    train = replace(TRAIN, steps=steps)
    return [RunSpec(model, train, "text", TEXT, name) for name, model in models.items()]


def script() -> None:
    import streamlit as st

    from tests.pages import race_page as here
    from ui.race import show_race

    steps = int(st.query_params.get("steps", "200"))
    stored = here.STORED[0] if here.STORED else None
    seen = show_race("demo", "Which is best?", here.specs(steps), say=here.say, stored=stored)
    st.session_state["seen"] = [view.id for view in seen]


STORED: list[Stored] = []


def say(views: Any) -> str:
    return f"{len(views)} runs, the first at **{standing(views[0]).loss:.2f}**"
