"""`python -m benchmarks.cold_start --times 5`: seconds from the start of a server's process to its first usable
page, over a real websocket, and to a `/healthz` that says ready (the warm spare is there). A fresh process each
time; the disk is warm after the first, which is left out. Prints wall time, and the processor time of the server
until its page stood: on a busy machine that is the one to compare. With `--late 2` the first visitor comes two
seconds after `/healthz` said ready, as behind a proxy, and the page is counted from there.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from benchmarks.visitor import Broken, Visitor
from tests.browser.server import _end_group, _free_port
from ui.site import ROOT

PATIENCE = 120.0  # seconds
PAUSE = 0.02  # between two tries


@dataclass(frozen=True)
class Start:
    """Seconds since the process was started, or since the visitor came; those of a processor (`worked`) are the
    server's own.
    """

    page: float
    worked: float
    ready: float


def processor_seconds(stat: str) -> float:
    """User and system time of a process, from its line in /proc.

    >>> ticks = os.sysconf("SC_CLK_TCK")
    >>> line = f"7 (a) b) S 1 1 1 0 -1 0 0 0 0 0 {3 * ticks} {2 * ticks} 0 0"
    >>> processor_seconds(line)
    5.0
    """
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/healthz", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


async def usable(address: str, page: str) -> None:
    """Returns when a page stands."""
    while True:
        visitor = Visitor(address)
        try:
            await visitor.enter()
            await visitor.visit(page)
            assert visitor.page.elements and not visitor.page.exceptions, visitor.page
            return
        except Broken:
            await asyncio.sleep(PAUSE)
        finally:
            await visitor.leave()


async def _both(address: str, page: str, process: int, begun: float, late: float | None) -> Start:
    async def well() -> float:
        while not await asyncio.to_thread(ready, address):
            await asyncio.sleep(PAUSE)
        return time.perf_counter() - begun

    async with asyncio.timeout(PATIENCE):
        healthy, stat = asyncio.create_task(well()), Path(f"/proc/{process}/stat")
        came, before = begun, 0.0
        if late is not None:
            await healthy
            await asyncio.sleep(late)
            came, before = time.perf_counter(), processor_seconds(stat.read_text())
        await usable(address, page)
        stood, worked = time.perf_counter() - came, processor_seconds(stat.read_text()) - before
        return Start(stood, worked, await healthy)


def start(page: str, profile: str, late: float | None) -> Start:
    """One server, from nothing to its first page."""
    with tempfile.TemporaryDirectory(prefix="glassformer-cold-") as home:
        port = _free_port()
        own = {"HOME": home, "TMPDIR": home, "GLASSFORMER_PROFILE": profile, "GLASSFORMER_LOG": "json"}
        command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless", "true"]
        command += ["--server.port", str(port), "--server.address", "127.0.0.1"]
        begun = time.perf_counter()
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | own,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return asyncio.run(_both(f"http://127.0.0.1:{port}", page, process.pid, begun, late))
        finally:
            _end_group(process)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--page", default="", help="an address, such as train; home where it is left out")
    parser.add_argument("--profile", default="hosted")
    parser.add_argument("--late", type=float, help="seconds from ready until the first visitor comes")
    given = parser.parse_args()
    start(given.page, given.profile, given.late)
    found = [start(given.page, given.profile, given.late) for _ in range(given.times)]
    print(f"load of the machine: {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores")
    for name in ("page", "worked", "ready"):
        values = [getattr(each, name) for each in found]
        print(f"{name:7} median {statistics.median(values):.2f} s, {min(values):.2f} to {max(values):.2f}")


if __name__ == "__main__":
    main()
