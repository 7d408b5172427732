"""Opening a page in Streamlit's AppTest, and reading what it shows."""

import json
import re
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from streamlit.testing.v1 import AppTest

from ui import content
from ui.site import ROOT

KINDS = ("error", "warning", "info", "success", "caption", "markdown", "subheader")
PATIENCE = 300  # seconds for a run, however busy the machine
FOLDS = {"measure": "true", "hand": "true", "words": "true"}  # the folds of a view, all of them open
DRAWN: dict[str, Any] = {}  # every figure that the running test has drawn: tests/pages/conftest.py fills it
# The patches of conftest.py end with each test, so a visit is made within one, and read by those after it


def text_of(title: str, question: str = "", **sections: str) -> content.Texts:
    """The text of a view that a test makes up, in a file of its own."""
    folder = Path(tempfile.mkdtemp())
    parts = [f"# {title}\n{question}", *(f"## {name}\n{said}" for name, said in sections.items())]
    (folder / "view.md").write_text("\n\n".join(parts), "utf-8")
    return content.Texts(folder / "view.py")


def path_of(place: str) -> str:
    """The file of a page, by its folder below pages/; that of a script, by its path below the project."""
    if place.endswith(".py"):
        return str(ROOT / place)  # an absolute path stays what it is
    return str(ROOT / "pages" / place / "page.py")


def opened(
    place: str | Callable[..., None], state: Mapping[str, Any] | None = None, /, *given: Any, **query: str
) -> AppTest:
    """A page that has run once for this browser, with `query` in its address. It must not raise.

    `place` is a folder below pages/ ("inside/attention"), a file, or a function that draws `given`. `state` is
    what the session holds before.
    """
    if callable(place):
        page = AppTest.from_function(place, args=given, default_timeout=PATIENCE)
    else:
        page = AppTest.from_file(path_of(place), default_timeout=PATIENCE)
    page.session_state["owner"] = "this-browser"
    for name, value in (state or {}).items():
        page.session_state[name] = value
    for name, value in query.items():
        page.query_params[name] = value
    return ran(page)


def ran(page: AppTest) -> AppTest:
    page.run()
    assert not page.exception, page.exception
    return page


def chosen(page: AppTest, key: str, value: Any) -> AppTest:
    """Gives a control its value. The page must not raise."""
    control: Any = page.get_by_key(key)
    control.set_value(value)
    return ran(page)


def clicked(page: AppTest, key: str) -> AppTest:
    page.button(key=key).click()
    return ran(page)


class Visit(NamedTuple):
    """What several tests read of one page. None of them may run it again."""

    page: AppTest
    said: str
    drawn: dict[str, Any]  # the figures that it drew, by key


@cache
def visit(place: str, /, **query: str) -> Visit:
    """Opens a page once for all tests of a module that ask for the same address; figures drawn before are
    forgotten.
    """
    DRAWN.clear()
    page = opened(place, **query)
    return Visit(page, unescaped(page), dict(DRAWN))


def lacking(text: str, *parts: str) -> list[str]:
    """Returns those parts that a text does not hold: all of them stand in the message of a failure."""
    return [part for part in parts if part not in text]


def said(page: AppTest, *kinds: str) -> str:
    """The texts of a page in Markdown, those of `kinds` or of KINDS, kind by kind."""
    return " | ".join(str(one.value) for kind in kinds or KINDS for one in getattr(page, kind))


def unescaped(page: AppTest, *kinds: str) -> str:
    return without_escapes(said(page, *kinds))


def without_escapes(text: str) -> str:
    r"""A text without Markdown's escapes, word joiners and the glossary's links.

    >>> without_escapes(r"\[a\] is a [head](#head)")
    '[a] is a head'
    """
    text = re.sub(r"\[([^\]]*)\]\(#[^)]*\)", r"\1", text)
    return re.sub(r"\\([^\w\s])", r"\1", text).replace("\u2060", "")


def sent(page: AppTest, component: str) -> dict[str, Any]:
    found = [e for e in page.get("bidi_component") if e.proto.component_name.endswith(component)]
    assert found, f"no {component} on this page"
    data: dict[str, Any] = json.loads(found[-1].proto.json)
    return data


def bars(page: AppTest) -> list[tuple[str, float]]:
    """What the browser follows with a bar: its words, and how far it is (ui.live)."""
    found = [
        json.loads(one.proto.json)
        for one in page.get("bidi_component")
        if one.proto.component_name.endswith("_follow")
    ]
    return [(one["text"], round(one["share"], 4)) for one in found if one["share"] is not None]


def sidebar(**query: str) -> AppTest:
    """The status of runs in the sidebar, by itself: its link leads out of this bare script, which raises."""

    def script() -> None:
        from ui.status import sidebar_status

        sidebar_status()

    page = AppTest.from_function(script, default_timeout=PATIENCE)
    page.session_state["owner"] = "this-browser"
    page.query_params.update(query)
    return page.run()


def in_address(page: AppTest, name: str) -> str | None:
    value = page.query_params.get(name)
    return value[0] if isinstance(value, list) else value


def metrics(page: AppTest) -> dict[str, str]:
    return {str(one.label): str(one.value) for one in page.metric}


def plain(text: str) -> float:
    """A number as it is written on a page.

    >>> plain("−1.5"), plain("1.2 × 10⁻⁷"), plain("12,345")
    (-1.5, 1.2e-07, 12345.0)
    """
    text = text.replace("−", "-").replace(",", "")
    mantissa, _, power = text.partition(" × 10")
    return (
        float(f"{mantissa}e{power.translate(str.maketrans('⁻⁰¹²³⁴⁵⁶⁷⁸⁹', '-0123456789'))}")
        if power
        else float(text)
    )
