"""A browser's half of a conversation with the server, without a browser: Streamlit's own messages over a websocket.
It keeps what a page holds, moves its controls, and follows what goes on by the server's own route (ui.live).
"""

from __future__ import annotations

import asyncio
import json
import random
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from typing import Any

import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates

CHOICES = ("slider", "selectbox", "radio", "checkbox", "button_group", "number_input")
PATIENCE = 60.0  # seconds for one answer
GONE = 4.0  # seconds in which the server begins with a fragment that is there
MAX_MESSAGE = 64 * 2**20  # bytes
SAID = 300  # sentences of a page that are remembered


class Broken(Exception):
    """The server did not answer, or ended the conversation."""


class Gone(Broken):
    """The server does not begin with a fragment, though it hears: the fragment is not there any more."""


@dataclass
class Page:
    """What the last answers drew: controls by id, the fragments that these are parts of, and what is followed."""

    controls: dict[str, tuple[str, Any]] = field(default_factory=dict)
    parts: dict[str, str] = field(default_factory=dict)  # control -> its fragment
    followed: dict[str, dict[str, Any]] = field(default_factory=dict)  # control -> what it was sent
    exceptions: list[str] = field(default_factory=list)
    said: deque[str] = field(default_factory=lambda: deque(maxlen=SAID))  # texts and notes, the last ones
    elements: int = 0


class Visitor:
    """One tab. `address` is that of the server, such as http://127.0.0.1:8501."""

    def __init__(self, address: str, seed: int = 0, cookie: str = "") -> None:
        self._address, self._session = address.rstrip("/"), ""
        self._offered: list[Any] = []  # places for a file, as the server named them
        self._stream = self._address.replace("http", "ws", 1) + "/_stcore/stream"
        self._random, self._cookie = random.Random(seed), cookie
        self._socket: Any = None
        self._cached: dict[str, ForwardMsg] = {}
        self._values: dict[str, WidgetState] = {}
        self._place = ""  # the page that stands, in the server's words: what runs again, runs there
        self._asked = ""  # the fragment of the last question; none: the page
        self._began: set[str] = set()  # runs of it, or of the whole page, since the question
        self._ended = self._heard = False
        self.page, self.name, self.query = Page(), "", ""
        self.received = 0  # bytes
        self.drawn = 0  # messages that draw something
        self.moved = ""  # the last control that was moved, and where to

    async def enter(self) -> None:
        """Opens the conversation. Raises Broken."""
        headers = {"Cookie": f"glassformer={self._cookie}"} if self._cookie else {}
        try:
            self._socket = await websockets.connect(
                self._stream,
                subprotocols=[websockets.Subprotocol("streamlit")],
                additional_headers=headers,
                max_size=MAX_MESSAGE,
                open_timeout=PATIENCE,
            )
        except (OSError, websockets.WebSocketException, TimeoutError) as error:
            raise Broken(f"no connection: {error}") from error

    async def leave(self, abruptly: bool = False) -> None:
        """Closes the tab; `abruptly` without a word, as a train in a tunnel does."""
        if self._socket is not None:
            if abruptly:
                self._socket.transport.abort()
            else:
                await self._socket.close()

    async def visit(self, name: str, query: str = "") -> float:
        """Opens a page by its address; seconds until it stands."""
        self.name, self.query, self.page, self._values, self._place = name, query, Page(), {}, ""
        return await self._ask()

    async def move(self) -> float | None:
        """Moves one control, chosen by chance; seconds until the page, or the fragment that it is part of, stands
        again. None where there is none.
        """
        movable = [name for name, (kind, _) in self.page.controls.items() if kind in CHOICES]
        self._random.shuffle(movable)
        for name in movable:
            if name in self.page.controls and (value := self.another(name)) is not None:
                try:
                    return await self.set(name, value)
                except Gone:
                    self._drop([self.page.parts.get(name, "")])
        return None

    async def set(self, name: str, value: WidgetState) -> float:
        """Gives a control a value; seconds until the page, or the fragment that it is part of, stands again. Raises
        Broken, and Gone.
        """
        value.id = name
        self._values[name] = value
        self.moved = f"{name.rpartition('-')[2]} {' '.join(str(value).split()[2:])}"[:100]
        return await self._ask(self.page.parts.get(name, ""))

    @property
    def bars(self) -> list[str]:
        """The bars of measurements that stand on the page."""
        return [name for name in self.page.followed if "-live_job_" in name]

    async def result(self, patience: float) -> float:
        """Follows what is measured until no bar stands on the page, as long as patience lasts. Seconds that it took."""
        begun = time.perf_counter()
        while self.bars and time.perf_counter() - begun < patience:
            await asyncio.sleep(min(self.page.followed[name]["every"] for name in self.bars))
            for name in self.bars:
                if name in self.page.followed and await self._changed(self.page.followed[name]):
                    await self._again(name)
        return time.perf_counter() - begun

    async def press(self, key: str) -> float:
        """Presses the button with this key. Raises Broken where there is none, or where it is grey."""
        for name, (kind, proto) in self.page.controls.items():
            if kind == "button" and name.endswith(f"-{key}") and not proto.disabled:
                self._values[name] = WidgetState(id=name, trigger_value=True)
                try:
                    return await self._ask(self.page.parts.get(name, ""))
                finally:
                    del self._values[name]
        raise Broken(f"there is no button {key!r} to press on the page {self.name!r}")

    async def upload(self, name: str, data: bytes) -> float:
        """Gives a file to the page's first uploader, as a browser does: asks where to, sends it there, and tells
        the page. Raises Broken where there is no uploader, or where the file is refused.
        """
        places = [each for each, (kind, _) in self.page.controls.items() if kind == "file_uploader"]
        if not places:
            raise Broken(f"there is no uploader on the page {self.name!r}")
        message = BackMsg()
        message.file_urls_request.request_id = message.file_urls_request.session_id = self._session
        message.file_urls_request.file_names.append(name)
        self._offered = []
        try:
            async with asyncio.timeout(PATIENCE):
                await self._socket.send(message.SerializeToString())
                while not self._offered:
                    self._take_in(await self._socket.recv())
            status = await asyncio.to_thread(_put, self._address, self._offered[0].upload_url, name, data)
        except (OSError, websockets.WebSocketException, TimeoutError) as error:
            raise Broken(
                f"the upload of {len(data):,} bytes failed: {type(error).__name__} {error}"
            ) from error
        if status != 204:
            raise Broken(f"the upload of {len(data):,} bytes was answered with {status}")
        told = WidgetState(id=places[0])
        info = told.file_uploader_state_value.uploaded_file_info.add()
        info.name, info.size, info.file_id = name, len(data), self._offered[0].file_id
        info.file_urls.CopyFrom(self._offered[0])
        self._values[places[0]] = told
        return await self._ask()

    async def look(self, seconds: float) -> int:
        """Sits before the page for a while and follows what goes on; a page, or a part of one, whose state is
        another is asked for. Returns how often it was.
        """
        until, asked, due = time.monotonic() + seconds, 0, dict[str, float]()
        while True:
            now = time.monotonic()
            due = {name: due.get(name, now + one["every"]) for name, one in self.page.followed.items()}
            name = min(due, key=lambda one: due[one], default="")
            if not name or due[name] >= until:
                break
            await asyncio.sleep(max(0.0, due.pop(name) - now))
            if await self._changed(self.page.followed[name]):
                asked += await self._again(name)
        await asyncio.sleep(max(0.0, until - time.monotonic()))
        return asked

    async def _changed(self, one: dict[str, Any]) -> bool:
        """Whether the page is to be drawn again, by what the route answers. Raises Broken."""
        address = f"{self._address}/live/{one['token']}?since={one['version']}"
        status, told = await asyncio.to_thread(_get, address, self._cookie)
        self.received += len(told)
        if status == 200:
            answer = json.loads(told)
            one["version"] = answer["version"]
            return bool(answer["state"] != one["state"])
        if status not in (204, 404):
            raise Broken(f"what goes on at {self.name!r} was answered with {status}")
        return status == 404

    async def _again(self, name: str) -> bool:
        """Asks for what a followed thing stands in: whether it was still there."""
        whole = self.page.followed.pop(name).get("whole")
        try:
            await self._ask("" if whole else self.page.parts.get(name, ""))
        except Gone:
            return False
        return True

    async def _ask(self, fragment: str = "") -> float:
        """Asks for the page, or for a fragment of it, and takes in the answer. Seconds until it was whole.
        Raises Broken, and Gone.
        """
        message = BackMsg()
        wanted = message.rerun_script
        wanted.query_string, wanted.page_script_hash = self.query, self._place
        wanted.page_name = "" if self._place else self.name
        wanted.widget_states.CopyFrom(WidgetStates(widgets=self._values.values()))
        wanted.fragment_id = fragment
        try:
            await self._catch_up()
            wanted.cached_message_hashes.extend(self._cached)
            self._asked, self._began, self._ended = fragment, set(), False
            begun = time.perf_counter()
            await self._socket.send(message.SerializeToString())
            if fragment and not await self._begins():
                raise Gone(f"no answer about a fragment of {self.name!r}")
            async with asyncio.timeout(PATIENCE):
                while not self._ended:
                    self._take_in(await self._socket.recv())
        except (OSError, websockets.WebSocketException, TimeoutError) as error:
            raise Broken(f"no answer to {self.name!r}: {type(error).__name__} {error}") from error
        return time.perf_counter() - begun

    async def _catch_up(self) -> None:
        """Takes in what came unasked: the end of it is no answer to what is asked next."""
        with suppress(TimeoutError):
            async with asyncio.timeout(0):
                while True:
                    self._take_in(await self._socket.recv())

    async def _begins(self) -> bool:
        """Whether the server begins with a fragment soon. A busy server hears late: it has time from when it did."""
        for last in (False, True):
            with suppress(TimeoutError):
                async with asyncio.timeout(GONE):
                    while not self._began:
                        self._take_in(await self._socket.recv())
            if self._began or last:
                break
            beat, self._heard = BackMsg(app_heartbeat=True), False
            await self._socket.send(beat.SerializeToString())
            async with asyncio.timeout(PATIENCE):
                while not (self._heard or self._began):
                    self._take_in(await self._socket.recv())
        return bool(self._began)

    def _take_in(self, data: bytes | str) -> None:
        """One message becomes part of the page."""
        assert isinstance(data, bytes)
        self.received += len(data)
        message = ForwardMsg.FromString(data)
        kind = message.WhichOneof("type")
        if kind == "ref_hash":
            message = self._cached[message.ref_hash]
            kind = message.WhichOneof("type")
        elif message.metadata.cacheable:
            self._cached[message.hash] = message
        self.drawn += kind == "delta"
        if kind in ("new_session", "script_finished"):
            self._follow(message)
        elif kind == "navigation":
            self._place = message.navigation.page_script_hash
        elif kind == "heartbeat_ack":
            self._heard = True
        elif kind == "file_urls_response":
            self._offered = list(message.file_urls_response.file_urls)
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            self._draw(message.delta.new_element, message.delta.fragment_id)
        elif kind == "page_info_changed":
            self.query = message.page_info_changed.query_string

    def _follow(self, message: ForwardMsg) -> None:
        """A run begins or ends. It is the answer where it began after the question, is of what was asked for or of
        the whole page, and was not cut short for another.
        """
        run = message.metadata.run
        if message.WhichOneof("type") == "script_finished":
            whole = message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN
            self._ended = self._ended or (whole and run.script_run_id in self._began)
            return
        self._session = message.new_session.initialize.session_id or self._session
        if not run.fragment_ids or self._asked in run.fragment_ids:
            self._began.add(run.script_run_id)
        self._drop(run.fragment_ids)
        if not run.fragment_ids:
            self.page = Page()

    def _drop(self, fragments: Iterable[str]) -> None:
        """Forgets the controls of fragments that are drawn anew, or no more."""
        for fragment in fragments:
            for name in [name for name, part in self.page.parts.items() if part == fragment]:
                del self.page.parts[name], self.page.controls[name]
                self.page.followed.pop(name, None)

    def _draw(self, element: Any, fragment: str) -> None:
        kind = element.WhichOneof("type")
        self.page.elements += 1
        if kind == "exception":
            self.page.exceptions.append(f"{element.exception.type}: {element.exception.message}"[:300])
        elif kind in ("markdown", "alert"):
            self.page.said.append(getattr(element, kind).body)
        elif (name := getattr(getattr(element, kind or "", None), "id", "")) and isinstance(name, str):
            self.page.controls[name] = (kind, getattr(element, kind))
            if fragment:
                self.page.parts[name] = fragment
            if kind == "bidi_component" and element.bidi_component.component_name.endswith("_follow"):
                self.page.followed[name] = json.loads(element.bidi_component.json)

    def another(self, name: str) -> WidgetState | None:
        """A value, chosen by chance, that a control may have. None where it is grey, or of another kind."""
        kind, control = self.page.controls[name]
        if kind not in CHOICES or control.disabled:
            return None
        found = WidgetState()
        if kind == "slider" and control.options:
            found.string_array_value.data.extend(
                [self._random.choice(control.options)] * len(control.default)
            )
        elif kind == "slider" or (kind == "number_input" and control.has_min and control.has_max):
            steps = int((control.max - control.min) / (control.step or 1))
            value = control.min + (control.step or 1) * self._random.randint(0, max(0, steps))
            if kind == "slider":
                found.double_array_value.data.extend([value] * len(control.default))
            else:
                found.double_value = value
        elif kind == "checkbox":
            found.bool_value = self._random.random() < 0.5
        elif kind in ("selectbox", "radio") and control.options:
            found.string_value = self._random.choice(control.options)
        elif kind == "button_group" and control.options:
            found.string_array_value.data.append(self._random.choice(control.options).content)
        else:
            return None
        return found


def _get(address: str, cookie: str) -> tuple[int, bytes]:
    """(status, body) of what goes on."""
    request = urllib.request.Request(address, headers={"Cookie": f"glassformer={cookie}"} if cookie else {})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return int(answer.status), answer.read()
    except urllib.error.HTTPError as error:
        return error.code, b""


def _put(address: str, place: str, name: str, data: bytes) -> int:
    """Sends a file as a browser's form does, with the token against forged forms. The status of the answer."""
    with urllib.request.urlopen(f"{address}/_stcore/health", timeout=PATIENCE) as answer:
        jar = SimpleCookie("; ".join(answer.headers.get_all("Set-Cookie") or []))
    border = "glassformer-visitor"
    head = f'--{border}\r\nContent-Disposition: form-data; name="{name}"; filename="{name}"\r\n\r\n'
    headers = {"Content-Type": f"multipart/form-data; boundary={border}"}
    if "_streamlit_xsrf" in jar:
        token = jar["_streamlit_xsrf"].value
        headers |= {"X-Xsrftoken": token, "Cookie": f"_streamlit_xsrf={token}"}
    body = head.encode() + data + f"\r\n--{border}--\r\n".encode()
    request = urllib.request.Request(address + "/" + place.lstrip("/"), body, headers, method="PUT")
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
