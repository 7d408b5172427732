"""The table of patches: every row fits the pinned versions, and the app runs without any of them."""

import asyncio
import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from operator import attrgetter
from pathlib import Path

import pytest
from streamlit import config
from streamlit.components.v2.bidi_component.main import _make_trigger_id
from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.runtime import app_session
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.session_state import SessionState

from benchmarks.visitor import Visitor
from tests.aside import aside
from tests.browser.server import serve
from ui.operate import log, patches
from ui.operate.patches import TABLE, Patch
from ui.site import ROOT


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    yield
    patches.withdraw()


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.name == patches.__name__]


def test_every_row_fits_the_pinned_versions(caplog: pytest.LogCaptureFixture) -> None:
    patches.install()
    assert lines(caplog) == [] and all(patches.holds(one.name) for one in TABLE)
    assert patches.missing_controls() == []


def test_the_originals_come_back() -> None:
    before = [patches.check(one) for one in TABLE]
    patches.install()
    patches.install()
    replaced = [getattr(owner, name) is not original for owner, name, original in before]
    assert sum(replaced) >= sum(one.make is not None for one in TABLE) - 1, "one replaces False by False"
    patches.withdraw()
    assert [patches.check(one)[2] for one in TABLE] == [original for *_, original in before]


def test_a_widget_finds_in_the_state_what_it_found_in_a_copy_of_it() -> None:
    state = SessionState()
    state["chosen"], state["typed"] = 3, None
    copied = state.filtered_state
    patches.install()
    looked_up = state.filtered_state
    assert type(looked_up) is not type(copied)
    assert dict(looked_up) == copied == {"chosen": 3, "typed": None} and len(looked_up) == 2
    assert "typed" in looked_up and looked_up["chosen"] == 3 and looked_up.get("absent") is None


def test_a_tab_lets_go_of_the_widgets_of_other_pages() -> None:
    trigger = _make_trigger_id("player", "events")

    def after(active: set[str], fragments: list[str] | None) -> tuple[set[str], set[str]]:
        """The widgets whose callbacks are left, and those whose values are, of a page with two fragments."""
        state = SessionState()
        for name, fragment in {"page": None, "player": "a", trigger: "a", "dial": "a", "other": "b"}.items():
            about = WidgetMetadata(name, str, str, "string_value", callback=print, fragment_id=fragment)
            state.register_widget(about, None)
        widgets, all_of_them = state._new_widget_state, set(state._new_widget_state.widget_metadata)
        widgets.remove_stale_widgets(frozenset(active), fragments)
        assert set(widgets.widget_metadata) == all_of_them, "what a browser has sent by now may be about them"
        widgets.remove_stale_widgets(frozenset(active), fragments)
        return set(widgets.widget_metadata), set(widgets.states)

    cases: list[tuple[set[str], list[str] | None]] = [
        ({"page", "dial"}, None),
        ({"page", "player"}, None),
        ({"dial"}, ["a"]),
        ({"player"}, ["a"]),
        (set(), None),
    ]
    values = [
        {"page", "dial"},
        {"page", "player"},
        {"page", "dial", "other"},
        {"page", "player", "other"},
        set(),
    ]
    assert [after(*case) for case in cases] == [
        ({"page", "player", trigger, "dial", "other"}, each) for each in values
    ]
    patches.install()
    callbacks = [each | ({trigger} if "player" in each else set()) for each in values]
    assert [after(*case) for case in cases] == list(zip(callbacks, values, strict=True))


def theme() -> str:
    """The theme as a run sends it: that of all, and of light, dark and sidebar."""
    message = CustomThemeConfig()
    app_session._populate_theme_msg(message)
    for path in ("light", "dark", "sidebar", "light.sidebar", "dark.sidebar"):
        app_session._populate_theme_msg(attrgetter(path)(message), f"theme.{path}")
    return str(message)


def test_the_theme_is_read_once_and_sent_with_every_run(monkeypatch: pytest.MonkeyPatch) -> None:
    options = config.get_options_for_section
    read: list[str] = []
    monkeypatch.setattr(config, "get_options_for_section", lambda name: read.append(name) or options(name))
    config.get_config_options()
    original = theme()
    assert 'primary_color: "#' in original and len(read) == 6
    patches.install()
    assert [theme(), theme(), theme()] == [original] * 3 and len(read) == 12


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
@pytest.mark.parametrize("change", ["gone", "other source", "no module"])
def test_a_row_that_does_not_fit_stands_down_alone_and_says_what_is_lost(
    row: Patch, change: str, caplog: pytest.LogCaptureFixture
) -> None:
    module, _, name = row.symbol.partition(":")
    other = {
        "gone": replace(row, symbol=f"{row.symbol}_of_old"),
        "other source": replace(row, digest="0" * 16),
        "no module": replace(row, symbol=f"{module}_of_old:{name}"),
    }[change]
    patches.install([other if one is row else one for one in TABLE])
    (line,) = lines(caplog)
    assert row.name in line and row.lost in line
    assert [one.name for one in TABLE if not patches.holds(one.name)] == [row.name]
    assert patches.missing_controls() == [row.name] * row.control


def test_another_version_takes_every_row_of_its_package_away(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = patches.installed_version
    monkeypatch.setattr(
        patches, "installed_version", lambda name: "1.670.0" if name == "streamlit" else real(name)
    )
    with caplog.at_level(logging.WARNING):
        patches.install()
    assert len(lines(caplog)) == sum(one.package.startswith("streamlit") for one in TABLE)
    assert all("streamlit is 1.670.0" in line for line in lines(caplog))
    assert patches.holds(patches.MESSAGES) and patches.missing_controls() == [patches.UPLOADS]


def test_a_log_that_tells_few_of_a_kind_tells_of_every_row(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(log, "MOST", 1)
    monkeypatch.setattr(patches, "installed_version", lambda name: "99.0")
    monkeypatch.setattr(caplog.handler, "filters", [log.Brief()])
    patches.install()
    assert len(lines(caplog)) == len(TABLE)


LATER = "from ui.operate import patches; patches.installed_version = lambda _: '99.0'; "


@pytest.mark.exhaustive
def test_on_newer_versions_the_app_starts_shows_pages_and_trains(tmp_path: Path) -> None:
    async def play(url: str) -> None:
        visitor = Visitor(url)
        await visitor.enter()
        for page in ("attention", "tokens", ""):
            await visitor.visit(page)
            assert visitor.page.elements > 5 and not visitor.page.exceptions, page
        await visitor.visit("train", "steps=10")
        await visitor.press("train")
        async with asyncio.timeout(120):
            while not any(": finished]" in said for said in visitor.page.said):
                await visitor.look(1.0)
                assert not visitor.page.exceptions
        await visitor.leave()

    with serve(tmp_path, before=LATER) as url:
        aside(play(url))
    log = (tmp_path / "server.log").read_text()
    assert all(row.lost in log for row in TABLE) and "Traceback" not in log


def test_a_draft_that_a_row_names_is_there() -> None:
    headings = [
        line[3:] for line in (ROOT / "docs/upstream.md").read_text("utf-8").splitlines() if line[:3] == "## "
    ]
    anchors = {"docs/upstream.md#" + re.sub(r"[^a-z0-9]+", "-", heading.lower()) for heading in headings}
    named = {row.upstream for row in TABLE if row.upstream.startswith("docs/")}
    assert named and named <= anchors
