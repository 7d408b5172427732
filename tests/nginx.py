"""deploy/nginx.conf, run by a real nginx before servers of a test's own."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.browser.server import _free_port

CONF = Path(__file__).resolve().parents[1] / "deploy" / "nginx.conf"
NGINX = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin:/opt/homebrew/bin")
needs_nginx = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")


@contextmanager
def before(servers: Sequence[int], folder: Path) -> Iterator[int]:
    """The port of an nginx that stands before the two `servers`, given by their ports. Fails the test with what
    nginx says where it does not start.
    """
    port = _free_port()
    text = CONF.read_text("utf-8")
    for old, new in (("8501", servers[0]), ("8502", servers[1]), ("8080", port)):
        assert text.count(old) == 1
        text = text.replace(old, str(new))
    places = "".join(
        f"    {kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    text = text.replace("http {\n", "http {\n    access_log off;\n" + places)
    (folder / "nginx.conf").write_text(f"daemon off;\npid {folder}/pid;\nerror_log {folder}/errors;\n" + text)
    started = subprocess.Popen([str(NGINX), "-p", str(folder), "-c", str(folder / "nginx.conf")])
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
