"""Requests for parts of a page: answered while that page is shown, else not."""

from types import SimpleNamespace

import pytest
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequests

from ui.operate import late


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        (RerunData(page_script_hash="shown", fragment_id_queue=["part"]), True),
        (RerunData(page_script_hash="left", fragment_id_queue=["part"]), False),
        (RerunData(page_script_hash="", fragment_id_queue=["part"]), False),
        (RerunData(page_script_hash="left"), True),  # somebody goes there
        (RerunData(), True),
    ],
)
def test_a_part_is_drawn_again_on_its_own_page_only(monkeypatch, asked: RerunData, answered: bool) -> None:
    heard: list[RerunData] = []
    monkeypatch.setattr(late, "_INSIDE", lambda _, data: heard.append(data))
    runner = SimpleNamespace(_pages_manager=SimpleNamespace(current_page_script_hash="shown"))
    late._run(runner, asked)  # type: ignore[arg-type]
    assert heard == [asked] * answered


def part(page: str, name: str = "bar") -> RerunData:
    return RerunData(page_script_hash=page, fragment_id=name)


@pytest.mark.parametrize(
    ("waits", "comes", "answered"),
    [
        (RerunData(page_script_hash="next"), part("left"), ("next", [])),
        (
            RerunData(page_name="here"),
            part("here"),
            ("here", []),
        ),  # who has come back is on the page that was shown
        (RerunData(page_script_hash="here"), part("here"), ("here", [])),
        (RerunData(page_script_hash="next"), RerunData(page_script_hash="other"), ("other", [])),
        (part("here", "one"), part("here"), ("here", ["one", "bar"])),
        (part("left"), RerunData(page_script_hash="next"), ("next", [])),
    ],
)
def test_a_click_that_waits_is_not_undone_by_a_part_of_the_page_that_is_left(
    monkeypatch, waits: RerunData, comes: RerunData, answered: tuple[str, list[str]]
) -> None:
    monkeypatch.setattr(ScriptRequests, "_request_rerun_locked", ScriptRequests._request_rerun_locked)
    monkeypatch.setattr(late.ScriptRunner, "_run_script", late.ScriptRunner._run_script)
    late.ignore()
    requests = ScriptRequests()
    assert requests.request_rerun(waits) and requests.request_rerun(comes)
    request = requests.on_scriptrunner_ready()
    assert (request.rerun_data.page_script_hash, request.rerun_data.fragment_id_queue) == answered
