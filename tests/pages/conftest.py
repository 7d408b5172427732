"""What the tests of pages share: a stage in place of the run manager, and Plotly's own checks of every figure
that a page draws.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st
import torch
from streamlit.components.v2 import manifest_scanner

from engine.data import corpora
from engine.errors import CorpusError
from runs.rooms import Rooms
from tests.pages import helpers
from tests.pages.stage import StageManager
from ui import background_jobs, explain, memo, page_frame, session
from ui.figures.specs import Figure
from ui.players import plot


def unpacked(value: Any) -> Any:
    """What the browser sees: packed arrays as lists, and nothing where there is None, NaN or an empty
    list.
    """
    if isinstance(value, dict) and "bdata" in value:
        array = np.frombuffer(base64.b64decode(value["bdata"]), value["dtype"])
        shape = [int(n) for n in value["shape"].split(",")] if "shape" in value else [-1]
        return unpacked(array.reshape(shape).tolist())
    if isinstance(value, dict):
        return {key: unpacked(one) for key, one in value.items() if one is not None and one != []}
    if isinstance(value, list):
        return [unpacked(one) for one in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def as_drawn(message: dict[str, Any]) -> Drawn:
    figure, table = message["figure"], message["table"]
    columns = table and {
        name: unpacked(column) if isinstance(column, list) else unpacked_column(column)
        for name, column in zip(table["names"], table["columns"], strict=True)
    }
    traces = [unpacked(trace) for trace in figure["data"]]
    return Drawn(traces, unpacked(figure["layout"]), columns, message["alt"])


def unpacked_column(column: dict[str, str]) -> list[Any]:
    return np.frombuffer(base64.b64decode(column["bdata"]), column["dtype"]).tolist()


def shape(value: Any) -> Any:
    """What a figure is made of: the names of its properties, and the kinds of their values."""
    if isinstance(value, dict):
        return tuple(sorted((key, shape(one)) for key, one in value.items()))
    if isinstance(value, list | tuple):
        return sorted({repr(shape(one)) if isinstance(one, dict) else type(one).__name__ for one in value})
    if isinstance(value, np.ndarray):
        return str(value.dtype)
    return value if isinstance(value, str) and len(value) < 20 else type(value).__name__


@pytest.fixture(autouse=True)
def _unlinked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentences as their words.py has them: what the glossary makes of them, tests/ui/test_glossary.py holds."""
    monkeypatch.setattr(explain, "linked", lambda text: text)


@pytest.fixture(autouse=True, scope="session")
def packages_are_scanned_once() -> Iterator[None]:
    """Streamlit reads the metadata of every installed package for each AppTest, in 0.1 s of processor time."""
    with pytest.MonkeyPatch.context() as patch:
        scan = cache(manifest_scanner.scan_component_manifests)
        patch.setattr(manifest_scanner, "scan_component_manifests", scan)
        yield


@pytest.fixture(scope="module")
def nowhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """A machine with neither Tiny Shakespeare nor tiktoken's files, and no network; what other tests have read is
    forgotten, before and after. Holds an entry for each download that was tried.
    """
    tried: list[str] = []

    def refuse(progress: object) -> Path:
        tried.append(corpora.SHAKESPEARE_FILE)
        raise CorpusError("Tiny Shakespeare could not be downloaded (ConnectionError)")

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("GLASSFORMER_DATA", raising=False)
        for name in ("XDG_CACHE_HOME", "HOME", "TIKTOKEN_CACHE_DIR"):
            patch.setenv(name, str(tmp_path_factory.mktemp("empty")))
        patch.setattr(corpora, "_download", refuse)
        st.cache_resource.clear()
        memo.clear()
        st.cache_data.clear()
        assert corpora.shakespeare_path() is None
        yield tried
        background_jobs.leave_all()
    st.cache_resource.clear()
    memo.clear()
    st.cache_data.clear()


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> StageManager:
    """A run manager without workers, in the place of the server's. Its runs are called as those of other tests are:
    nothing that was measured of those is kept.
    """
    memo.MEASURED.clear()
    monkeypatch.setattr(background_jobs, "_server", background_jobs.Jobs())
    stage = StageManager()
    torch.set_num_threads(1)  # as the server's does: tiny operations would wait for a second thread
    monkeypatch.setattr(session, "manager", lambda: stage)
    return stage


@pytest.fixture
def rooms(monkeypatch: pytest.MonkeyPatch) -> Rooms:
    """The rooms of a server, of which there are none at first."""
    made = Rooms()
    monkeypatch.setattr(session, "rooms", lambda: made)
    return made


@pytest.fixture
def measured_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """No measurement of another test is kept or under way."""
    monkeypatch.setattr(background_jobs, "_server", background_jobs.Jobs())


LEARNED = 150  # steps of layers that learn in context


@pytest.fixture(scope="module")
def learns_shortly() -> Iterator[None]:
    """Layers that learn in context are trained for LEARNED steps, which no other module is shown."""
    from pages.lab.after import in_context_learning
    from studies.circuits import in_context

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            in_context_learning,
            "measure",
            lambda plan: in_context.measure(replace(plan, steps=LEARNED)),
        )
        yield
    jobs = background_jobs._server._jobs
    for key in [key for key in jobs if "in-context" in key]:
        del jobs[key]


@dataclass(frozen=True)
class Drawn:
    """What a page sent to one figure: its traces and layout with plain lists for arrays, its table, its words."""

    traces: list[dict[str, Any]]
    layout: dict[str, Any]
    table: dict[str, list[Any]] | None
    alt: str


@pytest.fixture
def drawn() -> dict[str, Drawn]:
    """Every figure that a page has drawn so far, the last one under each key."""
    helpers.DRAWN.clear()
    return helpers.DRAWN


@pytest.fixture(autouse=True, scope="module")
def visits_end_with_their_module() -> Iterator[None]:
    yield
    helpers.visit.cache_clear()


@pytest.fixture(autouse=True)
def faults_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a page a fault becomes a sentence; in a test it stays one."""

    def failed(error: Exception) -> None:
        raise error

    monkeypatch.setattr(page_frame, "failed", failed)


CHECKED: set[str] = set()  # Plotly's checks take longer than the rest of a page


def out_of_sight(figure: Drawn) -> list[tuple[str, str]]:
    """The pairs of axes whose set ends leave out most points. A curve that diverged may leave the picture, not all."""
    seen: dict[tuple[str, str], list[np.ndarray]] = {}
    for trace in figure.traces:
        if trace.get("type", "scatter") not in ("scatter", "scattergl", "bar"):
            continue
        axes = [f"{letter}axis{trace.get(f'{letter}axis', '')[1:]}" for letter in "xy"]
        inside: Any = True
        for letter, name in zip("xy", axes, strict=True):
            axis, values = figure.layout.get(name, {}), trace.get(letter)
            if values and axis.get("range") and not any(isinstance(value, str) for value in values):
                inside = inside & _between(np.asarray(values, float), axis)
        if isinstance(inside, np.ndarray):
            seen.setdefault((axes[0], axes[1]), []).append(inside)
    return [axes for axes, parts in seen.items() if np.mean(np.concatenate(parts)) < 0.5]


def astray(figure: Drawn) -> list[str]:
    """The notes that stand outside the figure, beyond a margin of half its size."""
    found = []
    for note in figure.layout.get("annotations", ()):
        for letter in "xy":
            at, ref = note.get(letter), note.get(f"{letter}ref", letter)
            axis = figure.layout.get(f"{letter}axis{ref.split()[0][1:]}", {}) if ref != "paper" else {}
            if ref == "paper" or ref.endswith("domain"):
                ends = (0.0, 1.0)
            elif ref.startswith(letter) and axis.get("range") and not isinstance(at, str):
                ends = tuple(sorted(axis["range"]))
            else:
                continue
            if at is not None and abs(at - sum(ends) / 2) > ends[1] - ends[0]:
                found.append(f"{letter} {at}: {note.get('text')}")
    return found


def _between(values: np.ndarray, axis: dict[str, Any]) -> np.ndarray:
    """Which values lie between the ends of an axis, or next to one; a gap lies nowhere, and is none too few."""
    with np.errstate(divide="ignore", invalid="ignore"):
        at = np.log10(values) if axis.get("type") == "log" else values
    low, high = sorted(axis["range"])
    reach = 0.02 * (high - low)
    return ~(np.abs(at) < np.inf) | ((at >= low - reach) & (at <= high + reach))


@pytest.fixture(autouse=True)
def plotly_agrees(monkeypatch: pytest.MonkeyPatch, drawn: dict[str, Drawn]) -> None:
    """What is sent unchecked is what Plotly's checked figure would send, for each new kind of figure; a
    property that Plotly does not know raises.
    """
    real = plot.payload

    def payload(figure: Any, **rest: Any) -> bytes:
        sent = real(figure, **rest)
        drawn[rest["key"]] = as_drawn(json.loads(sent))
        for lost in (out_of_sight(drawn[rest["key"]]), astray(drawn[rest["key"]])):
            assert not lost, (rest["key"], lost)
        kind = repr((shape(figure.traces), shape(figure.arrangement))) if isinstance(figure, Figure) else ""
        if kind and kind not in CHECKED:
            CHECKED.add(kind)
            ours, theirs = (
                unpacked(json.loads(one)["figure"]) for one in (sent, real(figure.checked, **rest))
            )
            assert ours == theirs
        return sent

    monkeypatch.setattr(plot, "payload", payload)


@pytest.fixture(autouse=True, scope="session")
def nothing_computes_at_the_end() -> Iterator[None]:
    yield
    background_jobs._server.leave(60)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages wait for what they measure, however slow the machine is: most tests are of the result. Those of
    the bar that stands there meanwhile ask for less.
    """
    monkeypatch.setattr(background_jobs, "GLANCE", 60.0)
