"""Search: what a person types finds what they mean, in the order that they expect; and what is printed of it."""

import json
import re
import shutil
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from types import SimpleNamespace

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from studies.exercises.catalogue import TASKS
from tests.pages.helpers import opened
from tests.pages.rooms import views as views_of
from tests.pages.stage import StageManager
from ui import session, site, visited
from ui.search import entries, route
from ui.search.entries import EXERCISE, MOST, TERM, VIEW, Entry, starts
from ui.search.question_list import question_list
from ui.text.glossary import terms
from ui.views import views

# query -> the first results
EXPECTED = {
    "perplexity": (
        "Sampling > Perplexity",
        "Train",
        "Generation > Token by token",
        "perplexity",
        "Perplexity",
    ),
    "perplexty": ("Sampling > Perplexity", "Train", "Generation > Token by token", "perplexity"),
    "rope": ("Positions > RoPE", "RoPE"),
    "how does attention work": ("Attention > Heads",),
    "why divide by sqrt(d)": ("Attention > Scores",),
    "kv cache": ("Generation > KV cache", "KV cache"),
    "sofmax": ("Attention > Scores", "softmax"),
    "dpo": ("After pre-training > Reward", "DPO"),
    "speculative decoding": ("Generation > Drafts", "speculative decoding"),
    "nucleus sampling": ("Sampling > Stage by stage",),
    "what is a bigram?": ("Ladder > Bigrams",),
    "Why did decoder-only models win?": ("Families > Why decoders",),
    "gpt-2, exactly": ("GPT-2, exactly",),
    "train": ("Train",),
    "train a model": ("Train",),
    "how do I train a model": ("Train",),
    "train my own model": ("Train",),
    "normalization": ("Residual stream > Norms", "LayerNorm"),
    "layer normalization": ("Residual stream > Norms", "LayerNorm"),
    "interpretability": ("Circuits > Patching", "Residual stream > Logit lens"),
    "mixture of experts": ("Feed-forward > Experts", "mixture of experts"),
    "hallucination": ("hallucination", "Circuits > Fact recall"),
    "unbelievably": ("Tokens > Tokenizers",),
    "163M": ("Parameters > Breakdown",),
    "how many parameters gpt2": ("Parameters > Breakdown",),
    "teacher forcing": ("teacher forcing", "Cross-attention > Two masks"),
    "repetition penalty": ("Sampling > Stage by stage", "repetition penalty"),
    "why multiple heads": ("Attention > Heads",),
    "quadratic attention cost": ("Parameters > FLOPs",),
    "greedy": ("Generation > Beam search", "greedy decoding"),
}


SHOWN = 12  # results
FIND = site.ROOT / "tests" / "js" / "find.mjs"
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


def found(
    there: tuple[Entry, ...], most: dict[str, int], queries: list[tuple[str, str]]
) -> list[list[Entry]]:
    """What the browser's module finds for each (query, kind)."""
    told = {"entries": [asdict(entry) for entry in there], "most": most, "queries": queries}
    ran = subprocess.run(["node", FIND], input=json.dumps(told), capture_output=True, text=True, check=True)
    return [[there[at] for at in each] for each in json.loads(ran.stdout)]


@needs_node
def test_a_query_finds_what_a_person_means() -> None:
    results = found(entries.entries(), MOST, [(query, "") for query in EXPECTED])
    for (query, expected), result in zip(EXPECTED.items(), results, strict=True):
        titles = tuple(entry.title for entry in result)
        assert titles[: len(expected)] == expected, query
        assert len(titles) <= SHOWN and len(set(titles)) >= len(titles) - 2, query


@needs_node
def test_a_question_as_it_stands_on_the_screen_finds_its_view() -> None:
    asked = [(one.title, ask.question) for one in views() for ask in one.asks]
    results = found(entries.entries(), MOST, [(question, "") for _, question in asked])
    assert [(result[0].title, result[0].detail) for result in results] == asked


def test_a_question_of_a_part_and_an_exercise_name_the_part_since_another_may_stand_there() -> None:
    listed = {entry.detail: entry.address for entry in entries.entries() if entry.kind == VIEW}
    assert listed["Can you work it out?"] == "exercises?exercises_view=practise&exercises_on=screen"
    exercises = [entry.address for entry in entries.entries() if entry.kind == EXERCISE]
    assert len(exercises) == len(TASKS) and all("&exercises_on=screen&" in one for one in exercises)


def test_every_entry_leads_to_a_page_and_view_that_are_there() -> None:
    for entry in entries.entries():
        page, _, query = entry.address.partition("?")
        key, ids = views_of(page)
        named = re.search(rf"\b{key}=([\w-]+)", query) if key else None
        assert site.entry_of(page) is not None and (named is None or named[1] in ids), entry
    assert {entry.kind for entry in entries.entries()} == {
        "View",
        "Term",
        "Exercise",
        "Notebook",
        "Course",
        "Scene",
    }


FEW = (
    Entry(VIEW, "Heads", "", "a", about=("attention",)),
    Entry(VIEW, "Norms", "", "b", names=("LayerNorm",), text="attention attention"),
    Entry(TERM, "attention", "", "c", weight=0.5),
)
SLIPS = {
    "att": "a", "head": "a", "heads norms": "a", "layernrom": "b", "layrnorm": "b", "haeds": "a", "kayernorm": "", "heals": "",
    "aaaa bbbb cccc dddd layernrom": "b", "NORM?!": "b", "zzzz": "", "": "", "<script>" * 99: "",
}  # fmt: skip


@needs_node
def test_a_kind_is_limited_beside_others_and_whole_by_itself() -> None:
    beside, alone = found(FEW, {VIEW: 1}, [("attention", ""), ("attention", VIEW)])
    assert [entry.address for entry in beside] == ["a", "c"]
    assert [entry.address for entry in alone] == ["a", "b"]


@needs_node
def test_beginnings_stems_and_slips_match_and_nothing_else() -> None:
    results = found(FEW, {VIEW: 1}, [(query, "") for query in SLIPS])
    first = {query: result[0].address if result else "" for query, result in zip(SLIPS, results, strict=True)}
    assert first == SLIPS


@needs_node
def test_a_term_is_found_among_terms_and_what_the_app_does_not_show_is_not_found() -> None:
    rotary, nothing = found(entries.entries(), MOST, [("rotary", TERM), ("diffusion", "")])
    assert rotary[0].title == "RoPE" and nothing == []


def test_nothing_typed_gives_what_to_begin_with() -> None:
    assert 4 <= len(starts()) <= 6
    assert sum(entry.kind == TERM for entry in entries.entries()) > 60


def test_first_searches_at_the_same_time_gather_the_entries_once(monkeypatch) -> None:
    both, built = threading.Barrier(2), []

    def build() -> tuple[Entry, ...]:
        with suppress(threading.BrokenBarrierError):
            both.wait(0.2)  # for a second search that does not wait
        built.append(FEW)
        return FEW

    monkeypatch.setattr(entries, "_entries", cache(build))
    with ThreadPoolExecutor(2) as searches:
        assert [each.result() for each in [searches.submit(entries.entries) for _ in range(2)]] == [FEW, FEW]
    assert built == [FEW]


@pytest.mark.parametrize("public", [False, True])
def test_a_server_for_many_gathers_the_entries_once_after_a_page(public, monkeypatch) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(route, "shelf", lambda: asked.append(True))
    monkeypatch.setattr(route.session, "profile", lambda: SimpleNamespace(public=public))
    at_once = SimpleNamespace(Thread=lambda target, **_: SimpleNamespace(start=target))
    monkeypatch.setattr(route, "threading", at_once)
    ahead = cache(route.build_ahead.__wrapped__)
    ahead()
    ahead()
    assert asked == [True] * public


def test_the_entries_are_gathered_ahead_when_a_page_has_been_drawn(monkeypatch) -> None:
    drawn: list[str] = []
    monkeypatch.setattr(session, "manager", StageManager)
    monkeypatch.setattr(route, "build_ahead", lambda: drawn.append(visited.last()[0]["title"]))
    opened("app.py", home_view="published")
    assert drawn == ["Home > Published models"]


@pytest.fixture
def client() -> TestClient:
    return TestClient(Starlette(routes=route.routes()))


def test_the_browser_fetches_what_can_be_found_once(client) -> None:
    answer = client.get("/search")
    told = answer.json()
    assert [one["address"] for one in told["entries"]] == [entry.address for entry in entries.entries()]
    assert [told["entries"][at]["title"] for at in told["starts"]] == [entry.title for entry in starts()]
    again = client.get("/search", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content, told["most"]) == (304, b"", MOST)


def test_the_browser_fetches_every_term_of_the_glossary(client) -> None:
    rows = client.get("/terms").json()
    assert [row["id"] for row in rows] == list(terms())
    rope = next(row for row in rows if row["id"] == "rope")
    assert rope["title"] == "RoPE" and rope["text"] == terms()["rope"].text
    assert (rope["page"], rope["href"]) == ("Positions", "./positions?positions_view=rope")


def test_the_printed_list_has_every_question_once_with_its_address(client) -> None:
    page = client.get("/questions").text
    for one in views():
        assert page.count(f">{one.question.replace(chr(39), '&#x27;')}</a>") == 1, one.question
    assert "testserver/" in page and "<script" not in page
    assert "&lt;b&gt;" in question_list("<b>") and "<b>" not in question_list("<b>")
