"""Strangers who send too much over the websocket, to a real server."""

import asyncio
import struct
from collections.abc import Iterator
from typing import Any

import pytest
import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg

from benchmarks.visitor import Visitor
from runs.profiles import PROFILES
from tests.aside import aside
from tests.browser.server import _free_port, serve
from tests.operating import metric

pytestmark = pytest.mark.exhaustive

MOST = PROFILES["small"].max_message_mb * 1_000_000
STRANGERS = 20


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    patch, operator = pytest.MonkeyPatch(), _free_port()
    patch.setenv("GLASSFORMER_METRICS", str(operator))
    with serve(tmp_path_factory.mktemp("home"), profile="small") as found:
        yield found, operator
    patch.undo()


def connect(url: str) -> Any:
    return websockets.connect(
        url.replace("http", "ws", 1) + "/_stcore/stream",
        subprotocols=[websockets.Subprotocol("streamlit")],
        max_size=None,
    )


async def refused(socket: Any) -> int:
    async with asyncio.timeout(20):
        while True:
            try:
                await socket.recv()
            except websockets.ConnectionClosed as closed:
                return closed.rcvd.code if closed.rcvd else 0


def test_a_long_message_is_refused_at_its_head_and_the_others_go_on(served: tuple[str, int]) -> None:
    url, operator = served

    def held() -> float:
        return metric(operator, "glassformer_server_bytes")

    async def play() -> None:
        visitor = Visitor(url)
        await visitor.enter()
        await visitor.visit("train")
        before = held()
        async with connect(url) as one:
            # the head of a message (RFC 6455, 5.2: the last piece, bytes, masked, a length of 64 bits), no more
            one.transport.write(b"\x82\xff" + struct.pack(">Q", 190_000_000) + b"mask")
            assert await refused(one) == 1009
        for _ in range(STRANGERS):
            async with connect(url) as one:
                one.transport.write(b"\x82\xff" + struct.pack(">Q", 190_000_000) + b"mask")
                one.transport.write(bytes(10_000_000))
                with pytest.raises(websockets.ConnectionClosed):
                    await asyncio.wait_for(one.wait_closed(), 20)
                    await one.recv()
        assert held() - before < STRANGERS / 2 * 10_000_000
        await visitor.visit("train")
        assert visitor.page.elements > 5 and not visitor.page.exceptions
        await visitor.leave()

    aside(play())


@pytest.mark.parametrize(("over", "taken"), [(-1000, True), (1000, False)])
def test_the_limit_is_that_of_the_profile(served: tuple[str, int], over: int, taken: bool) -> None:
    message = BackMsg()
    value = message.rerun_script.widget_states.widgets.add()
    value.id, value.string_value = "nothing", "x" * (MOST + over)

    async def play() -> None:
        async with connect(served[0]) as one:
            await one.send(message.SerializeToString())
            if taken:
                await asyncio.wait_for(one.recv(), 20)
            else:
                assert await refused(one) == 1009

    aside(play())
