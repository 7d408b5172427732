"""Trainings on a Ray cluster of three nodes, all on this machine."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.data.corpora import from_text
from engine.errors import RunError
from engine.training.records import Step
from engine.training.train import train
from runs import cluster as clusters
from runs.cluster import connect, limits
from runs.manager import RunManager
from tests.runs import running
from tests.runs.conftest import remote_workers
from tests.runs.running import ME, PROFILE, ended, look, reached, spec, wait

SLOW = replace(running.SHORT, steps=600, eval_every=0, sample_every=0, snapshot_every=100, batch_size=128)


@pytest.fixture
def make(ray: Any, tmp_path: Path) -> Iterator[Callable[..., RunManager]]:
    with running.managers(tmp_path, **remote_workers(ray)) as make:
        yield make


def node_of(manager: RunManager, nodes: Any, run: str) -> Any:
    """The node that a run's worker is on: its actor's, as Ray knows it."""
    (worker,) = [w for w in manager.scheduler.workers.alive() if run in [job.run for job in w.jobs]]
    asked = worker.transport._actor.__ray_call__.options(concurrency_group="commands").remote(
        lambda _: __import__("ray").get_runtime_context().get_node_id()
    )
    home = worker.transport._ray.get(asked, timeout=60)
    (node,) = [node for node in nodes.list_all_nodes() if node.node_id == home]
    return node


@pytest.mark.exhaustive
def test_a_lost_machine_costs_the_steps_since_the_last_snapshot(
    make: Callable[..., RunManager], nodes: Any
) -> None:
    manager = make()
    run = manager.start(spec(SLOW), ME)
    reached(manager, run, 120)
    manager.pause(run, ME)
    running.settled(manager, run)
    before, process, home = look(manager, run), running.pid(manager, run), node_of(manager, nodes, run)
    manager.resume(run, ME)
    nodes.remove_node(home, allow_graceful=False)
    wait(lambda: look(manager, run).warnings)
    wait(lambda: look(manager, run).status in ("running", "finished"))  # on the one that is left
    nodes.add_node(num_cpus=3)  # the tests after this one need it
    view = ended(manager, run)
    assert (view.status, view.step) == ("finished", 600), view.message
    # one warning; a busy machine's nodes may be silent for so long that one more of them counts as lost
    assert view.warnings and "its machine was lost" in view.warnings[0]
    for said in view.warnings:
        reached_step, newest = (int(found) for found in re.findall(r"step (\d+)", said))
        assert newest % SLOW.snapshot_every == 0 and newest >= max(before.snapshots)
        assert 0 <= reached_step - newest <= SLOW.snapshot_every
    assert not running.lives(process), "what ran there ended with its machine"
    # as if nothing had happened: the same losses as of one training without a break
    here = [r.loss for r in train(running.MODEL, SLOW, from_text(running.TEXT)) if isinstance(r, Step)]
    assert list(view.history.steps) == list(range(1, 601))
    assert list(view.history.losses) == pytest.approx(here, rel=1e-4)


@pytest.mark.exhaustive
def test_what_takes_machine_after_machine_down_does_not_go_on(
    make: Callable[..., RunManager], nodes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = make()
    run = manager.start(spec(running.LONG), ME)
    reached(manager, run, 5)  # it may begin on the machine that the test before took away, and move
    monkeypatch.setattr("runs.scheduler.MAX_MOVES", 0)
    nodes.remove_node(node_of(manager, nodes, run), allow_graceful=False)
    nodes.add_node(num_cpus=3)  # the tests after this one need it
    assert ended(manager, run).status == "failed"


@pytest.mark.exhaustive
def test_slots_are_counted_by_the_clusters_cores(ray: Any) -> None:
    # 2 machines of 3 cores: 6 places of one thread, one for the spare, a quarter for the paused
    asked = replace(PROFILE, threads_per_run=1, max_paused=8)
    # a machine that was lost, or came, may be news still
    wait(lambda: limits(ray, asked).max_workers == 6)
    profile = limits(ray, asked)
    assert (profile.max_runs, profile.max_paused, profile.max_workers) == (4, 1, 6)
    profile = limits(ray, replace(PROFILE, threads_per_run=4))
    assert (profile.max_runs, profile.max_paused) == (1, 0), "one place, and no room for anybody else"


def test_without_ray_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(RunError, match=r"pip install -r requirements-ray\.txt"):
        connect("auto")


def test_the_environment_names_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    for said in ("", " auto ", "10.0.0.7:6379"):
        monkeypatch.setenv(clusters.VARIABLE, said)
        assert clusters.address() == said.strip()
