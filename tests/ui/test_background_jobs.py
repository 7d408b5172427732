"""Slow measurements: done once for all who ask, shown while they go on, left when nobody wants them."""

import ast
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from benchmarks.visitor import Visitor
from engine.data.progress import Progress, Steps
from tests.aside import aside
from tests.browser.server import serve
from tests.runs.running import lives, wait
from tests.ui.slow_page import GO, page
from ui import background_jobs
from ui.background_jobs import Jobs
from ui.site import ROOT


@pytest.fixture(autouse=True)
def nothing_under_way(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A test does not wait for its turn behind what the one before it has left."""
    monkeypatch.setattr(background_jobs, "_server", Jobs())
    yield
    GO.set()


def counted(calls: list[int], until: threading.Event | None = None) -> Callable[[], Steps[str]]:
    def steps() -> Steps[str]:
        calls.append(1)
        for i in range(3):
            yield Progress(i, 3)
            if until is not None:
                until.wait(5)
        return "found"

    return steps


def test_two_who_ask_for_the_same_get_one_measurement() -> None:
    jobs, calls = Jobs(), []
    first, second = jobs.of(("a",), counted(calls)), jobs.of(("a",), counted(calls))
    assert first is second and first.wait(5)
    assert (first.result, calls) == ("found", [1])
    assert jobs.of(("b",), counted(calls)).wait(5) and calls == [1, 1]


@pytest.mark.parametrize("cancelled", [True, False])
def test_cancelled_or_unwatched_means_no_result(cancelled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()
    if not cancelled:
        monkeypatch.setattr(background_jobs, "UNWATCHED", -1.0)
    job = Jobs().of(("a",), counted([], go))
    if cancelled:
        job.cancel()
    go.set()
    assert job._ended.wait(5) and job.left and job.result is None


@pytest.mark.parametrize(
    ("worked", "done", "left"),
    [(3.0, 1, 9.0), (30.0, 3, 10.0), (1.0, 1, None), (3.0, 0, None), (3.0, 4, None)],
)
def test_the_seconds_left_are_those_of_the_pace_so_far(worked: float, done: int, left: float | None) -> None:
    job = Jobs().of(("a",), counted([]))
    assert job.wait(5)
    job._worked, job.progress = worked, Progress(done, 4)
    assert job.seconds_left == left


def test_preparation_does_not_count_in_the_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, begun, go = [0.0], threading.Event(), threading.Event()
    monkeypatch.setattr(
        background_jobs, "time", SimpleNamespace(monotonic=lambda: clock[0], thread_time=lambda: 0.0)
    )

    def measure() -> Steps[str]:
        for seconds, progress in ((10, Progress(0, 4, preparing=True)), (3, Progress(1, 4))):
            clock[0] += seconds
            yield progress
        begun.set()
        assert go.wait(5)
        return "found"

    job = Jobs().of(("a",), measure)
    assert begun.wait(5) and job.seconds_left == 9.0
    go.set()
    assert job.wait(5)


def test_one_at_a_time_and_a_waiting_one_can_be_cancelled() -> None:
    jobs, go = Jobs(), threading.Event()
    first = jobs.of(("a",), counted([], go))
    calls: list[int] = []
    second = jobs.of(("b",), counted(calls))
    assert not second.wait(0.3) and calls == []
    second.cancel()
    assert second.wait(5) and second.left and calls == []
    go.set()
    assert first.wait(5) and first.result == "found"


def test_a_paused_one_gives_its_turn_to_others_and_goes_on_where_it_was() -> None:
    jobs, go = Jobs(), threading.Event()
    calls: list[int] = []
    first = jobs.of(("a",), counted(calls, go))
    first.pause()
    go.set()
    second = jobs.of(("b",), counted([]))
    assert second.wait(5) and second.result == "found" and not first.ended
    first.resume()
    assert first.wait(5) and (first.result, calls) == ("found", [1])


def test_the_page_that_is_looked_at_goes_first() -> None:
    jobs, go, ended = Jobs(), threading.Event(), []

    def steps(name: str) -> Steps[str]:
        for i in range(50):
            go.wait(5)
            yield Progress(i, 50)
            time.sleep(0.01)
        ended.append(name)
        return name

    names = ("training", "hidden", "shown")
    training, hidden, shown = (jobs.of((n,), partial(steps, n), n, pausable=n != "shown") for n in names)
    for job, who in ((training, "training"), (hidden, "hidden")):
        job._watched[who] -= background_jobs.UNSHOWN
    go.set()
    assert all(job._ended.wait(10) for job in (training, hidden, shown))  # `wait` would be a look at it
    assert ended == ["shown", "training", "hidden"], "and what nobody looks at as it came"


def test_a_long_one_gives_way_to_shorter_ones_and_goes_on_where_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(background_jobs, "SHORT", 0.05)
    jobs, calls, ended = Jobs(), list[int](), list[str]()

    def steps(name: str, count: int) -> Steps[str]:
        calls.append(1)
        for i in range(count):
            if name == "long" and len(ended) == 2:
                break
            time.sleep(0.02)
            yield Progress(i, count)
        ended.append(name)
        return name

    long = jobs.of(("long",), partial(steps, "long", 200), "a")
    assert not long.wait(0.4, "a")
    middle = jobs.of(("middle",), partial(steps, "middle", 6), "b")
    assert not middle.wait(0.06, "b")
    short = jobs.of(("short",), partial(steps, "short", 1), "c")
    assert all(job.wait(5, who) for job, who in ((short, "c"), (middle, "b"), (long, "a")))
    assert ended == ["short", "middle", "long"] and len(calls) == 3


def test_a_paused_one_that_is_cancelled_ends() -> None:
    go = threading.Event()
    job = Jobs().of(("a",), counted([], go))
    job.pause()
    job.cancel()
    go.set()
    assert job.wait(5) and job.left


def run(kind: str) -> AppTest:
    GO.clear()
    return AppTest.from_function(page, kwargs={"kind": kind}, default_timeout=20).run()


def test_a_quick_one_is_there_at_once_and_a_slow_one_after_its_bar() -> None:
    at = run("quick")
    assert at.markdown[0].value == "`42`" and not at.button
    at = run("slow")
    assert [button.label for button in at.button] == ["Cancel"]
    assert {"`None`", "one so far"} <= {m.value for m in at.markdown}
    GO.set()
    background_jobs._server.of(("test_slow", "slow"), lambda: pytest.fail("began twice")).wait(10)
    assert "`42`" in [m.value for m in at.run().markdown] and not at.button


def test_cancel_is_said_and_can_be_undone() -> None:
    at = run("slow")
    at.button[0].click().run()
    assert "stopped early" in at.caption[0].value
    GO.set()  # the one that is left looks up and goes
    job = background_jobs._server.get(("test_slow", "slow"))
    assert job is not None and job.wait(10)
    GO.clear()
    at.button[0].click().run()
    assert [button.label for button in at.button] == ["Cancel"]


def test_what_is_refused_is_a_sentence_and_what_is_broken_is_raised() -> None:
    at = run("refused")
    assert at.error[0].value == "the two texts differ in length" and not at.exception
    assert run("broken").exception


def test_one_tab_has_a_few_under_way_and_a_server_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_jobs, "WAITING", 6)
    jobs, go = Jobs(), threading.Event()
    mine = [jobs.of((n,), counted([], go), "me") for n in range(background_jobs.MINE)]
    others = jobs.of(("theirs",), counted([], go), "they")
    assert not others.ended
    mine[1].wait(0, "they")
    more = jobs.of(("more",), counted([], go), "me")
    go.set()
    assert mine[0].wait(5) and mine[0].left, "what was asked for first"
    assert all(job.wait(5) and not job.left for job in [*mine[1:], more, others])
    go.clear()
    for n in range(6):
        jobs.of((n + 20,), counted([], go), f"tab {n}")
    with pytest.raises(background_jobs.TooMany, match="6 measurements are waiting here"):
        jobs.of(("one more",), counted([]), "nobody")
    assert jobs.get(("one more",)) is None
    monkeypatch.setattr(background_jobs, "_server", jobs)
    assert "try again in a minute" in run("quick").error[0].value
    go.set()
    jobs.leave()


def test_who_leaves_does_not_take_it_from_others() -> None:
    jobs, go = Jobs(), threading.Event()
    job = jobs.of(("a",), counted([], go), "me")
    job.wait(0, "they")
    job.leave("me")
    go.set()
    assert job.wait(5, "they") and job.result == "found"
    alone = jobs.of(("b",), counted([], go := threading.Event()), "me")
    alone.leave("me")
    go.set()
    assert alone.wait(5) and alone.left


def test_what_no_tab_shows_ends_when_another_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs, go = Jobs(), threading.Event()
    shown, unshown = (jobs.of((name,), counted([], go), name) for name in ("shown", "unshown"))
    training = jobs.of(("training",), counted([], go), "training", pausable=True)
    for job, who in ((unshown, "unshown"), (training, "training")):
        job._watched[who] -= background_jobs.UNSHOWN
    assert not unshown.leaves, "by itself it goes on for as long as a hidden tab may be silent"
    other = jobs.of(("other",), counted([], go), "other")
    assert unshown.leaves and not shown.leaves and not other.leaves
    assert not training.leaves, "somebody may come back to it"
    go.set()
    assert all(job.wait(5) for job in (shown, other, training, unshown)) and unshown.left


def test_a_measurement_gives_way_to_a_page_that_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """But not to one that waits for it, and not for ever."""
    monkeypatch.setattr(background_jobs, "DUTY", 1e-9)
    computed = itertools.count()
    clock = SimpleNamespace(monotonic=time.monotonic, thread_time=lambda: next(computed))
    monkeypatch.setattr(background_jobs, "time", clock)
    drawn = threading.Event()
    page = threading.Thread(target=drawn.wait, name=background_jobs.PAGES, daemon=True)
    page.start()
    job = Jobs().of(("a",), counted([]))
    assert not job.wait(0.2) and job.progress.done == 0
    background_jobs._glancing.add(page.ident or 0)
    assert job.wait(5) and job.result == "found"
    background_jobs._glancing.clear()
    monkeypatch.setattr(background_jobs, "DUTY", 1.0)
    assert Jobs().of(("b",), counted([])).wait(5)
    drawn.set()


def test_one_address_leaves_room_for_the_others() -> None:
    jobs, go = Jobs(), threading.Event()
    for n in range(background_jobs.NEAR):
        jobs.of((n,), counted([], go), f"tab{n}", "192.0.2.7")
    with pytest.raises(background_jobs.TooMany, match="from your network"):
        jobs.of(("more",), counted([], go), "another", "192.0.2.7")
    assert jobs.of((0,), counted([], go), "another", "192.0.2.7") is jobs.get((0,)), (
        "what is under way is for all"
    )
    jobs.of(("theirs",), counted([], go), "they", "192.0.2.8")
    jobs.of(("unknown",), counted([], go), "nobody")
    jobs.leave(0)
    go.set()


def test_a_pausable_one_can_be_paused_and_resumed() -> None:
    at = run("pausable")
    assert [button.label for button in at.button] == ["Pause", "Cancel"]
    at.button[0].click().run()
    assert [button.label for button in at.button] == ["Resume", "Cancel"]
    at.button[0].click().run()
    GO.set()
    assert background_jobs._server.of(("test_slow", "pausable"), lambda: pytest.fail("began twice")).wait(10)
    assert "`42`" in [m.value for m in at.run().markdown]


def test_what_is_offered_begins_when_somebody_asks_for_it() -> None:
    shown = AppTest.from_function(page, args=("offered",), default_timeout=60).run()
    assert not background_jobs.begun(("test_slow", "offered"))
    (button,) = shown.button
    assert button.label == "Count"
    button.click().run()
    assert "42" in shown.markdown[-1].value and not shown.button


@pytest.mark.exhaustive
def test_a_server_measures_in_a_process_and_leaves_none_behind(tmp_path: Path) -> None:
    begins = "from runs.measuring import Measurer as M; M.steps = lambda self, old=M.steps: print('sent', flush=True) or old(self); "
    with serve(tmp_path, before=begins) as url:

        async def visit() -> list[str]:
            visitor = Visitor(url, seed=3)
            await visitor.enter()
            for view in itertools.cycle(("patching", "sinks")):
                await visitor.visit("circuits", f"circuits_view={view}")
                await visitor.look(2.5)
                await visitor.move()
                if "sent" in (tmp_path / "server.log").read_text("utf-8").split():
                    await visitor.look(2.0)
                    break
            await visitor.leave()
            return visitor.page.exceptions

        assert aside(visit()) == []
        servers = {pid for pid, parent in parents(b"streamlit").items() if parent == os.getpid()}
        (worker,) = (pid for pid, parent in parents(b"runs.measure_worker").items() if parent in servers)
    wait(lambda: not lives(worker))


def parents(command: bytes) -> dict[int, int]:
    """The processes that run a command, and their parents."""
    result = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has just ended
            if command in (folder / "cmdline").read_bytes():
                result[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    return result


IN_THREADS = {  # where a measurement stays in the server, and why
    "pages/input/positions/measured_losses.py": "what is finished is known before all is",
    "pages/input/tokens/training_text.py": "merges have a process of their own",
    "pages/input/tokens/watching.py": "likewise",
    "pages/start/train/data.py": "likewise",
    "pages/output/generation/token_by_token.py": "rounded weights are for the pages of this process",
    "pages/lab/after/stored_runs.py": "its callers give it a partial",
    "pages/lab/after/fine_tuning.py": "_teaching returns one",
    "ui/fetching.py": "it waits for the network",
    "ui/snapshot_measure.py": "it reads the runs of this process, and each snapshot is known before all are",
}


def test_every_measurement_travels_but_those_that_say_why_not() -> None:
    stay = set()
    for path in [*(ROOT / "pages").rglob("*.py"), *(ROOT / "ui").rglob("*.py")]:
        nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
        imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
        if not any(node.module == "ui.background_jobs" for node in imports):
            continue
        libraries = [node for node in imports if (node.module or "").startswith(("engine", "studies"))]
        theirs = {alias.name for node in libraries for alias in node.names}
        calls = [
            node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == "measured"
        ]
        for begun in (call.args[1] for call in calls):
            partial_of = begun.args[0] if isinstance(begun, ast.Call) and begun.args else begun
            if ast.unparse(partial_of) not in theirs:
                stay.add(path.relative_to(ROOT).as_posix())
    assert stay == set(IN_THREADS)
