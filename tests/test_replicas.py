"""A real nginx before two servers: ours with one manager of runs on a Ray cluster, and the test's own, which say who they are."""

import asyncio
import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from benchmarks.visitor import Visitor
from tests.aside import aside
from tests.browser.server import _free_port
from tests.nginx import before, needs_nginx
from tests.operating import answering, answers, metric, trained, wait
from tests.source import ROOT
from ui.identity import COOKIE

SECRET = "of-two-servers-in-a-test"
MAKE_COOKIE = "from ui.identity import new_cookie; print(new_cookie())"
pytestmark = [needs_nginx, pytest.mark.exhaustive]


@dataclass
class Site:
    """What was started: its address for the public, servers by their operator's port, where cookies come from."""

    address: str
    servers: dict[int, subprocess.Popen[bytes]]
    environment: dict[str, str]

    def cookie(self) -> str:
        made = subprocess.run(
            [sys.executable, "-c", MAKE_COOKIE],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            check=True,
        )
        return made.stdout.decode().strip()

    def sessions(self) -> dict[int, float]:
        return {
            port: metric(port, "glassformer_sessions")
            for port, one in self.servers.items()
            if one.poll() is None
        }


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    pytest.importorskip("ray", reason="Ray is not installed (requirements-ray.txt)")
    from ray.cluster_utils import Cluster

    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    ports, operators = [_free_port(), _free_port()], [_free_port(), _free_port()]
    environment = os.environ | {
        "GLASSFORMER_PROFILE": "small",
        "GLASSFORMER_SECRET": SECRET,
        "GLASSFORMER_RAY": nodes.address,
        "GLASSFORMER_TRUST_PROXY": "1",
        "XDG_CACHE_HOME": str(tmp_path),
    }
    servers = {}
    for port, operator in zip(ports, operators, strict=True):
        command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless", "true"]
        command += ["--server.port", str(port), "--server.address", "127.0.0.1"]
        own = environment | {"GLASSFORMER_METRICS": str(operator)}
        servers[operator] = subprocess.Popen(command, cwd=ROOT, env=own)
    try:
        wait(lambda: all(answers(f"http://127.0.0.1:{port}/_stcore/health") for port in ports))
        with before(ports, tmp_path) as port:
            yield Site(f"http://127.0.0.1:{port}", servers, environment)
    finally:
        for one in servers.values():
            one.terminate()
        for one in servers.values():
            one.wait(30)
        nodes.shutdown()


def test_a_runs_link_works_on_every_server_and_when_its_own_is_gone(site: Site) -> None:
    async def play() -> None:
        mine = Visitor(site.address, cookie=site.cookie())
        await mine.enter()
        await mine.visit("", "")
        home = next(port for port, count in site.sessions().items() if count == 1)
        for _ in range(20):  # until somebody comes to the other server
            other = Visitor(site.address, cookie=site.cookie())
            await other.enter()
            await other.visit("", "")
            if site.sessions()[home] == 1:
                break
            await other.leave()
            await asyncio.sleep(1)
        assert sorted(site.sessions().values()) == [1, 1]
        await trained(mine)
        run = parse_qs(mine.query)["run"][0]
        await other.visit("train", f"run={run}")
        assert any(": finished]" in said for said in other.page.said)
        await other.visit("attention", f"model=run-{run}&step=30")
        assert other.page.elements > 5 and not other.page.exceptions
        assert parse_qs(other.query)["model"] == [f"run-{run}"], "and not a model that came with the app"
        # its server goes; the browser comes back to the other one, and the run is there, and still its own
        site.servers[home].kill()
        again = Visitor(site.address, cookie=mine._cookie)
        await again.enter()
        await again.visit("train", f"run={run}")
        assert any(": finished]" in said for said in again.page.said)
        await other.visit("train", f"run={run}")
        assert steers(again) and not steers(other), "who started it, and nobody else"
        await again.leave()
        await other.leave()

    def steers(visitor: Visitor) -> bool:
        (proto,) = [
            proto for name, (_, proto) in visitor.page.controls.items() if name.endswith("-extend_button")
        ]
        return not proto.disabled

    aside(play())


def described(request: BaseHTTPRequestHandler) -> bytes:
    _, port = request.connection.getsockname()
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


def test_what_a_visitor_claims_about_the_address_is_replaced(proxy: tuple) -> None:
    told = asked(proxy[0], X_Forwarded_For="6.6.6.6", X_Forwarded_Proto="https")[1]["headers"]
    assert told["X-Forwarded-For"] == "127.0.0.1" and told["X-Forwarded-Proto"] == "http"
    assert told["Host"] == f"127.0.0.1:{proxy[0]}"


def test_the_operators_page_is_not_the_publics(proxy: tuple) -> None:
    assert asked(proxy[0], "/_stcore/metrics")[0] == 404
