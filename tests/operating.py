"""What an operator reads of a server that a test has started, and small servers of a test's own."""

import os
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from benchmarks.visitor import Visitor

NOBODY = 65534
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
SECONDS = 120.0  # where others work on the same cores


def metric(port: int, name: str) -> float:
    """The first of the server's numbers whose line begins with `name`; -1 where there is none."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return next((float(line.split()[-1]) for line in lines if line.startswith(name)), -1.0)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def wait(found: Callable[[], Any]) -> None:
    until = time.monotonic() + SECONDS
    while not found():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.1)


def unprivileged(python: str) -> tuple[str, ...]:
    """What runs a Python as another user; nothing where one may not become one, or that one may not run it."""
    may = os.name == "posix" and os.geteuid() == 0 and shutil.which(AS_NOBODY[0]) is not None
    tried = [*AS_NOBODY, "sh", "-c", '"$0" -c "import streamlit"', python]
    return AS_NOBODY if may and subprocess.run(tried, capture_output=True).returncode == 0 else ()


@contextmanager
def folder_for_others() -> Iterator[Path]:
    """A folder that other users may enter (pytest's own may not be)."""
    folder = Path(tempfile.mkdtemp(prefix="glassformer-others-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        subprocess.run(["chmod", "-R", "u+w", folder], check=True)
        shutil.rmtree(folder)


async def trained(visitor: Visitor, progress: Callable[[], float] = lambda: 0.0) -> None:
    """Starts a training of thirty steps and waits until its page says that it has ended, as long as `progress` grows."""
    await visitor.visit("train", "steps=30")
    await visitor.press("train")
    last, moved = progress(), time.monotonic()
    while not any(": finished]" in words for words in visitor.page.said):
        await visitor.look(1.0)
        assert not visitor.page.exceptions
        if (now := progress()) > last:
            last, moved = now, time.monotonic()
        assert time.monotonic() - moved < SECONDS, f"it stands at {last:.0f}: {list(visitor.page.said)[-8:]}"


@contextmanager
def answering(body: Callable[[BaseHTTPRequestHandler], bytes]) -> Iterator[int]:
    """The port of a server on this computer that answers every GET with what `body` makes of it; with 404 where
    that is nothing.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            made = body(self)
            self.send_response(200 if made else 404)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(made)))
            self.end_headers()
            self.wfile.write(made)

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
