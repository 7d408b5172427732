"""deploy/nginx.conf, run by a real nginx before servers of a test's own."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploy.servers import ARGUMENTS, configuration
from deploy.servers import NGINX as PLACES
from tests.browser.server import _free_port

NGINX = shutil.which("nginx", path=PLACES)
needs_nginx = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")


@contextmanager
def before(servers: Sequence[int], folder: Path) -> Iterator[int]:
    """The port of an nginx that stands before the two `servers`, given by their ports. Fails the test with what
    nginx says where it does not start.
    """
    port = _free_port()
    (folder / "nginx.conf").write_text(configuration(f"127.0.0.1:{port}", servers, folder))
    command = [str(NGINX), *ARGUMENTS, "-p", str(folder), "-c", str(folder / "nginx.conf")]
    with (folder / "errors").open("wb") as errors:
        started = subprocess.Popen(command, stderr=errors)
    for _ in range(100):
        if started.poll() is not None:
            pytest.fail((folder / "errors").read_text())
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.05)
    try:
        yield port
    finally:
        started.terminate()
        started.wait(10)
