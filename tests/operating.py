"""What an operator reads of a server that a test has started."""

import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable
from typing import Any

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
