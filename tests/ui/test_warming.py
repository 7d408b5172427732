"""A server that is warm before anybody asks: what it draws ahead is known, and makes way for whoever asks."""

import asyncio
import json
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from benchmarks.visitor import Visitor
from engine.data.progress import Progress, Steps
from runs.profiles import PROFILES
from tests.aside import aside
from tests.browser.server import serve
from ui import asgi_limits, background_jobs, session, views
from ui.background_jobs import NOBODY, Jobs
from ui.operate import warming
from ui.operate.warming import Warming
from ui.tour.courses import shelf

SENT = (
    "import os; os.environ['GLASSFORMER_WARM'] = '1'; from ui.background_jobs import Job as J;"
    " J._run = lambda self, measure, old=J._run: print('measures', flush=True) or old(self, measure); "
)
TWO = ("generation?generation_view=cache", "shapes?shapes_view=backward&shapes_back=step")
ONLY = f"from ui.operate import warming; warming.addresses = lambda: {TWO}; "


def counted(go: threading.Event) -> Callable[[], Steps[str]]:
    def steps() -> Steps[str]:
        for i in range(3):
            yield Progress(i, 3)
            go.wait(5)
        return "found"

    return steps


@pytest.mark.parametrize("pausable", [False, True])
def test_what_is_measured_ahead_makes_way_for_what_a_visitor_asks_for(pausable: bool) -> None:
    jobs, go = Jobs(), threading.Event()
    ahead = jobs.of(("a",), counted(go), NOBODY, pausable=pausable)
    beside = jobs.of(("b",), counted(go), NOBODY)
    assert not ahead.leaves and not ahead.shown, "but for nothing else of its kind"
    asked = jobs.of(("c",), counted(go), "tab")
    assert ahead.leaves and beside.leaves and not asked.leaves
    go.set()
    assert all(job._ended.wait(5) for job in (ahead, beside, asked))
    assert (ahead.left, asked.result) == (True, "found")


def test_what_a_visitor_finds_under_way_is_as_if_the_visitor_had_begun_it() -> None:
    jobs, go = Jobs(), threading.Event()
    job = jobs.of(("a",), counted(go), NOBODY)
    assert jobs.of(("a",), counted(go), "tab") is job and not job.wait(0, "tab")
    other = jobs.of(("b",), counted(go), "another tab")
    assert job.shown and not job.leaves
    go.set()
    assert job.wait(5) and other.wait(5) and job.result == "found"


def test_a_server_is_calm_while_no_tab_speaks_and_nothing_is_measured_or_trained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jobs, statuses, go = Jobs(), ["paused", "finished"], threading.Event()
    monkeypatch.setattr(background_jobs, "_server", jobs)
    standing = SimpleNamespace(standing=lambda: SimpleNamespace(statuses=tuple(statuses)))
    monkeypatch.setattr(session, "manager", lambda: standing)
    monkeypatch.setattr(asgi_limits, "_heard", [time.monotonic() - warming.CALM_SECONDS])
    assert aside(warming.calm())
    statuses.append("running")
    assert not aside(warming.calm())
    statuses.pop()
    job = jobs.of(("a",), counted(go), "tab")
    assert not aside(warming.calm())
    go.set()
    assert job.wait(5) and aside(warming.calm())

    async def said() -> dict[str, str]:
        return {"type": "websocket.receive"}

    aside(asgi_limits._noting(said)())  # type: ignore[arg-type]
    assert not aside(warming.calm())


class Pages:
    """A runtime of Streamlit whose pages begin measurements; each knows what the one before it found."""

    def __init__(self, *steps: Callable[[], Steps[str]]) -> None:
        self.jobs, self.steps, self.drawn, self.open = Jobs(), steps, 0, False
        self.tab = SimpleNamespace(session_state={})

    def connect_session(self, client: Any, _: object) -> str:
        self.client, self.open = client, True
        return "name"

    def get_app_session(self, _: str) -> SimpleNamespace:
        return self.tab

    def handle_backmsg(self, _: str, message: Any) -> None:
        assert message.rerun_script.page_name == "page" and message.rerun_script.query_string == "view=a"
        self.drawn += 1
        for at, steps in enumerate(self.steps):
            if not self.jobs.of((at,), steps, self.tab.session_state["measures_as"]).ended:
                break
        self.client.write_forward_msg(ForwardMsg(script_finished=ForwardMsg.FINISHED_SUCCESSFULLY))

    def close_session(self, _: str) -> None:
        self.open = False


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Pages]:
    def make(*steps: Callable[[], Steps[str]]) -> Pages:
        made = Pages(*steps)
        monkeypatch.setattr(warming.Runtime, "instance", lambda: made)
        monkeypatch.setattr(background_jobs, "_server", made.jobs)
        monkeypatch.setattr(warming, "AGAIN", 0.01)
        return made

    return make


def test_a_view_is_drawn_until_it_measures_nothing_more(pages: Callable[..., Pages]) -> None:
    go = threading.Event()
    made = pages(counted(go), counted(go))
    threading.Timer(0.3, go.set).start()
    assert aside(warming.draw("page?view=a"))
    assert made.jobs.get((0,)).result == made.jobs.get((1,)).result == "found"  # type: ignore[union-attr]
    assert made.drawn == 3 and not made.open


def test_a_view_whose_measurement_ended_for_a_visitors_is_not_drawn_ahead(
    pages: Callable[..., Pages],
) -> None:
    go = threading.Event()
    made = pages(counted(go))

    def visit() -> None:
        made.jobs.of(("theirs",), counted(go), "tab")
        go.set()

    threading.Timer(0.3, visit).start()
    assert not aside(warming.draw("page?view=a")) and not made.open


def test_a_view_that_made_way_or_whose_results_were_given_back_is_drawn_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[str] = []

    async def draw(address: str) -> bool:
        drawn.append(address)
        if address == "broken":
            raise OSError("no thread is left")
        return address != "busy" or drawn.count("busy") > 1

    async def calm() -> bool:
        return True

    monkeypatch.setattr(warming, "draw", draw)
    monkeypatch.setattr(warming, "calm", calm)
    monkeypatch.setattr(warming, "addresses", lambda: ["first", "busy", "broken", "last"])

    async def story() -> None:
        warm = Warming()
        keeping = asyncio.create_task(warm.keep_warm())
        while not warm.done:
            await asyncio.sleep(0.01)
        assert drawn == ["first", "busy", "broken", "last", "busy"]
        drawn.clear()
        warm.forgotten()
        assert not warm.done
        while not warm.done:
            await asyncio.sleep(0.01)
        assert drawn == ["first", "busy", "broken", "last", "busy"]
        keeping.cancel()

    aside(story())


@pytest.mark.parametrize(
    ("said", "profile", "wants"),
    [("1", "hosted", True), ("", "hosted", False), ("no", "hosted", False), ("1", "small", False)],
)
def test_it_is_wanted_where_it_is_asked_for_and_a_process_measures(
    said: str, profile: str, wants: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(warming.VARIABLE, said)
    monkeypatch.setattr(session, "profile", lambda: PROFILES[profile])
    assert warming.wanted() is wants


def test_every_view_each_of_its_questions_and_each_scene_of_a_course_is_drawn_ahead() -> None:
    found = warming.addresses()
    listed = views.views()
    assert found[: len(listed)] == tuple(view.address() for view in listed), "first as they open"
    assert {view.address(ask) for view in listed for ask in view.asks} <= {*found}
    scenes = [address for address in found if "&scene=" in address]
    assert scenes == [*found[-len(scenes) :]], "last of all"
    assert len(scenes) == sum(len(course.scenes) for course in shelf().courses.values()) > 100
    assert len({*found}) == len(found)


def measures(home: Path, begins: str, addresses: tuple[str, ...]) -> tuple[int, int, list[str]]:
    """Warms a server, then visits views: (measurements ahead, those of the visits, views that showed a bar)"""
    with serve(home, before=SENT + begins) as url:

        def count() -> int:
            return (home / "server.log").read_text("utf-8").split().count("measures")

        def healthz() -> dict[str, bool]:
            try:
                with urllib.request.urlopen(f"{url}/healthz", timeout=10) as answer:
                    return dict(json.load(answer))
            except OSError:
                return {}

        until = time.monotonic() + 900
        while not healthz().get("warm"):
            assert time.monotonic() < until
            time.sleep(0.5)
        ahead, bars = count(), []

        async def visit() -> None:
            for address in addresses:
                name, _, query = address.partition("?")
                visitor = Visitor(url)  # one who walks on takes the text along
                await visitor.enter()
                await visitor.visit(name, query)
                bars.extend([address] * bool(visitor.bars))
                await visitor.leave()

        aside(visit())
        return ahead, count() - ahead, bars


def test_a_warm_server_measures_nothing_for_what_it_drew_ahead(tmp_path: Path) -> None:
    assert measures(tmp_path, ONLY, TWO) == (3, 0, []), "two of them for one view"


@pytest.mark.exhaustive(day=2)
def test_a_warm_server_measures_nothing_for_any_view(tmp_path: Path) -> None:
    ahead, more, bars = measures(tmp_path, "", tuple(warming.addresses()))
    assert ahead > 15 and (more, bars) == (0, [])
