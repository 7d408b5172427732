"""deploy/nginx.conf, with a real nginx before two servers of the test's own, which say who they are."""

import http.client
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.nginx import before, needs_nginx
from ui.identity import COOKIE

pytestmark = [needs_nginx, pytest.mark.exhaustive]


class Told(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = json.dumps({"server": self.server.server_address[1], "headers": dict(self.headers)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, list[ThreadingHTTPServer]]]:
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), Told) for _ in range(2)]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    with before([server.server_port for server in servers], tmp_path_factory.mktemp("nginx")) as port:
        yield port, servers
    for server in servers:
        server.shutdown()


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
    counts = [list(homes.values()).count(server.server_port) for server in servers]
    assert min(counts) >= 12, f"of 60 browsers {counts} came to the two servers"


def test_what_a_visitor_claims_about_the_address_is_replaced(proxy: tuple) -> None:
    told = asked(proxy[0], X_Forwarded_For="6.6.6.6", X_Forwarded_Proto="https")[1]["headers"]
    assert told["X-Forwarded-For"] == "127.0.0.1" and told["X-Forwarded-Proto"] == "http"
    assert told["Host"] == f"127.0.0.1:{proxy[0]}"


def test_the_operators_page_is_not_the_publics(proxy: tuple) -> None:
    assert asked(proxy[0], "/_stcore/metrics")[0] == 404
