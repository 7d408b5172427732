"""What the tests of the Reference page share."""

from __future__ import annotations

from typing import Any

from streamlit.testing.v1 import AppTest

from engine.config import ModelConfig, TrainConfig
from engine.service.state import RunSpec
from tests.pages import helpers
from tests.pages.stage import StageManager, view_of

TINY: dict[str, Any] = {"vocab_size": 90, "context": 64, "d_model": 16, "n_layers": 2, "n_heads": 2}


def opened(view: str = "dice", **query: str) -> AppTest:
    page = helpers.opened("models/reference", reference_view=view, **helpers.FOLDS, **query)
    assert not page.error, page.error
    return page


def said(page: AppTest) -> str:
    """Its texts, and the cells of its tables."""
    cells = [str(cell) for table in page.table for row in table.value.to_numpy() for cell in row]
    return " | ".join([helpers.said(page), *cells])


def run(manager: StageManager, name: str, **fields: Any) -> str:
    """A run of a model in the bar."""
    config = ModelConfig(**TINY | fields)
    spec = RunSpec(config, TrainConfig(steps=40), "text", "abc " * 20, name=f"my {name}")
    manager.views[name] = view_of(spec, name, "finished", 40, snapshots=(0, 40))
    return f"run-{name}"
