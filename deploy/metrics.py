"""Writes what $GLASSFORMER_METRICS serves, from inside the container, where curl is not; of several servers
one after the other.
"""

from __future__ import annotations

import os
import sys
import urllib.request

port = os.environ.get("GLASSFORMER_METRICS", "").rpartition(":")[2]
if not port:
    sys.exit("GLASSFORMER_METRICS is not set: there are no metrics")
servers = int(os.environ.get("SERVERS") or 1)
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # Docker may name a proxy for the world
for each in range(servers):
    with direct.open(f"http://127.0.0.1:{int(port) + each}/metrics", timeout=4) as answer:
        heading = f"# server {each + 1}\n".encode() if servers > 1 else b""
        sys.stdout.buffer.write(heading + answer.read())
