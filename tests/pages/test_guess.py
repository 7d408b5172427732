"""Predict, then see, on the pages themselves: every guess is opened, is plain and short, and sets controls that
are there; who does not want to be asked is not asked.
"""

import re
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from engine.data.progress import Progress, Steps
from pages.lab.after import best_of_n, in_context_learning
from studies.guesses import Truth
from studies.tasks.attempts import COUNTS, Attempts, Votes
from tests.pages import helpers
from ui import content, guess, returns
from ui.guess import Choice, Guess, payload
from ui.models import FIRST_MODEL

# guess -> its view
PLACES = {
    "width": "inside/attention?attention_view=scores",
    "unmasked": "inside/attention?attention_view=mask",
    "parts": "inside/attention?attention_view=switches",
    "head": "inside/circuits?circuits_view=induction&model=timelapse",
    "memory": "inside/attention?attention_view=memory",
    "depth": "inside/residual?residual_view=highway",
    "order": "input/positions?positions_view=why",
    "experts": "inside/feedforward?feedforward_view=experts",
    "merge": "input/tokens?tokens_view=bpe",
    "family": "input/tokens?tokens_view=compare",
    "nearest": "input/embeddings?embed_view=map",
    "nucleus": "output/sampling?sampling_view=stages",
    "colder": f"output/sampling?sampling_view=temperatures&model={FIRST_MODEL}",
    "drafts": "output/generation?generation_view=drafts&drafts_ahead=3",
    "grammar": f"output/sampling?sampling_view=constrained&model={FIRST_MODEL}",
    "sinks": "output/generation?generation_view=cache&kv_part=smaller&cache_model=shown",
    "wider": "models/parameters?parameters_view=where",
    "shared": "models/parameters?parameters_view=memory",
    "longer": "models/parameters?parameters_view=flops",
    "windowed": "models/parameters?parameters_view=where&parameters_scope=since&parameters_measure=cached",
    "adapter": f"lab/after?after_view=finetune&tune_fact=ahoy&model={FIRST_MODEL}",
    "rehearsed": "lab/after?after_view=finetune&tune_fact=capital",
    "hacked": "lab/after?after_view=reward",
    "step": "lab/after?after_view=context",
    "beta": "lab/after?after_view=reward&reward_mode=preferences",
    "valley": "lab/ladder?ladder_view=scaling",
    "falls": "lab/ladder?ladder_view=scaling&ladder_flops=300000000000.0",
    "dots": "lab/after?after_view=aloud",
    "verified": "lab/after?after_view=aloud&aloud_mode=attempts",
    "unrun": "lab/after?after_view=aloud&aloud_mode=tool",
    "placed": "lab/after?after_view=benchmark",
    "mistake": "lab/faults?bugs_view=cost",
    "nudge": f"inside/shapes?shapes_view=backward&shapes_back=weight&model={FIRST_MODEL}",
    "overshoots": f"inside/shapes?shapes_view=backward&shapes_back=step&model={FIRST_MODEL}",
}
SEEN = re.compile(
    r"\b(now|[Ss]ee|[Ll]ook|[Pp]ress|[Cc]ompare|Measure it|[Ss]how|Train it)\b"
)  # what to look at
ELSEWHERE = {
    "dropout": "inside/feedforward?feedforward_view=dropout&dropout_shown=training",
    "exchanged": "lab/after?after_view=context&context_learner=words",
}
SMALL = {"head": {"model": "timelapse"}}  # a model that is quick to measure
MOST = {"asked": 150, "text": 60, "said": 150, "found": 210}  # letters: the line is slim


def opened(name: str, **query: str) -> AppTest:
    page, _, view = PLACES[name].partition("?")
    return helpers.opened(page, **(dict(parse_qsl(view)) | query))


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []

    def mounted(name: str, **rest: Any) -> Any:
        assert name == "guess"
        return lambda *, data, **more: messages.append(data)

    monkeypatch.setattr(guess, "mounted", mounted)
    return messages


def wanted(monkeypatch: pytest.MonkeyPatch, did: str) -> None:
    picked = guess.widgets.picked
    say = lambda key, name: did if key == guess.KEY else picked(key, name)  # noqa: E731
    monkeypatch.setattr(guess.widgets, "picked", say)


@pytest.fixture(autouse=True)
def drawn_answers(monkeypatch: pytest.MonkeyPatch, measured_anew: None) -> None:
    """Answers of models that need not be taught first."""

    def measure() -> Steps[dict[float, Attempts]]:
        yield Progress(0, 1)
        ends = {0.5: 0.9, 1.0: 0.95, 1.5: 1.0}
        shares = {t: np.array([np.linspace(0.5, end, len(COUNTS))] * 3) for t, end in ends.items()}
        votes = (Votes("1+1=", "002", (("002", 64),)),) * 5
        return {t: Attempts(t, each, each, votes) for t, each in shares.items()}

    monkeypatch.setattr(best_of_n, "measure", measure)
    monkeypatch.setattr(
        in_context_learning, "measured", lambda *_, **__: None
    )  # the guess stands there before it is known


def test_more_answers_are_guessed_at_the_other_end_of_the_temperatures(
    heard: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted(monkeypatch, "open/verified")
    for shown, other in (("0.5", "Raise the temperature to 1.5"), ("1.5", "Lower the temperature to 0.5")):
        opened("verified", attempts_temperature=shown)
        assert other in heard[-1]["asked"]


@pytest.mark.parametrize("name", PLACES)
def test_every_guess(name: str, heard: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Guess] = []
    plain = payload
    monkeypatch.setattr(guess, "payload", lambda n, w, g: made.append(g) or plain(n, w, g))
    wanted(monkeypatch, f"open/{name}")
    page = opened(name)
    if not made and name == "family":
        pytest.skip("no published tokenizer is here")
    if name == "rehearsed" and heard[0]["id"] == "adapter":
        pytest.skip("no real model, whose runs are stored, is here")
    assert [message["id"] for message in heard] == [name], "one guess on a page"
    said, one = heard[0], made[0]
    assert "none" not in said, "what the app shows first can be guessed about"
    texts = [choice["text"] for choice in said["choices"]]
    assert len(set(texts)) == len(texts) in (2, 3, 4) and 0 <= said["right"] < len(texts)
    assert len({choice["said"] for choice in said["choices"]}) == len(texts), "each thought has its sentence"
    for kind, most in MOST.items():
        rows = said["choices"] if kind in ("text", "said") else [said]
        assert all(0 < len(row[kind]) <= most for row in rows), kind
        assert not any("**" in row[kind] or "](" in row[kind] for row in rows), "plain text"
    assert returns.GUESSES[name].refuted or SEEN.search(said["found"]), "a wrong one learns what to look at"
    assert all(key in page.session_state for key in one.sets), "a guess sets controls that are there"
    for key, value in one.sets.items():
        page.session_state[key] = value
    wanted(monkeypatch, f"seen/{name}")
    page.run()
    assert not page.exception
    for key, value in one.sets.items():
        assert page.session_state[key] == value, f"{key} keeps what the guess sets it to"


LONG = {"exchanged"}  # SmolLM2 reads hundreds of prompts


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.exhaustive] if name in LONG else [])
        for name, each in returns.GUESSES.items()
        if each.settings
    ],
)
def test_a_guess_that_returns_at_other_settings_asks_for_other_numbers(
    name: str, heard: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted(monkeypatch, f"open/{name}")
    numbers = []
    for address in ("", *returns.GUESSES[name].settings):
        page, _, view = (PLACES | ELSEWHERE)[name].partition("?")
        heard.clear()
        helpers.opened(
            page, **(dict(parse_qsl(view)) | dict(parse_qsl(address.partition("?")[2])) | SMALL.get(name, {}))
        )
        if not heard or heard[0]["id"] != name:
            pytest.skip(f"{name} needs what is not here")
        assert "none" not in heard[0], address
        numbers.append((heard[0]["asked"], str(heard[0]["choices"]), heard[0]["found"]))
    assert len(set(numbers)) == len(numbers), numbers


@pytest.mark.parametrize("asked", ["off", "OFF", "<b>"])
def test_an_address_can_switch_it_off(asked: str, heard: list[dict[str, Any]]) -> None:
    page = opened("width", guess=asked)
    assert bool(heard) is (asked != "off")
    heard.clear()
    if "guess" in page.query_params:
        del page.query_params["guess"]  # as the menu leaves it
    page.run()
    assert bool(heard) is (asked != "off")
    assert page.query_params.get("guess") == ("off" if asked == "off" else None)
    page.query_params["guess"] = "on"
    page.run()
    assert heard


@pytest.mark.parametrize("did, sets", [("seen/x", True), ("open/x", False), ("closed/x", False), (7, False)])
def test_only_a_choice_sets_controls(did: Any, sets: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    held: dict[str, Any] = {"guess_sets": {"key": 1}}
    monkeypatch.setattr(st, "session_state", held)
    wanted(monkeypatch, did)
    guess._did()
    assert held == ({"key": 1} if sets else {})


def test_what_is_offered_and_told(tmp_path: Path) -> None:
    (tmp_path / "view.md").write_text(
        "# A view\n## labels\n"
        "choice a: a of {n:.0f}\nchoice b: b\nchoice c: c\n"
        "reply a: a!\nreply b: b!\nreply c: c!\nright c: so it is, {n:.0f}\n"
    )
    text = content.beside(str(tmp_path / "view.py"))
    read = partial(Guess.of, text, question="what?", outcome="3 of 4")
    one = read(Truth("c", ("a", "c"), {"n": 4.0}), sets={"key": 1})
    assert one.choices == (Choice("a of 4", "a!"), Choice("c", "so it is, 4")) and one.right == 1
    assert read(Truth("b", ("a", "b"), {"n": 4.0})).choices[1] == Choice("b", "b!")
    other = read(Truth("a", ("a", "c"), {"n": 4.0}), choices={"c": "3", "b": "2", "a": "1"})
    assert other.choices == (Choice("3", "c!"), Choice("1", "a!")) and other.right == 1
    (tmp_path / "all.md").write_text("# A view\n## labels\nchoice a: a\nreply a: a!\nright: so it is\n")
    all_alike = Guess.of(content.beside(str(tmp_path / "all.py")), Truth("a", ("a",), {}), "what?", "so")
    assert all_alike.choices == (Choice("a", "so it is"),)
    assert payload("x", False, one) == {"id": "x"}
    assert payload("x", True, None) == {"id": "x", "none": True}
    rows = [{"text": "a of 4", "said": "a!"}, {"text": "c", "said": "so it is, 4"}]
    told = {"id": "width", "asked": "what?", "choices": rows, "right": 1, "found": "3 of 4"}
    assert payload("width", True, one) == told | returns.after_wrong("width")
