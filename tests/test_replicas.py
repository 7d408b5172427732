"""A real nginx before two servers: ours by one command, with their runs in one process or on a Ray cluster, and the test's own, which say who they are."""

import asyncio
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from benchmarks.visitor import Visitor
from tests.aside import aside
from tests.browser.server import free_row
from tests.nginx import before, needs_nginx
from tests.operating import SECONDS, answering, folder_for_others, metric, trained, wait
from tests.source import ROOT
from ui.identity import COOKIE

MAKE_COOKIES = "from ui.identity import new_cookie; print(*(new_cookie() for _ in range(21)))"
pytestmark = [needs_nginx, pytest.mark.exhaustive]


@dataclass
class Site:
    """What `SERVERS=2 sh deploy/start.sh` has started."""

    process: subprocess.Popen[bytes]
    environment: dict[str, str]

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.environment['PORT']}"

    def cookies(self) -> list[str]:
        made = subprocess.run(
            [sys.executable, "-c", MAKE_COOKIES],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            check=True,
        )
        return made.stdout.decode().split()

    def told(self, name: str) -> list[float]:
        """A number of each server; -1 of one that is not there."""
        found = [-1.0, -1.0]
        for at in range(2):
            with suppress(OSError):
                found[at] = metric(int(self.environment["GLASSFORMER_METRICS"]) + at, name)
        return found

    def processes(self) -> dict[int, str]:
        """The commands of all processes of the site, by number: whose environment says so."""
        mark = f"GLASSFORMER_SITE={self.environment['GLASSFORMER_SITE']}".encode()
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        return {number: command for number, command in found.items() if command}

    def server(self, at: int) -> int:
        """The process of a server."""
        port = f"--server.port {int(self.environment['PORT']) + 1 + at} "
        return next(number for number, command in self.processes().items() if port in command)


@pytest.fixture(params=["here", "cluster"])
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    port = free_row(5)
    environment = os.environ | {
        "SERVERS": "2",
        "PORT": str(port),
        "ADDRESS": "127.0.0.1",
        "PYTHON": sys.executable,
        "GLASSFORMER_METRICS": str(port + 3),
        "GLASSFORMER_SITE": str(port),
    }
    with ExitStack() as stack:
        home = stack.enter_context(folder_for_others())  # pytest's own has a name too long for a socket
        environment |= {"HOME": str(home), "TMPDIR": str(home / "tmp"), "XDG_CACHE_HOME": str(home)}
        if request.param == "cluster":
            pytest.importorskip("ray", reason="Ray is not installed (requirements-ray.txt)")
            from ray.cluster_utils import Cluster

            eager = {"worker_niceness": 0}  # else its processes stand still beside other tests
            head = {"num_cpus": 2, "include_dashboard": False, "_system_config": eager}
            nodes = Cluster(initialize_head=True, head_node_args=head)
            stack.callback(nodes.shutdown)
            environment |= {"GLASSFORMER_RAY": nodes.address}
        process = subprocess.Popen(["sh", "deploy/start.sh"], cwd=ROOT, env=environment)
        stack.callback(process.wait, 30)
        stack.callback(process.terminate)
        yield Site(process, environment)


def healthy(site: Site) -> bool:
    assert site.process.poll() is None
    command = [sys.executable, "deploy/healthy.py"]
    return not subprocess.run(command, cwd=ROOT, env=site.environment, capture_output=True).returncode


def test_a_runs_link_works_on_every_server_and_when_its_own_is_gone(site: Site) -> None:
    async def play(own: str, *others: str) -> None:
        mine = Visitor(site.address, cookie=own)
        await mine.enter()
        await mine.visit("", "")
        home = site.told("glassformer_sessions").index(1)
        for cookie in others:  # until somebody comes to the other server
            other = Visitor(site.address, cookie=cookie)
            await other.enter()
            await other.visit("", "")
            if site.told("glassformer_sessions")[home] == 1:
                break
            await other.leave()
            await asyncio.sleep(1)
        assert site.told("glassformer_sessions") == [1, 1]
        await trained(mine)
        run = parse_qs(mine.query)["run"][0]
        await other.visit("train", f"run={run}")
        assert any(": finished]" in said for said in other.page.said)
        await other.visit("attention", f"model=run-{run}&step=30")
        assert other.page.elements > 5 and not other.page.exceptions
        assert parse_qs(other.query)["model"] == [f"run-{run}"], "and not a model that came with the app"
        await mine.visit("train", "steps=5000")
        await mine.press("train")
        await grown(mine, lambda: site.told("glassformer_steps")[1 - home], 40)
        long = parse_qs(mine.query)["run"][0]
        # its server goes; the browser comes back to the other one, and its runs are there, and still its own
        killed, steps = site.server(home), site.told("glassformer_steps")[1 - home]
        os.kill(killed, signal.SIGKILL)
        begun = time.monotonic()
        again = Visitor(site.address, cookie=mine._cookie)
        await again.enter()
        await again.visit("train", f"run={run}")
        assert time.monotonic() - begun < 10
        assert any(": finished]" in said for said in again.page.said)
        await other.visit("train", f"run={run}")
        assert steers(again) and not steers(other), "who started it, and nobody else"
        await again.visit("train", f"run={long}")
        await grown(again, lambda: site.told("glassformer_steps")[1 - home], steps + 5)
        # and is there again
        await asyncio.to_thread(wait, lambda: site.told("glassformer_sessions")[home] == 0 and healthy(site))
        assert site.server(home) != killed
        await again.leave()
        await other.leave()

    async def grown(visitor: Visitor, steps: Callable[[], float], most: float) -> None:
        """Watches, as a training that nobody watches is paused, until so many steps are done."""
        until = time.monotonic() + SECONDS
        while steps() < most:
            assert time.monotonic() < until, f"it stands at {steps():.0f}"
            await visitor.look(1.0)

    def steers(visitor: Visitor) -> bool:
        (proto,) = [
            proto for name, (_, proto) in visitor.page.controls.items() if name.endswith("-extend_button")
        ]
        return not proto.disabled

    wait(lambda: healthy(site))
    printed = subprocess.check_output([sys.executable, "deploy/metrics.py"], cwd=ROOT, env=site.environment)
    assert printed.count(b"# server ") == 2 and printed.count(b"\nglassformer_sessions ") == 2
    aside(play(*site.cookies()))
    site.process.terminate()
    assert site.process.wait(30) == 0
    wait(lambda: not site.processes())
    assert not list(Path(site.environment["TMPDIR"]).glob("glassformer-servers-*"))


@pytest.mark.parametrize("site", ["here"], indirect=True)
def test_what_is_left_alone_ends_and_what_gives_up_ends_the_whole(site: Site) -> None:
    """A second site at the same port, and one whose first process is killed."""
    wait(lambda: healthy(site))
    second = subprocess.run(
        ["sh", "deploy/start.sh"], cwd=ROOT, env=site.environment, capture_output=True, timeout=120
    )
    assert second.returncode > 0 and b"ended with code" in second.stderr and b"Traceback" not in second.stderr
    assert healthy(site)
    site.process.kill()
    site.process.wait()
    wait(lambda: not site.processes())


def described(request: BaseHTTPRequestHandler) -> bytes:
    _, port = request.connection.getsockname()
    if request.path not in ("/", f"/at-{port}"):
        return b""
    return json.dumps({"server": port, "headers": dict(request.headers)}).encode()


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, list[int]]]:
    """The port of nginx, and those of the two servers behind it."""
    folder = tmp_path_factory.mktemp("nginx")
    with answering(described) as a, answering(described) as b, before([a, b], folder) as port:
        yield port, [a, b]


def asked(port: int, path: str = "/", **headers: str) -> tuple[int, dict]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(
        "GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )
    answer = connection.getresponse()
    body = answer.read()
    return answer.status, json.loads(body) if answer.status == 200 else {}


def test_a_browser_always_comes_to_the_same_server_and_browsers_are_spread(proxy: tuple) -> None:
    port, servers = proxy
    homes = {}
    for browser in range(60):
        found = {asked(port, Cookie=f"{COOKIE}=browser-{browser}")[1]["server"] for _ in range(3)}
        assert len(found) == 1
        homes[browser] = found.pop()
    counts = [list(homes.values()).count(server) for server in servers]
    assert min(counts) >= 12, f"of 60 browsers {counts} came to the two servers"


def test_what_one_server_does_not_know_is_asked_of_the_other(proxy: tuple) -> None:
    port, servers = proxy
    for server in servers:
        assert asked(port, f"/at-{server}", Cookie=f"{COOKIE}=one")[1]["server"] == server
    assert asked(port, "/at-none")[0] == 404


def test_what_a_visitor_claims_about_the_address_is_replaced(proxy: tuple) -> None:
    told = asked(proxy[0], X_Forwarded_For="6.6.6.6", X_Forwarded_Proto="https")[1]["headers"]
    assert told["X-Forwarded-For"] == "127.0.0.1" and told["X-Forwarded-Proto"] == "http"
    assert told["Host"] == f"127.0.0.1:{proxy[0]}"


def test_the_operators_page_is_not_the_publics(proxy: tuple) -> None:
    assert asked(proxy[0], "/_stcore/metrics")[0] == 404
