"""Every page that looks inside a model draws every kind of one, or says why not."""

from typing import Any

import pytest

from tests.pages.helpers import FOLDS, chosen, opened, said
from tests.pages.inside.models import KINDS, run_of
from tests.pages.stage import StageManager
from ui import explain

VIEWS = {
    "attention": ("heads", "steps", "switches", "mask", "shared-keys"),
    "residual": ("lens", "push", "norms"),
    "feedforward": ("neurons", "functions", "dropout"),
    "circuits": ("induction", "sinks", "fact", "steering"),
}
COMPARE = ("attention", "shared_qk", "sinks", "gated", "mla")  # queries with keys
ASKED = {"fact_question": "own", "fact_prompt": "ab c", "steering_preset": "question", "text": "abc abca bc"}


def stated(room: str, view: str, fields: dict[str, Any]) -> tuple[str, ...]:
    """One of these is said there."""
    mixer, causal = fields.get("mixer", "attention"), fields.get("causal", True)
    if room == "attention":
        if view in ("steps", "shared-keys") and mixer not in COMPARE:
            return ("no queries and keys",)
        if view == "mask" and not causal:
            return ("fills in masked tokens",)
        return ("has no mixer",) if mixer == "none" else ("What you see",)
    if room == "residual" and fields.get("wiring") == "none":
        return "no residual stream", "Nothing is added here"
    if room == "residual" and view != "lens" and fields.get("wiring") == "post":
        return ("post-norm",) if fields.get("norm") != "none" else ("",)
    if room == "feedforward" and view == "neurons":
        return ("has no feed-forward networks",) if fields.get("ffn") == "none" else ("tokens read",)
    if view == "steering":
        return ("changes by a factor of **",) if causal else ("fills in masked tokens",)
    return ("",)


@pytest.mark.parametrize("fields", KINDS, ids=str)
@pytest.mark.parametrize("room", VIEWS)
def test_every_view_draws_every_kind_of_model(
    room: str, fields: dict[str, Any], manager: StageManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explain, "new_view", lambda name: None)  # folds stay open from view to view
    run = run_of(manager, "text", vocab_size=100, **fields)
    page = opened(f"inside/{room}", model=run, **{f"{room}_view": VIEWS[room][0]}, **ASKED, **FOLDS)
    for view in VIEWS[room]:
        if view != VIEWS[room][0]:
            for fold in FOLDS:
                page.session_state[fold] = True
            chosen(page, f"{room}_view", view)
        assert not page.error, view
        assert all(page.session_state[fold] for fold in FOLDS if fold in page.session_state), view
        told = said(page)
        assert any(words in told for words in stated(room, view, fields)), (view, told)
