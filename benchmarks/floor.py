"""The floor of an answer: what a move costs us in seconds of the server's processor, beside a plain Streamlit app with
one slider and one figure, and one that draws about as much as a view does. All are asked in turns, so that a busy
machine slows all.
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
from typing import NamedTuple

from streamlit.proto.WidgetStates_pb2 import WidgetState

from benchmarks.visitor import Gone, Visitor
from tests.browser.server import _end_group, _free_port, _wait_until_healthy
from ui.site import ROOT

PLAIN = """
import streamlit as st
height = st.slider("Height", 0, 100, 50)
st.plotly_chart({"data": [{"type": "bar", "y": [height, 50]}]})
"""
# What a view draws again after a move: its controls, two figures, its answer, and what is folded below.
FULL = """
import streamlit as st
@st.fragment
def view():
    controls = st.columns([1, 1, 2])
    controls[0].selectbox("Layer", range(4))
    controls[1].segmented_control("Colour", ["class", "frequency"], default="class")
    height = controls[2].slider("Height", 0, 100, 50)
    cells = [[(height + i * j) % 17 / 17 for j in range(24)] for i in range(24)]
    left, right = st.columns([5, 3])
    left.plotly_chart({"data": [{"type": "heatmap", "z": cells}]}, key="cells")
    right.markdown(f"**One sentence** about what is seen at {height} of a hundred, as every view has one.")
    right.plotly_chart({"data": [{"type": "bar", "y": [height, 50, 20, 10]}]}, key="bars")
    st.button("Guess")
    for name in ("Measure it", "By hand"):
        st.expander(name).caption("What is said below it.")
view()
"""
TURNS = 8  # moves of a control in turn with as many of theirs
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
def plain(app: str) -> Iterator[tuple[str, int]]:
    """A server of a plain app: its address and its process id."""
    with tempfile.TemporaryDirectory(prefix="glassformer-floor-") as home:
        script, log, port = Path(home) / "plain.py", Path(home) / "server.log", _free_port()
        script.write_text(app)
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


class Cost(NamedTuple):
    """The cost of a move: the processor's seconds, and the messages that draw something."""

    seconds: float
    messages: float


async def moves(address: str, process: int, places: Sequence[str]) -> dict[str, list[Cost]]:
    """Returns, by address of a view, what a move of a control there costs, everything known, and moves of the two
    plain apps' controls in turn with it: PLAIN, FULL.
    """
    result = {}
    with plain(PLAIN) as least, plain(FULL) as full:
        servers = ((address, process), least, full)
        visitors = [Visitor(each, 0, secrets.token_urlsafe(32)) for each, _ in servers]
        for visitor in visitors:
            await visitor.enter()
        others = [await open_control(visitor, "", "") for visitor in visitors[1:]]
        await calm(process)
        for place in places:
            name, _, query = place.partition("?")
            control = await open_control(visitors[0], name, query)
            costs: list[list[Cost]] = [[], [], []]
            for turn in range(TURNS if control[0] else 0):
                for cost, who, (_, pid), (moved, values) in zip(
                    costs, visitors, servers, [control, *others], strict=True
                ):
                    before, drawn = worked(pid), who.drawn
                    await who.set(moved, values[turn % 2])
                    await asyncio.sleep(TAIL)
                    cost.append(Cost(worked(pid) - before, who.drawn - drawn))
            if costs[0]:
                result[place] = [Cost(*map(statistics.median, zip(*each, strict=True))) for each in costs]
        for visitor in visitors:
            await visitor.leave()
    return result


def said(costs: Mapping[str, Sequence[Cost]]) -> str:
    """Says what a move costs beside the floors: medians over the views, and of their ratios."""
    ours, least, full = (
        Cost(*map(statistics.median, zip(*each, strict=True))) for each in zip(*costs.values(), strict=True)
    )
    ratios = [
        statistics.median(each[0].seconds / each[other].seconds for each in costs.values())
        for other in (1, 2)
    ]
    return (
        f"a move alone: {1000 * ours.seconds:.1f} ms of a processor and {ours.messages:.0f} messages (median of"
        f" {len(costs)} views, results known); plain Streamlit with a slider and a figure"
        f" {1000 * least.seconds:.1f} ms and {least.messages:.0f}, ratio {ratios[0]:.2f}; as full as a view"
        f" {1000 * full.seconds:.1f} ms and {full.messages:.0f}, ratio {ratios[1]:.2f}"
    )
