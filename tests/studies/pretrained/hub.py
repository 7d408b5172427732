"""A hub on this machine: answers what huggingface_hub asks, from a folder, and can be wrong on purpose."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

COMMIT = "a" * 40


class Hub:
    """`files` by name. `said` is the checksum that the hub tells of a large file, where it is not the true one."""

    def __init__(self, files: dict[str, bytes], said: dict[str, str] | None = None) -> None:
        self.files, self.said = files, said or {}
        self.asked: list[str] = []

    def sum(self, name: str) -> str:
        return self.said.get(name) or hashlib.sha256(self.files[name]).hexdigest()

    def info(self) -> dict[str, Any]:
        siblings = []
        for name, data in self.files.items():
            one: dict[str, Any] = {"rfilename": name, "size": len(data), "blobId": "b" * 40}
            if name.endswith(".safetensors"):
                one["lfs"] = {"sha256": self.sum(name), "size": len(data), "pointerSize": 100}
            siblings.append(one)
        return {"id": "any/one", "modelId": "any/one", "sha": COMMIT, "siblings": siblings, "tags": []}


@contextmanager
def served(hub: Hub) -> Iterator[str]:

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            return None

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            self._answer(body=True)

        def _answer(self, body: bool) -> None:
            path = urlsplit(self.path).path
            hub.asked.append(f"{self.command} {path}")
            if path.startswith("/api/models/"):
                self._send(json.dumps(hub.info()).encode(), {"Content-Type": "application/json"}, body)
            elif (name := path.rpartition("/")[2]) in hub.files:
                data = hub.files[name]
                self._send(data, {"ETag": f'"{hub.sum(name)}"', "X-Repo-Commit": COMMIT}, body)
            else:
                self.send_error(404)

        def _send(self, data: bytes, headers: dict[str, str], body: bool) -> None:
            self.send_response(200)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if body:
                self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
