"""The small scripts of deploy/, each by itself, and what docs/hosting.md says to add to the image."""

from __future__ import annotations

import http.server
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def test_what_the_page_says_to_install_is_in_the_image() -> None:
    page = (ROOT / "docs" / "hosting.md").read_text("utf-8")
    ignored = set((ROOT / ".dockerignore").read_text().splitlines())
    asked = set(re.findall(r"RUN pip install [^`]*-r (\S+?)`", page))
    assert asked and not asked & ignored and all((ROOT / name).is_file() for name in asked)


@pytest.mark.parametrize(
    ("environment", "frames"),
    [
        ({}, None),
        ({"SPACE_ID": "me/glassformer"}, "https://huggingface.co"),
        (
            {"SPACE_ID": "me/glassformer", "GLASSFORMER_FRAME_ANCESTORS": "https://a.example"},
            "https://a.example",
        ),
    ],
)
def test_a_space_may_stand_in_the_frame_of_its_site(
    tmp_path: Path, environment: dict[str, str], frames: str | None
) -> None:
    says = tmp_path / "python"
    says.write_text("#!/bin/sh\nenv\nulimit -Sn\nulimit -Hn\n")
    says.chmod(0o755)
    told = subprocess.run(
        ["sh", str(ROOT / "deploy" / "start.sh")],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHON": str(says), **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    found = [line.partition("=")[2] for line in told if line.startswith("GLASSFORMER_FRAME_ANCESTORS=")]
    assert found == ([] if frames is None else [frames])
    assert told[-2] == told[-1], "as many descriptors as there may be"


def test_health_is_asked_of_the_server_whatever_proxy_leads_to_the_world(tmp_path: Path) -> None:
    class Well(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"well")

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Well)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    nowhere = "http://127.0.0.1:9"
    port = str(server.server_port)
    own = {"PATH": os.environ["PATH"], "http_proxy": nowhere, "PORT": port, "GLASSFORMER_METRICS": port}
    try:
        for script, said in (("healthy.py", b""), ("metrics.py", b"well")):
            ended = subprocess.run(
                [sys.executable, str(ROOT / "deploy" / script)], env=own, capture_output=True, check=False
            )
            assert (ended.returncode, ended.stdout) == (0, said), ended.stderr
    finally:
        server.shutdown()
        server.server_close()
