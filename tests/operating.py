"""What an operator reads of a server that a test has started."""

import time
import urllib.request
from collections.abc import Callable
from typing import Any

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
