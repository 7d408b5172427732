"""How a server is, as text for Prometheus, on a port of its own: `GLASSFORMER_METRICS=9464` for this computer
alone, `GLASSFORMER_METRICS=0.0.0.0:9464` for whoever reaches it. Off where it is not set.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, get_args

from engine.errors import ConfigError
from runs.manager import Status
from runs.state import Standing
from runs.transport import resident_bytes
from ui import asgi_limits, background_jobs, session

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

VARIABLE = "GLASSFORMER_METRICS"
LOCAL = "127.0.0.1"
_OBSERVERS: list[Callable[[float], None]] = []  # of runs of pages, in seconds
BUCKETS = (0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)  # seconds


def address(wanted: str) -> tuple[str, int] | None:
    """Returns where to listen: this computer alone where no other address is named; None where it is off.
    Raises ConfigError for what is no address.

    >>> address("9464"), address("0.0.0.0:9464"), address("")
    (('127.0.0.1', 9464), ('0.0.0.0', 9464), None)
    >>> address("[::1]:9464")
    ('::1', 9464)
    """
    if not wanted:
        return None
    host, _, port = wanted.rpartition(":")
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConfigError(VARIABLE, wanted, "must be a port, or an address and a port such as 0.0.0.0:9464")
    return host.strip("[]") or LOCAL, int(port)


def serve() -> Callable[[], None]:
    """Starts what $GLASSFORMER_METRICS asks for. Returns what ends it. Raises ConfigError as `address`, and
    where nobody may listen there.
    """
    wanted = os.environ.get(VARIABLE, "")
    listener = address(wanted)
    if listener is None:
        return lambda: None
    from prometheus_client import start_http_server

    host, port = listener
    metrics, observe = registry(
        lambda: session.manager().standing(),
        asgi_limits.open_tabs,
        lambda: [resident_bytes(pid) for pid in background_jobs.measuring_processes()],
    )
    _OBSERVERS.append(observe)
    try:
        server, thread = start_http_server(port, host, metrics)
    except OSError as error:
        raise ConfigError(VARIABLE, wanted, f"cannot be listened at: {error.strerror or error}") from error

    def end() -> None:
        _OBSERVERS.remove(observe)
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)

    return end


@contextmanager
def page_timed() -> Iterator[None]:
    """Measures a run of a page, where somebody asked for metrics."""
    begun = time.perf_counter()
    try:
        yield
    finally:
        for observe in _OBSERVERS:
            observe(time.perf_counter() - begun)


def registry(
    standing: Callable[[], Standing], count: Callable[[], int], measuring: Callable[[], list[int]]
) -> tuple[CollectorRegistry, Callable[[float], None]]:
    """Returns the metrics, read when somebody scrapes them, and a function to call after each run
    of a page.
    """
    from prometheus_client import CollectorRegistry, Histogram
    from prometheus_client.registry import Collector

    class Now(Collector):
        def collect(self) -> Iterator[Metric]:
            return gathered(standing(), count(), measuring())

        def describe(self) -> list[Metric]:
            return []  # nothing is gathered before the first one asks

    metrics = CollectorRegistry()
    metrics.register(Now())
    seconds = Histogram(
        "glassformer_rerun_seconds",
        "Seconds that a run of a page took on the server",
        registry=metrics,
        buckets=BUCKETS,
    )
    return metrics, seconds.observe


def gathered(now: Standing, open_sessions: int, measuring: Sequence[int]) -> Iterator[Metric]:
    """Returns one moment's numbers; `measuring` are the bytes of each process that measures for pages."""
    from prometheus_client.core import GaugeMetricFamily as Gauge

    yield Gauge("glassformer_sessions", "Open browser tabs", value=open_sessions)
    counted, runs = Counter(now.statuses), Gauge("glassformer_runs", "Runs by state", labels=["state"])
    for status in get_args(Status):
        runs.add_metric([status], counted[status])
    yield runs
    yield Gauge("glassformer_queue", "Queued runs; a race counts as one", value=now.queued)
    workers = Gauge("glassformer_workers", "Processes beside the server", labels=["state"])
    memory = Gauge("glassformer_worker_bytes", "Their resident memory", labels=["state"])
    for kind in ("training", "spare", "starting"):
        mine = [worker for worker in now.workers if worker.kind == kind]
        workers.add_metric([kind], len(mine))
        memory.add_metric([kind], sum(worker.bytes for worker in mine))
    workers.add_metric(["measuring"], len(measuring))
    memory.add_metric(["measuring"], sum(measuring))
    yield workers
    yield memory
    yield Gauge("glassformer_server_bytes", "Resident memory of the server", value=resident_bytes())
    yield Gauge("glassformer_steps", "Steps done by all runs that are kept", value=now.steps)
    yield Gauge("glassformer_snapshot_bytes", "Snapshots of runs on disk", value=now.snapshot_bytes)
