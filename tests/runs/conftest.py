"""The run service's managers, puppets and clusters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine.conftest import one_thread as one_thread
from tests.runs.puppets import Puppet
from tests.runs.running import Clock, Make, managers


@pytest.fixture
def puppets(monkeypatch: pytest.MonkeyPatch) -> type[Puppet]:
    """Puppets in the place of worker processes; the test makes the rounds of housekeeping."""
    Puppet.alive, Puppet.most = set(), 0
    monkeypatch.setattr("runs.processes.Worker", Puppet)
    monkeypatch.setattr("runs.scheduler.TICK", 3600.0)
    return Puppet


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes managers of runs, which end after the test."""
    with managers(tmp_path) as make:
        yield make


@pytest.fixture(scope="session")
def nodes() -> Iterator[Any]:
    """A Ray cluster of three nodes on this machine: one that leads, and two of three cores each."""
    ray = pytest.importorskip("ray", reason="Ray is not installed (requirements-ray.txt)")
    from ray.cluster_utils import Cluster as Nodes

    # Ray lets whatever else runs on a machine go first; beside other tests its processes then stand still.
    eager = {"worker_niceness": 0}
    head = {"num_cpus": 0, "include_dashboard": False, "_system_config": eager}
    made = Nodes(initialize_head=True, head_node_args=head)
    for _ in range(2):
        made.add_node(num_cpus=3)
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.fixture(scope="session")
def ray(nodes: Any) -> Any:
    """Ray, connected to `nodes`."""
    from runs import cluster

    return cluster.connect(nodes.address)


@pytest.fixture(scope="session", params=["here", pytest.param("cluster", marks=pytest.mark.exhaustive)])
def transport(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What a manager is made with for its workers to be on this machine, and on a cluster's."""
    return {} if request.param == "here" else remote_workers(request.getfixturevalue("ray"))


def remote_workers(ray: Any) -> dict[str, Any]:
    from runs.cluster import RayWorker

    return {"opener": lambda threads: RayWorker(ray, threads)}


@pytest.fixture(scope="session")
def share(nodes: Any, ray: Any) -> Any:
    """Makes clients of one manager that servers share on `nodes`. The first one's profile counts."""
    from runs.cluster import RayLine
    from runs.shared import SharedRuns

    def make(profile: Any, address: Any = str) -> Any:
        return SharedRuns(RayLine(nodes.address, profile), address)

    return make
