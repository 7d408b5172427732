"""Ends well when the server on $PORT is ready: Docker's HEALTHCHECK, and the last step of an upgrade."""

from __future__ import annotations

import os
import sys
import urllib.request

direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # Docker may name a proxy for the world
try:
    with direct.open(f"http://127.0.0.1:{os.environ.get('PORT', '8501')}/healthz", timeout=4):
        pass
except OSError as error:
    sys.exit(f"not ready: {error}")
