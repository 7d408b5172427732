"""`python -m benchmarks.load --sessions 50 --training 1`: a lecture hall on one server. Each session is a real
websocket conversation (benchmarks/visitor.py): it opens pages in an order of its own, moves controls, and thinks
between two of them. Prints seconds a page (p50, p95, max) to the result: an answer that shows the bar of a measurement
counts until the page stands without one. Prints errors, memory a session, the steps a second of the trainings
beside it, alone and with the others there, and what an answer costs the server in seconds of a processor: that one
also compares on a busy machine, and so does what a move costs when nobody else is there, beside two plain Streamlit
apps that are asked in turns with ours (benchmarks/floor.py).

With `--servers 2` the sessions come to a proxy before as many servers on this machine (docs/operating.md, "Several
servers"): a server is one Python process, which uses one core. With `--ray` a cluster of this machine holds the runs.

With `--warm` each server draws and measures every view and scene before anybody comes (docs/operating.md, "A warm server").

With `--memory` tabs are only opened, each on a page that has been drawn before: what a session itself holds, and
whether that is given back when all have left (Streamlit keeps one for two minutes, should its tab come back).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import random
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import floor
from benchmarks.visitor import Broken, Visitor
from tests.browser.server import _end_group, _free_port, _wait_until_healthy, free_row
from ui.site import ROOT, built
from ui.views import views as listed

THINK = 3.0  # seconds between two controls
MOVES = 3  # of controls on a page
STEPS = 5_000  # of the training beside it: as many as a hosted server allows, so that it lasts
SLOWEST = 6  # answers that are told one by one
WARM = 20  # steps before its speed counts
PATIENCE = 60.0  # seconds that a visitor waits for a measurement
GONE = 150.0  # seconds in which Streamlit forgets a tab that was closed
WARMING = 1800.0  # seconds until a server has to be warm
ALONE = 15.0  # seconds of the trainings by themselves, before anybody else comes


@dataclass
class Tally:
    """What the visitors saw: seconds by page, and what went wrong."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: list[str] = field(default_factory=list)
    received: int = 0
    moves: list[tuple[float, str, str]] = field(default_factory=list)  # seconds, page, control
    bars: list[float] = field(default_factory=list)  # seconds to a bar, of answers that showed one
    unfinished: int = 0  # of them, those whose bar still stood when patience ended

    async def answer(self, visitor: Visitor, asked: Awaitable[float | None], moved: bool) -> None:
        """Notes what a visitor asked for once the result stands."""
        page, seconds = visitor.name or "home", await asked
        if seconds is not None and visitor.bars:
            self.bars.append(seconds)
            seconds += await visitor.result(PATIENCE)
            self.unfinished += bool(visitor.bars)
        self.note(page, seconds, visitor.page.exceptions, visitor.moved if moved else "")

    def note(self, page: str, seconds: float | None, exceptions: Sequence[str] = (), moved: str = "") -> None:
        if seconds is not None:
            self.seconds[page].append(seconds)
            self.moves.append((seconds, page, moved))
        self.errors += [f"{page}: {each}" for each in exceptions]

    def table(self) -> str:
        """Pages, slowest p95 first, and all of them together."""
        rows = sorted(self.seconds.items(), key=lambda row: -percentile(row[1], 95))
        everything = [value for values in self.seconds.values() for value in values]
        lines = [f"{'page':16} {'n':>6} {'p50':>7} {'p95':>7} {'max':>7}"]
        for page, values in [*rows, ("all", everything)] if everything else []:
            figures = percentile(values, 50), percentile(values, 95), max(values)
            lines.append(f"{page:16} {len(values):6} " + " ".join(f"{each:7.2f}" for each in figures))
        return "\n".join(lines)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of a hundred do not exceed (nearest rank).

    >>> percentile([4, 1, 2, 3], 50), percentile([4, 1, 2, 3], 95), percentile([7], 50)
    (2, 4, 7)
    """
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * share / 100) - 1)]


async def attend(address: str, seed: int, until: float, tally: Tally) -> None:
    """One person until a moment (of time.monotonic): all pages in an order of their own, again and again."""
    chance = random.Random(seed)
    visitor = Visitor(address, seed, secrets.token_urlsafe(32))
    await asyncio.sleep(chance.random() * THINK)  # not all at the same moment
    try:
        await visitor.enter()
        while time.monotonic() < until:
            pages = [entry.url for entry in built()]
            chance.shuffle(pages)
            for page in pages:
                if time.monotonic() >= until:
                    break
                await tally.answer(visitor, visitor.visit(page), moved=False)
                for _ in range(MOVES):
                    await visitor.look(THINK * (0.5 + chance.random()))
                    if time.monotonic() >= until:
                        break
                    await tally.answer(visitor, visitor.move(), moved=True)
    except Broken as error:
        tally.errors.append(str(error))
    finally:
        tally.received += visitor.received
        await visitor.leave()


async def tour(address: str, tally: Tally) -> None:
    """One person opens every page once, before the others come."""
    visitor = Visitor(address, 0, secrets.token_urlsafe(32))
    await visitor.enter()
    try:
        for entry in built():
            await visitor.visit(entry.url)
            tally.errors += visitor.page.exceptions
    finally:
        await visitor.leave()


async def sit(address: str, operator: Operator, sessions: int) -> None:
    """Opens that many tabs, twice, each on the next page; nobody moves anything. Prints what the server holds."""
    pages = [entry.url for entry in built()]

    def say(when: str) -> float:
        held = operator.read()["glassformer_server_bytes"] / 2**20
        print(f"{when:32} {held:7.0f} MB")
        return held

    held = say("before")
    for turn in ("first", "second"):
        visitors = [Visitor(address, seed, secrets.token_urlsafe(32)) for seed in range(sessions)]
        for at, visitor in enumerate(visitors):
            await visitor.enter()
            await visitor.visit(pages[at % len(pages)])
        there = say(f"{sessions} tabs, the {turn} time")
        print(f"{'a tab':32} {(there - held) / sessions:7.2f} MB")
        for visitor in visitors:
            await visitor.leave()
        await asyncio.sleep(GONE)
        held = say(f"{GONE:.0f} s after they left")


async def train(address: str, until: asyncio.Event, query: str = f"steps={STEPS}") -> None:
    """Somebody who starts a training and watches it, until told to go."""
    visitor = Visitor(address, 0, secrets.token_urlsafe(32))
    await visitor.enter()
    try:
        await visitor.visit("train", query)
        await visitor.press("train")
        while not until.is_set():
            await visitor.look(1.0)
    finally:
        await visitor.leave()


class Operator:
    """What the server says on its second port (docs/hosting.md), and the system of its process."""

    def __init__(self, port: int, process: int, *beside: int) -> None:
        """`beside` are processes whose work counts as this one's."""
        self._url, self.process, self._beside = f"http://127.0.0.1:{port}/metrics", process, beside

    def worked(self) -> float:
        """Seconds of a processor, until now."""
        return sum(map(floor.worked, (self.process, *self._beside)))

    def read(self) -> dict[str, float]:
        with urllib.request.urlopen(self._url, timeout=10) as answer:
            lines = [line for line in answer.read().decode().splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


# `python -m streamlit run`, with one limit of the profile changed
_SHORTENED = """
import sys
from dataclasses import replace
from runs.profiles import PROFILES
from streamlit.web.cli import main
PROFILES["{profile}"] = replace(PROFILES["{profile}"], forget_seconds={seconds})
main(sys.argv[1:])
"""


@contextmanager
def server(
    profile: str, forget: float | None = None, more: Mapping[str, str] | None = None
) -> Iterator[tuple[str, Operator, int]]:
    """A server of its own: its address, its numbers and its process id. `forget`: seconds unwatched until a run
    is removed, in place of the profile's. `more`: what else its environment says.
    """
    signal.signal(signal.SIGTERM, _ended)  # else whoever ends this one leaves a server behind
    with tempfile.TemporaryDirectory(prefix="glassformer-load-") as home:
        port, second = _free_port(), _free_port()
        log = Path(home) / "server.log"
        own = {
            "HOME": home,
            "TMPDIR": home,
            "GLASSFORMER_PROFILE": profile,
            "GLASSFORMER_LOG": "json",
            "GLASSFORMER_METRICS": str(second),
            **(more or {}),
        }
        shortened = _SHORTENED.format(profile=profile, seconds=forget)
        command = [sys.executable, *(("-m", "streamlit") if forget is None else ("-c", shortened))]
        command += ["run", "app.py", "--server.headless", "true"]
        command += ["--server.port", str(port), "--server.address", "127.0.0.1"]
        with _started(command, own, log, [port]) as process:
            yield f"http://127.0.0.1:{port}", Operator(second, process.pid), process.pid


@contextmanager
def _started(
    command: list[str], own: Mapping[str, str], log: Path, ports: Sequence[int]
) -> Iterator[subprocess.Popen[bytes]]:
    """A process whose environment has `own` more, once it serves at all ports; it ends with its log read."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env=os.environ | own, stdout=output, stderr=output, start_new_session=True
        )
    try:
        for port in ports:
            _wait_until_healthy(process, f"http://127.0.0.1:{port}", log)
        yield process
    finally:
        _end_group(process)
        traces = re.findall(r"^(?:Traceback.*|.*\"trace\".*)$", log.read_text(errors="replace"), re.M)
        print(f"traces in the server's log: {len(traces)}", *traces[:3], sep="\n  ")


Places = list[tuple[str, Operator]]  # servers: their own addresses, and their numbers


@contextmanager
def servers(profile: str, count: int, ray: bool = False, warm: bool = False) -> Iterator[tuple[str, Places]]:
    """So many of them by one command, with a Ray cluster of this machine that holds their runs or without; the
    address that visitors come to first.
    """
    warmth = {"GLASSFORMER_WARM": "yes" if warm else "no"}
    with ExitStack() as started:
        if count == 1:
            address, operator, _ = started.enter_context(server(profile, more=warmth))
            yield address, [(address, operator)]
            return
        home = started.enter_context(tempfile.TemporaryDirectory(prefix="glassformer-load-"))
        port = free_row(2 * count + 1)
        second = port + count + 1
        own = {
            "SERVERS": str(count),
            "PORT": str(port),
            "ADDRESS": "127.0.0.1",
            "PYTHON": sys.executable,
            "HOME": home,
            "TMPDIR": home,
            "GLASSFORMER_PROFILE": profile,
            "GLASSFORMER_LOG": "json",
            "GLASSFORMER_METRICS": str(second),
            **warmth,
        }
        if ray:
            from ray.cluster_utils import Cluster

            cpus = (os.cpu_count() or 1) + 4  # as many processes as one server may have
            nodes = Cluster(
                initialize_head=True, head_node_args={"num_cpus": cpus, "include_dashboard": False}
            )
            started.callback(nodes.shutdown)
            own["GLASSFORMER_RAY"] = nodes.address
        ports = range(port + 1, port + count + 1)
        log = Path(home) / "server.log"
        process = started.enter_context(_started(["sh", "deploy/start.sh"], own, log, [*ports, port]))
        numbers = [int(each) for each in _children(process.pid)]
        serving = {
            each: number for number in numbers for each in ports if f"--server.port {each} " in _line(number)
        }
        beside = [number for number in numbers if number not in serving.values()]
        operators = [
            Operator(second + at, serving[each], *(() if at else beside)) for at, each in enumerate(ports)
        ]
        yield (
            f"http://127.0.0.1:{port}",
            [(f"http://127.0.0.1:{each}", operator) for each, operator in zip(ports, operators, strict=True)],
        )


def _children(process: int) -> list[str]:
    return Path(f"/proc/{process}/task/{process}/children").read_text().split()


def _line(process: int) -> str:
    """The command of a process."""
    return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()


def _ended(number: int, _: object) -> None:
    sys.exit(128 + number)


async def warmed(address: str) -> None:
    """Waits until a server says that it is warm. Raises Broken where it does not."""
    begun = time.monotonic()
    while time.monotonic() - begun < WARMING:
        with suppress(OSError), urllib.request.urlopen(f"{address}/healthz", timeout=10) as answer:
            if json.load(answer).get("warm"):
                print(f"warm after {time.monotonic() - begun:.0f} s", flush=True)
                return
        await asyncio.sleep(1.0)
    raise Broken(f"{address} is not warm after {WARMING:.0f} s")


async def steps_in(operator: Operator, seconds: float) -> float:
    """Steps a second of all trainings together, over a while."""
    before, begun = operator.read(), time.monotonic()
    await asyncio.sleep(seconds)
    after = operator.read()
    name = "glassformer_steps"
    return (after[name] - before[name]) / (time.monotonic() - begun)


async def measure(
    public: str, places: Places, sessions: int, training: int, seconds: float, views: int
) -> Tally:
    """The whole: trainings alone, then everybody, at the `public` address."""
    tally, over, alone = Tally(), asyncio.Event(), 0.0
    trainers: list[asyncio.Task[None]] = []
    address, operator = places[0]
    for each, _ in places:  # what is kept for everybody is there before anybody is counted
        await tour(each, tally)
    if views and len(places) == 1:
        addresses = [each.address() for each in listed()]
        chosen = addresses[:: max(1, len(addresses) // views)][:views]
        print(floor.said(await floor.moves(address, operator.process, chosen)), flush=True)
    if training:
        trainers = [asyncio.create_task(train(public, over)) for _ in range(training)]
        while operator.read()["glassformer_steps"] < WARM:
            await asyncio.sleep(0.5)
        alone = await steps_in(operator, ALONE)
    before = of_all(places, "glassformer_server_bytes")
    until, worked = time.monotonic() + seconds, sum(each.worked() for _, each in places)
    begun, own = time.monotonic(), time.process_time()
    people = [asyncio.create_task(attend(public, 1 + seed, until, tally)) for seed in range(sessions)]
    beside = await steps_in(operator, max(1.0, seconds - 5.0))
    more, tabs = (
        of_all(places, "glassformer_server_bytes") - before,
        of_all(places, "glassformer_sessions"),
    )
    await asyncio.gather(*people)
    worked = sum(each.worked() for _, each in places) - worked
    lasted, own = time.monotonic() - begun, time.process_time() - own
    over.set()
    for done in await asyncio.gather(*trainers, return_exceptions=True):
        if isinstance(done, BaseException):
            tally.errors.append(f"a training: {done}")
    print(tally.table())
    for seconds, page, moved in sorted(tally.moves, reverse=True)[:SLOWEST]:
        print(f"  {seconds:7.2f} s  {page}: {moved or 'opened'}")
    print(f"errors: {len(tally.errors)}", *tally.errors[:5], sep="\n  ")
    answers = sum(len(each) for each in tally.seconds.values())
    waited = f", after p95 {percentile(tally.bars, 95):.2f} s" if tally.bars else ""
    print(
        f"answers that showed a bar first: {len(tally.bars)}{waited};"
        f" without a result after {PATIENCE:.0f} s: {tally.unfinished}"
    )
    print(f"an answer: {1000 * worked / max(1, answers):.0f} ms of a processor")
    print(f"cores at work: {worked / lasted:.2f} of the server(s), {own / lasted:.2f} of these visitors")
    print(f"sent by the server: {tally.received / 2**20:.0f} MB")
    print(
        f"memory of {len(places)} server(s): {before / 2**20:.0f} MB before, {more / 2**20:+.0f} MB with"
        f" {tabs:.0f} tabs ({more / 2**20 / max(1, sessions):.2f} MB each, what is"
        " kept for all of them included)"
    )
    if trainers:
        share = beside / alone if alone else float("nan")
        print(f"steps a second of {training} training: {alone:.1f} alone, {beside:.1f} beside ({share:.0%})")
    return tally


def of_all(places: Places, name: str) -> float:
    """A number of every server, together."""
    return sum(operator.read()[name] for _, operator in places)


async def memory(address: str, operator: Operator, sessions: int) -> None:
    """What is kept for everybody first, then the tabs."""
    await tour(address, Tally())
    await sit(address, operator, sessions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--training", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--warm", action="store_true", help="wait until the servers are warm")
    parser.add_argument("--ray", action="store_true", help="have a cluster of this machine hold their runs")
    parser.add_argument(
        "--views", type=int, default=1000, help="a move alone is measured in so many views (all; 0: none)"
    )
    parser.add_argument("--profile", default="hosted")
    parser.add_argument("--memory", action="store_true", help="open the tabs only, and see what they hold")
    given = parser.parse_args()
    with servers(given.profile, given.servers, given.ray, given.warm) as (public, places):
        for address, _ in places if given.warm else ():
            asyncio.run(warmed(address))
        if given.memory:
            asyncio.run(memory(*places[0], given.sessions))
            return
        tally = asyncio.run(
            measure(public, places, given.sessions, given.training, given.seconds, given.views)
        )
    sys.exit(bool(tally.errors))


if __name__ == "__main__":
    main()
