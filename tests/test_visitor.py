"""The visitor of the tests and benchmarks takes no other answer for its own, and asks as a browser does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from benchmarks import visitor as visitors
from benchmarks.visitor import Broken, Visitor
from tests.aside import aside

pytestmark = pytest.mark.exhaustive

DONE, EARLY = ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_EARLY_FOR_RERUN
FRAGMENT = ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY


class Server:
    """The other end: what `answer` puts into `sends` for each question comes, in that order."""

    def __init__(self, answer: Callable[[Server, BackMsg], None]) -> None:
        self._answer, self.asked = answer, []  # type: ignore[var-annotated]
        self.sends: asyncio.Queue[bytes] = asyncio.Queue()

    async def send(self, data: bytes) -> None:
        question = BackMsg.FromString(data)
        self.asked.append(question)
        self._answer(self, question)

    async def recv(self) -> bytes:
        return await self.sends.get()

    def begins(self, run: str, *fragments: str) -> None:
        message = ForwardMsg()
        message.new_session.name = run
        self._told(message, run, fragments)

    def ends(self, run: str, how: Any, *fragments: str) -> None:
        self._told(ForwardMsg(script_finished=how), run, fragments)

    def says(self, text: str) -> None:
        message = ForwardMsg()
        message.delta.new_element.markdown.body = text
        self.sends.put_nowait(message.SerializeToString())

    def beats(self) -> None:
        self.sends.put_nowait(ForwardMsg(heartbeat_ack=True).SerializeToString())

    def _told(self, message: ForwardMsg, run: str, fragments: tuple[str, ...]) -> None:
        message.metadata.run.script_run_id = run
        message.metadata.run.fragment_ids.extend(fragments)
        self.sends.put_nowait(message.SerializeToString())


def talk(answer: Callable[[Server, BackMsg], None], story: Callable[[Visitor, Server], Any]) -> None:
    async def whole() -> None:
        server, visitor = Server(answer), Visitor("http://nowhere")
        visitor._socket = server
        await story(visitor, server)

    aside(whole())


def _page(server: Server, run: str, text: str) -> None:
    server.begins(run)
    server.says(text)
    server.ends(run, DONE)


def test_the_late_answer_of_a_fragment_is_not_that_of_the_next_question() -> None:
    def answer(server: Server, question: BackMsg) -> None:
        server.begins("late", "clock")
        server.ends("late", FRAGMENT, "clock")
        _page(server, "mine", "the page")

    async def story(visitor: Visitor, server: Server) -> None:
        server.ends("before", DONE)  # what came unasked: a fragment had the whole page drawn again
        await visitor.visit("train")
        assert list(visitor.page.said) == ["the page"] and server.sends.empty()

    talk(answer, story)


def test_an_answer_that_is_cut_short_is_followed_by_the_whole() -> None:
    def answer(server: Server, question: BackMsg) -> None:
        server.begins("first")
        server.says("half")
        server.ends("first", EARLY)
        _page(server, "second", "the page")

    async def story(visitor: Visitor, server: Server) -> None:
        await visitor.visit("train")
        assert list(visitor.page.said) == ["the page"]

    talk(answer, story)


def test_a_fragment_is_gone_when_a_server_that_hears_does_not_begin_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(visitors, "GONE", 0.02)

    def answer(server: Server, question: BackMsg) -> None:
        if question.WhichOneof("type") == "app_heartbeat":
            server.beats()

    async def story(visitor: Visitor, server: Server) -> None:
        visitor.page.fragments["clock"] = 1.0
        assert not await visitor._again("clock") and not visitor.page.fragments
        assert [each.WhichOneof("type") for each in server.asked] == ["rerun_script", "app_heartbeat"]

    talk(answer, story)


def test_a_server_that_hears_nothing_at_all_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visitors, "GONE", 0.02)
    monkeypatch.setattr(visitors, "PATIENCE", 0.05)

    async def story(visitor: Visitor, server: Server) -> None:
        with pytest.raises(Broken) as said:
            await visitor._again("clock")
        assert not isinstance(said.value, visitors.Gone)

    talk(lambda server, question: None, story)
