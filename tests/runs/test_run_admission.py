"""Who may start a training, and what goes when there is no room: owners are cheap, addresses and bytes not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.errors import RunError
from runs import admission
from runs.admission import StartLimiter
from runs.manager import RunManager
from runs.profiles import PROFILES
from tests.engine.cases import for_each
from tests.runs.puppets import Puppet
from tests.runs.running import (
    HERE,
    LONG,
    ME,
    SHORT,
    TEXT,
    THERE,
    WARM,
    Asker,
    Clock,
    look,
    managers,
    reached,
    spec,
    wait,
)


@pytest.fixture
def make(tmp_path: Path, puppets: type[Puppet]) -> Iterator[Callable[..., tuple[RunManager, Asker, Clock]]]:
    asker, clock = Asker(), Clock()
    usual = {"max_runs": 1, "lease_seconds": 1e9, "forget_seconds": 1e9, "clock": clock, "address": asker}
    with managers(tmp_path, **usual) as make:
        yield lambda **fields: (make(**fields), asker, clock)


def on_disk(manager: RunManager) -> int:
    return sum(path.stat().st_size for path in manager.scheduler.store.folder.rglob("text.txt"))


def test_many_invented_owners_do_not_fill_the_disk_with_texts(make: Callable[..., Any]) -> None:
    """Eight cookies, twelve texts each: 242 MB in 37 s, before texts counted."""
    text = TEXT * 40
    size = len(text.encode())
    manager, asker, clock = make(text_bytes_total=10 * size + 1, max_queued=1000, max_runs_total=1000)
    asker.address = ""
    first = manager.start(spec(LONG, text=text), "first")
    ended, most = [], 0
    for owner in range(8):
        for _ in range(12):
            clock.now += 1
            run = manager.start(spec(LONG, text=text), f"owner{owner}")
            manager.stop(run, f"owner{owner}")  # it waited: it has ended at once
            ended.append(run)
            most = max(most, on_disk(manager))
    assert most == 10 * size, "as many as fit, and never more"
    assert [run for run in ended if manager.view(run)] == ended[-9:], "the oldest that had ended went first"
    assert look(manager, first).active, "and none that goes on"
    with pytest.raises(RunError, match="no room for another text"):
        for owner in range(20):
            manager.start(spec(LONG, text=text), f"waiting{owner}")
    assert on_disk(manager) == 10 * size
    assert manager.start(spec(LONG, corpus="python", text=None), "another"), "what needs no text goes on"


def test_runs_have_a_cap_and_the_oldest_that_have_ended_go_first(make: Callable[..., Any]) -> None:
    manager, asker, clock = make(max_runs_total=4, max_queued=1000)
    asker.address = ""
    going = manager.start(spec(LONG), "a")
    ended = []
    for n in range(6):
        clock.now += 1
        ended.append(manager.start(spec(LONG), f"b{n}"))
        manager.stop(ended[-1], f"b{n}")
    assert [manager.view(run) is not None for run in ended] == [False] * 3 + [True] * 3
    waiting = [manager.start(spec(LONG), f"c{n}") for n in range(3)]
    with pytest.raises(RunError, match="server is full, and all its runs are still active"):
        manager.start(spec(LONG), "d")
    assert all(look(manager, run).active for run in [going, *waiting])


def test_runs_paused_by_their_lease_give_way_to_a_new_start(make: Callable[..., Any]) -> None:
    manager, asker, clock = make(max_runs_total=4, max_queued=1000, lease_seconds=10.0)
    asker.address = ""
    left = []
    for n in range(4):
        clock.now += 1
        left.append(manager.start(spec(LONG), f"cookie{n}"))
        if n == 1:
            manager.pause(left[-1], f"cookie{n}")  # by hand: that is somebody's word
    clock.now += 60
    manager.scheduler.tick()
    assert [look(manager, run).status for run in left] == ["paused"] * 4
    held = {manager.start(spec(LONG), f"new{n}") for n in range(3)}
    assert [manager.view(run) is not None for run in left] == [False, True, False, False]
    assert all(look(manager, run).active for run in held)
    with pytest.raises(RunError, match="server is full, and all its runs are still active"):
        manager.start(spec(LONG), "another")


def test_a_text_of_a_run_paused_by_its_lease_gives_way_to_another(make: Callable[..., Any]) -> None:
    size = len(TEXT.encode())
    manager, _, clock = make(text_bytes_total=2 * size, lease_seconds=10.0)
    left = [manager.start(spec(LONG, text=TEXT), f"cookie{n}") for n in range(2)]
    clock.now += 60
    manager.scheduler.tick()
    manager.start(spec(LONG, text=TEXT), "new")
    assert [manager.view(run) is not None for run in left] == [False, True] and on_disk(manager) == 2 * size


@for_each("fields, says", [
    ({"max_runs_address": 3}, "Your network has 3 runs here"),
    ({"max_queued_address": 3, "max_queued_each": 2}, "3 runs from your network are already waiting"),
    ({"max_starts_address": 3}, "Your network has started 3 runs within a minute"),
])  # fmt: skip
def test_one_address_has_its_share(make: Callable[..., Any], fields: dict[str, int], says: str) -> None:
    manager, asker, clock = make(max_queued=1000, **fields)
    asker.address = THERE
    other = manager.start(spec(LONG), "somebody")
    asker.address = HERE
    kept = [manager.start(spec(LONG), f"cookie{n}") for n in range(3)]
    with pytest.raises(RunError, match=says):
        manager.start(spec(LONG), "cookie3")
    assert manager.runs("cookie3") == [], "who is refused leaves none"
    asker.address = THERE
    assert look(manager, manager.start(spec(LONG), "somebody else")).queue_position == 4
    asker.address = HERE
    clock.now += 61
    manager.stop(kept[1], "cookie1")
    kept.append(manager.start(spec(LONG), "cookie3"))
    gone = "max_runs_address" in fields  # one of its own that has ended, and none of another's
    assert [manager.view(run) is None for run in (*kept, other)] == [False, gone, False, False, False]


def test_a_race_is_one_start(make: Callable[..., Any]) -> None:
    manager, *_ = make(max_starts_address=1)
    assert len(manager.start_race([spec(SHORT)] * 3, "me")) == 3
    with pytest.raises(RunError, match="Your network has started 1 run within"):
        manager.start(spec(LONG), "you")


def test_addresses_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "MAX_ADDRESSES", 20)
    starts = StartLimiter()
    for n in range(70):
        starts.count(f"a{n}", 1, 0.0)
    assert len(starts._when) <= 20
    starts.count("later", 1, 100.0)
    assert list(starts._when) == ["later"]


def test_one_step_at_a_time_though_no_paused_process_is_kept(tmp_path: Path) -> None:
    manager = RunManager(replace(PROFILES["small"], max_steps=LONG.steps), tmp_path, spare=False, opener=WARM)
    run = manager.start(spec(LONG), ME)
    reached(manager, run, 5)
    manager.pause(run, ME)
    wait(lambda: all(run not in process.runs for process in manager.processes()))
    before = look(manager, run).step
    manager.step(run, ME)
    wait(lambda: look(manager, run).step == before + 1)
    wait(lambda: all(run not in process.runs for process in manager.processes()))
    assert look(manager, run).step == look(manager, run).snapshots[-1] == before + 1
    manager.close()


def test_the_id_of_a_run_may_be_part_of_a_widgets_key(make: Callable[..., Any]) -> None:
    """Streamlit takes no key with two underscores: one run in fifty had them, and no page was drawn beside it."""
    manager, *_ = make(max_queued=1000, max_runs_total=1000)
    ids = [manager.start(spec(LONG), f"owner{number}") for number in range(20)]
    assert all(re.fullmatch("[0-9a-f]{32}", run) for run in ids) and len({*ids}) == 20
