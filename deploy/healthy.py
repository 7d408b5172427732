"""Ends well when the server on $PORT is ready, or nginx there and each of $SERVERS behind it: Docker's
HEALTHCHECK, and the last step of an upgrade.
"""

from __future__ import annotations

import os
import sys
import urllib.request

port, servers = int(os.environ.get("PORT") or 8501), int(os.environ.get("SERVERS") or 1)
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # Docker may name a proxy for the world
for each in range(port, port + (servers + 1 if servers > 1 else 1)):
    try:
        with direct.open(f"http://127.0.0.1:{each}/healthz", timeout=4):
            pass
    except OSError as error:
        sys.exit(f"not ready: port {each}: {error}")
