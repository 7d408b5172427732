"""No dead control: whatever a person can move in a view, as it opens, changes what is shown there."""

import inspect
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Block, Widget

from tests.pages.helpers import opened
from tests.pages.rooms import views
from ui import explain, site, widgets

FRAME = {"subject_model", "text", "text_example", "model_path", "more_models", *explain.FOLDS}
# of a sample that a fold compares with; of a run that a button begins
FOLDED = {"beam_seed", "ladder_seed"}
WIDGETS = (
    "slider", "select_slider", "selectbox", "toggle", "checkbox", "number_input", "button_group", "multiselect",
    "radio",
)  # fmt: skip


def controls(page: Any, view_key: str) -> list[Any]:
    found = [widget for kind in WIDGETS for widget in page.get(kind)]
    return [w for w in found if w.key not in FRAME | FOLDED | {view_key} and not w.disabled]


def shown(page: AppTest) -> list[bytes]:
    fixed = (one for one in page.main if not isinstance(one, Widget | Block))
    return [one.proto.SerializeToString() for one in fixed if one.proto is not None]


def note_options(monkeypatch: pytest.MonkeyPatch, found: dict[str, list[Any]]) -> None:
    """Notes in `found` the options that a page offers, by the key of the control."""

    def noted(real: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(real)

        def draw(*given: Any, **named: Any) -> Any:
            bound = signature.bind(*given, **named).arguments
            found[bound["key"]] = list(bound["options"])
            return real(*given, **named)

        return draw

    for name in ("select", "select_several", "slide_over"):
        monkeypatch.setattr(widgets, name, noted(getattr(widgets, name)))


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    note_options(monkeypatch, found)
    return found


def others(widget: Any, offered: dict[str, list[Any]]) -> list[Any]:
    kind, value = widget.type, widget.value
    if kind in ("toggle", "checkbox"):
        return [not value]
    if kind in ("slider", "number_input") and not hasattr(widget, "options"):
        low, high = widget.min, widget.max
        step = widget.step or 1
        near = value + step if high is None or value + step <= high else value - step
        return [edge for edge in (high, low, near) if edge is not None and edge != value][:3]
    held = value if isinstance(value, list) else [value]
    held = [*held, *map(str, held)]  # options that nobody noted are as they are written
    values = [option for option in offered.get(widget.key, widget.options) if option not in held]
    if kind == "multiselect" or (kind == "button_group" and isinstance(value, list)):
        return [[one] for one in values[:2]]
    return values[:3]


def dead(page: Any, key: str, offered: dict[str, list[Any]]) -> list[str]:
    """The controls of the open view that change nothing, whatever they are set to."""
    found = []
    for key_of in [widget.key for widget in controls(page, key)]:
        try:
            widget = page.get_by_key(key_of)
        except KeyError:
            continue  # another control took it away
        before, first = shown(page), widget.value
        acts = False
        for value in others(widget, offered):
            page.get_by_key(key_of).set_value(value)
            page.run()
            assert not page.exception, (key_of, value, page.exception)
            if acts := shown(page) != before:
                break
        if not acts and others(widget, offered):
            found.append(str(key_of))
        try:
            page.get_by_key(key_of).set_value(first)
            page.run()
        except KeyError:
            pass
    return found


def cases() -> Iterator[Any]:
    """Of every page a view in the fast tier."""
    for entry in site.built():
        if entry.url in ("", "train", "courses"):
            continue
        key, names = views(entry.url)
        drawn = Random(entry.url).choice(names or ("",))
        for name in names or ("",):
            marks = [] if name == drawn else [pytest.mark.exhaustive]
            yield pytest.param(entry, key, name, id=f"{entry.url}-{name}", marks=marks)


@pytest.mark.usefixtures("patient", "manager")
@pytest.mark.parametrize(("entry", "key", "view"), list(cases()))
def test_every_control_changes_what_is_shown(
    entry: site.Entry, key: str, view: str, offered: dict[str, list[Any]]
) -> None:
    found = dead(opened(entry.path, **({key: view} if key else {})), key, offered)
    assert not found, f"{entry.url} {view}"
