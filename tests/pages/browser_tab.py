"""A browser's tab over Streamlit's AppTest of app.py, with what a browser does and AppTest does not: its address, which
bound controls write into, the menu, links, addresses that are gone to, Back, and what components send.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qs, parse_qsl, urlencode

from streamlit.components.v2.bidi_component.main import _make_trigger_id
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime.scriptrunner import RerunData
from streamlit.runtime.state.query_params import QueryParams
from streamlit.testing.v1 import AppTest, local_script_runner
from streamlit.testing.v1.element_tree import Block, Element, Widget
from streamlit.util import calc_hash

from tests.pages.helpers import PATIENCE
from ui import site

# Of a control's message: what its value says better, and what a session numbers anew.
UNSAID = (
    "id",
    "default",
    "value",
    "set_value",
    "raw_values",
    "query_param_key",
    "raw_value",
    "default_index",
    "url",
    "deferred_file_id",
)
ONCE = ("another_model",)  # the container of a notice that stands for one run
# A tree of written tokens, routes of the view, the name of what a tab follows (`ui.live`).
OF_A_SESSION = re.compile(r'"(session|saves|frames)": "[^"]*"|"token": "[\w-]{24}"')
OPENED = ("expander", "popover", "form")  # blocks that say something; others only lay out


class Tab:
    """One tab and its session. `page` is the address of the page ("" is Home), `query` what follows it."""

    def __init__(self, address: str = "") -> None:
        self.app = AppTest.from_file(site.ROOT / "app.py", default_timeout=PATIENCE)
        self.app.session_state["owner"] = "this-browser"
        self.history: list[str] = []
        self.page = ""
        page, _, query = address.partition("?")
        if page:  # its hash is told only by a navigation; that of Home is its file's
            self.app._page_hash = calc_hash(page)
        self.app.query_params = parse_qs(query, keep_blank_values=True)
        self._ran(WidgetStates())
        self.history = [self.address]

    @property
    def query(self) -> dict[str, list[str]]:
        """The values in the address, by their names."""
        return {n: v if isinstance(v, list) else [v] for n, v in self.app.query_params.items()}

    @property
    def address(self) -> str:
        return self.page + (f"?{urlencode(self.query, doseq=True)}" if self.query else "")

    def menu(self, page: str, **query: str) -> None:
        """Clicks an entry of the menu, or a link of Streamlit's with a `query`: the address keeps what bound controls
        say, and the server takes out what is another page's.
        """
        controls = (one for one in self.app._tree if isinstance(one, Widget))
        bound = {getattr(one.proto, "query_param_key", "") for one in controls}
        stays = page == self.page and not query
        kept = {name: value for name, value in self.query.items() if stays or name in bound}
        self._goes(page, kept | {name: [value] for name, value in query.items()})

    def visit(self, address: str) -> None:
        """Goes to an address as a course, or Back, does: history.js."""
        self.history.append(address)
        self._travels(address)

    def back(self) -> None:
        self.history.pop()
        self._travels(self.history[-1])

    def reload(self) -> Tab:
        """Returns another tab, of a session of its own, at this address."""
        return Tab(self.address)

    def set(self, key: str, value: Any) -> None:
        """Gives a control of Streamlit's its value, as a hand does; a bound one writes it into the address."""
        control: Any = self.app.get_by_key(key)
        control.set_value(value)
        self._writes(control)
        self._acts(self.app._tree.get_widget_states())

    def click(self, key: str) -> None:
        self.app.button(key=key).click()
        self._acts(self.app._tree.get_widget_states())

    def again(self) -> None:
        """Runs the page again, as what follows a measurement asks for."""
        self._ran(self.app._tree.get_widget_states())

    def send(self, key: str, name: str, value: Any) -> None:
        """Has a component tell of an event."""
        (found,) = (one for one in self.components() if one.key == key)
        states = self.app._tree.get_widget_states()
        event = _make_trigger_id(found.proto.id, "events")
        told = json.dumps([{"event": name, "value": value}])
        states.widgets.append(WidgetState(id=event, json_trigger_value=told))
        self._acts(states)

    def components(self) -> list[Any]:
        return list(self.app.get("bidi_component"))

    def links(self) -> list[tuple[str, dict[str, str]]]:
        """The links of Streamlit's on the page: (page, what their address says)."""
        pages = {name: page for page, name in self._hashes.items()}
        found = (one.proto for one in self.app.get("page_link"))
        return [(pages[one.page_script_hash], dict(parse_qsl(one.query_string))) for one in found]

    def screen(self) -> dict[str, str]:
        """What the page sends to the browser, element by element, in the order of the page, and its address."""
        query = sorted((name, [number(text) for text in texts]) for name, texts in self.query.items())
        said = {"address": f"{self.page} {query}"}
        shown = (one for one in elements(self.app.main) if not of_the_visitor(one))
        for place, one in enumerate(shown):
            said[f"{place} {one.type} {getattr(one, 'key', None) or ''}"] = told(one)
        return said

    def _acts(self, states: WidgetStates) -> None:
        """A step on a page is one entry of the history; one that the page answers by another, one more."""
        before = self.page
        self._ran(states)
        self.history[-1:] = [self.address] if self.page == before else [self.history[-1], self.address]

    def _goes(self, page: str, query: Mapping[str, list[str]]) -> None:
        self.app._page_hash, self.app.query_params = self._hashes[page], dict(query)
        self._ran(WidgetStates())
        self.history.append(self.address)

    def _travels(self, address: str) -> None:
        page, _, query = address.partition("?")
        self.app._page_hash = self._hashes[page]
        self.app.query_params = parse_qs(query, keep_blank_values=True)
        with patch.object(local_script_runner, "RerunData", partial(RerunData, is_history_navigation=True)):
            self._ran(WidgetStates())
        self.history[-1] = self.address

    def _writes(self, control: Any) -> None:
        name = getattr(control.proto, "query_param_key", "")
        if not name:
            return
        metadata = self.app._session_state._state._new_widget_state.widget_metadata[control.proto.id]
        params = QueryParams()
        with patch.object(QueryParams, "_send_query_param_msg"):
            params.set_corrected_value(name, metadata.serializer(control.value), metadata.value_type)
        self.app.query_params.pop(name, None)
        # As it is sent: an option may have been given as it is written.
        if metadata.serializer(control.value) != metadata.serializer(metadata.deserializer(None)):
            self.app.query_params[name] = params._query_params[name] or [""]

    def _ran(self, states: WidgetStates) -> None:
        self.app._run(states)
        assert not self.app.exception, self.app.exception
        self.app._page_hash = self.app._finished_page_script_hash
        pages = self.app._registered_pages
        self.page = str(pages[self.app._page_hash]["url_pathname"])
        self._hashes = {str(about["url_pathname"]): name for name, about in pages.items()}


def elements(block: Block) -> Iterator[Element]:
    for child in block.children.values():
        if not isinstance(child, Block):
            yield child
        elif getattr(child.proto, "id", "").rpartition("-")[2] not in ONCE:
            if child.type in OPENED:
                yield child
            yield from elements(child)


def number(text: str) -> float | str:
    """A number as such: the browser writes 5 where the server writes 5.0."""
    try:
        return float(text)
    except ValueError:
        return text


def of_the_visitor(one: Any) -> bool:
    """True for what is about the session and not about the page: the last views, in the search; what follows a
    map until all is known of it.
    """
    said = one.proto.component_name if one.type == "bidi_component" else ""
    return said.endswith(("_search", "_livemap_further"))


def told(one: Any) -> str:
    if one.proto is None:
        return ""
    if one.type == "bidi_component":
        said = one.proto.json or one.proto.bytes.decode()
        return f"{one.proto.component_name} {OF_A_SESSION.sub('', said)}"
    proto = type(one.proto)()
    proto.CopyFrom(one.proto)
    for name in UNSAID:
        if name in proto.DESCRIPTOR.fields_by_name:
            proto.ClearField(name)
    value = f" {one.value!r}" if isinstance(one, Widget) else ""
    return f"{proto}{value}"
