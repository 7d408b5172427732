"""Search: what a person types finds what they mean, in the order that they expect; and what is printed of it."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from types import SimpleNamespace

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from engine.lab.exercises.catalogue import TASKS
from tests.pages.helpers import opened
from tests.pages.rooms import views as views_of
from tests.pages.stage import StageManager
from ui import session, site, visited
from ui.search import entries, route
from ui.search.entries import index, starts
from ui.search.index import EXERCISE, MOST, TERM, VIEW, Entry, Index
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
    "sofmax": ("Attention > Scores", "Shapes > Two heads by hand"),
    "dpo": ("After pre-training > Reward", "DPO"),
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
}


@pytest.mark.parametrize("query", EXPECTED)
def test_a_query_finds_what_a_person_means(query) -> None:
    titles = tuple(entry.title for entry in index().find(query))
    assert titles[: len(EXPECTED[query])] == EXPECTED[query]
    assert len(titles) <= MOST and len(set(titles)) >= len(titles) - 2


def test_a_question_as_it_stands_on_the_screen_finds_its_view() -> None:
    for one in views():
        for ask in one.asks:
            first = index().find(ask.question)[0]
            assert (first.title, first.detail) == (one.title, ask.question), ask.question


def test_a_question_of_a_part_and_an_exercise_name_the_part_since_another_may_stand_there() -> None:
    listed = {entry.detail: entry.address for entry in index().entries if entry.kind == VIEW}
    assert listed["Can you work it out?"] == "exercises?exercises_view=practise&exercises_on=screen"
    exercises = [entry.address for entry in index().entries if entry.kind == EXERCISE]
    assert len(exercises) == len(TASKS) and all("&exercises_on=screen&" in one for one in exercises)


def test_every_entry_leads_to_a_page_and_view_that_are_there() -> None:
    for entry in index().entries:
        page, _, query = entry.address.partition("?")
        key, ids = views_of(page)
        named = re.search(rf"\b{key}=([\w-]+)", query) if key else None
        assert site.entry_of(page) is not None and (named is None or named[1] in ids), entry
    assert {entry.kind for entry in index().entries} == {
        "View",
        "Term",
        "Exercise",
        "Notebook",
        "Course",
        "Scene",
    }


FEW = Index(
    [
        Entry(VIEW, "Heads", "", "a", about=("attention",)),
        Entry(VIEW, "Norms", "", "b", names=("LayerNorm",), text="attention attention"),
        Entry(TERM, "attention", "", "c", weight=0.5),
    ],
    {VIEW: 1},
)


def test_a_kind_is_limited_beside_others_and_whole_by_itself() -> None:
    assert [entry.address for entry in FEW.find("attention")] == ["a", "c"]
    assert [entry.address for entry in FEW.find("attention", kind=VIEW)] == ["a", "b"]


@pytest.mark.parametrize(
    "query, address",
    {
        "att": "a",
        "head": "a",
        "heads norms": "a",
        "layernrom": "b",
        "layrnorm": "b",
        "haeds": "a",
        "kayernorm": "",
        "heals": "",
        "aaaa bbbb cccc dddd layernrom": "",
        "NORM?!": "b",
        "zzzz": "",
        "": "",
        "<script>" * 99: "",
    }.items(),
)
def test_beginnings_stems_and_slips_match_and_nothing_else(query, address) -> None:
    assert [entry.address for entry in FEW.find(query)][:1] == [address] * bool(address)


def test_nothing_typed_gives_what_to_begin_with_and_of_terms_all() -> None:
    assert route.results(" ") == list(starts()) and 4 <= len(starts()) <= 6
    shown = route.results("", TERM)
    assert {entry.kind for entry in shown} == {TERM} and len(shown) > 60
    assert route.results("rotary", TERM)[0].title == "RoPE"


def test_what_the_app_does_not_show_finds_nothing() -> None:
    assert index().find("mixture of experts") == []


def test_first_searches_at_the_same_time_build_one_index(monkeypatch) -> None:
    both, built = threading.Barrier(2), []

    def build() -> Index:
        with suppress(threading.BrokenBarrierError):
            both.wait(0.2)  # for a second search that does not wait
        built.append(FEW)
        return FEW

    monkeypatch.setattr(entries, "_index", cache(build))
    with ThreadPoolExecutor(2) as searches:
        assert [each.result() for each in [searches.submit(entries.index) for _ in range(2)]] == [FEW, FEW]
    assert built == [FEW]


@pytest.mark.parametrize("public", [False, True])
def test_a_server_for_many_builds_the_index_once_after_a_page(public, monkeypatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(route, "results", asked.append)
    monkeypatch.setattr(route.session, "profile", lambda: SimpleNamespace(public=public))
    at_once = SimpleNamespace(Thread=lambda target, args, **_: SimpleNamespace(start=lambda: target(*args)))
    monkeypatch.setattr(route, "threading", at_once)
    ahead = cache(route.build_ahead.__wrapped__)
    ahead()
    ahead()
    assert asked == [""] * public


def test_the_index_is_built_ahead_when_a_page_has_been_drawn(monkeypatch) -> None:
    drawn: list[str] = []
    monkeypatch.setattr(session, "manager", StageManager)
    monkeypatch.setattr(route, "build_ahead", lambda: drawn.append(visited.last()[0]["title"]))
    opened("app.py", home_view="published")
    assert drawn == ["Home > Published models"]


@pytest.fixture
def client() -> TestClient:
    return TestClient(Starlette(routes=route.routes()))


def test_the_route_answers_with_rows_and_reads_no_more_than_a_line(client) -> None:
    rows = client.get("/search", params={"q": "perplexity " * 500}).json()
    assert rows[0]["address"] == "sampling?sampling_view=likelihood"
    assert set(rows[0]) == {"kind", "title", "detail", "address"}


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
