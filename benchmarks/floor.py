"""The floor of an answer: a plain Streamlit app with one slider and one figure, and what a move costs it and us in
seconds of the server's processor. Both are asked in turns, so that a busy machine slows both.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from streamlit.proto.WidgetStates_pb2 import WidgetState

from benchmarks.visitor import Gone, Visitor
from tests.browser.server import _end_group, _free_port, _wait_until_healthy
from ui.site import ROOT

PLAIN = """
import streamlit as st
height = st.slider("Height", 0, 100, 50)
st.plotly_chart({"data": [{"type": "bar", "y": [height, 50]}]})
"""
TURNS = 8  # moves of a control in turn with as many of the slider
TAIL = 0.02  # seconds in which a server ends what it has answered
PATIENCE = 60.0  # seconds for a measurement, and until a server is calm
GLIMPSE, CALM = 1.0, 0.03  # so many seconds of which it works at most this share


def worked(process: int) -> float:
    """Seconds of a processor that a process has had until now: exact, where /proc counts hundredths."""
    return time.clock_gettime((~process << 3) | 2)  # CLOCK_PROCESS_CPUTIME_ID of another one


async def calm(process: int) -> None:
    """Waits until a server does nothing of its own: a young one reads models and pages ahead."""
    until, before = time.monotonic() + PATIENCE, -GLIMPSE
    while (now := worked(process)) - before > CALM * GLIMPSE and time.monotonic() < until:
        before = now
        await asyncio.sleep(GLIMPSE)


@contextmanager
def plain() -> Iterator[tuple[str, int]]:
    """A server of the plain app: its address and its process id."""
    with tempfile.TemporaryDirectory(prefix="glassformer-floor-") as home:
        script, log, port = Path(home) / "plain.py", Path(home) / "server.log", _free_port()
        script.write_text(PLAIN)
        command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.headless", "true"]
        command += ["--server.port", str(port), "--server.address", "127.0.0.1"]
        with log.open("wb") as output:
            process = subprocess.Popen(  # here: the settings of .streamlit/config.toml are those of our app
                command,
                cwd=ROOT,
                env=os.environ | {"HOME": home},
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            _wait_until_healthy(process, f"http://127.0.0.1:{port}", log)
            yield f"http://127.0.0.1:{port}", process.pid
        finally:
            _end_group(process)


async def open_control(visitor: Visitor, name: str, query: str) -> tuple[str, list[WidgetState]]:
    """Opens a page and moves a control of its view (the last: above them are those of the page) to two values, so
    that both are known. Returns its id and the values; an empty id where there is none to move.
    """
    await visitor.visit(name, query)
    await visitor.result(PATIENCE)
    views = [each for each in visitor.page.controls if each in visitor.page.parts or not name]
    for control in reversed(views):
        if control not in visitor.page.controls:
            continue
        values = {str(value): value for _ in range(8) if (value := visitor.another(control)) is not None}
        if len(values) > 1:
            two = list(values.values())[:2]
            try:
                for value in two:
                    await visitor.set(control, value)
                    await visitor.result(PATIENCE)
            except Gone:
                continue
            if control in visitor.page.controls:
                return control, two
    return "", []


async def moves(address: str, process: int, places: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Returns, by address of a view, the processor's seconds for a move of a control there, everything known, and
    for one of the plain app's slider in turn with it: medians.
    """
    result = {}
    with plain() as (other, beside):
        ours, theirs = (Visitor(each, 0, secrets.token_urlsafe(32)) for each in (address, other))
        await ours.enter()
        await theirs.enter()
        slider = await open_control(theirs, "", "")
        await calm(process)
        for place in places:
            name, _, query = place.partition("?")
            control = await open_control(ours, name, query)
            costs: tuple[list[float], list[float]] = [], []
            for turn in range(TURNS if control[0] else 0):
                for cost, who, pid, (moved, values) in (
                    (costs[0], ours, process, control),
                    (costs[1], theirs, beside, slider),
                ):
                    before = worked(pid)
                    await who.set(moved, values[turn % 2])
                    await asyncio.sleep(TAIL)
                    cost.append(worked(pid) - before)
            if costs[0]:
                result[place] = statistics.median(costs[0]), statistics.median(costs[1])
        await ours.leave()
        await theirs.leave()
    return result


def said(costs: Mapping[str, tuple[float, float]]) -> str:
    """Says what a move costs beside the floor: medians over the views, and of their ratios."""
    ours, floor = (1000 * statistics.median(each) for each in zip(*costs.values(), strict=True))
    ratio = statistics.median(one / other for one, other in costs.values())
    return (
        f"a move alone: {ours:.1f} ms of a processor (median of {len(costs)} views, results known); plain Streamlit"
        f" with a slider and a figure {floor:.1f} ms; ratio {ratio:.2f}"
    )
