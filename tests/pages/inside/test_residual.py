"""The residual stream's page alone: every view with every option, every kind of model."""

from __future__ import annotations

import pytest

from pages.inside.residual import lens as residual
from tests.pages.helpers import opened, said
from tests.pages.inside.models import KINDS, run_of

PAGE = "inside/residual"


@pytest.mark.parametrize("fields", KINDS, ids=str)
def test_every_kind_of_model_is_drawn_or_explained(manager, fields):
    page = opened(PAGE, model=run_of(manager, **fields), measure="true")
    for view in ("lens", "push", "norms"):
        page.get_by_key("residual_view").set_value(view).run()
        page.session_state["measure"] = True
        page.run()
        assert not page.exception and not page.error, view
        told = said(page)
        if fields.get("wiring") == "none":
            assert "no residual stream" in told or "Nothing is added here" in told
        elif fields.get("wiring") == "post" and fields.get("norm") != "none" and view != "lens":
            assert "post-norm" in told


def test_a_click_names_a_cell_of_the_table():
    assert residual.place_of("0", (3, 5)) == (0, 0) and residual.place_of("14", (3, 5)) == (2, 4)
    for wrong in ("15", "-1", "[1]", "", "9" * 30, "²"):
        assert residual.place_of(wrong, (3, 5)) is None
